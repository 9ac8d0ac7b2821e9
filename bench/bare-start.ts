// The least that a compiled server does at its start: it opens a database, listens, and says so as Ninefold does.
import { Database } from "bun:sqlite";

new Database(":memory:").run("CREATE TABLE rows (value)");
const { url } = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  development: false,
  fetch: () => new Response(),
});
process.on("SIGTERM", () => process.exit(0));
console.log(JSON.stringify({ url: url.origin, pid: process.pid }));
