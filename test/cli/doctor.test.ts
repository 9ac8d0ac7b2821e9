import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assessFileSystem, driftText } from "../../src/cli/doctor/disk.ts";
import { clockJump, clockProblem } from "../../src/cli/doctor/state.ts";
import { assertSqlite, sqliteProblem } from "../../src/kernel/storage/examine.ts";
import { HostileProvider } from "../areas/login/hostile-provider.ts";
import { fingerprint } from "../binary/support.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { MailServer } from "../support/mail-server.ts";
import { startTestServer } from "../support/server.ts";
import { ninefold } from "./run.ts";

const scratch = mkdtempSync(join(tmpdir(), "ninefold-doctor-"));
const original = join(scratch, "original");
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

beforeAll(async () => {
  const server = await startTestServer();
  await server.operator.post("/v1/meter/m/refill", { amount: 5 });
  await server.server.stop();
  cpSync(server.folder, original, { recursive: true });
  rmSync(server.folder, { recursive: true });
});

/** A copy of a stopped server's folder. */
function folder(): string {
  const path = join(mkdtempSync(join(scratch, "run-")), "data");
  cpSync(original, path, { recursive: true });
  chmodSync(path, 0o700);
  return path;
}

interface Row {
  readonly name: string;
  readonly status: string;
  readonly detail: string;
  readonly cure?: string;
}

/** Every check's outcome by its name, and the exit code. No DNS request leaves this machine. */
async function doctor(
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<{ code: number; checks: Record<string, Row> }> {
  const line = ["doctor", "--json", "--port", "0", "--dns-name", "localhost", ...args];
  const { code, out, error } = await ninefold(line, { environment });
  expect(error).toBe("");
  const report = JSON.parse(out) as { ok: boolean; checks: readonly Row[] };
  expect(report.ok).toBe(code === 0);
  for (const { status, cure } of report.checks) {
    expect(cure !== undefined).toBe(status === "failed" || status === "warning");
  }
  return { code, checks: Object.fromEntries(report.checks.map((check) => [check.name, check])) };
}

/** The failed checks, each with its message and its advice. */
async function failures(
  args: readonly string[],
  environment?: Record<string, string>,
): Promise<[string, string, string][]> {
  const { code, checks } = await doctor(args, environment);
  const failed = Object.values(checks).filter(({ status }) => status === "failed");
  expect(code).toBe(failed.length === 0 ? 0 : 1);
  return failed.map(({ name, detail, cure }) => [name, detail, cure ?? ""]);
}

describe("where a server can run", () => {
  test("creates nothing before the first start", async () => {
    const data = join(scratch, "fresh", "data");
    const { code, checks } = await doctor(["--data", data]);
    expect(code).toBe(0);
    expect(checks["data folder"]?.detail).toBe(`${data} will be created by the first start`);
    expect([checks["database"]?.status, checks["master key"]?.status]).toEqual(["skipped", "skipped"]);
    expect(existsSync(join(scratch, "fresh"))).toBe(false);
  });

  test("changes no byte, mode or time in the folder of a stopped server", async () => {
    const data = folder();
    const times = () =>
      [data, ...readdirSync(data).map((name) => join(data, name))].map((path) => statSync(path).mtimeMs);
    const before = [fingerprint(data), times()];
    const { code, checks } = await doctor(["--data", data]);
    expect(code).toBe(0);
    expect(Object.keys(checks)).toEqual([
      ...["SQLite", "data folder", "backups", "file system", "fsync", "free space", "database"],
      ...["master key", "clock", "port", "TLS", "DNS", "SMTP", "OpenID"],
    ]);
    expect(checks["database"]?.detail).toMatch(/^[\d.]+ [kM]B, schema \d+$/);
    expect(checks["master key"]?.detail).toBe(`${join(data, "master.key")}, mode 600`);
    expect(checks["fsync"]?.detail).toMatch(/^[\d.]+ (µs|ms) \(median of 15\)/);
    expect(checks["DNS"]?.detail).toBe("localhost is 127.0.0.1");
    expect([fingerprint(data), times()]).toEqual(before);
  });

  test("runs next to a running server", async () => {
    const server = await startTestServer();
    const port = new URL(server.url).port;
    const { code, checks } = await doctor(["--data", server.folder, "--port", port]);
    expect(code).toBe(0);
    expect(checks["database"]?.detail).toEndWith(", in use by a running server");
    expect(checks["port"]?.detail).toBe(`127.0.0.1 port ${port} is in use by a running Ninefold`);
    expect((await server.operator.post("/v1/meter/m/refill", { amount: 1 })).status).toBe(200);
    await server.stop();
  });

  test("of an ephemeral one", async () => {
    const { code, checks } = await doctor(["--ephemeral"]);
    expect(code).toBe(0);
    expect([checks["database"]?.status, checks["master key"]?.status]).toEqual(["skipped", "skipped"]);
  });

  test("prints the fix below each problem", async () => {
    const data = folder();
    chmodSync(join(data, "master.key"), 0o644);
    const { code, out } = await ninefold([
      "doctor",
      "--data",
      data,
      "--port",
      "0",
      "--dns-name",
      "localhost",
    ]);
    expect(code).toBe(1);
    const path = join(data, "master.key");
    expect(out).toContain(
      `failed   master key   ${path} is readable by others (mode 644)\n                      → chmod 600 ${path}\n`,
    );
    expect(out).toEndWith("\n1 of 14 checks failed.\n");
  });
});

describe("where a server cannot run", () => {
  test("fails if the data folder is a file", async () => {
    const path = join(scratch, "file");
    writeFileSync(path, "");
    expect((await failures(["--data", path]))[0]).toEqual([
      "data folder",
      `${path} is not a folder`,
      "Set another folder with --data.",
    ]);
  });

  test("fails if others can write to the data folder", async () => {
    const data = folder();
    chmodSync(data, 0o770);
    expect(await failures(["--data", data])).toEqual([
      ["data folder", `${data} is writable by others (mode 770)`, `chmod 700 ${data}`],
    ]);
  });

  test("fails if the backup folder is not writable or is a file", async () => {
    const data = folder();
    const path = join(data, "master.key");
    const cure = "Set another folder with --backup-dir.";
    expect(await failures(["--data", data, "--backup-dir", path])).toEqual([
      ["backups", `${path} is not a folder`, cure],
    ]);
    const { checks } = await doctor(["--data", data, "--backup-dir", join(data, "new", "backups")]);
    expect(checks["backups"]).toMatchObject({
      status: "ok",
      detail: `${join(data, "new", "backups")} will be created`,
    });
  });

  test("fails if the master key is missing, wrong or malformed", async () => {
    const data = folder();
    const path = join(data, "master.key");
    const other = { NINEFOLD_MASTER_KEY: "ab".repeat(32) };
    expect(await failures(["--data", data], other)).toEqual([
      ["master key", "it is not the key of the database", "Restore the right key."],
    ]);
    writeFileSync(path, "nonsense");
    expect(await failures(["--data", data])).toEqual([
      [
        "master key",
        `${path} does not hold a master key: 64 hex digits, or base64 of 32 bytes`,
        "Restore the right key, or set NINEFOLD_MASTER_KEY.",
      ],
    ]);
    rmSync(path);
    expect(await failures(["--data", data])).toEqual([
      [
        "master key",
        `${path} is missing, and the database cannot be used without it`,
        "Restore the file, or set NINEFOLD_MASTER_KEY.",
      ],
    ]);
  });

  test("reports a damaged database without an error about the master key", async () => {
    const data = folder();
    writeFileSync(join(data, "ninefold.db"), "Dear diary, ".repeat(500));
    rmSync(join(data, "ninefold.db-wal"), { force: true });
    const found = await failures(["--data", data]);
    expect(found.map(([name]) => name)).toEqual(["database"]);
  });

  test("accepts a valid master key from outside the folder", async () => {
    const data = folder();
    const key = (await Bun.file(join(data, "master.key")).text()).trim();
    rmSync(join(data, "master.key"));
    const { code, checks } = await doctor(["--data", data], { NINEFOLD_MASTER_KEY: key });
    expect([code, checks["master key"]?.detail]).toEqual([0, "handed in, and right"]);
  });

  test.each([
    [
      "is no database",
      (path: string) => writeFileSync(path, "Dear diary, ".repeat(500)),
      /cannot be read as a database/,
    ],
    [
      "is of a newer version",
      (path: string) => change(path, "PRAGMA user_version = 9999"),
      /written by a newer version/,
    ],
    [
      "is another program's",
      (path: string) => change(path, "PRAGMA application_id = 1"),
      /is not a Ninefold database/,
    ],
  ])("the database %s", async (_, spoil, message) => {
    const data = folder();
    spoil(join(data, "ninefold.db"));
    const found = await failures(["--data", data]);
    expect(found[0]?.[0]).toBe("database");
    expect(found[0]?.[1]).toMatch(message);
  });

  test("fails if the clock is behind stored entries", async () => {
    const data = folder();
    change(join(data, "ninefold.db"), `UPDATE meter_entries SET at = ${Date.now() + 3_600_000}`);
    const found = await failures(["--data", data]);
    expect(found.map(([name, , cure]) => [name, cure])).toEqual([
      ["clock", "Set the clock, and synchronize it with NTP."],
    ]);
    expect(found[0]?.[1]).toMatch(
      /: that is (1 h 0 min|59 min \d+ s) before the newest entry in the database$/,
    );
  });

  test("fails if the port is in use or the address belongs to another machine", async () => {
    const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("hello") });
    const port = String(other.port);
    expect(await failures(["--data", folder(), "--port", port])).toEqual([
      [
        "port",
        `127.0.0.1 port ${port} is in use by another program`,
        "Stop that program, or set another port with --port.",
      ],
    ]);
    await other.stop(true);
    expect(await failures(["--data", folder(), "--host", "192.0.2.1", "--port", port])).toEqual([
      [
        "port",
        "192.0.2.1 is not an address of this machine",
        "Set one with --host; 0.0.0.0 means all of them.",
      ],
    ]);
  });

  test("the certificate and its key", async () => {
    const authority = new CertificateAuthority();
    const paths = ["long", "short"].map((name, index) => {
      const { cert, key } = authority.issue(name, "DNS:a.example", index === 0 ? 90 : 5);
      writeFileSync(join(scratch, `${name}.pem`), cert);
      writeFileSync(join(scratch, `${name}.key`), key);
      return join(scratch, name);
    });
    authority.remove();
    const [long = "", short = ""] = paths;
    const tls = (cert: string, key: string) => [
      "--data",
      folder(),
      "--tls-cert",
      `${cert}.pem`,
      "--tls-key",
      `${key}.key`,
    ];
    expect((await doctor(tls(long, long))).checks["TLS"]).toMatchObject({
      status: "ok",
      detail: expect.stringMatching(/^the certificate is valid for (89|90) more days$/),
    });
    expect((await doctor(tls(short, short))).checks["TLS"]).toMatchObject({
      status: "warning",
      cure: "Renew it.",
    });
    expect(await failures(tls(long, short))).toEqual([
      [
        "TLS",
        `${short}.key does not match the certificate ${long}.pem`,
        "Set a matching certificate and key.",
      ],
    ]);
    expect((await failures(tls("/nowhere/cert", long)))[0]).toEqual([
      "TLS",
      "ENOENT: no such file or directory, open '/nowhere/cert.pem'",
      "Set a certificate and its key (PEM) with --tls-cert and --tls-key.",
    ]);
  });

  test("warns if names cannot be resolved", async () => {
    // An empty label: rejected before any DNS request.
    const { code, checks } = await doctor(["--data", folder(), "--dns-name", "a..b"]);
    expect([code, checks["DNS"]]).toEqual([
      0,
      {
        name: "DNS",
        status: "warning",
        detail: "a..b cannot be resolved",
        cure: "Check the machine's name servers (/etc/resolv.conf); --dns-name NAME checks another name.",
      },
    ]);
  });

  test("the mail server", async () => {
    const mail = await new MailServer().start();
    const smtp = (url: string) => ["--data", folder(), "--smtp-url", url, "--mail-from", "a@example.com"];
    const { hostname, port } = new URL(mail.url);
    expect((await doctor(smtp(mail.url))).checks["SMTP"]).toMatchObject({
      status: "ok",
      detail: `${hostname}:${port} accepts the login`,
    });
    await mail.stop();
    const found = await failures(smtp(mail.url.replace("smtp://", "smtp://ada:hunter2@")));
    expect(found.map(([name]) => name)).toEqual(["SMTP"]);
    expect(found[0]?.[1]).toStartWith(`${hostname}:${port}: `);
    expect(found[0]?.[1]).not.toContain("hunter2");
  });
});

describe("providers of logins", () => {
  const provider = new HostileProvider(Date.now);
  afterAll(() => provider.stop());
  const path = join(tmpdir(), `ninefold-doctor-${process.pid}.toml`);
  const check = async (issuer: string, ...args: string[]) => {
    writeFileSync(
      path,
      `[[login.oidc]]\nname = "sso"\nissuer = "${issuer}"\nclient_id = "n"\nclient_secret = "hunter2"\n`,
    );
    const found = await doctor(["--data", folder(), "--config", path, ...args]);
    rmSync(path);
    return found.checks["OpenID"];
  };

  test("respond, and their redirect URIs are shown", async () => {
    expect(await check(provider.issuer, "--public-url", "https://n.example.com")).toMatchObject({
      status: "ok",
      detail: "all providers respond; their redirect URIs are https://n.example.com/login/oidc/sso/callback",
    });
    expect(await check(provider.issuer)).toMatchObject({ status: "warning" });
  });

  test("that cannot log anyone in are a warning: the server runs without them", async () => {
    expect(await check(`${provider.issuer}/other`)).toMatchObject({ status: "warning" });
    provider.responses.set("/jwks", () => new Response("", { status: 500 }));
    expect(await check(provider.issuer)).toMatchObject({
      status: "warning",
      detail: "sso: the keys (jwks_uri) respond with 500",
    });
  });
});

/** Changes a database in a way that no server does. */
function change(path: string, sql: string): void {
  const db = new Database(path);
  db.run(sql);
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}

test.each([
  [0xef53, false, "ok"],
  [0x6969, false, "failed"],
  [0xff534d42 | 0, false, "failed"],
  [0x65735546, false, "warning"],
  [0x794c7630, false, "warning"],
  [0x794c7630, true, "ok"],
  [0x01021994, false, "warning"],
  [0x01021994, true, "ok"],
  [0x12345678, false, "ok"],
])("a file system of kind %d, ephemeral %p, is %s", (type, ephemeral, status) => {
  expect(assessFileSystem(type, ephemeral).status).toBe(status as "ok");
});

test.each([
  ["3.51.3", true],
  ["3.51.2", false],
  ["3.51.0", false],
  ["3.50.9", false],
  ["3.52", true],
  ["3.54.1", true],
  ["4.0.0", true],
  ["2.99.99", false],
  ["", false],
])("SQLite %s will do, for doctor and for a start: %p", (version, will) => {
  expect(sqliteProblem(version) === null).toBe(will);
  if (will) assertSqlite(version);
  else
    expect(() => assertSqlite(version)).toThrow(`SQLite ${version} is too old: 3.51.3 or later is required`);
});

const NOW = Date.UTC(2026, 5, 1);
const DAY = 24 * 60 * 60 * 1000;
test.each([
  [null, null],
  [NOW - DAY, null],
  [NOW + DAY, null],
  [NOW - DAY - 1, "after"],
  [NOW + DAY + 1, "before"],
])("a clock that was last trusted at %p has jumped: %p", (trustedAt, side) => {
  const jump = clockJump(NOW, trustedAt);
  if (side === null) expect(jump).toBeNull();
  else expect(jump).toContain(`${side} the server last trusted its clock`);
});

test.each([
  [Date.UTC(2026, 0, 1) - 1, null, "that is before this version was released"],
  [Date.UTC(2026, 0, 1), null, null],
  [NOW, NOW + 1_000, null],
  [NOW, NOW + 1_001, "that is 1.0 s before the newest entry in the database"],
])("a clock at %d with the newest entry at %p", (now, newest, trouble) => {
  expect(clockProblem(now, newest)).toBe(trouble);
});

test.each([
  [2_000, null],
  [-2_000, null],
  [2_001, "the file system's clock is 2.0 s ahead"],
  [-60_000, "the file system's clock is 1 min 0 s behind"],
])("a drift of %d ms", (drift, text) => expect(driftText(drift)).toBe(text));
