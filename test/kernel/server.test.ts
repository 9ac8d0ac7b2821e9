import { afterEach, beforeEach, expect, test } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import { StartupError } from "../../src/kernel/errors.ts";
import { createLogger } from "../../src/kernel/log.ts";
import { createSystemClock } from "../../src/kernel/time/clock.ts";
import { type Server, type ServerParts, startServer } from "../../src/server.ts";
import { rejection, Scratch } from "./support.ts";

const log = createLogger(createSystemClock(), { level: "error" });
const config = loadConfig(["--ephemeral"], {});

let scratch: Scratch;
beforeEach(() => {
  scratch = new Scratch();
});
afterEach(() => scratch.remove());

function start(parts: ServerParts = {}): Promise<Server> {
  return startServer(scratch.folder, config, { log, ...parts });
}

async function isUsed({ used }: Server): Promise<boolean> {
  return Promise.race([used.then(() => true), Promise.resolve(false)]);
}

test("a server is in use after its first response", async () => {
  const server = await start();
  await Bun.sleep(0);
  expect(await isUsed(server)).toBe(false);
  await fetch(`${server.url}/healthz`);
  await server.used;
  await server.stop();
});

test("or when it has worked without requests", async () => {
  const server = await start();
  const { writer } = server.kernel;
  const work = (units: number) =>
    Promise.all(Array.from({ length: units }, () => writer.submitInBackground(() => undefined)));
  await work(900);
  expect(await isUsed(server)).toBe(false);
  await work(100);
  await server.used;
  await server.stop();
});

test("a server that cannot listen in the end has ended its work, and its folder can be used again", async () => {
  // More than the runtime takes, which it says only when it is to serve.
  const error = await rejection(start({ idleTimeoutSeconds: 1_000 }));
  expect(error).toBeInstanceOf(StartupError);
  expect((error as StartupError).message).toStartWith("Cannot listen on 127.0.0.1 port 0 (");
  const server = await start();
  expect(server.operator.key).toStartWith("sm_");
  await server.stop();
});
