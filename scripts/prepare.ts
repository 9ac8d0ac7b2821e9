// Builds what the server's sources import and nobody writes: the console and the template of a new database.
import "./dashboard.ts";
import "./template.ts";
