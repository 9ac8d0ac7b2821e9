import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Authenticator, Caller, CallerProject } from "../../kernel/http/caller.ts";
import type { Ids } from "../../kernel/ids.ts";
import { keyDigest, mintKey, PLATFORM_PREFIX } from "../../kernel/secrets/key-format.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { AccountActor } from "./actor.ts";
import { assertMayRotate } from "./domain.ts";
import type { Accounts } from "./registry.ts";
import type { AccountStore } from "./store.ts";

/** Platform keys kept in memory: the ones in use. */
export const CREDENTIALS_IN_MEMORY_MAX = 20_000;

const ALL_SCOPES: ReadonlySet<string> = new Set(["*"]);

/** A platform key in memory. */
class PlatformCredential implements Actor {
  recent = false;
  readonly idle = true;
  readonly id: number;
  readonly accountRef: number;
  expiresAt: number | null;
  caller: PlatformCaller;

  constructor(id: number, expiresAt: number | null, account: AccountActor) {
    this.id = id;
    this.accountRef = account.ref;
    this.expiresAt = expiresAt;
    this.caller = new PlatformCaller(account, id);
  }
}

/** The caller behind a platform key: the whole account, in its default project. */
class PlatformCaller implements Caller {
  readonly account: AccountActor;
  readonly credential: string;
  readonly isPlatformKey = true;
  readonly scopes = ALL_SCOPES;
  readonly projectBound = false;
  readonly projectDeleted = false;
  readonly revoked = false;

  constructor(account: AccountActor, keyId: number) {
    this.account = account;
    this.credential = `platform:${keyId}`;
  }

  get project(): CallerProject {
    return this.account.defaultProject;
  }
}

/** What a rotation gives back. */
export interface Rotation {
  readonly key: string;
  readonly rotatedAt: number;
  /** When the key before stops working, epoch milliseconds. */
  readonly expiresAt: number;
}

/** The accounts' platform keys: one that works for ever, and older ones in their grace. */
export class PlatformCredentials implements Authenticator {
  private readonly cache;
  private readonly store: AccountStore;
  private readonly accounts: Accounts;
  private readonly vault: Vault;
  private readonly ids: Ids;
  private readonly clock: Clock;
  private nextId: number;

  constructor(deps: {
    store: AccountStore;
    accounts: Accounts;
    vault: Vault;
    ids: Ids;
    clock: Clock;
    inMemoryMax?: number;
  }) {
    this.cache = new ActorRegistry<string, PlatformCredential>(deps.inMemoryMax ?? CREDENTIALS_IN_MEMORY_MAX);
    this.store = deps.store;
    this.accounts = deps.accounts;
    this.vault = deps.vault;
    this.ids = deps.ids;
    this.clock = deps.clock;
    this.nextId = deps.store.highestNumber("key") + 1;
  }

  authenticate(digest: string): Caller | null {
    const credential = this.cache.get(digest, () => this.load(digest));
    if (credential === undefined) return null;
    if (credential.expiresAt !== null && credential.expiresAt <= this.clock.now()) return null;
    if (credential.caller.account.passivated) {
      credential.caller = new PlatformCaller(this.accounts.get(credential.accountRef), credential.id);
    }
    return credential.caller;
  }

  /** Makes the first key of an account, or stores the given one. Returns the key. */
  issue(tx: Tx, account: AccountActor, given?: string): string {
    const key = given ?? mintKey(PLATFORM_PREFIX, this.ids);
    const sealed = this.vault.seal(key, sealContext(account));
    this.store.insertPlatformKey(tx, this.nextId++, account.ref, keyDigest(key), sealed);
    return key;
  }

  /**
   * Issues a new key; the one before works until `graceMs` from now.
   * @throws ApiError `rate_limit_exceeded` within an hour of the last rotation.
   */
  rotate(tx: Tx, account: AccountActor, graceMs: number): Rotation {
    assertMayRotate(account.rotatedAt, tx.now);
    const expiresAt = tx.now + graceMs;
    this.store.endPlatformKeys(tx, account.ref, expiresAt);
    const key = this.issue(tx, account);
    this.store.setRotated(tx, account.ref, tx.now);
    const rotatedBefore = account.rotatedAt;
    this.accounts.touch(account);
    account.rotatedAt = tx.now;
    tx.onRollback(() => {
      account.rotatedAt = rotatedBefore;
    });
    // Keys in memory learn of their end once it is durable.
    tx.afterCommit(() => this.endInMemory(account.ref, expiresAt));
    return { key, rotatedAt: tx.now, expiresAt };
  }

  /** The account's newest key: deliveries are signed with it. */
  signingKey(account: AccountActor): string {
    const newest = this.store.newestKeyOf(account.ref);
    if (newest === null) throw new Error(`account ${account.ref} has no platform key`);
    return this.vault.open(newest.sealed, sealContext(account));
  }

  private load(digestHex: string): PlatformCredential | undefined {
    const row = this.store.keyWithDigest(Buffer.from(digestHex, "hex"));
    if (row === null) return undefined;
    return new PlatformCredential(row.id, row.expires_at, this.accounts.get(row.account_ref));
  }

  private endInMemory(accountRef: number, expiresAt: number): void {
    const newest = this.store.newestKeyOf(accountRef)?.id;
    for (const credential of this.cache.values()) {
      if (credential.accountRef !== accountRef || credential.id === newest) continue;
      credential.expiresAt ??= expiresAt;
    }
  }
}

function sealContext(account: AccountActor): string {
  return `platform-key:${account.userId}`;
}
