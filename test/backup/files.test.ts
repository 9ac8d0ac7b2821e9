import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { SOURCE_COMMAND } from "../harness/processes/server-process.ts";
import { BackupStage, ninefold, runToEnd, TIMEOUT_MS } from "./support.ts";

const stage = new BackupStage();
afterAll(() => stage.close());

const data = stage.path("data");
const copy = stage.path("copy.db");

/** A small database of a stopped server, with rows of everything that is verified. */
async function prepare(): Promise<void> {
  const server = await stage.start();
  const client = stage.client(server);
  await client.post("/v1/admin/accounts", { email: "a@example.com", tier: "free" });
  await client.post("/v1/meter/m/refill", { amount: 7 });
  await client.post("/v1/meter/m/deduct", { amount: 2 });
  await client.post("/v1/witness/sys/init");
  for (const number of [1, 2, 3]) await client.post("/v1/witness/log", { log: { number } });
  await client.get("/v1/witness/checkpoint");
  await server.stop();
}

/** Changes the stopped server's database directly. */
function tamper(sql: string): void {
  const db = new Database(join(data, "ninefold.db"));
  db.run(sql);
  db.close();
}

const leftBeside = (name: string) => readdirSync(stage.folder).filter((one) => one.startsWith(`${name}.`));

test(
  "a copy is complete, verified, has mode 0600, and is an ordinary SQLite database",
  async () => {
    await prepare();
    const result = await ninefold(["backup", copy, "--data", data, "--verify"]);
    expect(result.error).toBe("");
    const bytes = statSync(copy).size;
    expect(result.out.split("\n")).toEqual([
      expect.stringMatching(/^ok {7}integrity: \d+ pages$/),
      "ok       meters: 1 balance, 2 ledger entries",
      "ok       account balances: 2 accounts, 1 ledger entry",
      "ok       notary chains: 1 chain, 3 receipts",
      expect.stringMatching(
        new RegExp(`^written  ${copy}: ${bytes.toLocaleString("en")} bytes in [^,]+, sha256 [0-9a-f]{64}$`),
      ),
      `note     ${join(data, "master.key")} is not in the backup: store a copy of it separately`,
      "",
    ]);
    expect(result.code).toBe(0);
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(leftBeside("copy.db")).toEqual([]);
    const sha256 = new Bun.CryptoHasher("sha256").update(readFileSync(copy)).digest("hex");
    expect(result.out).toContain(sha256);
    const db = new Database(copy, { readonly: true });
    expect(db.query("SELECT meter_id, balance FROM meters").all()).toEqual([{ meter_id: "m", balance: 5 }]);
    expect(db.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    db.close();
    expect(leftBeside("copy.db")).toEqual([]);
  },
  TIMEOUT_MS,
);

test(
  "rejects the empty file of a start that was killed immediately",
  async () => {
    const cut = stage.path("cut-off");
    mkdirSync(cut);
    const empty = join(cut, "ninefold.db");
    writeFileSync(empty, "");
    const refused = await ninefold(["backup", stage.path("nothing.db"), "--data", cut]);
    expect(refused).toEqual({ code: 1, out: "", error: `ninefold: ${empty} is empty.\n` });
    expect(existsSync(stage.path("nothing.db"))).toBe(false);
  },
  TIMEOUT_MS,
);

describe("rejected backups", () => {
  const cases: readonly (readonly [name: string, args: () => string[], message: RegExp])[] = [
    ["no file", () => [], /^ninefold: backup needs FILE\. Try ninefold backup --help\.$/m],
    ["two files", () => [copy, "other"], /^ninefold: Unexpected argument 'other'\./],
    [
      "an unknown option",
      () => [copy, "--verfy"],
      /^ninefold: Unknown option '--verfy'\. Did you mean --verify\?/,
    ],
    ["--data without a folder", () => [copy, "--data"], /^ninefold: --data needs a value/],
    [
      "a folder without a database",
      () => [copy, "--data", stage.folder],
      /^ninefold: There is no database in .* \(no ninefold\.db\)\.$/m,
    ],
    [
      "a file that is there",
      () => [copy, "--data", data],
      /copy\.db exists already\. --force replaces it\.$/m,
    ],
    ["a folder", () => [stage.folder, "--data", data], /is a folder: name a file in it\.$/m],
    [
      "a folder that is not there",
      () => [stage.path("none/copy.db"), "--data", data],
      /^ninefold: There is no folder .*none\.$/m,
    ],
    ["a file below a file", () => [join(copy, "x"), "--data", data], /copy\.db is not a folder\.$/m],
    [
      "rejects a folder that is not writable",
      () => ["/proc/copy.db", "--data", data],
      /^ninefold: The backup could not be written to \/proc\/copy\.db: /,
    ],
    [
      "the database itself",
      () => [join(data, "ninefold.db"), "--data", data, "--force"],
      /is a file of the data folder itself: set another name\.$/m,
    ],
    [
      "the database under another name",
      () => [stage.path("link.db"), "--data", data, "--force"],
      /is a file of the data folder itself/,
    ],
    [
      "the master key",
      () => [join(data, "master.key"), "--data", data, "--force"],
      /is a file of the data folder itself/,
    ],
    [
      "a symbolic link",
      () => [stage.path("latest.db"), "--data", data, "--force"],
      /^ninefold: .*latest\.db is a symbolic link: name the file itself\.$/m,
    ],
    [
      "a symbolic link to nothing",
      () => [stage.path("dangling.db"), "--data", data],
      /^ninefold: .*dangling\.db is a symbolic link: name the file itself\.$/m,
    ],
    [
      "a name that is too long",
      () => [stage.path("l".repeat(250)), "--data", data],
      /^ninefold: The backup could not be written to .*: ENAMETOOLONG: /,
    ],
    ["a device", () => ["/dev/null", "--data", data, "--force"], /^ninefold: \/dev\/null is not a file\.$/m],
  ];
  test.each(cases)(
    "%s",
    async (_name, args, message) => {
      for (const [name, target] of [
        ["link.db", join(data, "ninefold.db")],
        ["latest.db", copy],
        ["dangling.db", stage.path("nothing.db")],
      ] as const) {
        rmSync(stage.path(name), { force: true });
        symlinkSync(target, stage.path(name));
      }
      const before = readFileSync(join(data, "ninefold.db"));
      const copied = readFileSync(copy);
      const ended = await ninefold(["backup", ...args()]);
      expect(ended.error).toMatch(message);
      expect(ended.error).toMatch(/^ninefold: [^\n]+\n$/);
      expect(ended.out).toBe("");
      expect([1, 2]).toContain(ended.code);
      expect(readFileSync(join(data, "ninefold.db")).equals(before)).toBe(true);
      expect(readFileSync(copy).equals(copied)).toBe(true);
      expect(leftBeside("copy.db")).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "keeps the existing file and leaves no temporary file on a full disk",
    async () => {
      const before = readFileSync(copy);
      // In blocks of 512 or 1,024 bytes: in either case less than the database.
      const limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 100; exec "$@"', "sh", ...SOURCE_COMMAND];
      const ended = await runToEnd([...limited, "backup", copy, "--data", data, "--force"]);
      expect(ended.error).toMatch(/^ninefold: The backup could not be written to .*copy\.db: [^\n]+\.\n$/);
      expect(ended.code).toBe(1);
      expect(readFileSync(copy).equals(before)).toBe(true);
      expect(leftBeside("copy.db")).toEqual([]);
    },
    TIMEOUT_MS,
  );
});

test(
  "--force replaces the file and removes temporary files of killed processes only",
  async () => {
    const killed = Bun.spawnSync(["true"]).pid;
    writeFileSync(`${copy}.${killed}.partial`, "left");
    writeFileSync(`${copy}.${killed}.partial-wal`, "left");
    writeFileSync(`${copy}.${process.pid}.partial`, "somebody is at it");
    writeFileSync(`${copy}.mine.partial`, "not ours");
    truncateSync(copy, 10);
    const ended = await ninefold(["backup", copy, "--force"], { NINEFOLD_DATA: data });
    expect([ended.code, ended.error]).toEqual([0, ""]);
    expect(statSync(copy).size).toBeGreaterThan(4096);
    expect(leftBeside("copy.db").sort()).toEqual(
      [`copy.db.${process.pid}.partial`, "copy.db.mine.partial"].sort(),
    );
    for (const name of leftBeside("copy.db")) rmSync(stage.path(name));
  },
  TIMEOUT_MS,
);

describe("a damaged database: an exact message and no file", () => {
  const cases: readonly (readonly [name: string, change: string, back: string, lines: string[]])[] = [
    [
      "a balance that its entry does not say",
      "UPDATE meters SET balance = 6",
      "UPDATE meters SET balance = 5",
      [
        "failed   meters: 1 problem in 1 balance, 2 ledger entries",
        "         meter 1: the balance is 6, but entry 2 has 5",
      ],
    ],
    [
      "more held than there is",
      "INSERT INTO meter_holds (ref, project_ref, meter_ref, hold_id, status, requested, at_most, amount, captured, shortfall, created_at, expires_at) VALUES (1, 1, 1, 'ended', 2, 9, 0, 9, 9, 0, 1, 2), (2, 1, 1, 'all', 1, 5, 0, 5, 0, 0, 1, 2), (3, 1, 1, 'one', 1, 1, 0, 1, 0, 0, 1, 2)",
      "DELETE FROM meter_holds",
      [
        "failed   meters: 1 problem in 1 balance, 2 ledger entries",
        "         meter 1: 6 credits are held, but the balance is 5",
      ],
    ],
    [
      "an amount",
      "UPDATE meter_entries SET amount = -3 WHERE sequence = 2",
      "UPDATE meter_entries SET amount = -2 WHERE sequence = 2",
      [
        "failed   meters: 1 problem in 1 balance, 2 ledger entries",
        "         entry 2 of meter 1: 7 changed by -3 is not 5",
      ],
    ],
    [
      "a link",
      "UPDATE meter_entries SET previous = 0 WHERE sequence = 2",
      "UPDATE meter_entries SET previous = 1 WHERE sequence = 2",
      [
        "failed   meters: 1 problem in 1 balance, 2 ledger entries",
        "         entry 2 of meter 1: refers to 0 as the previous entry, which is 1",
      ],
    ],
    [
      "a row that is behind for good",
      "UPDATE meters SET balance = 7, last_sequence = 1",
      "UPDATE meters SET balance = 5, last_sequence = 2",
      [
        "failed   meters: 1 problem in 1 balance, 2 ledger entries",
        "         meter 1: its row is at entry 1, but 2 was flushed",
      ],
    ],
    [
      "an account balance",
      "UPDATE accounts SET balance = balance + 1 WHERE email = 'a@example.com'",
      "UPDATE accounts SET balance = balance - 1 WHERE email = 'a@example.com'",
      [
        "failed   account balances: 1 problem in 2 accounts, 1 ledger entry",
        expect.stringMatching(
          /^ {9}account usr_\w{20}: the balance is 10001, the sum of its ledger is 10000$/,
        ) as unknown as string,
      ],
    ],
    [
      "a log",
      `UPDATE receipts SET log = '{"number":9}' WHERE sequence = 2`,
      `UPDATE receipts SET log = '{"number":2}' WHERE sequence = 2`,
      [
        "failed   notary chains: 2 problems in 1 chain, 3 receipts",
        expect.stringMatching(
          /^ {9}chain wc_\S{32}, receipt 2: the hash does not match its log and the previous receipt$/,
        ) as unknown as string,
        expect.stringMatching(/its receipts are not those of the checkpoint of size 3$/) as unknown as string,
      ],
    ],
    [
      "a timestamp",
      "UPDATE receipts SET at = at + 1 WHERE sequence = 2",
      "UPDATE receipts SET at = at - 1 WHERE sequence = 2",
      [
        "failed   notary chains: 1 problem in 1 chain, 3 receipts",
        expect.stringMatching(/its receipts are not those of the checkpoint of size 3$/) as unknown as string,
      ],
    ],
    [
      "the end of a chain",
      "UPDATE receipts SET chain_ref = -chain_ref WHERE sequence = 3",
      "UPDATE receipts SET chain_ref = -chain_ref WHERE sequence = 3",
      [
        "failed   notary chains: 2 problems in 1 chain, 2 receipts",
        expect.stringMatching(/it ends at 2, before its checkpoint of size 3$/) as unknown as string,
        expect.stringMatching(/its chain does not exist$/) as unknown as string,
      ],
    ],
    [
      "a position",
      "UPDATE receipts SET sequence = 4 WHERE sequence = 3",
      "UPDATE receipts SET sequence = 3 WHERE sequence = 4",
      [
        "failed   notary chains: 3 problems in 1 chain, 3 receipts",
        expect.stringMatching(/receipt 4: expected 3 at this position$/) as unknown as string,
        expect.stringMatching(/receipt 4: the hash does not match its log/) as unknown as string,
        expect.stringMatching(/its receipts are not those of the checkpoint of size 3$/) as unknown as string,
      ],
    ],
  ];
  test.each(cases)(
    "%s",
    async (_name, change, back, lines) => {
      const file = stage.path("failing.db");
      tamper(change);
      try {
        const ended = await ninefold(["backup", file, "--data", data, "--verify"]);
        const failed = ended.out.split("\n").filter((line) => line !== "" && !line.startsWith("ok "));
        expect(failed).toEqual(lines);
        expect(ended.error).toMatch(
          /^ninefold: The verification failed \(see above\)\. No backup was written[^\n]+\n$/,
        );
        expect(ended.code).toBe(1);
        expect(readdirSync(stage.folder).filter((name) => name.startsWith("failing"))).toEqual([]);
      } finally {
        tamper(back);
      }
      expect((await ninefold(["backup", file, "--data", data, "--verify"])).code).toBe(0);
      rmSync(file);
    },
    TIMEOUT_MS,
  );

  test(
    "a damaged index is found by SQLite's check",
    async () => {
      const file = stage.path("failing.db");
      const db = new Database(join(data, "ninefold.db"));
      const page =
        db
          .query<{ rootpage: number }, []>(
            "SELECT rootpage FROM sqlite_master WHERE name = 'receipts_by_sequence'",
          )
          .get()?.rootpage ?? 0;
      db.close();
      const bytes = readFileSync(join(data, "ninefold.db"));
      const broken = Buffer.from(bytes);
      broken.fill(0, page * 4096 - 20, page * 4096);
      writeFileSync(join(data, "ninefold.db"), broken);
      try {
        const ended = await ninefold(["backup", file, "--data", data, "--verify"]);
        expect(ended.out).toMatch(/^failed {3}integrity: \d+ problems? in \d+ pages\n {9}/);
        expect(ended.code).toBe(1);
      } finally {
        writeFileSync(join(data, "ninefold.db"), bytes);
      }
    },
    TIMEOUT_MS,
  );
});
