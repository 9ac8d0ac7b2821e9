// A server whose archive deletes what is older than seconds, which no option permits. It is started like `ninefold serve --json`.
import { mkdirSync } from "node:fs";
import { loadConfig } from "../../../src/config.ts";
import { startServer } from "../../../src/server.ts";
import { RETENTION } from "./retention.ts";

const [, ...flags] = process.argv.slice(2);
const config = loadConfig(flags, process.env);
mkdirSync(config.dataFolder, { recursive: true });
const server = await startServer(config.dataFolder, config, { archive: RETENTION });
process.on("SIGTERM", async () => {
  await server.stop();
  process.exit(0);
});
const { url, operator } = server;
const key = operator.key === null ? {} : { api_key: operator.key };
process.stdout.write(`${JSON.stringify({ url, ...key, user_id: operator.userId, pid: process.pid })}\n`);
if (operator.key !== null) await server.app.accounts.markOperatorAnnounced();
