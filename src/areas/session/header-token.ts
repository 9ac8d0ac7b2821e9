import { createPublicKey, type KeyObject, verify } from "node:crypto";
import { errorText } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { LruMap } from "../../kernel/limits/lru-map.ts";
import { isEmail } from "../../kernel/mail/address.ts";
import { keyDigestHex } from "../../kernel/secrets/key-format.ts";
import { MINUTE_MS } from "../../kernel/time/units.ts";
import type { TokenReader, TokenSettings } from "./trusted-header.ts";

/** Fetches a document of the issuer; null if there is none. */
export type FetchOfIssuer = (url: string) => Promise<unknown>;

/** Keys of an issuer: it has two or three, and some during a rotation. */
const KEYS_MAX = 20;
/** The keys are fetched again so often at most, when a token names one that is not known. */
const FETCH_AGAIN_MS = MINUTE_MS;
/** Tolerance of the clocks of server and issuer, in seconds. */
const TOLERANCE_S = 60;
/** Valid tokens in memory, so that each is verified once. */
const TOKENS_REMEMBERED_MAX = 5_000;

/** How signatures are verified, by the `alg` of a token. No other is accepted. */
const ALGORITHMS: Readonly<
  Record<
    string,
    { readonly type: string; readonly curve?: string; readonly hash: string | null; readonly options: object }
  >
> = {
  RS256: { type: "rsa", hash: "sha256", options: {} },
  // RSA_PKCS1_PSS_PADDING
  PS256: { type: "rsa", hash: "sha256", options: { padding: 6, saltLength: 32 } },
  ES256: { type: "ec", curve: "prime256v1", hash: "sha256", options: { dsaEncoding: "ieee-p1363" } },
  ES384: { type: "ec", curve: "secp384r1", hash: "sha384", options: { dsaEncoding: "ieee-p1363" } },
  EdDSA: { type: "ed25519", hash: null, options: {} },
};
/** Shortest RSA key, in bits. */
const RSA_BITS_MIN = 2_048;

type Json = Readonly<Record<string, unknown>>;

/**
 * The signed tokens of a header, such as that of Cloudflare Access. Each request of a session has one, and sessions are
 * authenticated without waiting: so tokens are verified with keys that were fetched before.
 */
export class HeaderTokens implements TokenReader {
  private keys: ReadonlyMap<string, KeyObject> = new Map();
  private fetchedAt = Number.NEGATIVE_INFINITY;
  private fetching: Promise<void> | null = null;
  private readonly known = new LruMap<string, { readonly email: string; readonly endsAt: number }>(
    TOKENS_REMEMBERED_MAX,
  );

  constructor(
    private readonly settings: TokenSettings,
    private readonly kernel: Pick<Kernel, "clock" | "log">,
    private readonly fetchOfIssuer: FetchOfIssuer,
  ) {}

  /** Fetches the keys of the issuer, in the background. */
  start(): void {
    this.kernel.clock.track(this.fetch());
  }

  read(token: string): string | null {
    const name = keyDigestHex(token);
    const known = this.known.get(name);
    if (known !== undefined) return known.endsAt > this.kernel.clock.now() ? known.email : null;
    const parts = partsOf(token);
    if (parts === null) return null;
    const key = this.keys.get(String(parts.header["kid"] ?? ""));
    if (key === undefined) {
      // The next request finds it.
      this.kernel.clock.track(this.fetch());
      return null;
    }
    const email = isSigned(parts, key) ? this.addressOf(parts.claims) : null;
    if (email === null) return null;
    this.known.set(name, { email, endsAt: (Number(parts.claims["exp"]) + TOLERANCE_S) * 1_000 });
    return email;
  }

  async readOnceKnown(token: string): Promise<string | null> {
    const kid = partsOf(token)?.header["kid"];
    if (!this.keys.has(String(kid ?? ""))) await this.fetch();
    return this.read(token);
  }

  /** The address of claims that are valid now. */
  private addressOf(claims: Json): string | null {
    const { issuer, audience } = this.settings;
    const now = this.kernel.clock.now() / 1_000;
    const { iss, aud, azp, exp, nbf, iat, email } = claims;
    const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
    // One for several is for us only if it says so.
    const isForUs = audiences.includes(audience) && (audiences.length === 1 || azp === audience);
    const isOurs = iss === issuer && isForUs;
    const isNow =
      typeof exp === "number" &&
      now < exp + TOLERANCE_S &&
      [nbf, iat].every((at) => at === undefined || (typeof at === "number" && at <= now + TOLERANCE_S));
    return isOurs && isNow && typeof email === "string" && isEmail(email) ? email : null;
  }

  private fetch(): Promise<void> {
    const now = this.kernel.clock.monotonic();
    if (this.fetching === null && now >= this.fetchedAt + FETCH_AGAIN_MS) {
      this.fetchedAt = now;
      this.fetching = this.fetchKeys().finally(() => {
        this.fetching = null;
      });
    }
    return this.fetching ?? Promise.resolve();
  }

  private async fetchKeys(): Promise<void> {
    const { issuer } = this.settings;
    const start = issuer.replace(/\/$/, "");
    try {
      const metadata = asJson(await this.fetchOfIssuer(`${start}/.well-known/openid-configuration`));
      const named = metadata?.["issuer"] === issuer ? metadata["jwks_uri"] : undefined;
      // Cloudflare Access publishes its keys without metadata.
      const url = typeof named === "string" ? named : `${start}/cdn-cgi/access/certs`;
      const keys = keysOf(asJson(await this.fetchOfIssuer(url)));
      if (keys.size > 0) this.keys = keys;
      else this.kernel.log.warn("the issuer of login.header has no keys", { url });
    } catch (error) {
      this.kernel.log.warn("the keys of the issuer of login.header could not be fetched", {
        issuer,
        error: errorText(error),
      });
    }
  }
}

interface TokenParts {
  readonly header: Json;
  readonly claims: Json;
  readonly signed: Buffer;
  readonly signature: Buffer;
}

function partsOf(token: string): TokenParts | null {
  const parts = token.split(".");
  const [header = "", claims = "", signature = ""] = parts;
  if (parts.length !== 3 || !parts.every((part) => /^[A-Za-z0-9_-]+$/.test(part))) return null;
  const read = { header: jsonOf(header), claims: jsonOf(claims) };
  if (read.header === null || read.claims === null || read.header["crit"] !== undefined) return null;
  const signed = Buffer.from(`${header}.${claims}`);
  return { header: read.header, claims: read.claims, signed, signature: Buffer.from(signature, "base64url") };
}

function isSigned({ header, signed, signature }: TokenParts, key: KeyObject): boolean {
  const name = String(header["alg"]);
  const algorithm = Object.hasOwn(ALGORITHMS, name) ? ALGORITHMS[name] : undefined;
  if (algorithm === undefined || key.asymmetricKeyType !== algorithm.type) return false;
  const { namedCurve, modulusLength = RSA_BITS_MIN } = key.asymmetricKeyDetails ?? {};
  if (algorithm.curve !== undefined && namedCurve !== algorithm.curve) return false;
  if (modulusLength < RSA_BITS_MIN) return false;
  return verify(algorithm.hash, signed, { key, ...algorithm.options }, signature);
}

/** The public keys of a JWKS by their ids. Symmetric ones and those that cannot be read are left out. */
function keysOf(set: Json | null): Map<string, KeyObject> {
  const listed = Array.isArray(set?.["keys"]) ? set["keys"].slice(0, KEYS_MAX) : [];
  const keys = new Map<string, KeyObject>();
  for (const listedKey of listed) {
    const jwk = asJson(listedKey);
    const kid = jwk?.["kid"];
    if (jwk === null || typeof kid !== "string" || jwk["kty"] === "oct") continue;
    try {
      keys.set(kid, createPublicKey({ key: { ...jwk }, format: "jwk" }));
    } catch {
      // Of a kind that no algorithm here uses.
    }
  }
  return keys;
}

function jsonOf(part: string): Json | null {
  try {
    return asJson(JSON.parse(Buffer.from(part, "base64url").toString("utf8")));
  } catch {
    return null;
  }
}

function asJson(value: unknown): Json | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
}
