import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { timeOfScheduled } from "../../src/backup/files.ts";
import { loadConfig } from "../../src/config.ts";
import { StartupError } from "../../src/kernel/errors.ts";
import { thrown } from "../kernel/support.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../support/server.ts";
import { ninefold, TIMEOUT_MS } from "./support.ts";

const HOUR_MS = 60 * 60 * 1000;
/** The clock stands at 12:00; the first of these times is 13:00. */
const HOURLY = "0 * * * *";

let folder: string;
let server: TestServer | null = null;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "ninefold-scheduled-")), "backups");
});
afterEach(async () => {
  await server?.stop();
  server = null;
  rmSync(join(folder, ".."), { recursive: true, force: true });
});

async function start(keep = 7, cron = HOURLY): Promise<TestServer> {
  const args = ["--backup-dir", folder, "--backup-cron", cron, "--backup-keep", `${keep}`];
  server = await startTestServer({ manualClock: true, args });
  return server;
}

const files = () => readdirSync(folder).sort();
const messages = (running: TestServer, level: string) =>
  running.logs
    .filter((line) => line.level === level)
    .map(({ message, fields }) => `${message}: ${fields["file"]} ${fields["error"] ?? ""}`);

describe("scheduled backups", () => {
  test(
    "run at their times, verify, and delete only the oldest ones after a new one is complete",
    async () => {
      const running = await start(2);
      expect(statSync(folder).mode & 0o777).toBe(0o700);
      expect(running.server.app.lastBackupAt()).toBeNull();
      const others = [
        "ninefold-20250101T000000Z.db.bak",
        "ninefold-20251301T000000Z.db",
        "ninefold-2025.db",
        "other.db",
      ];
      for (const name of others) writeFileSync(join(folder, name), "");
      const seen: string[][] = [];
      for (let hour = 1; hour <= 3; hour += 1) {
        await running.operator.post("/v1/meter/m/refill", { amount: 1 });
        await running.clock.advance(HOUR_MS);
        expect(running.server.app.lastBackupAt()).toBe(TEST_START_MS + hour * HOUR_MS);
        seen.push(files().filter((name) => !others.includes(name)));
      }
      expect(seen).toEqual([
        ["ninefold-20260310T130000Z.db"],
        ["ninefold-20260310T130000Z.db", "ninefold-20260310T140000Z.db"],
        ["ninefold-20260310T140000Z.db", "ninefold-20260310T150000Z.db"],
      ]);
      expect(files().filter((name) => others.includes(name))).toEqual(others.toSorted());
      const restored = join(folder, "..", "restored");
      expect(
        (await ninefold(["restore", join(folder, "ninefold-20260310T150000Z.db"), "--data", restored])).code,
      ).toBe(0);
      expect(messages(running, "error")).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "that fail are logged, delete no old one, and run again at the next scheduled time",
    async () => {
      const running = await start(1);
      await running.clock.advance(HOUR_MS);
      mkdirSync(join(folder, "ninefold-20260310T140000Z.db"));
      await running.clock.advance(HOUR_MS);
      expect(messages(running, "error")).toEqual([
        `a scheduled backup failed; the next one runs at the next scheduled time: ${folder}/ninefold-20260310T140000Z.db ${folder}/ninefold-20260310T140000Z.db is a folder: name a file in it.`,
      ]);
      expect(files()).toContain("ninefold-20260310T130000Z.db");
      expect(running.server.app.lastBackupAt()).toBe(TEST_START_MS + HOUR_MS);
      await running.clock.advance(HOUR_MS);
      expect(files()).toEqual(["ninefold-20260310T140000Z.db", "ninefold-20260310T150000Z.db"]);
      expect(messages(running, "error")).toHaveLength(1);
    },
    TIMEOUT_MS,
  );

  test(
    "with a name in the future are not the newest, and do not cause the new one to be deleted",
    async () => {
      mkdirSync(folder, { recursive: true });
      const ahead = ["ninefold-20300101T000000Z.db", "ninefold-20300102T000000Z.db"];
      for (const name of ahead) writeFileSync(join(folder, name), "");
      const running = await start(1);
      expect(running.server.app.lastBackupAt()).toBeNull();
      await running.clock.advance(HOUR_MS);
      expect(files()).toEqual(["ninefold-20260310T130000Z.db", ...ahead]);
      await running.clock.advance(HOUR_MS);
      expect(files()).toEqual(["ninefold-20260310T140000Z.db", ...ahead]);
      expect(messages(running, "error")).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "missed during a downtime run once, soon after the start",
    async () => {
      const running = await start();
      await running.clock.advance(HOUR_MS);
      await running.server.stop();
      await running.clock.advance(5 * HOUR_MS + 120_000);
      await running.start();
      expect(running.server.app.lastBackupAt()).toBe(TEST_START_MS + HOUR_MS);
      await running.clock.advance(0);
      expect(files()).toEqual(["ninefold-20260310T130000Z.db", "ninefold-20260310T180200Z.db"]);
      expect(running.server.app.lastBackupAt()).toBe(TEST_START_MS + 6 * HOUR_MS + 120_000);
      await running.clock.advance(HOUR_MS);
      expect(files().at(-1)).toBe("ninefold-20260310T190000Z.db");
    },
    TIMEOUT_MS,
  );

  test(
    "in progress at a stop are cancelled, leave no file, and run after the next start",
    async () => {
      const running = await start();
      const advancing = running.clock.advance(HOUR_MS);
      while (running.server.kernel.scheduler.running === 0) await Bun.sleep(1);
      await Bun.sleep(50);
      await running.server.stop();
      await advancing;
      expect(files().filter((name) => name.includes("partial"))).toEqual([]);
      expect(messages(running, "error")).toEqual([]);
      const first = files().length;
      await running.start();
      await running.clock.advance(0);
      expect(files()).toEqual(["ninefold-20260310T130000Z.db"]);
      expect(first).toBe(0);
    },
    TIMEOUT_MS,
  );

  test(
    "remove temporary files of a killed backup",
    async () => {
      const running = await start();
      const killed = Bun.spawnSync(["true"]).pid;
      for (const side of ["", "-wal"])
        writeFileSync(join(folder, `ninefold-20260310T120000Z.db.${killed}.partial${side}`), "");
      await running.clock.advance(HOUR_MS);
      expect(files()).toEqual(["ninefold-20260310T130000Z.db"]);
    },
    TIMEOUT_MS,
  );
});

describe("options that are rejected at the start", () => {
  const cases: readonly (readonly [args: string[], message: RegExp])[] = [
    [
      ["--backup-dir", "/x", "--backup-cron", "now"],
      /^backup_cron: "now" is not a cron expression such as "0 3 \* \* \*"/,
    ],
    [
      ["--backup-dir", "/x", "--backup-cron", "0 0 31 2 *"],
      /^backup_cron: "0 0 31 2 \*" is not a cron expression/,
    ],
    [["--backup-dir", "/x", "--backup-keep", "0"], /^--backup-keep must be a number from 1 to 10000\.$/],
    [["--backup-dir", "/x", "--backup-keep", "10001"], /^--backup-keep must be a number from 1 to 10000\.$/],
    [["--backup-cron", HOURLY], /^backup_cron needs backup_dir/],
    [["--backup-keep", "3"], /^backup_keep needs backup_dir/],
  ];
  test.each(cases)("%p", (args, message) => {
    const error = thrown(() => loadConfig(args, {}));
    expect(error).toBeInstanceOf(StartupError);
    expect((error as StartupError).message).toMatch(message);
  });

  test("rejects a folder that is not writable", async () => {
    writeFileSync(folder, "");
    await expect(start()).rejects.toThrow(/^backup_dir: .* cannot be written/);
  });
});

test("parses names to the second and ignores others", () => {
  expect(timeOfScheduled("ninefold-20261121T030000Z.db")).toBe(Date.UTC(2026, 10, 21, 3));
  for (const name of [
    "ninefold-20261121T030000Z.db-wal",
    "xninefold-20261121T030000Z.db",
    "ninefold-20261131T030000Z.db",
    "ninefold-20261121T250000Z.db",
  ])
    expect(timeOfScheduled(name)).toBeNull();
});
