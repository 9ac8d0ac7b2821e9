import { invalidField } from "../errors.ts";
import type { Ids } from "../ids.ts";
import { LruMap } from "../limits/lru-map.ts";
import type { Vault } from "../secrets/vault.ts";
import type { Database } from "../storage/database.ts";
import type { Tx } from "../storage/tx.ts";
import type { Writer } from "../storage/writer.ts";
import type { RequestHeaders } from "./headers.ts";
import {
  SCHEME_RULES,
  type SecretKeys,
  type Signature,
  type SignatureScheme,
  STANDARD,
  secretKeys,
  signatureHeaders,
} from "./signature-schemes.ts";
import type { StreamedBody } from "./signing.ts";

/** Bytes of a signing key that is made here: as many as its hash has. */
const KEY_BYTES = 32;
/** Maximum number of valid secrets, including the newest: each adds a signature to every header. */
export const VALID_SECRETS_MAX = 3;
/** Owners whose secrets are stored opened: some hundred bytes each. */
const OWNERS_IN_MEMORY_MAX = 10_000;

/** A table with the secrets of owners of one kind. */
type SecretsTable = `${string}_secrets`;

interface Row {
  readonly number: number;
  readonly sealed: Uint8Array;
  readonly created_at: number;
  readonly expires_at: number | null;
}

/** A secret, opened. */
export interface WebhookSecret extends SecretKeys {
  readonly number: number;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds; null for the newest, which has no end. */
  readonly expiresAt: number | null;
}

/** The secrets that are valid at a time, the newest first. */
export type ValidSecrets = readonly [newest: WebhookSecret, ...previous: WebhookSecret[]];

/**
 * What outgoing webhooks are signed with, by owner: made on first use, opened once and kept in memory. After a rotation
 * the older ones continue signing next to the newest for their grace.
 */
export class WebhookSecrets {
  /** Opened, the newest first; those of which the time may be over included. */
  private readonly opened: LruMap<number, ValidSecrets>;
  private readonly select;
  private readonly insert;
  private readonly end;
  private readonly removeOne;
  private readonly removeAll;

  constructor(
    private readonly deps: {
      readonly db: Database;
      readonly writer: Writer;
      readonly vault: Vault;
      readonly ids: Ids;
    },
    private readonly table: SecretsTable,
    inMemoryMax: number = OWNERS_IN_MEMORY_MAX,
  ) {
    this.opened = new LruMap(inMemoryMax);
    const { db } = deps;
    this.select = db.all<Row, [ownerRef: number]>(
      `SELECT number, sealed, created_at, expires_at FROM ${table} WHERE owner_ref = ? ORDER BY number DESC`,
    );
    this.insert = db.change<[ownerRef: number, number: number, sealed: Uint8Array, createdAt: number]>(
      `INSERT INTO ${table} (owner_ref, number, sealed, created_at) VALUES (?, ?, ?, ?)`,
    );
    this.end = db.change<[expiresAt: number, ownerRef: number]>(
      `UPDATE ${table} SET expires_at = min(coalesce(expires_at, ?1), ?1) WHERE owner_ref = ?2`,
    );
    this.removeOne = db.change<[ownerRef: number, number: number]>(
      `DELETE FROM ${table} WHERE owner_ref = ? AND number = ?`,
    );
    this.removeAll = db.change<[ownerRef: number]>(`DELETE FROM ${table} WHERE owner_ref = ?`);
  }

  /** Owners whose secrets are in memory. */
  get inMemory(): number {
    return this.opened.size;
  }

  /** The headers of a signature for a request that begins now. The first of an owner waits for its secret to be durable. */
  async headers(
    ownerRef: number,
    id: string,
    nowMs: number,
    body: StreamedBody,
    signature: Signature = STANDARD,
  ): Promise<RequestHeaders> {
    const { scheme } = signature;
    const secrets =
      this.find(ownerRef) ?? (await this.deps.writer.submit((tx) => this.current(tx, ownerRef, scheme)));
    return signatureHeaders(signature, validAt(secrets, nowMs), { id, nowMs, body });
  }

  /** The newest secret of an owner; null where there is none. */
  newest(ownerRef: number): string | null {
    return this.find(ownerRef)?.[0].text ?? null;
  }

  /** The public key of an owner whose newest secret is a private key; null for another one, or none. */
  publicKey(ownerRef: number): string | null {
    return this.find(ownerRef)?.[0].private?.publicText ?? null;
  }

  /** Whether the newest secret of an owner can sign by a scheme, or there is none yet. */
  fits(ownerRef: number, scheme: SignatureScheme): boolean {
    const found = this.find(ownerRef);
    return found === null || SCHEME_RULES[scheme].fits(found[0]);
  }

  /** The valid secrets of an owner, made now where there are none. */
  current(tx: Tx, ownerRef: number, scheme: SignatureScheme = "standard"): ValidSecrets {
    const found = this.find(ownerRef);
    return found === null ? this.add(tx, ownerRef, this.generated(scheme)) : validAt(found, tx.now);
  }

  /**
   * Puts a new secret, or `secret`, in the place of the newest; the older ones are valid until `graceMs` from now, or
   * their own end if that comes first.
   *
   * @throws ApiError `validation_error` for a secret that does not fit the scheme.
   */
  rotate(
    tx: Tx,
    ownerRef: number,
    graceMs: number,
    secret?: string,
    scheme: SignatureScheme = "standard",
  ): ValidSecrets {
    const text = secret ?? this.generated(scheme);
    const { fits, expected } = SCHEME_RULES[scheme];
    if (!fits(secretKeys(text))) throw invalidField("secret", expected);
    this.current(tx, ownerRef, scheme);
    this.end(tx, tx.now + graceMs, ownerRef);
    return this.add(tx, ownerRef, text);
  }

  /** The text of a stored secret. */
  openStored(ownerRef: number, number: number, sealed: Uint8Array): string {
    return this.deps.vault.open(sealed, this.contextOf(ownerRef, number));
  }

  /** The owner is gone. */
  forget(tx: Tx, ownerRef: number): void {
    this.removeAll(tx, ownerRef);
    this.opened.delete(ownerRef);
  }

  private add(tx: Tx, ownerRef: number, text: string): ValidSecrets {
    const older = this.select(ownerRef);
    const number = (older[0]?.number ?? 0) + 1;
    this.insert(tx, ownerRef, number, this.deps.vault.seal(text, this.contextOf(ownerRef, number)), tx.now);
    const rest = older.map((row) => this.open(ownerRef, row));
    // The ends of older ones come first, so that those dropped are the oldest.
    const kept = rest
      .filter((secret) => (secret.expiresAt ?? 0) > tx.now && secret.text !== text)
      .slice(0, VALID_SECRETS_MAX - 1);
    for (const secret of rest) if (!kept.includes(secret)) this.removeOne(tx, ownerRef, secret.number);
    // Read again, should the unit not be committed.
    tx.onRollback(() => this.opened.delete(ownerRef));
    return this.remember(ownerRef, [
      { ...secretKeys(text), number, createdAt: tx.now, expiresAt: null },
      ...kept,
    ]);
  }

  private find(ownerRef: number): ValidSecrets | null {
    const known = this.opened.get(ownerRef);
    if (known !== undefined) return known;
    const [newest, ...older] = this.select(ownerRef).map((row) => this.open(ownerRef, row));
    return newest === undefined ? null : this.remember(ownerRef, [newest, ...older]);
  }

  private remember(ownerRef: number, secrets: ValidSecrets): ValidSecrets {
    this.opened.set(ownerRef, secrets);
    return secrets;
  }

  private open(ownerRef: number, { number, sealed, created_at, expires_at }: Row): WebhookSecret {
    const text = this.openStored(ownerRef, number, sealed);
    return { ...secretKeys(text), number, createdAt: created_at, expiresAt: expires_at };
  }

  private generated(scheme: SignatureScheme): string {
    return SCHEME_RULES[scheme].generated(this.deps.ids.bytes(KEY_BYTES));
  }

  private contextOf(ownerRef: number, number: number): string {
    return `${this.table}:${ownerRef}:${number}`;
  }
}

function validAt([newest, ...previous]: ValidSecrets, now: number): ValidSecrets {
  return [newest, ...previous.filter(({ expiresAt }) => (expiresAt ?? 0) > now)];
}
