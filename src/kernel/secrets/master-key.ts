import { randomBytes } from "node:crypto";
import { existsSync, fsyncSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { errorText, StartupError } from "../errors.ts";
import type { Database } from "../storage/database.ts";
import { openFile, syncFolder } from "../storage/folders.ts";
import { createVault, MASTER_KEY_BYTES, type Vault } from "./vault.ts";

const CHECK_CONTEXT = "master-key-check";
const CHECK_TEXT = "ninefold";
const HEX = /^[0-9a-fA-F]{64}$/;
/** 32 bytes, in either alphabet. */
const BASE64 = /^[A-Za-z0-9+/_-]{43}=?$/;

/** A master key from outside, or else its file. */
export interface MasterKeyPlace {
  /** The key handed in from outside, if any: 64 hex digits, or base64 of 32 bytes. */
  readonly given: string | null;
  /** Its file in the data folder. */
  readonly path: string;
}

/** Where the master key of a start comes from. */
export interface MasterKeySource extends MasterKeyPlace {
  /** Whether the database exists already: then a missing key is an error, never a reason to make a new one. */
  readonly databaseExists: boolean;
}

/**
 * The master key of this start: given, read from its file, or (with a new database) made and written, mode 0600.
 *
 * @throws StartupError when it is malformed, cannot be read, or is missing next to an existing database.
 */
export function obtainMasterKey(source: MasterKeySource): Uint8Array {
  const found = findMasterKey(source);
  if (found !== null) return found;
  if (source.databaseExists) {
    throw new StartupError(
      `The database exists but its master key ${source.path} is missing. Restore the file, or set NINEFOLD_MASTER_KEY.`,
    );
  }
  const key = randomBytes(MASTER_KEY_BYTES);
  try {
    writeDurably(source.path, `${key.toString("hex")}\n`);
  } catch (error) {
    throw new StartupError(`The master key cannot be written (${errorText(error)}).`);
  }
  return new Uint8Array(key);
}

/** The master key that is there, if any. Makes none. @throws StartupError when it is malformed or cannot be read. */
export function findMasterKey({ given, path }: MasterKeyPlace): Uint8Array | null {
  if (given !== null) return decodeMasterKey(given, "NINEFOLD_MASTER_KEY");
  if (!existsSync(path)) return null;
  try {
    return decodeMasterKey(readFileSync(path, "utf8"), path);
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw new StartupError(`The master key cannot be read (${errorText(error)}).`);
  }
}

/** Whether a master key is the one that sealed the mark in a database. */
export function opensMark(masterKey: Uint8Array, mark: Uint8Array): boolean {
  try {
    return createVault(masterKey).open(mark, CHECK_CONTEXT) === CHECK_TEXT;
  } catch {
    // Whatever went wrong in opening, the key is not the one.
    return false;
  }
}

/** Whole and on the disk before anything is sealed with it: a power cut must not leave a database without its key. */
function writeDurably(path: string, text: string): void {
  const temporary = `${path}.new`;
  {
    using file = openFile(temporary, "w", 0o600);
    writeSync(file.fd, text);
    fsyncSync(file.fd);
  }
  renameSync(temporary, path);
  syncFolder(dirname(path));
}

/**
 * Opens the vault, and makes sure that the key is the one that the database was sealed with. The first start
 * leaves a sealed mark in the database for this.
 *
 * @throws StartupError when the master key is another one.
 */
export function openVault(db: Database, masterKey: Uint8Array): Vault {
  const vault = createVault(masterKey);
  const mark = db.one<{ value: Uint8Array }>("SELECT value FROM settings WHERE name = 'master_key_check'")();
  if (mark !== null) {
    if (opensMark(masterKey, mark.value)) return vault;
    throw new StartupError("The master key is not the one this database was made with. Nothing was changed.");
  }
  const sealed = Buffer.from(vault.seal(CHECK_TEXT, CHECK_CONTEXT)).toString("hex");
  // In one commit: a database that was copied from the template has no instance id yet.
  db.execute("BEGIN IMMEDIATE");
  db.execute(`INSERT INTO settings (name, value) VALUES ('master_key_check', x'${sealed}')`);
  db.execute(
    "UPDATE settings SET value = lower(hex(randomblob(4))) WHERE name = 'instance_id' AND value = ''",
  );
  db.execute("COMMIT");
  return vault;
}

function decodeMasterKey(text: string, origin: string): Uint8Array {
  const trimmed = text.trim();
  if (HEX.test(trimmed)) return new Uint8Array(Buffer.from(trimmed, "hex"));
  // Decoding passes over characters that are not base64, so a damaged key would become another one.
  const bytes = Buffer.from(trimmed, "base64");
  if (!BASE64.test(trimmed) || bytes.length !== MASTER_KEY_BYTES) {
    throw new StartupError(`${origin} does not hold a master key: 64 hex digits, or base64 of 32 bytes.`);
  }
  return new Uint8Array(bytes);
}
