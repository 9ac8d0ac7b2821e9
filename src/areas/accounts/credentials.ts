import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Authenticator, Caller, CallerProject } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { keyDigest, mintKey, PLATFORM_PREFIX } from "../../kernel/secrets/key-format.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { assertMayRotate } from "./domain.ts";
import type { AccountActor, Accounts } from "./registry.ts";
import type { AccountStore } from "./store.ts";

/** Platform keys kept in memory: the ones in use. */
export const CREDENTIALS_IN_MEMORY_MAX = 20_000;

const ALL_SCOPES: ReadonlySet<string> = new Set(["*"]);

/** A platform key in memory. */
class PlatformCredential implements Actor {
  recent = false;
  readonly idle = true;
  readonly accountRef: number;
  caller: PlatformCaller;

  constructor(
    readonly id: number,
    public expiresAt: number | null,
    account: AccountActor,
  ) {
    this.accountRef = account.ref;
    this.caller = new PlatformCaller(account, this);
  }
}

/** The caller behind a platform key: the whole account, in its default project. */
class PlatformCaller implements Caller {
  readonly credential: string;
  readonly isPlatformKey = true;
  readonly scopes = ALL_SCOPES;
  readonly projectBound = false;
  readonly projectDeleted = false;

  constructor(
    readonly account: AccountActor,
    private readonly key: PlatformCredential,
  ) {
    this.credential = `platform:${key.id}`;
  }

  get revoked(): boolean {
    return this.key.id < this.account.oldestKey;
  }

  get superseded(): boolean {
    return this.key.id < this.account.newestKey;
  }

  get endsAt(): number | null {
    return this.key.expiresAt;
  }

  get project(): CallerProject {
    return this.account.defaultProject;
  }
}

/** What a rotation gives back. */
export interface Rotation {
  readonly key: string;
  readonly rotatedAt: number;
  /** When the keys before stop working at the latest, epoch milliseconds. */
  readonly expiresAt: number;
}

/** What platform keys are built on. */
export interface CredentialsDeps extends Pick<Kernel, "vault" | "ids" | "clock"> {
  readonly store: AccountStore;
  readonly accounts: Accounts;
  readonly inMemoryMax?: number;
}

/** The accounts' platform keys: the newest, which has no end, and older ones in their grace. */
export class PlatformCredentials implements Authenticator {
  private readonly cache: ActorRegistry<string, PlatformCredential>;
  private nextId: number;

  constructor(private readonly deps: CredentialsDeps) {
    this.cache = new ActorRegistry(deps.inMemoryMax ?? CREDENTIALS_IN_MEMORY_MAX);
    this.nextId = deps.store.highestNumber("key") + 1;
  }

  authenticate(digest: string): Caller | null {
    const { accounts, clock } = this.deps;
    const credential = this.cache.get(digest, () => this.load(digest));
    if (credential === undefined) return null;
    if (credential.expiresAt !== null && credential.expiresAt <= clock.now()) return null;
    if (credential.caller.account.passivated) {
      credential.caller = new PlatformCaller(accounts.get(credential.accountRef), credential);
    }
    // Its time alone would let it in again, when the wall clock is set back to before it was ended.
    return credential.caller.revoked ? null : credential.caller;
  }

  /** Makes the newest key of an account, or stores the given one. Returns the key. */
  issue(tx: Tx, account: AccountActor, given?: string): string {
    const { store, accounts, vault, ids } = this.deps;
    const key = given ?? mintKey(PLATFORM_PREFIX, ids);
    const sealed = vault.seal(key, sealContext(account));
    const id = this.nextId++;
    accounts.change(tx, account, { newestKey: id });
    store.insertPlatformKey(tx, { id, account_ref: account.ref, digest: keyDigest(key), sealed });
    return key;
  }

  /**
   * Issues a new key; the ones before work until `graceMs` from now, or their own end if that comes first.
   * @throws ApiError `rate_limit_exceeded` within an hour of the last rotation.
   */
  rotate(tx: Tx, account: AccountActor, graceMs: number): Rotation {
    assertMayRotate(account.rotatedAt, tx.now);
    const expiresAt = tx.now + graceMs;
    const key = graceMs === 0 ? this.replaceAll(tx, account) : this.replace(tx, account, expiresAt);
    this.setRotated(tx, account, tx.now);
    return { key, rotatedAt: tx.now, expiresAt };
  }

  /** Ends all keys of an account at once and issues a new one, which can be rotated right away. */
  reset(tx: Tx, account: AccountActor): string {
    const key = this.replaceAll(tx, account);
    this.setRotated(tx, account, null);
    return key;
  }

  /** The account's newest key: deliveries are signed with it. */
  signingKey(account: AccountActor): string {
    const { store, vault } = this.deps;
    const sealed = store.newestKeyOf(account.ref);
    if (sealed === null) throw new Error(`account ${account.ref} has no platform key`);
    return vault.open(sealed, sealContext(account));
  }

  private replace(tx: Tx, account: AccountActor, expiresAt: number): string {
    this.deps.store.endPlatformKeys(tx, account.ref, expiresAt);
    // Keys in memory learn of their end once it is durable.
    tx.afterCommit(() => this.endInMemory(account, expiresAt));
    return this.issue(tx, account);
  }

  private replaceAll(tx: Tx, account: AccountActor): string {
    this.deps.store.removePlatformKeys(tx, account.ref);
    const key = this.issue(tx, account);
    // Requests under way with an older key learn of it in their own unit of work.
    this.deps.accounts.change(tx, account, { oldestKey: account.newestKey });
    tx.afterCommit(() => this.endInMemory(account, tx.now));
    return key;
  }

  private setRotated(tx: Tx, account: AccountActor, rotatedAt: number | null): void {
    this.deps.store.setRotated(tx, account.ref, rotatedAt);
    this.deps.accounts.change(tx, account, { rotatedAt });
  }

  private load(digestHex: string): PlatformCredential | undefined {
    const { store, accounts } = this.deps;
    const row = store.keyWithDigest(Buffer.from(digestHex, "hex"));
    return row === null
      ? undefined
      : new PlatformCredential(row.id, row.expires_at, accounts.get(row.account_ref));
  }

  private endInMemory(account: AccountActor, expiresAt: number): void {
    for (const credential of this.cache.values()) {
      if (credential.accountRef !== account.ref || credential.id >= account.newestKey) continue;
      credential.expiresAt = Math.min(credential.expiresAt ?? expiresAt, expiresAt);
    }
  }
}

function sealContext(account: AccountActor): string {
  return `platform-key:${account.userId}`;
}
