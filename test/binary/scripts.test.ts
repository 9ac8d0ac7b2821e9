import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Binaries, runToEnd, TIMEOUT_MS } from "./support.ts";

const binaries = new Binaries();
afterAll(() => binaries.close());

test(
  "plan, apply, export, serve --apply, lock and ping: the exit codes of the executable",
  async () => {
    const path = join(binaries.folder, "ninefold.yaml");
    const flag = (name: string) => `ninefold: 1\nflags:\n  ${name}: { enabled: true }\n`;
    writeFileSync(path, flag("first"));
    const server = await binaries.start(["--ephemeral", "--apply", path]);
    const own = { NINEFOLD_URL: server.url, NINEFOLD_API_KEY: server.key ?? "" };
    expect(await runToEnd(["plan", path], own)).toEqual({ code: 0, out: "No changes.\n", error: "" });
    writeFileSync(path, flag("second"));
    const changed = await runToEnd(["plan", path, "--json"], own);
    expect(changed.code).toBe(2);
    expect(JSON.parse(changed.out)).toEqual({
      changes: [{ action: "create", kind: "flags", name: "second", fields: [] }],
    });
    expect((await runToEnd(["apply", path, "--yes"], own)).code).toBe(0);
    expect((await runToEnd(["export"], own)).out).toContain("second:\n    enabled: true\n");
    expect((await runToEnd(["plan"], own)).code).toBe(1);
    expect((await runToEnd(["lock", "job", "--", "sh", "-c", "exit 4"], own)).code).toBe(4);
    expect((await runToEnd(["ping", `${server.url}/ping/none`, "--", "/nowhere/at-all"], own)).code).toBe(
      127,
    );
  },
  TIMEOUT_MS,
);
