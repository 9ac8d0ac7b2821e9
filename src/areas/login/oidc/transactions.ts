import { hmacSha256 } from "../../../kernel/hmac.ts";
import type { Ids } from "../../../kernel/ids.ts";
import { LruMap } from "../../../kernel/limits/lru-map.ts";
import { equalInConstantTime } from "../../../kernel/secrets/key-format.ts";
import type { Vault } from "../../../kernel/secrets/vault.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { LOGIN_MS, LOGINS_PER_BROWSER_MAX, RETURN_TO_LENGTH_MAX, USED_LOGINS_MAX } from "./domain.ts";

/** A login that has gone to a provider. */
export interface Transaction {
  readonly isStepUp: boolean;
  /** Hash of the token of the browser's session; null without one. */
  readonly session: Uint8Array | null;
  readonly returnTo: string;
}

/** What the provider and its tokens must repeat, and the secret of the code. */
export interface Checks {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE. */
  readonly verifier: string;
}

/** Purpose of the key that logins in progress are authenticated with. */
const KEY_PURPOSE = "login-transactions";
/** An entry of the cookie: its time in seconds, random bytes, flags, the hash of the session's token, and where to return. */
const TIME_BYTES = 4;
const RANDOM_BYTES = 16;
const SESSION_BYTES = 32;
const FLAGS_AT = TIME_BYTES + RANDOM_BYTES;
const HEAD_BYTES = FLAGS_AT + 1 + SESSION_BYTES;
const IS_STEP_UP = 1;
const HAS_SESSION = 2;
/** Longest entry in base64url. */
const ENTRY_LENGTH_MAX = Math.ceil(((HEAD_BYTES + RETURN_TO_LENGTH_MAX) * 4) / 3);
const SEPARATOR = ".";

/**
 * Logins that have gone to a provider, valid once and for minutes. They are in a cookie of their browser, and what the provider
 * must repeat is derived from them: nothing is stored for strangers who begin very many, and a restart ends none.
 */
export class Transactions {
  private key: Uint8Array | undefined;
  private readonly used = new LruMap<string, true>(USED_LOGINS_MAX);

  constructor(
    private readonly deps: {
      readonly clock: Pick<Clock, "now">;
      readonly ids: Pick<Ids, "bytes">;
      readonly vault: Pick<Vault, "derive">;
    },
  ) {}

  /** Begins a login at a provider. `cookie`: the browser's cookie before. */
  begin(
    provider: string,
    { isStepUp, session, returnTo }: Transaction,
    cookie: string | null,
  ): { readonly checks: Checks; readonly cookie: string } {
    const { clock, ids } = this.deps;
    const head = Buffer.alloc(HEAD_BYTES);
    head.writeUInt32BE(Math.floor(clock.now() / 1000));
    head.set(ids.bytes(RANDOM_BYTES), TIME_BYTES);
    head.writeUInt8((isStepUp ? IS_STEP_UP : 0) + (session === null ? 0 : HAS_SESSION), FLAGS_AT);
    if (session !== null) head.set(session.subarray(0, SESSION_BYTES), FLAGS_AT + 1);
    const entry = Buffer.concat([head, Buffer.from(returnTo)]).toString("base64url");
    const others = entriesOf(cookie).filter((other) => this.isValid(other));
    return {
      checks: this.checksOf(provider, entry),
      cookie: [...others, entry].slice(-LOGINS_PER_BROWSER_MAX).join(SEPARATOR),
    };
  }

  /** Ends the login that a provider returns from; null if the browser has begun none with this state at this provider. */
  end(
    provider: string,
    state: string,
    cookie: string | null,
  ): { readonly transaction: Transaction; readonly checks: Checks; readonly cookie: string } | null {
    const entries = entriesOf(cookie);
    const entry = entries.find((text) => equalInConstantTime(this.checksOf(provider, text).state, state));
    if (entry === undefined || !this.isValid(entry)) return null;
    this.used.set(entry, true);
    const bytes = Buffer.from(entry, "base64url");
    const flags = bytes.readUInt8(FLAGS_AT);
    return {
      transaction: {
        isStepUp: (flags & IS_STEP_UP) !== 0,
        session:
          (flags & HAS_SESSION) === 0 ? null : new Uint8Array(bytes.subarray(FLAGS_AT + 1, HEAD_BYTES)),
        returnTo: bytes.subarray(HEAD_BYTES).toString("utf8"),
      },
      checks: this.checksOf(provider, entry),
      cookie: entries.filter((other) => other !== entry).join(SEPARATOR),
    };
  }

  private isValid(entry: string): boolean {
    const bytes = Buffer.from(entry, "base64url");
    if (bytes.length < HEAD_BYTES || this.used.get(entry) !== undefined) return false;
    const ageMs = this.deps.clock.now() - bytes.readUInt32BE() * 1000;
    return ageMs >= 0 && ageMs <= LOGIN_MS;
  }

  private checksOf(provider: string, entry: string): Checks {
    const derive = (purpose: string) => this.macOf(`${purpose} ${provider} ${entry}`);
    return { state: derive("state"), nonce: derive("nonce"), verifier: derive("verifier") };
  }

  private macOf(text: string): string {
    this.key ??= this.deps.vault.derive(KEY_PURPOSE);
    return hmacSha256(this.key).update(text).digest("base64url");
  }
}

/** At most as many entries as a browser can have, each in its only spelling. */
function entriesOf(cookie: string | null): string[] {
  if (cookie === null || cookie.length > (ENTRY_LENGTH_MAX + 1) * LOGINS_PER_BROWSER_MAX) return [];
  return cookie
    .split(SEPARATOR)
    .slice(-LOGINS_PER_BROWSER_MAX)
    .filter((entry) => Buffer.from(entry, "base64url").toString("base64url") === entry && entry !== "");
}
