import type { Caller } from "../../../kernel/http/access/caller.ts";
import { hmacSha256 } from "../../../kernel/secrets/hmac.ts";
import { equalInConstantTime } from "../../../kernel/secrets/key-format.ts";
import type { Vault } from "../../../kernel/secrets/vault.ts";

/** Keys by a name that is no secret, and never another key's. */
export interface NamedKeys {
  /** The 16 bytes that name the key behind a credential; null where that is no key. */
  readonly nameOf: (credential: string) => Uint8Array | null;
  /** The caller with this key; null when it is gone, revoked or expired. */
  readonly callerOf: (name: Uint8Array) => Caller | null;
}

const PURPOSE = "ofrep-events";
const NAME_BYTES = 16;
/** Characters of a name: base64url of {@link NAME_BYTES}. */
const NAME_LENGTH = 22;

/**
 * Tokens that open the stream of a key and nothing else: browsers cannot send a key there, and one in an address would
 * stand in every proxy's log. A token lives and dies with its key.
 */
export class StreamTokens {
  private readonly secret: Uint8Array;

  constructor(
    vault: Vault,
    private readonly keys: NamedKeys,
  ) {
    this.secret = vault.derive(PURPOSE);
  }

  /** The token of a caller's key; null where it has none of its own, as a browser session. */
  of({ credential }: Caller): string | null {
    const name = this.keys.nameOf(credential);
    return name === null ? null : this.write(name);
  }

  /** The name of the key that a token is of; null for what is no token of this server. */
  nameIn(token: string): Uint8Array | null {
    const name = Buffer.from(token.slice(0, NAME_LENGTH), "base64url");
    return name.length === NAME_BYTES && equalInConstantTime(token, this.write(name)) ? name : null;
  }

  private write(name: Uint8Array): string {
    const proof = hmacSha256(this.secret).update(PURPOSE).update(name).digest("base64url");
    return `${Buffer.from(name).toString("base64url")}.${proof}`;
  }
}
