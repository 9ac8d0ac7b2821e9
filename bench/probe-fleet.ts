// Runs many probes in one process, as `ninefold probe` runs one: bun probe-fleet.ts URL FILE. The file has one token a
// line. Ends with SIGTERM.
import { readFileSync } from "node:fs";
import { Probing } from "../src/cli/probe/probe.ts";
import { ProbeServer } from "../src/cli/probe/server.ts";
import { OutboundClient } from "../src/kernel/outbound/client.ts";

const [url = "", file = ""] = process.argv.slice(2);
const ended = new AbortController();
process.on("SIGTERM", () => ended.abort());
const tokens = readFileSync(file, "utf8").trim().split("\n");
await Promise.all(
  tokens.map((token) => {
    const outbound = new OutboundClient(["127.0.0.0/8"]);
    return new Probing(new ProbeServer(url, token), outbound, [], ended.signal).work();
  }),
);
process.exit();
