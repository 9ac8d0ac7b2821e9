import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Caller, CallerProject } from "../../kernel/callers/caller.ts";
import type { Authenticator } from "../../kernel/http/access/guard.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { LruMap } from "../../kernel/limits/lru-map.ts";
import { keyDigest, mintKey, PLATFORM_PREFIX } from "../../kernel/secrets/key-format.ts";
import { sealedText } from "../../kernel/secrets/sealed-column.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { assertMayRotate } from "./domain.ts";
import type { AccountActor, Accounts } from "./ledger.ts";
import type { RotatedPlatformKey } from "./schema.ts";
import type { AccountStore } from "./store.ts";

const PLATFORM_KEY = sealedText("platform-key");

/** Recently used platform keys in memory. */
export const CREDENTIALS_IN_MEMORY_MAX = 20_000;
/** Keys in memory that sign deliveries: reading and opening one takes a tenth of the time of a delivery. */
const SIGNING_KEYS_IN_MEMORY_MAX = 1_000;

const ALL_SCOPES: ReadonlySet<string> = new Set(["*"]);
/** Prefix of the credentials of platform keys. */
const PLATFORM = "platform:";
/** Bytes of a key's name. The first half is zero, which distinguishes it from the UUID of a managed key. */
const NAME_BYTES = 16;

/** A platform key in memory, and its caller: the whole account, in its default project. */
class PlatformKey implements Caller, Actor {
  recent = false;
  readonly idle = true;
  readonly credential: string;
  readonly scopes = ALL_SCOPES;
  readonly projectBound = false;
  readonly projectDeleted = false;

  constructor(
    readonly id: number,
    public endsAt: number | null,
    public account: AccountActor,
  ) {
    this.credential = PLATFORM + id;
  }

  get revoked(): boolean {
    return this.id < this.account.oldestKey;
  }

  get superseded(): boolean {
    return this.id < this.account.newestKey;
  }

  get project(): CallerProject {
    return this.account.defaultProject;
  }
}

/** The accounts' platform keys: the newest, which does not expire, and older ones in their grace period. */
export class PlatformCredentials implements Authenticator {
  private readonly cache: ActorRegistry<string, PlatformKey>;
  /** Texts of keys that sign deliveries, by their number. */
  private readonly signing = new LruMap<number, string | null>(SIGNING_KEYS_IN_MEMORY_MAX);
  private nextId: number;

  constructor(
    private readonly store: AccountStore,
    private readonly accounts: Accounts,
    private readonly kernel: Pick<Kernel, "vault" | "ids" | "clock">,
    inMemoryMax: number = CREDENTIALS_IN_MEMORY_MAX,
  ) {
    this.cache = new ActorRegistry(inMemoryMax);
    this.nextId = store.highestKey() + 1;
  }

  authenticate(digest: string): Caller | null {
    const key = this.cache.get(digest, () => this.load(digest));
    if (key === undefined || (key.endsAt !== null && key.endsAt <= this.kernel.clock.now())) return null;
    // A removed account cannot be read again.
    if (key.account.deleted) return null;
    if (key.account.passivated) key.account = this.accounts.get(key.account.ref);
    // Not only by its expiry: the key must stay revoked when the wall clock is set back.
    return key.revoked || key.account.deleted ? null : key;
  }

  /** A permanent name of the key behind a credential; null if it is not a platform key. */
  nameOf(credential: string): Uint8Array | null {
    if (!credential.startsWith(PLATFORM)) return null;
    const name = Buffer.alloc(NAME_BYTES);
    name.writeBigUInt64BE(BigInt(credential.slice(PLATFORM.length)), NAME_BYTES / 2);
    return name;
  }

  /** The digest (hex) of the key with this name; null when there is none. */
  digestOf(name: Uint8Array): string | null {
    const id = Buffer.from(name).readBigUInt64BE(NAME_BYTES / 2);
    if (id >= this.nextId || name.subarray(0, NAME_BYTES / 2).some((byte) => byte !== 0)) return null;
    const row = this.store.digestOfKey(Number(id));
    return row && Buffer.from(row.digest).toString("hex");
  }

  /** Creates the newest key of an account, or stores the given one. Returns the key. */
  issue(tx: Tx, account: AccountActor, chosen?: string): string {
    const { vault, ids } = this.kernel;
    const key = chosen ?? mintKey(PLATFORM_PREFIX, ids);
    const sealed = PLATFORM_KEY.seal(vault, account.userId, key);
    const id = this.nextId++;
    this.accounts.change(tx, account, { newestKey: id });
    this.store.insertKey(tx, { id, accountRef: account.ref, digest: keyDigest(key), sealed, now: tx.now });
    return key;
  }

  /**
   * Issues a new key. The older keys expire `graceMs` from now, unless they expire earlier.
   * @throws ApiError `rate_limit_exceeded` within an hour of the last rotation.
   */
  rotate(tx: Tx, account: AccountActor, graceMs: number): RotatedPlatformKey {
    assertMayRotate(account.rotatedAt, tx.now);
    const expiresAt = tx.now + graceMs;
    const key = graceMs === 0 ? this.replaceAll(tx, account) : this.replace(tx, account, expiresAt);
    this.setRotated(tx, account, tx.now);
    return { key, rotated_at: isoTime(tx.now), expires_at: isoTime(expiresAt) };
  }

  /** Revokes all keys of an account and issues a new one, which can be rotated immediately. */
  reset(tx: Tx, account: AccountActor): string {
    const key = this.replaceAll(tx, account);
    this.setRotated(tx, account, null);
    return key;
  }

  /** Ends all keys of an account that is deleted. Deliveries in flight are still signed with the newest one. */
  end(tx: Tx, { ref }: AccountActor): void {
    tx.afterCommit(() => {
      for (const key of this.cache.values())
        if (key.account.ref === ref) key.endsAt = Number.NEGATIVE_INFINITY;
    });
  }

  /** Removes the keys of a deleted account. Their numbers are never used again. */
  removeAll(tx: Tx, { ref, newestKey }: AccountActor): void {
    this.store.recordRemovedKey(tx, newestKey);
    this.store.removeKeys(tx, ref);
  }

  /**
   * The account's newest key, with which deliveries are signed; null if a restore without the master key has removed its
   * text: it still authenticates.
   */
  signingKey(account: AccountActor): string | null {
    return this.signing.getOrAdd(account.newestKey, () => this.openNewest(account));
  }

  private openNewest(account: AccountActor): string | null {
    const row = this.store.newestKeyOf(account.ref);
    if (row === null) throw new Error(`account ${account.ref} has no platform key`);
    return PLATFORM_KEY.openOrNull(this.kernel.vault, account.userId, row.sealed);
  }

  /** A key that works like the account's newest one in this process alone; nothing is stored. */
  temporary(account: AccountActor): string {
    const key = mintKey(PLATFORM_PREFIX, this.kernel.ids);
    const digest = Buffer.from(keyDigest(key)).toString("hex");
    this.cache.insert(digest, new PlatformKey(account.newestKey, null, account));
    return key;
  }

  private replace(tx: Tx, account: AccountActor, expiresAt: number): string {
    this.store.expireKeys(tx, expiresAt, account.ref);
    this.store.removeExpiredKeys(tx, account.ref, tx.now);
    // Keys in memory are updated once the expiry is durable.
    tx.afterCommit(() => this.expireInMemory(account, expiresAt));
    return this.issue(tx, account);
  }

  private replaceAll(tx: Tx, account: AccountActor): string {
    this.store.removeKeys(tx, account.ref);
    const key = this.issue(tx, account);
    // Requests in flight with an older key see it in their unit of work.
    this.accounts.change(tx, account, { oldestKey: account.newestKey });
    tx.afterCommit(() => this.expireInMemory(account, tx.now));
    return key;
  }

  private setRotated(tx: Tx, account: AccountActor, rotatedAt: number | null): void {
    this.store.setRotated(tx, rotatedAt, account.ref);
    this.accounts.change(tx, account, { rotatedAt });
  }

  private load(digestHex: string): PlatformKey | undefined {
    const row = this.store.keyWithDigest(Buffer.from(digestHex, "hex"));
    return row === null
      ? undefined
      : new PlatformKey(row.id, row.expires_at, this.accounts.get(row.account_ref));
  }

  private expireInMemory({ ref, newestKey }: AccountActor, expiresAt: number): void {
    for (const key of this.cache.values()) {
      if (key.account.ref !== ref || key.id >= newestKey) continue;
      key.endsAt = Math.min(key.endsAt ?? expiresAt, expiresAt);
    }
  }
}
