import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { baseName, baseNamed } from "../../src/archive/names.ts";
import { Uploader } from "../../src/archive/uploader.ts";
import { StartupError } from "../../src/kernel/errors.ts";
import { ENTRY_KEY_PURPOSE, sealPart } from "../../src/kernel/storage/replication/entry.ts";
import { rejection, Scratch } from "../kernel/support.ts";
import { eventually, until } from "../support/eventually.ts";
import { TestServer } from "../support/server.ts";
import { isArchived, rowsIn, TestArchive, tailFiles } from "./support.ts";

const TIMEOUT_MS = 120_000;

let archive: TestArchive;
let server: TestServer;
let scratch: Scratch;
beforeEach(async () => {
  archive = new TestArchive();
  scratch = new Scratch();
  await archive.s3.start();
  server = archive.server();
});
afterEach(async () => {
  await server.stop();
  await archive.stop();
  scratch.remove();
}, TIMEOUT_MS);

/** Refills a meter, which appends to its ledger. */
async function refill(meter: string, amount: number): Promise<void> {
  const response = await server.operator.post(`/v1/meter/${meter}/refill`, { amount });
  expect(response.status).toBe(200);
}

/** The ledger of meters in a file, without what the background writes. */
const LEDGER = "SELECT amount FROM meter_entries ORDER BY sequence";

function amounts(path: string): unknown[] {
  return rowsIn(path, LEDGER).map(({ amount }) => amount);
}

test(
  "every change reaches the archive, and each object is a state that can be restored",
  async () => {
    await server.start();
    await until(() => isArchived(server));
    const boundaries: { at: number; amounts: number[] }[] = [];
    const given: number[] = [];
    for (let round = 1; round <= 4; round += 1) {
      for (let refills = 0; refills < round; refills += 1) {
        await refill("m", given.length + 1);
        given.push(given.length + 1);
      }
      await until(() => isArchived(server));
      boundaries.push({ at: server.server.archive?.status.archivedAt ?? 0, amounts: [...given] });
      // The next object has a later time.
      await Bun.sleep(5);
    }
    const path = scratch.path("restored.db");
    for (const boundary of boundaries) {
      const end = await archive.restore(server, path, boundary.at);
      expect(end?.position.at).toBeLessThanOrEqual(boundary.at);
      expect(amounts(path)).toEqual(boundary.amounts);
    }
    expect((await archive.restore(server, path))?.objects).toBeGreaterThan(0);
    expect(amounts(path)).toEqual(given);
    expect(rowsIn(path, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    expect(await archive.restore(server, path, Date.parse("2020-01-01T00:00:00Z"))).toBeNull();
    // The server commits by itself too, such as the time that its clock has shown.
    await eventually(async () => {
      const status = await server.operator.get("/v1/admin/status");
      expect(status.body["archive"]).toMatchObject({ url: archive.url, lag_seconds: 0, last_error: null });
      const metrics = await server.operator.get("/metrics");
      expect(metrics.text).toContain("ninefold_archive_lag_seconds 0\n");
    });
  },
  TIMEOUT_MS,
);

test.each([
  ["", "archive"],
  [" with a long name", `${"a".repeat(100)}/${"b".repeat(100)}`],
])(
  "a start continues the archive%s without another base",
  async (_, prefix) => {
    await archive.stop();
    archive = new TestArchive(prefix);
    await archive.s3.start();
    server = archive.server();
    await server.start();
    await refill("m", 1);
    await until(() => isArchived(server));
    await server.halt();
    const bases = await archive.names("b/");
    expect(bases).toHaveLength(1);
    await server.start();
    await refill("m", 2);
    await until(() => isArchived(server));
    expect(await archive.names("b/")).toEqual(bases);
    expect((await archive.names("e/")).length).toBeGreaterThan(1);
    await archive.restore(server, scratch.path("restored.db"));
    expect(amounts(scratch.path("restored.db"))).toEqual([1, 2]);
  },
  TIMEOUT_MS,
);

test(
  "a stop archives what is left, and requests never wait for the object store",
  async () => {
    await server.start();
    await until(() => isArchived(server));
    archive.s3.mode = "hanging";
    await refill("m", 1);
    archive.s3.mode = "up";
    await refill("m", 2);
    await server.halt();
    await server.start();
    await until(() => isArchived(server));
    await archive.restore(server, scratch.path("restored.db"));
    expect(amounts(scratch.path("restored.db"))).toEqual([1, 2]);
  },
  TIMEOUT_MS * 3,
);

test(
  "a stop soon after a start archives what is left, too",
  async () => {
    await server.start();
    await until(() => isArchived(server));
    await server.halt();
    await server.start();
    await refill("m", 1);
    await server.halt();
    await archive.restore(server, scratch.path("restored.db"));
    expect(amounts(scratch.path("restored.db"))).toEqual([1]);
  },
  TIMEOUT_MS,
);

test(
  "while the object store fails, changes wait in the tail, and the lag grows",
  async () => {
    await server.start();
    await until(() => isArchived(server));
    archive.s3.mode = "down";
    await refill("m", 1);
    const status = () => server.server.archive?.status;
    await until(() => status()?.lastError !== null && (status()?.lagSeconds ?? 0) > 0.5);
    expect(status()?.lastError).toContain("503 SlowDown");
    expect(status()?.bytesWaiting).toBeGreaterThan(4_096);
    const ready = await server.operator.get("/readyz");
    expect(ready.status).toBe(200);
    archive.s3.mode = "up";
    await until(() => isArchived(server));
    expect(status()?.bytesWaiting).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  "each request to the object store may fail once, before or after its effect",
  async () => {
    const seen = new Set<string>();
    // The first request of each kind fails: method, kind of object, query.
    const once =
      (when: string) =>
      ({ method, path, search }: { method: string; path: string; search: string }): number | null => {
        const kind = `${when} ${method} ${path.split("/")[3] ?? ""} ${search.replaceAll(/=[^&]*/g, "")}`;
        if (seen.has(kind)) return null;
        seen.add(kind);
        return 500;
      };
    archive.s3.before = once("before");
    archive.s3.after = once("after");
    server = archive.server({
      deps: { archive: { uploadPartBytes: 64 * 1024, baseRetryMs: 100, retryMs: 20 } },
    });
    await server.start();
    for (let amount = 1; amount <= 5; amount += 1) await refill("m", amount);
    await until(() => isArchived(server));
    await refill("m", 6);
    await until(() => isArchived(server));
    await archive.restore(server, scratch.path("restored.db"));
    expect(amounts(scratch.path("restored.db"))).toEqual([1, 2, 3, 4, 5, 6]);
    expect(seen.size).toBeGreaterThan(12);
  },
  TIMEOUT_MS,
);

test("a store without conditional writes is rejected by every start until it is known to support them", async () => {
  archive.s3.mode = "down";
  await server.start();
  await refill("m", 1);
  await server.halt();
  archive.s3.mode = "up";
  archive.s3.isConditional = false;
  for (let starts = 1; starts <= 2; starts += 1) {
    const error = await rejection(server.start());
    expect(error).toBeInstanceOf(StartupError);
    expect(String(error)).toContain("This object store does not support conditional writes");
  }
});

test(
  "a store whose last page has an empty token, and that demands checksums, is archived to",
  async () => {
    archive.s3.demandsChecksum = true;
    archive.s3.list = async (stored) =>
      (await stored()).replace(
        "</ListBucketResult>",
        "<NextContinuationToken></NextContinuationToken></ListBucketResult>",
      );
    await server.start();
    await refill("m", 1);
    await until(() => isArchived(server));
    await archive.restore(server, scratch.path("restored.db"));
    expect(amounts(scratch.path("restored.db"))).toEqual([1]);
  },
  TIMEOUT_MS,
);

/** Far above what a start takes, and less than a start waits for a store that it does not know. */
const INDEPENDENT_START_MS = 4_000;

/** Starts the server. Returns the milliseconds that it took. */
async function startMs(): Promise<number> {
  const begun = performance.now();
  await server.start();
  return performance.now() - begun;
}

test(
  "a start on an archive that is in use does not wait for a store without a response",
  async () => {
    await server.start();
    await refill("m", 1);
    await until(() => isArchived(server));
    await server.halt();
    archive.s3.mode = "hanging";
    expect(await startMs()).toBeLessThan(INDEPENDENT_START_MS);
    await refill("m", 2);
    const status = () => server.server.archive?.status;
    expect(status()).toMatchObject({ baseAt: null, lastError: null });
    await until(() => status()?.lastError === "the object store has not responded yet");
    expect((await server.operator.get("/readyz")).status).toBe(200);
    await server.halt();
    archive.s3.mode = "up";
    await server.start();
    await until(() => isArchived(server));
    await archive.restore(server, scratch.path("restored.db"));
    expect(amounts(scratch.path("restored.db"))).toEqual([1, 2]);
  },
  TIMEOUT_MS,
);

test(
  "a first start does not wait for a store that fails or rejects the connection, and continues when it is back",
  async () => {
    archive.s3.mode = "down";
    expect(await startMs()).toBeLessThan(INDEPENDENT_START_MS);
    expect(server.server.archive?.status.lastError).toContain("503 SlowDown");
    await refill("m", 1);
    archive.s3.mode = "up";
    await until(() => isArchived(server));
    await archive.restore(server, scratch.path("restored.db"));
    expect(amounts(scratch.path("restored.db"))).toEqual([1]);
    await server.stop();
    // Nothing listens on port 1.
    server = archive.server({ environment: { NINEFOLD_ARCHIVE_ENDPOINT: "http://127.0.0.1:1" } });
    expect(await startMs()).toBeLessThan(INDEPENDENT_START_MS);
    expect(server.server.archive?.status.lastError).toContain("no response from the storage");
    await refill("m", 2);
  },
  TIMEOUT_MS,
);

test(
  "a store that no longer supports conditional writes is reported, and gets nothing",
  async () => {
    await server.start();
    await until(() => isArchived(server));
    await server.halt();
    const before = await archive.names("");
    archive.s3.isConditional = false;
    await server.start();
    await refill("m", 1);
    await until(() => server.server.archive?.status.lastError?.includes("conditional writes") === true);
    const logged = server.logs
      .filter(({ level }) => level === "error")
      .map(({ fields }) => String(fields["error"]));
    expect(logged.filter((error) => error.includes("does not support conditional writes"))).toHaveLength(1);
    // The interval is over: now it would have been stored.
    await until(() => (server.server.archive?.status.lagSeconds ?? 0) > 0.5);
    expect(await archive.names("")).toEqual(before);
  },
  TIMEOUT_MS,
);

test(
  "a tail that grows too long is replaced by a new base",
  async () => {
    server = archive.server({ deps: { archive: { tailBytesMax: 200_000 } } });
    await server.start();
    await until(() => isArchived(server));
    const [first] = await archive.names("b/");
    archive.s3.mode = "down";
    for (let amount = 1; amount <= 12; amount += 1) await refill(`m${amount}`, amount);
    archive.s3.mode = "up";
    await until(() => isArchived(server));
    const bases = await archive.names("b/");
    expect(bases).toHaveLength(2);
    expect(bases[0]).toBe(first ?? "");
    await archive.restore(server, scratch.path("restored.db"));
    expect(amounts(scratch.path("restored.db"))).toHaveLength(12);
  },
  TIMEOUT_MS,
);

test(
  "a file whose changes are neither in the archive nor in the tail gets a new base",
  async () => {
    await server.start();
    await refill("m", 1);
    await until(() => isArchived(server));
    await server.halt();
    // What a power cut may leave of a file that is not synced.
    const [tail = ""] = tailFiles(server.folder);
    writeFileSync(tail, readFileSync(tail).subarray(0, 10));
    await server.start();
    await until(() => isArchived(server));
    expect(await archive.names("b/")).toHaveLength(2);
    expect(server.logs.map(({ message }) => message)).toContain(
      "the archive lacks changes of an earlier run: a new base is made",
    );
    await archive.restore(server, scratch.path("restored.db"));
    expect(amounts(scratch.path("restored.db"))).toEqual([1]);
  },
  TIMEOUT_MS,
);

test(
  "a second server on the same archive begins a history of its own",
  async () => {
    await server.start();
    await refill("m", 1);
    await until(() => isArchived(server));
    const other = archive.server();
    await other.start();
    await until(() => isArchived(other));
    await refill("m", 2);
    await until(() => isArchived(server));
    const epochs = new Set((await archive.names("b/")).map((name) => name.slice(2, 10)));
    expect(epochs.size).toBe(2);
    await other.stop();
  },
  TIMEOUT_MS,
);

test(
  "what no retained time needs is deleted",
  async () => {
    await server.start();
    await refill("m", 1);
    await until(() => isArchived(server));
    await server.halt();
    const before = [...(await archive.names("b/")), ...(await archive.names("e/"))];
    await server.stop();
    // Nothing before the newest base is retained.
    server = archive.server({ deps: { archive: { keepMs: 0 } } });
    await server.start();
    await refill("m", 2);
    await until(
      async () => isArchived(server) && (await archive.names("")).every((name) => !before.includes(name)),
    );
    await archive.restore(server, scratch.path("restored.db"));
    expect(amounts(scratch.path("restored.db"))).toEqual([2]);
  },
  TIMEOUT_MS,
);

test(
  "a removal that is interrupted, and a base that does not count, take nothing from what is retained",
  async () => {
    await server.start();
    await refill("m", 1);
    await until(() => isArchived(server));
    await server.stop();
    server = archive.server({ deps: { archive: { keepMs: 0 } } });
    const requests: string[] = [];
    const isRemoval = ({ method, search, body }: { method: string; search: string; body: Buffer }) =>
      method === "POST" && search.includes("delete") && body.includes("/e/");
    archive.s3.before = (request) => (isRemoval(request) && requests.push("before") === 1 ? 500 : null);
    archive.s3.after = (request) => (isRemoval(request) && requests.push("after") === 3 ? 500 : null);
    await server.start();
    await refill("m", 2);
    await until(() => isArchived(server) && requests.length > 0);
    const path = scratch.path("restored.db");
    const key = server.server.kernel.vault.derive(ENTRY_KEY_PURPOSE);
    const uploader = new Uploader(archive.client, { place: archive.place, key });
    const since = server.server.archive?.status.archivedAt ?? 0;
    const retained = async (): Promise<void> => {
      expect(await archive.restore(server, path, since)).not.toBeNull();
      expect(amounts(path)).toEqual([2]);
    };
    await retained();
    // Made while changes were captured that never reached the archive.
    const [newest = ""] = (await archive.names("b/")).slice(-1);
    const { epoch, seq } = baseNamed(newest) ?? { epoch: 0, seq: 0 };
    const position = { epoch, seq: seq + 1_000_000, at: since, log: null, isSeal: false, filePages: 0 };
    const name = baseName({ epoch, seq: seq + 1 });
    await archive.store.put(
      name,
      sealPart(position, { part: 0, hasMore: false, payload: new Uint8Array() }, key, name),
    );
    await expect(uploader.expire(since, epoch)).rejects.toThrow("500");
    await retained();
    await uploader.expire(since, epoch);
    await retained();
    expect(requests).toEqual(["before", "before", "after"]);
    expect(new Set((await archive.names("b/")).map((base) => baseNamed(base)?.epoch))).toEqual(
      new Set([epoch]),
    );
  },
  TIMEOUT_MS,
);

const DAY_MS = 24 * 60 * 60 * 1000;
const HOUR_MS = 60 * 60 * 1000;

/** Whether a request deletes objects of the archive, not that of the probe. */
function isDeletion({ search, body }: { search: string; body: Buffer }): boolean {
  return search.includes("delete") && !body.includes("probe");
}

test(
  "objects that the store does not delete are reported, and deleted when it does",
  async () => {
    await server.start();
    await refill("m", 1);
    await until(() => isArchived(server));
    await server.halt();
    const before = await archive.names("");
    // A key that may not delete gets a response with the status 200.
    archive.s3.before = ({ search }) => (search.includes("delete") ? 200 : null);
    const options = { deps: { archive: { keepMs: 0, expiryRetryMs: 50 } } };
    const { folder, key } = server;
    server = archive.server(options);
    Object.assign(server, { folder, key });
    await server.start();
    await until(() => server.logs.some(({ message }) => message.includes("could not be deleted")));
    expect(JSON.stringify(server.logs)).toContain("200 InternalError: not every object was deleted");
    expect(await archive.names("")).toEqual(expect.arrayContaining(before));
    archive.s3.before = () => null;
    await Bun.sleep(60);
    // The next change, not the next base.
    await refill("m", 2);
    const isDeleted = async (): Promise<boolean> => {
      const names = await archive.names("");
      return before.some((name) => !names.includes(name));
    };
    await until(async () => (await isDeleted()) && isArchived(server));
    await archive.restore(server, scratch.path("restored.db"));
    expect(amounts(scratch.path("restored.db"))).toEqual([1, 2]);
  },
  TIMEOUT_MS,
);

test(
  "a start deletes what an earlier process was killed at, without a new base",
  async () => {
    const deps = { archive: { keepMs: 0 } };
    server = archive.server({ deps });
    await server.start();
    await refill("m", 1);
    await until(() => isArchived(server));
    const [first = ""] = await archive.names("b/");
    archive.s3.before = (request) => (isDeletion(request) ? 500 : null);
    const { folder } = server;
    await server.halt();
    server = archive.server({ deps: { archive: { keepMs: 0, baseIntervalMs: 1 } } });
    server.folder = folder;
    await server.start();
    await until(() => server.logs.some(({ message }) => message.includes("could not be deleted")));
    await server.halt();
    const bases = await archive.names("b/");
    expect(bases).toContain(first);
    archive.s3.before = () => null;
    server = archive.server({ deps });
    server.folder = folder;
    await server.start();
    await until(async () => !(await archive.names("b/")).includes(first));
    expect(await archive.names("b/")).toEqual(bases.slice(-1));
  },
  TIMEOUT_MS,
);

test(
  "a clock that has jumped deletes nothing until it is trusted again",
  async () => {
    server = archive.server({ manualClock: true });
    await server.start();
    await refill("m", 1);
    await until(() => isArchived(server));
    const [first = ""] = await archive.names("b/");
    const renewBase = async (bases: number): Promise<void> => {
      await refill("m", bases);
      await until(async () => (await archive.names("b/")).length === bases && isArchived(server));
    };
    await server.clock.advance(2 * DAY_MS);
    await renewBase(2);
    server.clock.setWall(400 * DAY_MS);
    await renewBase(3);
    // Each of these changes is an opportunity to delete.
    for (let amount = 4; amount <= 8; amount += 1) {
      await refill("m", amount);
      await until(() => isArchived(server));
    }
    expect(await archive.names("b/")).toContain(first);
    await server.clock.advance(2 * HOUR_MS);
    await refill("m", 9);
    await until(async () => !(await archive.names("b/")).includes(first));
    // Set right, the clock shows an earlier time than that of the newest base.
    server.clock.setWall(-400 * DAY_MS);
    await refill("m", 10);
    await until(async () => (await archive.names("b/")).length === 3 && isArchived(server));
    await archive.restore(server, scratch.path("restored.db"));
    expect(amounts(scratch.path("restored.db"))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  },
  TIMEOUT_MS,
);

test("without the option there is no file, no row and no metric of it", async () => {
  server = new TestServer({});
  await server.start();
  await refill("m", 1);
  const metrics = await server.operator.get("/metrics");
  expect(metrics.text).not.toContain("archive");
  expect((await server.operator.get("/v1/admin/status")).body["archive"]).toBeNull();
  const ours = ["master.key", "ninefold.db", "ninefold.db-shm", "ninefold.db-wal", "ninefold.lock"];
  const others = readdirSync(server.folder).filter((name) => !ours.includes(name));
  expect(others).toEqual(others.filter((name) => name.startsWith("ninefold.lock-")));
  const { kernel } = server.server;
  expect(kernel.entries).toBeNull();
  expect(kernel.db.number("SELECT count(*) AS n FROM replica_position")()).toBe(0);
});
