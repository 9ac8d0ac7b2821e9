// Builds what the server's sources import and nobody writes: the console, the guides and the template of a new database.
import "./dashboard.ts";
import "./guides.ts";
import "./template.ts";
