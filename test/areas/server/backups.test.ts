import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ninefold, TIMEOUT_MS } from "../../backup/support.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { newestOf } from "../audit/support.ts";

const HOUR_MS = 60 * 60 * 1000;
const PATH = "/v1/admin/backups";
const FIRST = "ninefold-20260310T120000Z.db";

let folder: string;
let server: TestServer | null = null;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "ninefold-asked-")), "backups");
});
afterEach(async () => {
  await server?.stop();
  server = null;
  rmSync(join(folder, ".."), { recursive: true, force: true });
});

async function start(args: readonly string[] = []): Promise<TestServer> {
  const more = ["--backup-dir", folder, "--backup-cron", "0 * * * *", ...args];
  server = await startTestServer({ manualClock: true, args: more });
  return server;
}

const list = async ({ operator }: TestServer, query = "") => (await operator.get(PATH + query)).body;
const errors = ({ logs }: TestServer) => logs.filter(({ level }) => level === "error");
const names = ({ backups }: { backups?: unknown }) => (backups as { name: string }[]).map(({ name }) => name);

describe("the list of backups", () => {
  test("contains the files with such names, newest first, page by page, also those with a time in the future", async () => {
    mkdirSync(folder, { recursive: true });
    const made = ["20260308", "20260309", "20300101"].map((day) => `ninefold-${day}T030000Z.db`);
    for (const name of made) writeFileSync(join(folder, name), "12345");
    for (const name of ["other.db", "ninefold-20260308T030000Z.db-wal"])
      writeFileSync(join(folder, name), "");
    mkdirSync(join(folder, "ninefold-20260307T030000Z.db"));
    const running = await start();
    const all = await list(running);
    expect(all).toEqual({
      plan: {
        folder,
        cron: "0 * * * *",
        keep: 7,
        next_at: "2026-03-10T13:00:00.000Z",
        // The last backup is from yesterday.
        overdue: true,
      },
      running: null,
      failure: null,
      backups: [
        { name: made[2], size: 5, created_at: "2030-01-01T03:00:00.000Z" },
        { name: made[1], size: 5, created_at: "2026-03-09T03:00:00.000Z" },
        { name: made[0], size: 5, created_at: "2026-03-08T03:00:00.000Z" },
      ],
    } as never);
    const first = await list(running, "?limit=2");
    expect(names(first)).toEqual(made.slice(1).toReversed());
    const second = await list(running, `?limit=2&cursor=${first.cursor}`);
    expect(names(second)).toEqual([made[0] as string]);
    expect(second.cursor).toBeUndefined();
    for (const query of ["?limit=0", "?limit=101", "?cursor=x"])
      expectError(await running.operator.get(PATH + query), "validation_error");
  });

  test("is empty on a server without a backup folder, which rejects requests for one", async () => {
    server = await startTestServer({ manualClock: true });
    expect(await list(server)).toEqual({ plan: null, running: null, failure: null, backups: [] });
    const { error } = expectError(await server.operator.post(PATH), "invalid_request");
    expect(error.message).toContain("--backup-dir");
  });
});

describe("a requested backup", () => {
  test(
    "is created immediately, can be restored, counts toward backup_keep, and is in the audit log",
    async () => {
      const running = await start(["--backup-keep", "1"]);
      await running.operator.post("/v1/meter/m/refill", { amount: 7 });
      const asked = await running.operator.post(PATH);
      expect(asked.status).toBe(202);
      const begun = { name: FIRST, begun_at: "2026-03-10T12:00:00.000Z" };
      expect(asked.body).toEqual(begun);
      expect((await list(running)).running).toEqual(begun);
      expect(await newestOf(running.operator)).toMatchObject({
        action: "admin.backups.create",
        target: { type: "backup", id: FIRST },
        before: null,
        after: { folder },
      });
      await running.clock.advance(0);
      expect(await list(running)).toMatchObject({ running: null, failure: null, backups: [{ name: FIRST }] });
      expect(running.server.app.lastBackupAt()).toBe(TEST_START_MS);
      const restored = join(folder, "..", "restored");
      expect((await ninefold(["restore", join(folder, FIRST), "--data", restored])).code).toBe(0);
      await running.clock.advance(1_000);
      expect((await running.operator.post(PATH)).status).toBe(202);
      await running.clock.advance(0);
      expect(readdirSync(folder)).toEqual(["ninefold-20260310T120001Z.db"]);
      const made = running.logs.filter(({ message }) => message === "a manual backup was made");
      expect(made).toHaveLength(2);
    },
    TIMEOUT_MS,
  );

  test(
    "is rejected while one is running, and in the second of the last one; a repeat gets the same response",
    async () => {
      const running = await start();
      const headers = { "idempotency-key": "once" };
      expect((await running.operator.post(PATH, undefined, { headers })).status).toBe(202);
      const { error } = expectError(await running.operator.post(PATH), "conflict");
      expect(error.message).toBe("A backup has been running since 2026-03-10T12:00:00.000Z.");
      await running.clock.advance(0);
      const again = expectError(await running.operator.post(PATH), "conflict");
      expect(again.error.message).toContain("in this second");
      const repeat = await running.operator.post(PATH, undefined, { headers });
      expect(repeat.headers.get("idempotent-replayed")).toBe("true");
      expect(repeat.body.name).toBe(FIRST);
      await running.clock.advance(0);
      expect(readdirSync(folder)).toEqual([FIRST]);
    },
    TIMEOUT_MS,
  );

  test(
    "right before a scheduled one: both run, one after the other",
    async () => {
      const running = await start();
      await running.clock.advance(HOUR_MS - 1_000);
      await running.operator.post(PATH);
      await running.clock.advance(1_000);
      expect(readdirSync(folder).sort()).toEqual([
        "ninefold-20260310T125959Z.db",
        "ninefold-20260310T130000Z.db",
      ]);
      expect(errors(running)).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "replaces a scheduled one of the same second",
    async () => {
      const running = await start();
      await running.operator.post(PATH);
      await running.clock.advance(0);
      running.server.kernel.db.execute(
        `UPDATE jobs SET due_at = ${TEST_START_MS} WHERE kind = 'backup.make'`,
      );
      await running.restart();
      await running.clock.advance(0);
      expect(readdirSync(folder)).toEqual([FIRST]);
      expect(errors(running)).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "that fails reports its error until one succeeds, and no old backup is deleted",
    async () => {
      const running = await start(["--backup-keep", "1"]);
      mkdirSync(join(folder, FIRST));
      await running.operator.post(PATH);
      await running.clock.advance(0);
      const { failure, backups } = await list(running);
      expect(failure).toEqual({
        name: FIRST,
        begun_at: "2026-03-10T12:00:00.000Z",
        message: `${folder}/${FIRST} is a folder: name a file in it.`,
      });
      expect(backups).toEqual([]);
      expect(errors(running)).toMatchObject([
        { message: "a manual backup failed", fields: { file: join(folder, FIRST) } },
      ]);
      await running.clock.advance(1_000);
      await running.operator.post(PATH);
      await running.clock.advance(0);
      expect((await list(running)).failure).toBeNull();
    },
    TIMEOUT_MS,
  );

  test(
    "that is interrupted by a stop runs after the next start, once, under the same name",
    async () => {
      const running = await start();
      await running.operator.post(PATH);
      // The server stops before the clock runs the job.
      await running.restart();
      await running.clock.advance(5_000);
      expect(readdirSync(folder)).toEqual([FIRST]);
      expect(await list(running)).toMatchObject({ running: null, backups: [{ name: FIRST }] });
    },
    TIMEOUT_MS,
  );

  test(
    "that was completed by a process that was killed afterwards does not run again",
    async () => {
      const running = await start();
      await running.operator.post(PATH);
      writeFileSync(join(folder, FIRST), "as it is");
      await running.clock.advance(0);
      expect(await Bun.file(join(folder, FIRST)).text()).toBe("as it is");
      expect(errors(running)).toEqual([]);
      expect((await list(running)).running).toBeNull();
    },
    TIMEOUT_MS,
  );

  test(
    "that the backup process of a killed server is still running is not started twice",
    async () => {
      const running = await start();
      await running.operator.post(PATH);
      const advanced = running.clock.advance(0);
      while (!readdirSync(folder).some((name) => name.endsWith(".partial"))) await Bun.sleep(1);
      writeFileSync(join(folder, FIRST), "the other's");
      await advanced;
      expect(await Bun.file(join(folder, FIRST)).text()).toBe("the other's");
      expect(readdirSync(folder)).toEqual([FIRST]);
      expect(await list(running)).toMatchObject({ running: null, failure: null });
      expect(errors(running)).toEqual([]);
    },
    TIMEOUT_MS,
  );
});

describe("an overdue backup", () => {
  const card = async ({ operator }: TestServer) => (await operator.get("/v1/overview")).body.backups;

  test(
    "means that two scheduled times have passed without one",
    async () => {
      const running = await start();
      expect(await card(running)).toEqual({ scheduled: true, last_at: null, overdue: false });
      await running.clock.advance(HOUR_MS);
      const last_at = "2026-03-10T13:00:00.000Z";
      expect(await card(running)).toEqual({ scheduled: true, last_at, overdue: false });
      for (const hour of ["14", "15"]) mkdirSync(join(folder, `ninefold-20260310T${hour}0000Z.db`));
      await running.clock.advance(2 * HOUR_MS);
      expect(await card(running)).toEqual({ scheduled: true, last_at, overdue: false });
      await running.clock.advance(1);
      expect(await card(running)).toEqual({ scheduled: true, last_at, overdue: true });
      expect((await list(running)).plan).toMatchObject({ overdue: true });
    },
    TIMEOUT_MS,
  );

  test(
    "counts from the start if there is none yet; only the operator sees it",
    async () => {
      const running = await start();
      for (const hour of ["13", "14"]) mkdirSync(join(folder, `ninefold-20260310T${hour}0000Z.db`));
      await running.clock.advance(2 * HOUR_MS + 1);
      expect(await card(running)).toEqual({ scheduled: true, last_at: null, overdue: true });
      const account = await running.account({ tier: "scale" });
      expect((await account.get("/v1/overview")).body).not.toHaveProperty("backups");
      const body = { prefix: "sm", name: "k", scopes: ["gate:read"] };
      const { secret } = (await running.operator.post("/v1/keys", body)).body;
      expect((await running.client(String(secret)).get("/v1/overview")).body).not.toHaveProperty("backups");
    },
    TIMEOUT_MS,
  );
});
