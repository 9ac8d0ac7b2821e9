import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { plainEnvironment } from "../harness/processes/server-process.ts";
import { Binaries, executable, operatorOf, runToEnd, TIMEOUT_MS } from "./support.ts";

const binaries = new Binaries();
afterAll(() => binaries.close());

test(
  "plan, apply, export, serve --apply, lock and ping: the exit codes of the executable",
  async () => {
    const path = join(binaries.folder, "ninefold.yaml");
    const flag = (name: string) => `ninefold: 1\nflags:\n  ${name}: { enabled: true }\n`;
    writeFileSync(path, flag("first"));
    const server = await binaries.start(["--ephemeral", "--apply", path]);
    const own = {
      NINEFOLD_URL: server.url,
      NINEFOLD_API_KEY: server.key ?? "",
    };
    expect(await runToEnd(["plan", path], own)).toEqual({
      code: 0,
      out: "No changes.\n",
      error: "",
    });
    writeFileSync(path, flag("second"));
    const changed = await runToEnd(["plan", path, "--json"], own);
    expect(changed.code).toBe(2);
    expect(JSON.parse(changed.out)).toEqual({
      changes: [{ action: "create", kind: "flags", name: "second", fields: [] }],
      warnings: [expect.stringContaining("To rename it, add renamed_from: first")],
    });
    expect((await runToEnd(["apply", path, "--yes"], own)).code).toBe(0);
    expect((await runToEnd(["export"], own)).out).toContain("second:\n    enabled: true\n");
    expect((await runToEnd(["plan"], own)).code).toBe(1);
    // Of a reviewed project: 3 as long as somebody else has to approve something.
    writeFileSync(path, `${flag("second")}review: true\n`);
    expect((await runToEnd(["apply", path, "--yes"], own)).code).toBe(0);
    writeFileSync(path, `${flag("third")}review: true\n`);
    for (const run of ["proposes", "finds its proposal"])
      expect([run, (await runToEnd(["apply", path, "--yes"], own)).code]).toEqual([run, 3]);
    const { body } = await operatorOf(server).get("/v1/gate/config/proposals?status=open");
    expect(body["proposals"]).toMatchObject([{ flag_key: "third", before: null }]);
    expect((await runToEnd(["lock", "job", "--", "sh", "-c", "exit 4"], own)).code).toBe(4);
    expect((await runToEnd(["ping", `${server.url}/ping/none`, "--", "/nowhere/at-all"], own)).code).toBe(
      127,
    );
  },
  TIMEOUT_MS,
);

test(
  "lock and ping: signals, a held and a lost lock, the end of the output",
  async () => {
    const server = await binaries.start(["--ephemeral"]);
    const own = {
      NINEFOLD_URL: server.url,
      NINEFOLD_API_KEY: server.key ?? "",
    };
    const operator = operatorOf(server);
    const { body: monitor } = await operator.post("/v1/pulse", {
      type: "heartbeat",
      slug: "job",
    });
    const begin = (args: readonly string[]) =>
      Bun.spawn([executable(), ...args, "--", "sh", "-c", "echo ready; exec sleep 60"], {
        env: plainEnvironment(own),
        stdin: "ignore",
        stdout: "pipe",
        stderr: "ignore",
      });
    const pinging = begin(["ping", String(monitor["ping_url"])]);
    const locking = begin(["lock", "job", "--ttl", "2s"]);
    for (const child of [pinging, locking]) await child.stdout.getReader().read();
    pinging.kill("SIGTERM");
    expect(await pinging.exited).toBe(128 + 15);
    expect((await runToEnd(["lock", "job", "--", "true"], own)).code).toBe(75);
    const { locks } = (await operator.get("/v1/latch")).body as {
      locks: { fencing_token: number }[];
    };
    await operator.post("/v1/latch/job/force-release", {
      fencing_token: locks[0]?.fencing_token,
    });
    await operator.post("/v1/latch/job/acquire", { ttl: 60_000 });
    expect(await locking.exited).toBe(128 + 15);
    const script = "head -c 20000 /dev/zero | tr '\\0' x; echo last";
    const printed = await runToEnd(["ping", String(monitor["ping_url"]), "--", "sh", "-c", script], own);
    expect(printed.out).toHaveLength(20_005);
    const { pings } = (await operator.get(`/v1/pulse/${monitor["id"]}/pings`)).body as {
      pings: { body: string }[];
    };
    expect(pings[0]?.body).toBe(`${"x".repeat(9_995)}last\n`);
  },
  TIMEOUT_MS,
);
