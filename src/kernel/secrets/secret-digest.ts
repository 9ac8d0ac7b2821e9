import { type Caller, hasScope } from "../callers/caller.ts";
import { hmacSha256 } from "../hmac.ts";
import type { Vault } from "./vault.ts";

/** A secret of a resource: a text, or texts by name as in headers. Null or undefined for none. */
export type SecretValue = string | Readonly<Record<string, string>> | null | undefined;

/** Purpose of the key that salts are computed with. */
const PURPOSE = "secret-digests";
/** Hex digits of a salt: 128 bits, so that no two resources share one. */
const SALT_LENGTH = 32;

/** Digests by which a caller who knows a secret can tell whether a resource has it, without reading it. */
export class SecretDigests {
  private key: Uint8Array | undefined;

  constructor(private readonly vault: Pick<Vault, "derive">) {}

  /**
   * The field `secret_digest` of a resource, for callers that hold `:read` and `:write` of its area; no field for others, and
   * for a resource without secrets. Each resource has its own salt, so that equal secrets have different digests.
   */
  of(
    caller: Caller,
    area: string,
    id: string,
    secrets: Readonly<Record<string, SecretValue>>,
  ): { secret_digest?: Record<string, string> } {
    if (!hasScope(caller, `${area}:read`) || !hasScope(caller, `${area}:write`)) return {};
    const present = Object.entries(secrets).filter(([, value]) => !isEmpty(value));
    if (present.length === 0) return {};
    this.key ??= this.vault.derive(PURPOSE);
    const salt = hmacSha256(this.key).update(id).digest("hex").slice(0, SALT_LENGTH);
    return {
      secret_digest: Object.fromEntries(present.map(([name, value]) => [name, digestWith(salt, value)])),
    };
  }
}

/** Whether a secret has a digest. */
export function matchesDigest(digest: string, value: SecretValue): boolean {
  return digest === digestWith(digest.slice(0, SALT_LENGTH), value);
}

function isEmpty(value: SecretValue): boolean {
  return (
    value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0)
  );
}

/** The salt, a dot, and the HMAC-SHA256 of the secret under the salt. */
function digestWith(salt: string, value: SecretValue): string {
  return `${salt}.${hmacSha256(salt).update(textOf(value)).digest("hex")}`;
}

/** Headers in one order, with names in lower case, since HTTP does not distinguish them. */
function textOf(value: SecretValue): string {
  if (typeof value !== "object" || value === null) return value ?? "";
  const entries = Object.entries(value).map(([name, text]) => [name.toLowerCase(), text] as const);
  return JSON.stringify(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
