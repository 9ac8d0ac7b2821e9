import {
  constants,
  createHash,
  createHmac,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
  sign as signBytes,
} from "node:crypto";

/** A key of the provider. */
export interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

let keys = 0;

/** A new key for an algorithm. */
export function signingKey(alg = "RS256"): SigningKey {
  keys += 1;
  return { kid: `key-${keys}`, alg, ...pairFor(alg) };
}

function pairFor(alg: string) {
  if (alg === "EdDSA") return generateKeyPairSync("ed25519");
  if (alg.startsWith("ES"))
    return generateKeyPairSync("ec", {
      namedCurve: alg === "ES256" ? "P-256" : alg === "ES384" ? "P-384" : "P-521",
    });
  return generateKeyPairSync("rsa", { modulusLength: 2048 });
}

/** What a login at this provider differs in from that of an honest one. */
export interface Deviation {
  /** Claims of the ID token in place of the usual ones; undefined omits one. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Members of its header. */
  readonly header?: Readonly<Record<string, unknown>>;
  /** The key that signs it; a text is the secret of an HMAC; null: no signature. */
  readonly key?: SigningKey | string | null;
  /** The response of UserInfo; null: 500. */
  readonly userInfo?: Readonly<Record<string, unknown>> | null;
  /** The parameters of the address that the browser is sent back to, in place of the usual ones. */
  readonly returned?: Readonly<Record<string, string | undefined>>;
  /** The response of the token endpoint in place of the usual one. */
  readonly token?: () => Response;
}

interface Code {
  readonly nonce: string;
  readonly challenge: string;
  readonly redirectUri: string;
  readonly deviation: Deviation;
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** An OpenID Connect provider that does everything wrong that a test wants. */
export class HostileProvider {
  readonly clientId: string = "ninefold";
  readonly clientSecret: string = "hunter2:with/special?";
  /** Requests by path. */
  readonly requests = new Map<string, number>();
  /** Members of the metadata in place of the usual ones. */
  metadata: Readonly<Record<string, unknown>> = {};
  keys: SigningKey[] = [signingKey()];
  /** The response to each path, in place of the usual one. */
  readonly responses = new Map<string, (request: Request) => Response | Promise<Response>>();
  private readonly codes = new Map<string, Code>();
  private readonly infos = new Map<string, Code>();
  private readonly server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => this.serve(request),
  });

  /** `now`: the time of its tokens, in epoch milliseconds. */
  constructor(private readonly now: () => number) {}

  get issuer(): string {
    return `http://127.0.0.1:${this.server.port}`;
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }

  /** Logs in at the provider: from the address that a browser was sent to, the one that it is sent back to. */
  authorize(url: string, deviation: Deviation = {}): string {
    const { searchParams: asked } = new URL(url);
    const code = randomUUID();
    const redirectUri = asked.get("redirect_uri") ?? "";
    this.codes.set(code, {
      nonce: asked.get("nonce") ?? "",
      challenge: asked.get("code_challenge") ?? "",
      redirectUri,
      deviation,
    });
    const back = new URL(redirectUri);
    const parameters = { code, state: asked.get("state") ?? "", ...deviation.returned };
    for (const [name, value] of Object.entries(parameters))
      if (value !== undefined) back.searchParams.set(name, value);
    return back.href;
  }

  requestsTo(path: string): number {
    return this.requests.get(path) ?? 0;
  }

  /** The ID token of a login. */
  idToken({ nonce, deviation }: Pick<Code, "nonce" | "deviation">): string {
    const seconds = Math.floor(this.now() / 1000);
    const [usual] = this.keys;
    const { claims = {}, header = {}, key = usual } = deviation;
    const alg = typeof key === "string" ? "HS256" : (key?.alg ?? "none");
    const kid = typeof key === "object" && key !== null ? { kid: key.kid } : {};
    const head = encode({ alg, ...kid, typ: "JWT", ...header });
    const payload = encode({
      iss: this.issuer,
      sub: "subject-1",
      aud: this.clientId,
      iat: seconds,
      exp: seconds + 300,
      nonce,
      email: "ann@example.com",
      email_verified: true,
      name: "Ann",
      ...claims,
    });
    return `${head}.${payload}.${signature(`${head}.${payload}`, key ?? null)}`;
  }

  private async serve(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    this.requests.set(pathname, this.requestsTo(pathname) + 1);
    const other = this.responses.get(pathname);
    if (other !== undefined) return other(request);
    if (pathname === "/.well-known/openid-configuration") return Response.json(this.described());
    if (pathname === "/jwks") return Response.json({ keys: this.keys.map(publicJwk) });
    if (pathname === "/token") return this.token(request);
    if (pathname === "/userinfo") return this.userInfo(request);
    return new Response("not found", { status: 404 });
  }

  private described() {
    const { issuer } = this;
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/jwks`,
      response_types_supported: ["code"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: [
        "RS256",
        "PS256",
        "ES256",
        "ES384",
        "EdDSA",
        "ES512",
        "HS256",
        "none",
      ],
      ...this.metadata,
    };
  }

  private async token(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text());
    const code = this.codes.get(form.get("code") ?? "");
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    const [, basic = ""] = (request.headers.get("authorization") ?? "").split(" ");
    const [id, secret] = Buffer.from(basic, "base64").toString().split(":").map(decodeURIComponent);
    if (id !== this.clientId || secret !== this.clientSecret)
      return Response.json({ error: "invalid_client" }, { status: 401 });
    if (code === undefined || challenge !== code.challenge || form.get("redirect_uri") !== code.redirectUri)
      return Response.json({ error: "invalid_grant" }, { status: 400 });
    // Another provider's code, or a used one, is none here.
    this.codes.delete(form.get("code") ?? "");
    if (code.deviation.token !== undefined) return code.deviation.token();
    const token = randomUUID();
    this.infos.set(token, code);
    return Response.json({
      access_token: token,
      token_type: "Bearer",
      expires_in: 60,
      id_token: this.idToken(code),
    });
  }

  private userInfo(request: Request): Response {
    const code = this.infos.get((request.headers.get("authorization") ?? "").replace("Bearer ", ""));
    const info = code?.deviation.userInfo;
    return info ? Response.json({ sub: "subject-1", ...info }) : new Response("broken", { status: 500 });
  }
}

function publicJwk({ kid, alg, publicKey }: SigningKey) {
  return { ...publicKey.export({ format: "jwk" }), kid, alg, use: "sig" };
}

function signature(input: string, key: SigningKey | string | null): string {
  if (key === null) return "";
  if (typeof key === "string") return createHmac("sha256", key).update(input).digest("base64url");
  const { alg, privateKey } = key;
  const bytes = Buffer.from(input);
  if (alg === "EdDSA") return signBytes(null, bytes, privateKey).toString("base64url");
  const hash = `sha${alg.slice(2)}`;
  if (alg.startsWith("ES"))
    return signBytes(hash, bytes, { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url");
  const padding = alg.startsWith("PS") ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 } : {};
  return signBytes(hash, bytes, { key: privateKey, ...padding }).toString("base64url");
}
