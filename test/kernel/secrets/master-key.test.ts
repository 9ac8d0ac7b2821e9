import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { MIGRATIONS } from "../../../migrations/index.ts";
import { StartupError } from "../../../src/kernel/errors.ts";
import { openKernel } from "../../../src/kernel/kernel.ts";
import { obtainMasterKey } from "../../../src/kernel/secrets/master-key.ts";
import { KeptLog, Scratch, thrown } from "../support.ts";

const HEX = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const BYTES = new Uint8Array(Buffer.from(HEX, "hex"));
const BASE64 = Buffer.from(BYTES).toString("base64");
const OTHER = "ff".repeat(32);

let scratch: Scratch;
let path: string;
beforeEach(() => {
  scratch = new Scratch();
  path = scratch.path("master.key");
});
afterEach(() => scratch.remove());

function obtain(configured: string | null, databaseExists = false): Uint8Array {
  return obtainMasterKey({ configured, path, databaseExists, durability: "full" });
}

function refusal(run: () => unknown): string {
  const error = thrown(run);
  expect(error).toBeInstanceOf(StartupError);
  return (error as StartupError).message;
}

describe("the first start", () => {
  test("creates a key file with mode 0600 regardless of the umask", () => {
    const before = process.umask(0);
    try {
      const key = obtain(null);
      expect(key).toHaveLength(32);
      expect(readFileSync(path, "utf8")).toBe(`${Buffer.from(key).toString("hex")}\n`);
      expect(statSync(path).mode & 0o777).toBe(0o600);
    } finally {
      process.umask(before);
    }
  });

  test("creates it without a sync next to a database that has none", () => {
    const before = process.umask(0);
    try {
      const key = obtainMasterKey({ configured: null, path, databaseExists: false, durability: "none" });
      expect(obtain(null, true)).toEqual(key);
      expect(statSync(path).mode & 0o777).toBe(0o600);
    } finally {
      process.umask(before);
    }
  });

  test("creates a random key, which later starts read unchanged", () => {
    const key = obtain(null);
    const text = readFileSync(path, "utf8");
    expect(obtain(null, true)).toEqual(key);
    expect(obtain(null, false)).toEqual(key);
    expect(readFileSync(path, "utf8")).toBe(text);
    path = scratch.path("other.key");
    expect(obtain(null)).not.toEqual(key);
  });

  test("writes no file for a key from outside", () => {
    expect(obtain(HEX)).toEqual(BYTES);
    expect(existsSync(path)).toBe(false);
  });
});

describe("the format of a key", () => {
  test.each([
    ["hex", HEX],
    ["hex in capitals", HEX.toUpperCase()],
    ["hex with space around it", `  ${HEX}\n`],
    ["base64", BASE64],
    ["base64 without padding", BASE64.replace("=", "")],
    ["base64 with a line break", `${BASE64}\r\n`],
  ])("accepts %s, configured or in the file", (_, text) => {
    expect(obtain(text)).toEqual(BYTES);
    writeFileSync(path, text);
    expect(obtain(null, true)).toEqual(BYTES);
  });

  test("accepts base64url", () => {
    const bytes = new Uint8Array(32).fill(0xfb);
    expect(obtain(Buffer.from(bytes).toString("base64url"))).toEqual(bytes);
  });

  test.each([
    ["empty", ""],
    ["blank", " \n"],
    ["a word", "secret"],
    ["hex of 31 bytes", HEX.slice(2)],
    ["hex of 33 bytes", `${HEX}00`],
    ["hex with a wrong digit", `g${HEX.slice(1)}`],
    ["base64 of 31 bytes", Buffer.from(BYTES.subarray(1)).toString("base64")],
    ["base64 with a wrong character", BASE64.replace(BASE64.charAt(5), "!")],
    ["base64 with a character too many in the middle", `${BASE64.slice(0, 8)}*${BASE64.slice(8)}`],
    ["two keys", `${HEX}\n${HEX}`],
  ])("rejects %s, configured or in the file, without repeating it", (_, text) => {
    const message = refusal(() => obtain(text));
    expect(message).toBe(
      "NINEFOLD_MASTER_KEY does not hold a master key: 64 hex digits, or base64 of 32 bytes.",
    );
    writeFileSync(path, text);
    const stored = refusal(() => obtain(null, true));
    expect(stored).toBe(`${path} does not hold a master key: 64 hex digits, or base64 of 32 bytes.`);
    expect(readFileSync(path, "utf8")).toBe(text);
  });
});

describe("next to an existing database", () => {
  function open(masterKey: string | null = null) {
    return openKernel({
      databasePath: scratch.path("ninefold.db"),
      masterKeyPath: path,
      masterKey,
      durability: "normal",
      migrations: MIGRATIONS,
      log: new KeptLog(),
    });
  }

  /** Opens and closes once, as a first start does. */
  function firstStart(masterKey: string | null = null): void {
    open(masterKey).db.close();
  }

  test("its key opens it, from any source", () => {
    firstStart();
    firstStart();
    const hex = readFileSync(path, "utf8").trim();
    firstStart(hex);
    const sealed = open(hex);
    expect(sealed.vault.open(sealed.vault.seal("text", "context"), "context")).toBe("text");
    sealed.db.close();
  });

  test("creates no new key if it is missing", () => {
    firstStart(HEX);
    const message = refusal(() => open());
    expect(message).toBe(
      `The database exists but its master key ${path} is missing. Put a copy of the file there, or set NINEFOLD_MASTER_KEY. If there is no copy, back up the database and restore it with --without-master-key, which saves everything but the secrets.`,
    );
    expect(existsSync(path)).toBe(false);
  });

  test.each([
    ["configured", OTHER, null],
    ["in the file", null, OTHER],
  ])("rejects a wrong key %s without changing the database", (_, configured, stored) => {
    firstStart(HEX);
    if (stored !== null) writeFileSync(path, stored);
    const before = readFileSync(scratch.path("ninefold.db"));
    expect(refusal(() => open(configured))).toBe(
      "The master key is not the key of this database. Nothing was changed.",
    );
    expect(readFileSync(scratch.path("ninefold.db")).equals(before)).toBe(true);
    firstStart(HEX);
  });

  test("reports an unreadable file", () => {
    mkdirSync(path);
    expect(refusal(() => obtain(null, true))).toContain("The master key cannot be read");
    chmodSync(path, 0o700);
  });

  test("reports a folder that is not writable at the first start", () => {
    path = scratch.path("missing/master.key");
    expect(refusal(() => obtain(null))).toContain("The master key cannot be written");
  });
});
