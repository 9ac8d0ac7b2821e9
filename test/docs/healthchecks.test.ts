import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeHeartbeat, type TestHeartbeat } from "../support/heartbeats.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";
import { readWritten } from "./page.ts";

/** Interpreters start slowly on a busy machine. */
const TIMEOUT_MS = 60_000;
const UUID = "your-uuid-here";

let server: TestServer;
let account: AccountClient;
let folder: string;
beforeAll(async () => {
  server = await startTestServer({});
  account = await server.account();
  folder = mkdtempSync(join(tmpdir(), "ninefold-healthchecks-"));
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

async function run(command: readonly string[]): Promise<{ code: number; out: string }> {
  const child = Bun.spawn([...command], { stdout: "pipe", stderr: "pipe", cwd: folder });
  const [out, error] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, out: out + (child.exitCode === 0 ? "" : error) };
}

async function pingsOf(beat: TestHeartbeat): Promise<unknown[][]> {
  const { body } = await account.get(`/v1/pulse/${beat.id}/pings`);
  const pings = body["pings"] as { kind: string; exit: number | null; body: string | null }[];
  return pings.map((ping) => [ping.kind, ping.exit, ping.body]).reverse();
}

/** Lines from Healthchecks' documentation, and the result of each: kind, exit status and body of its pings. */
const LINES: readonly (readonly [line: string, pings: readonly unknown[][]])[] = [
  [`curl -m 10 --retry 5 https://hc-ping.com/${UUID}`, [["success", null, null]]],
  [`curl -fsS -m 10 --retry 5 -o /dev/null https://hc-ping.com/${UUID}`, [["success", null, null]]],
  [`curl --retry 3 https://hc-ping.com/${UUID}/fail`, [["fail", null, null]]],
  [`false; curl -m 10 --retry 5 https://hc-ping.com/${UUID}/$?`, [["fail", 1, null]]],
  [
    `m=$(echo "Certificate not yet due for renewal" 2>&1); curl -fsS -m 10 --retry 5 --data-raw "$m" https://hc-ping.com/${UUID}/$?`,
    [["success", 0, "Certificate not yet due for renewal"]],
  ],
  [
    `curl -fsS -m 10 --retry 5 https://hc-ping.com/${UUID}/start; curl -fsS -m 10 --retry 5 --data-raw "the log" https://hc-ping.com/${UUID}/log; curl -fsS -m 10 --retry 5 https://hc-ping.com/${UUID}`,
    [
      ["start", null, null],
      ["log", null, "the log"],
      ["success", null, null],
    ],
  ],
  [
    `RID=$(cat /proc/sys/kernel/random/uuid); curl -fsS -m 10 --retry 5 "https://hc-ping.com/${UUID}/start?rid=$RID"; curl -fsS -m 10 --retry 5 "https://hc-ping.com/${UUID}?rid=$RID"`,
    [
      ["start", null, null],
      ["success", null, null],
    ],
  ],
];

test.each(LINES)("%s", async (line, expected) => {
  const beat = await makeHeartbeat(server, account);
  const ours = line.replaceAll(`https://hc-ping.com/${UUID}`, server.url + beat.path);
  const { code, out } = await run(["sh", "-c", ours]);
  expect({ code, out }).toMatchObject({ code: 0 });
  expect(await pingsOf(beat)).toEqual(expected as unknown[][]);
});

/** The block of a language in the guide, with the check's own address. */
function blockOf(language: string, beat: TestHeartbeat): string {
  const page = readWritten("docs/guides/migrating-from-healthchecks.md");
  const [, block = ""] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "ms").exec(page) ?? [];
  return block.replaceAll("PING_URL", server.url + beat.path);
}

test("the crontab's line of the guide, as cron runs it", async () => {
  const beat = await makeHeartbeat(server, account);
  const line = blockOf("crontab", beat).trim();
  const command = line.split(" ").slice(5).join(" ");
  expect(await run(["sh", "-c", command])).toEqual({ code: 0, out: "" });
  expect(await pingsOf(beat)).toEqual([["success", null, null]]);
});

const python = Bun.which("python3");
test.skipIf(python === null)(
  "the Python of the guide, which says so where a ping fails",
  async () => {
    const beat = await makeHeartbeat(server, account);
    writeFileSync(join(folder, "ping.py"), blockOf("python", beat));
    expect(await run([python ?? "", "ping.py"])).toEqual({ code: 0, out: "" });
    expect(await pingsOf(beat)).toEqual([["success", null, null]]);
    writeFileSync(join(folder, "ping.py"), blockOf("python", { ...beat, path: "/ping/none" }));
    expect((await run([python ?? "", "ping.py"])).out).toContain("Ping failed");
  },
  TIMEOUT_MS,
);
