// Builds the generated files that the server's sources import: the console, the guides, the licences and the template
// of a new database.
import "./dashboard.ts";
import "./guides.ts";
import "./licenses.ts";
import "./template.ts";
