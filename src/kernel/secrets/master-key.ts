import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { errorText, StartupError } from "../errors.ts";
import type { Database, Durability } from "../storage/database.ts";
import { assertAccess } from "../storage/file-access.ts";
import { writeDurably } from "../storage/folders.ts";
import { createVault, MASTER_KEY_BYTES, type Vault } from "./vault.ts";

const CHECK_CONTEXT = "master-key-check";
const CHECK_TEXT = "ninefold";
const HEX = /^[0-9a-fA-F]{64}$/;
/** 32 bytes, in either alphabet. */
const BASE64 = /^[A-Za-z0-9+/_-]{43}=?$/;

/** Where a master key can be found. */
export interface MasterKeyPlace {
  /** The configured key: 64 hex digits, or base64 of 32 bytes; null without one. */
  readonly configured: string | null;
  /** Its file in the data folder. */
  readonly path: string;
}

/** Where the master key of a start is found or created. */
export interface MasterKeySource extends MasterKeyPlace {
  /** Whether the database exists: then a missing key is an error, and no new one is created. */
  readonly databaseExists: boolean;
  /** How the database is kept: that of a new key. */
  readonly durability: Durability;
}

/**
 * The master key of this start: configured, read from its file, or created for a new database (mode 0600).
 *
 * @throws StartupError when it is malformed, cannot be read, or is missing next to an existing database.
 */
export function obtainMasterKey(source: MasterKeySource): Uint8Array {
  const found = findMasterKey(source);
  if (found !== null) return found;
  if (source.databaseExists) {
    throw new StartupError(
      `The database exists but its master key ${source.path} is missing. Put a copy of the file there, or set NINEFOLD_MASTER_KEY. If there is no copy, back up the database and restore it with --without-master-key, which saves everything but the secrets.`,
    );
  }
  const key = randomBytes(MASTER_KEY_BYTES);
  try {
    const text = `${key.toString("hex")}\n`;
    if (source.durability === "none") writeFileSync(source.path, text, { mode: 0o600 });
    // Durable before anything is sealed with it: a power cut must not leave a database without its key.
    else writeDurably(source.path, text);
  } catch (error) {
    throw new StartupError(`The master key cannot be written (${errorText(error)}).`);
  }
  return new Uint8Array(key);
}

/** The existing master key; null without one. @throws StartupError if it is malformed or cannot be read. */
export function findMasterKey({ configured, path }: MasterKeyPlace): Uint8Array | null {
  if (configured !== null) return decodeMasterKey(configured, "NINEFOLD_MASTER_KEY");
  if (!existsSync(path)) return null;
  try {
    return decodeMasterKey(readFileSync(path, "utf8"), path);
  } catch (error) {
    if (error instanceof StartupError) throw error;
    assertAccess("The master key cannot be read", path, dirname(path), "read");
    throw new StartupError(`The master key cannot be read (${errorText(error)}).`);
  }
}

/** Whether a master key opens the check value in a database. */
export function opensMark(masterKey: Uint8Array, mark: Uint8Array): boolean {
  try {
    return createVault(masterKey).open(mark, CHECK_CONTEXT) === CHECK_TEXT;
  } catch {
    // Every error means that the key is a different one.
    return false;
  }
}

/**
 * Opens the vault, and checks that the key is the key of the database: the first start stores a sealed check value.
 *
 * @throws StartupError if the master key is a different one.
 */
export function openVault(db: Database, masterKey: Uint8Array): Vault {
  const vault = createVault(masterKey);
  const mark = db.one<{ value: Uint8Array }>("SELECT value FROM settings WHERE name = 'master_key_check'")();
  if (mark !== null) {
    if (opensMark(masterKey, mark.value)) return vault;
    throw new StartupError("The master key is not the key of this database. Nothing was changed.");
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
  // The decoder ignores characters that are not base64, so a damaged key would become a different one.
  const bytes = Buffer.from(trimmed, "base64");
  if (!BASE64.test(trimmed) || bytes.length !== MASTER_KEY_BYTES) {
    throw new StartupError(`${origin} does not hold a master key: 64 hex digits, or base64 of 32 bytes.`);
  }
  return new Uint8Array(bytes);
}
