import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { plainEnvironment } from "../harness/processes/server-process.ts";
import { Client } from "../support/client.ts";
import type { Ended } from "../support/ended.ts";
import { Binaries, executable, fingerprint, operatorOf, runToEnd, TIMEOUT_MS } from "./support.ts";

const binaries = new Binaries();
let data = "";
let key = "";

/** One line that says what is wrong, exit code 1 (2 for a wrong command line), and nothing on stdout. */
function expectRefusal(ended: Ended, message: RegExp, code = 1): void {
  expect(ended.error).toMatch(message);
  expect(ended.error).toMatch(/^ninefold: [^\n]+\n$/);
  expect(ended.out).toBe("");
  expect(ended.code).toBe(code);
}

/** The server still starts on the folder and knows what it knew. */
async function expectIntact(): Promise<void> {
  const server = await binaries.start(["--data", data]);
  const answer = await new Client(server.url, key).get("/v1/meter/m/balance");
  expect(answer.body).toMatchObject({ balance: 5, meter_id: "m" });
  expect(await server.stop()).toBe(0);
}

beforeAll(async () => {
  data = binaries.data();
  const server = await binaries.start(["--data", data]);
  key = server.key ?? "";
  await operatorOf(server).post("/v1/meter/m/refill", { amount: 5 });
  await server.stop();
}, TIMEOUT_MS);
afterAll(() => binaries.close());

describe("refused, with nothing touched", () => {
  const cases: readonly (readonly [
    name: string,
    args: readonly string[],
    environment: Record<string, string>,
    message: RegExp,
    code?: number,
  ])[] = [
    ["an unknown flag", ["--colour", "red"], {}, /Unknown option '--colour'/, 2],
    ["a stray word", ["now"], {}, /Unexpected argument 'now'/, 2],
    ["an invalid port", ["--port", "99999"], {}, /--port must be a port from 0 to 65535/, 2],
    ["--test-clock without --ephemeral", ["--test-clock"], {}, /--test-clock needs --ephemeral/],
    [
      "an unknown mode in the environment",
      [],
      { NINEFOLD_SIGNUP: "maybe" },
      /NINEFOLD_SIGNUP must be one of closed, free, open/,
    ],
    ["a certificate without its key", ["--tls-cert", "cert.pem"], {}, /tls_cert and tls_key go together/],
    [
      "a certificate that cannot be read",
      ["--tls-cert", "/nowhere/c.pem", "--tls-key", "/nowhere/k.pem"],
      {},
      /\/nowhere\/c\.pem/,
    ],
    ["a missing configuration file", ["--config", "/nowhere/ninefold.toml"], {}, /\/nowhere\/ninefold\.toml/],
    [
      "another master key",
      [],
      { NINEFOLD_MASTER_KEY: "ab".repeat(32) },
      /master key is not the key of this database/,
    ],
    [
      "a malformed master key",
      [],
      { NINEFOLD_MASTER_KEY: "secret" },
      /NINEFOLD_MASTER_KEY does not hold a master key/,
    ],
    [
      "a malformed operator key",
      [],
      { NINEFOLD_OPERATOR_KEY: "sm_secret" },
      /NINEFOLD_OPERATOR_KEY is not a well-formed platform key/,
    ],
  ];
  test.each(
    cases.map(
      ([name, args, environment, message, code = 1]) => [name, args, environment, message, code] as const,
    ),
  )(
    "%s",
    async (_name, args, environment, message, code) => {
      const before = fingerprint(data);
      const ended = await runToEnd(["serve", "--port", "0", "--data", data, ...args], environment);
      expectRefusal(ended, message, code);
      expect(fingerprint(data)).toEqual(before);
      // Secrets that do not fit are not repeated either.
      expect(ended.error).not.toContain("abab");
      expect(ended.error).not.toContain("sm_secret");
    },
    TIMEOUT_MS,
  );

  test(
    "bad configuration files",
    async () => {
      const before = fingerprint(data);
      const path = join(binaries.folder, "bad.toml");
      const files: readonly (readonly [text: string, message: RegExp])[] = [
        ["port = = 1", /bad\.toml is not a TOML file/],
        ["colour = 'red'", /bad\.toml:1: there is no option "colour"/],
        ["signup = 'maybe'", /bad\.toml: signup must be one of closed, free, open/],
        ["[tiers.gold]\nbuckets = 1", /there is no tier "gold"/],
        ["[tiers.free]\nbukkets = 1", /there is no figure "bukkets"/],
        ["[tiers.free]\nbuckets = -1", /tiers\.free\.buckets must be an integer from 1/],
      ];
      for (const [text, message] of files) {
        writeFileSync(path, text);
        expectRefusal(await runToEnd(["serve", "--port", "0", "--data", data, "--config", path]), message);
      }
      expect(fingerprint(data)).toEqual(before);
    },
    TIMEOUT_MS,
  );

  test(
    "a database of a newer version",
    async () => {
      setVersion((version) => version + 1);
      try {
        const before = fingerprint(data);
        const ended = await runToEnd(["serve", "--port", "0", "--data", data]);
        expectRefusal(ended, /written by a newer version of Ninefold/);
        expect(fingerprint(data)).toEqual(before);
      } finally {
        setVersion((version) => version - 1);
      }
      await expectIntact();
    },
    TIMEOUT_MS,
  );

  test(
    "a master key that is gone",
    async () => {
      const path = join(data, "master.key");
      const bytes = await Bun.file(path).bytes();
      rmSync(path);
      try {
        const before = fingerprint(data);
        const ended = await runToEnd(["serve", "--port", "0", "--data", data]);
        expectRefusal(ended, /master key .*master\.key is missing\. Put a copy of the file there/);
        expect(fingerprint(data)).toEqual(before);
      } finally {
        writeFileSync(path, bytes, { mode: 0o600 });
      }
      await expectIntact();
    },
    TIMEOUT_MS,
  );

  test(
    "a file that is no database",
    async () => {
      const other = binaries.data();
      mkdirSync(other);
      writeFileSync(join(other, "ninefold.db"), "Dear diary, ".repeat(500));
      const ended = await runToEnd(["serve", "--port", "0", "--data", other]);
      expectRefusal(ended, /ninefold\.db cannot be read as a database/);
      expect(await Bun.file(join(other, "ninefold.db")).text()).toBe("Dear diary, ".repeat(500));
    },
    TIMEOUT_MS,
  );
});

function setVersion(change: (version: number) => number): void {
  const db = new Database(join(data, "ninefold.db"));
  const { user_version: version } = db.query<{ user_version: number }, []>("PRAGMA user_version").get() ?? {
    user_version: 0,
  };
  db.run(`PRAGMA user_version = ${change(version)}`);
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}

test(
  "a folder that cannot be made or written",
  async () => {
    const file = join(binaries.folder, "file");
    writeFileSync(file, "");
    expectRefusal(
      await runToEnd(["serve", "--port", "0", "--data", join(file, "data")]),
      /The data folder cannot be created/,
    );
    // For root every folder is writable but those of the kernel.
    const closed = process.getuid?.() === 0 ? "/proc" : join(binaries.folder, "closed");
    if (closed !== "/proc") {
      mkdirSync(closed);
      chmodSync(closed, 0o500);
    }
    expectRefusal(
      await runToEnd(["serve", "--port", "0", "--data", closed]),
      /The data folder cannot be written/,
    );
  },
  TIMEOUT_MS,
);

test(
  "a second process on the folder, while the first one goes on",
  async () => {
    const server = await binaries.start(["--data", data]);
    expectRefusal(
      await runToEnd(["serve", "--port", "0", "--data", data]),
      /Another Ninefold process is using this data folder/,
    );
    const answer = await new Client(server.url, key).get("/v1/meter/m/balance");
    expect(answer.body).toMatchObject({ balance: 5, meter_id: "m" });
    // A process that is killed leaves the folder free.
    await server.stop("SIGKILL");
    await expectIntact();
  },
  TIMEOUT_MS,
);

test(
  "a taken port; the first start that succeeds still prints the key",
  async () => {
    const holder = await binaries.start(["--ephemeral"]);
    const port = new URL(holder.url).port;
    const before = fingerprint(data);
    expectRefusal(
      await runToEnd(["serve", "--port", port, "--data", data]),
      /Cannot listen on 127\.0\.0\.1 port \d+: another program uses it\. .* with --port/,
    );
    expect(fingerprint(data)).toEqual(before);
    const fresh = binaries.data();
    expectRefusal(await runToEnd(["serve", "--port", port, "--data", fresh]), /Cannot listen on/);
    const server = await binaries.start(["--data", fresh]);
    expect((await operatorOf(server).get("/v1/meter/balance")).status).toBe(200);
    await server.stop();
    expect((await new Client(holder.url, null).get("/v1/ping")).status).toBe(200);
    await holder.stop();
  },
  TIMEOUT_MS,
);

test(
  "standard output that cannot be written; the next start tells the key",
  async () => {
    const fresh = binaries.data();
    const child = Bun.spawn(
      ["sh", "-c", 'exec "$0" serve --port 0 --data "$1" > /dev/full', executable(), fresh],
      { env: plainEnvironment({}), stdin: "ignore", stderr: "pipe" },
    );
    const [error, code] = await Promise.all([child.stderr.text(), child.exited]);
    const lines = error.split("\n").filter((line) => !line.includes('"level":"info"'));
    expectRefusal({ code, out: "", error: lines.join("\n") }, /Standard output cannot be written/);
    const server = await binaries.start(["--data", fresh]);
    expect((await operatorOf(server).get("/v1/meter/balance")).status).toBe(200);
    await server.stop();
  },
  TIMEOUT_MS,
);
