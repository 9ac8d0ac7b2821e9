import { Secret } from "../draft.ts";
import { type SourceObject, shown } from "../source.ts";
import { basicAuthorization } from "./endpoints.ts";

/** Content types of responses that a bucket can have. */
const RESPONSE_TYPES = ["text/plain", "application/json", "application/xml", "text/xml"];
/** Hashes of signatures that a recipe can have. */
const HASHES = ["sha1", "sha256", "sha512"];

/** How a bucket verifies requests of a sender without a preset. */
export interface Recipe {
  readonly signature: Readonly<Record<string, unknown>>;
  readonly signing_secret: Secret;
}

/** A header that is the secret itself. */
export function tokenRecipe(header: string | null, secret: string | null): Recipe {
  return {
    signature: { header: header ?? "Authorization", algorithm: "token" },
    signing_secret: secret === null ? Secret.unknown("a") : new Secret(secret),
  };
}

/** A name and a password. */
export function basicRecipe(name: string | null, password: string | null): Recipe {
  return tokenRecipe("Authorization", basicAuthorization(name ?? "", password ?? ""));
}

/** Parts of a signature of the body. */
export interface Hmac {
  readonly header: string | null;
  readonly hash: string | null;
  readonly encoding: string | null;
  readonly secret: string | null;
}

/** A signature of the body; null for another hash, which is noted at `field`. */
export function hmacRecipe(source: SourceObject, field: string, hmac: Hmac): Recipe | null {
  const hash = (hmac.hash ?? "").toLowerCase();
  if (!HASHES.includes(hash)) {
    source.note(field, `${shown(hash)} is not supported: nothing is verified`);
    return null;
  }
  return {
    signature: {
      header: hmac.header ?? "",
      algorithm: `hmac-${hash}`,
      encoding: hmac.encoding ?? "hex",
      template: "{body}",
    },
    signing_secret: hmac.secret === null ? Secret.unknown("a") : new Secret(hmac.secret),
  };
}

/**
 * The response of a source; null for the default. A content type that buckets cannot have is noted. `types`: content types by
 * names that stand for them.
 */
export function responseOf(
  response: SourceObject,
  types: Readonly<Record<string, string>> = {},
): Readonly<Record<string, unknown>> | null {
  const [body, name] = [response.text("body"), response.text("content_type")];
  if (body === null) return null;
  if (name === null) return { body };
  const type = types[name] ?? name;
  if (RESPONSE_TYPES.includes(type)) return { body, content_type: type };
  response.note("content_type", `${shown(type)} is not supported`);
  return { body };
}
