import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../../src/config.ts";
import {
  PROBE_BYTES,
  PROBE_HOLDS_MS,
  PROBE_TIMEOUT_MS,
  Readiness,
  WriteProbe,
} from "../../src/kernel/health/readiness.ts";
import { startServer } from "../../src/server.ts";
import { ServerProcess, SOURCE_COMMAND } from "../harness/processes/server-process.ts";
import { KeptLog, rejection, Scratch } from "../kernel/support.ts";
import { Client } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import { memoryDisk } from "../support/memory-disk.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

/** Waits until the result of a server's last probe has expired. */
const outlast = () => Bun.sleep(PROBE_HOLDS_MS + 20);

/** Asserts that a server is not ready, and returns why. */
async function whyNot(client: Client): Promise<{ reason: unknown; message: string }> {
  const answer = await client.get("/readyz");
  const { error } = expectError(answer, "service_unavailable");
  expect(answer.headers.get("retry-after")).toBe("1");
  expect((await client.get("/healthz")).status).toBe(200);
  // Another machine's load balancer gets no details.
  const { status, body } = await client.get("/readyz", { headers: { via: "1.1 proxy" } });
  expect([status, body["reason"], body["error"]]).toMatchObject([
    503,
    undefined,
    { message: "The server is not ready." },
  ]);
  return { reason: answer.body["reason"], message: error.message };
}

describe("readiness", () => {
  const times = { holds: PROBE_HOLDS_MS, timeout: PROBE_TIMEOUT_MS / 20 };
  /** Real time, which goes on only when a test says so: a busy machine needs longer than a probe holds. */
  let monotonic = 0;
  const later = async (): Promise<void> => {
    // A probe that has just ended holds from now on.
    await Bun.sleep(0);
    monotonic += times.holds;
  };
  let probes = 0;
  let probe: () => Promise<string | null> = () => Promise.resolve(null);
  let commits: { failing: string | null };
  let shutdown: AbortController;
  let readiness: Readiness;
  beforeEach(() => {
    probes = 0;
    monotonic = 1_000;
    spyOn(performance, "now").mockImplementation(() => monotonic);
    probe = () => Promise.resolve(null);
    commits = { failing: null };
    shutdown = new AbortController();
    const counted = () => {
      probes += 1;
      return probe();
    };
    readiness = new Readiness({ probe: counted, commits, shutdown: shutdown.signal }, times);
  });
  afterEach(() => jest.restoreAllMocks());
  const refusal = async () => {
    const error = (await rejection(readiness.assertReady())) as Error & { details: { extras: object } };
    return [error.details.extras, error.message];
  };

  test("begins when everything has started", async () => {
    expect(await refusal()).toEqual([{ reason: "starting" }, "The server is starting."]);
    readiness.begin();
    await readiness.assertReady();
    expect(probes).toBe(1);
  });

  test("probes the disk once a second and waits for less than a second", () => {
    expect([PROBE_HOLDS_MS, PROBE_TIMEOUT_MS]).toEqual([1_000, 900]);
  });

  test("probes the disk once in that time for all requests", async () => {
    readiness.begin();
    await Promise.all(Array.from({ length: 50 }, () => readiness.assertReady()));
    for (let n = 0; n < 50; n += 1) await readiness.assertReady();
    expect(probes).toBe(1);
    await later();
    await Promise.all(Array.from({ length: 50 }, () => readiness.assertReady()));
    expect(probes).toBe(2);
  });

  test("reuses a failure as long as a success", async () => {
    readiness.begin();
    probe = () => Promise.resolve("The disk is gone.");
    const expected = [{ reason: "unwritable" }, "The disk is gone."];
    expect([await refusal(), await refusal()]).toEqual([expected, expected]);
    probe = () => Promise.resolve(null);
    expect(await refusal()).toEqual(expected);
    await later();
    await readiness.assertReady();
    expect(probes).toBe(2);
  });

  test("counts a commit that fails between two probes immediately", async () => {
    readiness.begin();
    await readiness.assertReady();
    commits.failing = "SQLiteError: disk I/O error";
    const why = "The database cannot be written now: disk I/O error.";
    expect(await refusal()).toEqual([{ reason: "unwritable" }, why]);
    commits.failing = "TypeError: a is not a function";
    expect((await refusal())[1]).toBe("The database cannot be written now: the log says why.");
    commits.failing = null;
    await readiness.assertReady();
    expect(probes).toBe(1);
  });

  test("waits once for a probe that hangs, and starts no other until it ends", async () => {
    readiness.begin();
    let end: (problem: string | null) => void = () => {};
    probe = () =>
      new Promise((resolve) => {
        end = resolve;
      });
    const why = `A change has not been written within ${times.timeout} ms.`;
    expect((await refusal())[1]).toBe(why);
    await later();
    // The state is already known: no request waits for it again.
    expect(await Promise.race([refusal(), Promise.resolve().then(() => Bun.sleep(0))])).toEqual([
      { reason: "unwritable" },
      why,
    ]);
    expect(probes).toBe(1);
    end(null);
    await later();
    probe = () => Promise.resolve(null);
    await readiness.assertReady();
    expect(probes).toBe(2);
  });

  test("counts a probe that throws as a failure and continues probing", async () => {
    readiness.begin();
    probe = () => Promise.reject(new Error("defect"));
    expect(((await rejection(readiness.assertReady())) as Error).message).toBe("defect");
    await later();
    probe = () => Promise.resolve(null);
    await readiness.assertReady();
  });

  test("ends when the server stops, also during a probe", async () => {
    readiness.begin();
    const asked = rejection(readiness.assertReady());
    shutdown.abort();
    const expected = [{ reason: "shutting_down" }, "The server is shutting down."];
    expect(((await asked) as Error).message).toBe("The server is shutting down.");
    expect(await refusal()).toEqual(expected);
    expect(probes).toBe(1);
  });
});

describe("a server", () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startTestServer({ durable: true });
  });
  afterEach(() => server.stop());
  const why = () => whyNot(server.client(null));

  test("writes once for many requests, to the file itself", async () => {
    const { stats } = server.server.kernel.writer;
    const before = stats.commits;
    const answers = await Promise.all(Array.from({ length: 20 }, () => server.client(null).get("/readyz")));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(stats.commits).toBe(before + 1);
    const row = server.server.kernel.db.one<{ bytes: number }>(
      "SELECT length(value) AS bytes FROM settings WHERE name = 'write_probe'",
    )();
    expect(row?.bytes).toBe(PROBE_BYTES);
  });

  test("is not ready while its file is read-only", async () => {
    const { db } = server.server.kernel;
    db.execute("PRAGMA query_only = ON");
    const message = "The database cannot be written now: attempt to write a readonly database.";
    expect(await why()).toEqual({ reason: "unwritable", message });
    expect((await server.operator.post("/v1/meter/m/refill", { amount: 1 })).status).toBe(503);
    db.execute("PRAGMA query_only = OFF");
    await outlast();
    expect((await server.client(null).get("/readyz")).status).toBe(200);
  });

  test("reports that it is shutting down", async () => {
    const run = WriteProbe.prototype.run;
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    let asked = 0;
    WriteProbe.prototype.run = async function (this: WriteProbe) {
      asked += 1;
      await gate;
      return run.call(this);
    };
    try {
      const answer = server.client(null).get("/readyz");
      while (asked === 0) await Bun.sleep(1);
      const stopped = server.server.stop();
      open();
      const { status, body } = await answer;
      expect([status, body["reason"]]).toEqual([503, "shutting_down"]);
      await stopped;
      await server.start();
    } finally {
      WriteProbe.prototype.run = run;
    }
  });
});

/** Possible changes of the files of a running server. */
const LOSSES: Readonly<Record<string, (folder: string) => void>> = {
  "the database is removed": (folder) => rmSync(join(folder, "ninefold.db")),
  "its log is removed": (folder) => rmSync(join(folder, "ninefold.db-wal")),
  "another file takes its place": (folder) => {
    renameSync(join(folder, "ninefold.db"), join(folder, "moved.db"));
    writeFileSync(join(folder, "ninefold.db"), "");
  },
  "the folder is moved away": (folder) => {
    renameSync(folder, `${folder}-moved`);
    mkdirSync(folder);
  },
};

test("is not ready if its files were removed", async () => {
  const found = Object.entries(LOSSES).map(async ([loss, lose]) => {
    const server = await startTestServer({ durable: true });
    const local = server.client(null);
    try {
      expect((await local.get("/readyz")).status).toBe(200);
      lose(server.folder);
      await outlast();
      return [loss, await whyNot(local)];
    } finally {
      await server.stop();
      rmSync(`${server.folder}-moved`, { recursive: true, force: true });
    }
  });
  const message = "The database's files are no longer in the data folder.";
  expect(await Promise.all(found)).toEqual(
    Object.keys(LOSSES).map((loss) => [loss, { reason: "unwritable", message }]),
  );
});

/** Time for the checkpointer to move pages, which frees space in the log: several times its interval. */
const CHECKPOINT_MS = 250;
/** Consecutive rejections after which no more pages can be moved. */
const REFUSALS = 3;

/** Creates a bucket that accepts any bytes, and returns its path. */
async function bucket(operator: Client): Promise<string> {
  const { body } = await operator.post("/v1/catch/buckets", { target_url: "https://example.com/" });
  return `/v1/catch/${String(body["id"])}`;
}

/** Sends to a bucket until the database and its log have their maximum size. */
async function writeUntilRefused(operator: Client, path: string): Promise<void> {
  for (const bytes of [500_000, 20_000]) {
    let refusals = 0;
    for (let round = 0; refusals < REFUSALS; round += 1) {
      if (round === 1_000) throw new Error("1,000 changes, and there is still room");
      const { status } = await operator.post(path, "x".repeat(bytes));
      expect([200, 503]).toContain(status);
      refusals = status === 200 ? 0 : refusals + 1;
      if (refusals > 0) await Bun.sleep(CHECKPOINT_MS);
    }
  }
}

test("is not ready if its files cannot grow", async () => {
  const scratch = new Scratch();
  // 6 MiB, in units of 512 bytes.
  const limited = ["sh", "-c", 'ulimit -f 12288; exec "$@"', "sh", ...SOURCE_COMMAND];
  const server = await ServerProcess.start({
    command: limited,
    args: ["--port", "0", "--data", scratch.path("data"), "--durability", "normal"],
    environment: { NODE_ENV: "production" },
  });
  try {
    expect((await new Client(server.url, null).get("/readyz")).status).toBe(200);
    const operator = new Client(server.url, server.key);
    await writeUntilRefused(operator, await bucket(operator));
    await outlast();
    const { reason, message } = await whyNot(new Client(server.url, null));
    expect(reason).toBe("unwritable");
    expect(message).toMatch(
      /^The database cannot be written now: (disk I\/O error|database or disk is full)\.$/,
    );
  } finally {
    await server.stop("SIGKILL");
    scratch.remove();
  }
});

const disk = memoryDisk();
if (disk !== null) {
  test("is not ready on a full disk until space is available", async () => {
    const config = loadConfig(["--port", "0", "--durability", "normal"], {});
    const server = await startServer(disk.folder, config, { log: new KeptLog() });
    const local = new Client(server.url, null);
    try {
      expect((await local.get("/readyz")).status).toBe(200);
      const operator = new Client(server.url, server.operator.key);
      const path = await bucket(operator);
      disk.fill();
      await writeUntilRefused(operator, path);
      await outlast();
      expect((await whyNot(local)).reason).toBe("unwritable");
      expect((await local.get("/v1/ping")).status).toBe(200);
      disk.freeSpace();
      await outlast();
      expect((await local.get("/readyz")).status).toBe(200);
    } finally {
      await server.stop();
      disk.remove();
    }
  });
}
