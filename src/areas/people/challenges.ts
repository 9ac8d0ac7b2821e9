import { timingSafeEqual } from "node:crypto";
import { hmacSha256 } from "../../kernel/hmac.ts";
import type { Ids } from "../../kernel/ids.ts";
import { LruMap } from "../../kernel/limits/lru-map.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { CHALLENGE_MS } from "./domain.ts";

/** What a challenge may be used for: a login, or a registration by this person. */
export type ChallengePurpose = "login" | `registration:${string}`;

/** Purpose of the key that challenges are authenticated with. */
const KEY_PURPOSE = "passkey-challenges";
/** Bytes of a challenge: its time in seconds, random ones, and the start of an HMAC over both and the purpose. */
const TIME_BYTES = 4;
const RANDOM_BYTES = 12;
const MAC_BYTES = 16;
const CHALLENGE_BYTES = TIME_BYTES + RANDOM_BYTES + MAC_BYTES;
/** Used challenges in memory. They are valid for minutes, and rejected logins are limited. */
const USED_MAX = 50_000;

/**
 * Challenges of passkeys: 32 bytes, valid once and for minutes, for one purpose. They authenticate themselves, so that nothing
 * is stored for strangers who request very many of them, and a restart ends none.
 */
export class Challenges {
  private key: Uint8Array | undefined;
  private readonly used = new LruMap<string, true>(USED_MAX);

  constructor(
    private readonly deps: {
      readonly clock: Pick<Clock, "now">;
      readonly ids: Pick<Ids, "bytes">;
      readonly vault: Pick<Vault, "derive">;
    },
  ) {}

  /** A new challenge, base64url. */
  create(purpose: ChallengePurpose): string {
    const { clock, ids } = this.deps;
    const head = Buffer.alloc(TIME_BYTES + RANDOM_BYTES);
    head.writeUInt32BE(Math.floor(clock.now() / 1000));
    head.set(ids.bytes(RANDOM_BYTES), TIME_BYTES);
    return Buffer.concat([head, this.macOf(head, purpose)]).toString("base64url");
  }

  /** Whether a challenge is valid for a purpose. From then on it is not any more. */
  use(challenge: string, purpose: ChallengePurpose): boolean {
    const bytes = Buffer.from(challenge, "base64url");
    if (bytes.length !== CHALLENGE_BYTES || bytes.toString("base64url") !== challenge) return false;
    const head = bytes.subarray(0, TIME_BYTES + RANDOM_BYTES);
    const ageMs = this.deps.clock.now() - head.readUInt32BE() * 1000;
    if (ageMs < 0 || ageMs > CHALLENGE_MS) return false;
    if (!timingSafeEqual(this.macOf(head, purpose), bytes.subarray(head.length))) return false;
    if (this.used.get(challenge) !== undefined) return false;
    this.used.set(challenge, true);
    return true;
  }

  private macOf(head: Uint8Array, purpose: ChallengePurpose): Buffer {
    this.key ??= this.deps.vault.derive(KEY_PURPOSE);
    const mac = hmacSha256(this.key).update(head).update(purpose).digest();
    return Buffer.from(mac.buffer, mac.byteOffset, MAC_BYTES);
  }
}
