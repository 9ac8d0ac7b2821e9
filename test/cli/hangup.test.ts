import { afterAll, expect, test } from "bun:test";
import { Cleanup } from "../harness/processes/cleanup.ts";
import { NINEFOLD_COMMAND, ServerProcess } from "../harness/processes/server-process.ts";

const TIMEOUT_MS = 180_000;
const POLL_MS = 20;

const cleanup = new Cleanup();
afterAll(() => cleanup.run());

test(
  "SIGHUP, which asks other programs to read their files again, ends no server, and is logged",
  async () => {
    const args = ["--port", "0", "--data", cleanup.folder("hangup")];
    const server = await ServerProcess.start({ command: NINEFOLD_COMMAND, args });
    process.kill(server.pid, "SIGHUP");
    while (!server.log.includes("SIGHUP is ignored")) await Bun.sleep(POLL_MS);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    process.kill(server.pid, "SIGTERM");
    expect(await server.exited).toBe(0);
  },
  TIMEOUT_MS,
);
