import { afterEach, beforeEach, describe, expect, mock, test } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import { StartupError } from "../../src/kernel/errors.ts";
import { createLogger } from "../../src/kernel/log.ts";
import { createSystemClock } from "../../src/kernel/time/clock.ts";
import { type Server, type ServerDeps, startServer } from "../../src/server.ts";
import { KeptLog, rejection, Scratch } from "./support.ts";

const log = createLogger(createSystemClock(), { level: "error" });
const config = loadConfig(["--ephemeral"], {});

let scratch: Scratch;
beforeEach(() => {
  scratch = new Scratch();
});
afterEach(() => scratch.remove());

function start(deps: ServerDeps = {}): Promise<Server> {
  return startServer(scratch.folder, config, { log, ...deps });
}

test("a server says when its first request arrives, before it serves it", async () => {
  const works = mock();
  const server = await start({ onFirstWork: works });
  await Bun.sleep(0);
  expect(works).not.toHaveBeenCalled();
  const { requests } = server.app.http;
  works.mockImplementation(() => expect(requests.answered).toBe(0));
  for (const path of ["/healthz", "/docs", "/v1/meter"]) await fetch(server.url + path);
  expect(works).toHaveBeenCalledTimes(1);
  expect(requests.answered).toBe(3);
  await server.stop();
});

test("a page is a request too", async () => {
  const works = mock();
  const server = await start({ onFirstWork: works });
  await fetch(`${server.url}/docs`);
  expect(works).toHaveBeenCalledTimes(1);
  await server.stop();
});

test("a server says when it works without requests", async () => {
  const works = mock();
  const server = await start({ onFirstWork: works });
  const { writer } = server.kernel;
  const work = (units: number) =>
    Promise.all(Array.from({ length: units }, () => writer.submitInBackground(() => undefined)));
  await work(900);
  expect(works).not.toHaveBeenCalled();
  await work(100);
  await work(100);
  expect(works).toHaveBeenCalledTimes(1);
  await server.stop();
});

describe("the announcement of a server", () => {
  test("is made with its URL when it listens", async () => {
    const told: (string | null)[] = [];
    const server = await start({
      announce: async ({ operator, url }) => {
        told.push(operator.key, url);
      },
    });
    expect(told).toEqual([server.operator.key, server.url]);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    await server.stop();
  });

  test("that fails ends the server, and its folder can be used again", async () => {
    let told = "";
    const failing = start({
      announce: async ({ url }) => {
        told = url;
        throw new StartupError("Standard output cannot be written.");
      },
    });
    expect(await rejection(failing)).toEqual(new StartupError("Standard output cannot be written."));
    expect(String(await rejection(fetch(told)))).toContain("ECONNREFUSED");
    const server = await start();
    expect(server.operator.key).toStartWith("sm_");
    await server.stop();
  });
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

test("a server that is stopped immediately has logged its start before its end", async () => {
  const kept = new KeptLog();
  const server = await start({ log: kept });
  await server.stop();
  expect(kept.messages("info")).toEqual(["server started", "server stopped"]);
});
