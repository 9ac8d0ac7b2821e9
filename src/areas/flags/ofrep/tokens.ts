import type { Caller } from "../../../kernel/callers/caller.ts";
import { hmacSha256 } from "../../../kernel/hmac.ts";
import { equalInConstantTime } from "../../../kernel/secrets/key-format.ts";
import type { Vault } from "../../../kernel/secrets/vault.ts";

/** Access to keys by a permanent name that is not secret. */
export interface NamedKeys {
  /** Returns the 16-byte name of the key behind a credential; null if it is not a key. */
  readonly nameOf: (credential: string) => Uint8Array | null;
  /** Returns the caller with this key; null if it is deleted, revoked or expired. */
  readonly callerOf: (name: Uint8Array) => Caller | null;
}

const PURPOSE = "ofrep-events";
const NAME_BYTES = 16;
/** Characters of a name in base64url. */
const NAME_LENGTH = 22;

/**
 * Tokens that only open the stream of a key. Browsers cannot send a key as a header to an event stream, and a key in a URL
 * would appear in the logs of proxies. A token is valid as long as its key.
 */
export class StreamTokens {
  private readonly secret: Uint8Array;

  constructor(
    vault: Vault,
    private readonly keys: NamedKeys,
  ) {
    this.secret = vault.derive(PURPOSE);
  }

  /** Returns the token of a caller's key; null for a browser session. */
  of({ credential }: Caller): string | null {
    const name = this.keys.nameOf(credential);
    return name === null ? null : this.write(name);
  }

  /** Returns the name of a token's key; null for an invalid token. */
  nameIn(token: string): Uint8Array | null {
    const name = Buffer.from(token.slice(0, NAME_LENGTH), "base64url");
    return name.length === NAME_BYTES && equalInConstantTime(token, this.write(name)) ? name : null;
  }

  private write(name: Uint8Array): string {
    const proof = hmacSha256(this.secret).update(PURPOSE).update(name).digest("base64url");
    return `${Buffer.from(name).toString("base64url")}.${proof}`;
  }
}
