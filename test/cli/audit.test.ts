import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { switchFlag } from "../areas/audit/support.ts";
import { loggedIn } from "../areas/session/support.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { ninefold, ROOT } from "./run.ts";

let server: TestServer;
let environment: Record<string, string>;
beforeAll(async () => {
  server = await startTestServer();
  environment = { NINEFOLD_API_KEY: server.key, NINEFOLD_URL: server.url };
});
afterAll(() => server.stop());

describe("ninefold audit", () => {
  test("prints the newest entries last, of one account or of all", async () => {
    await switchFlag(server.operator, "one", true);
    await switchFlag(server.operator, "two", true);
    const own = await ninefold(["audit"], { environment });
    expect(own.code, own.error).toBe(0);
    const lines = own.out.trimEnd().split("\n");
    expect(lines.map((line) => line.split("  ")[2])).toEqual([
      "Flag one created, on",
      "Flag two created, on",
    ]);
    const all = await ninefold(["audit", "--all", "--json"], { environment });
    const actions = all.out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).action);
    expect(actions).toEqual(["server.start", "gate.save", "gate.save"]);
  });

  test("rejects --follow on the folder of a stopped server", async () => {
    const { code, error: stderr } = await ninefold(["audit", "--follow", "--data", server.folder]);
    expect(code).toBe(2);
    expect(stderr).toContain("--follow requires a running server");
  });

  test("--follow prints new entries", async () => {
    const child = Bun.spawn([process.execPath, "src/main.ts", "audit", "--follow"], {
      cwd: ROOT,
      env: { ...process.env, ...environment },
      stdout: "pipe",
    });
    let text = "";
    const decoder = new TextDecoder();
    let sent = false;
    for await (const chunk of child.stdout) {
      text += decoder.decode(chunk, { stream: true });
      if (!sent && text.includes("Flag two")) {
        sent = true;
        await switchFlag(server.operator, "three", true);
      }
      if (text.includes("Flag three created, on")) break;
    }
    child.kill("SIGINT");
    expect(await child.exited).toBe(0);
    expect(text.match(/Flag two/g)).toHaveLength(1);
  }, 60_000);
});

test("ninefold dashboard prints a link that logs in, also on the folder of a stopped server", async () => {
  const { out: stdout, code, error: stderr } = await ninefold(["dashboard", "--json"], { environment });
  expect(code, stderr).toBe(0);
  const link = String(JSON.parse(stdout).url);
  expect(link).toStartWith(`${server.url}/dashboard/#/setup/`);
  await server.server.stop();
  const offline = await ninefold(["dashboard", "--data", server.folder, "--json"]);
  expect(offline.code, offline.error).toBe(0);
  const url = String(JSON.parse(offline.out).url);
  expect(url).toStartWith("http://127.0.0.1:9909/dashboard/#/setup/");
  await server.start();
  const rows = await server.operator.get("/v1/audit?action=admin.*");
  expect((rows.body.entries as { actor: { type: string } }[]).map(({ actor }) => actor.type)).toEqual([
    "cli",
    "key",
  ]);
  const mine = await loggedIn(server, server.key);
  for (const item of [link, url]) {
    const answer = await mine.post("/v1/session", { link: item.split("#/setup/")[1] });
    expect(answer.status, answer.text).toBe(201);
  }
});
