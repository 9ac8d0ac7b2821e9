import type * as OpenidClient from "openid-client";
import type { ClientAuth, Configuration, JWKS, ServerMetadata } from "openid-client";
import { echoed } from "../../../kernel/errors.ts";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import { type Clock, wallMs } from "../../../kernel/time/clock.ts";
import type { ProviderSettings } from "../ports.ts";
import { type Claims, groupsOf, lacksClaims, nameOf, verifiedEmail, withUserInfo } from "./claims.ts";
import {
  ALGORITHMS,
  KEYS_MAX,
  KEYS_PAUSE_MS,
  MAX_AGE_SECONDS,
  METADATA_MS,
  REQUEST_TIMEOUT_MS,
  STEP_UP_SECONDS,
  SUBJECT_LENGTH_MAX,
  TOLERANCE_SECONDS,
  VERIFYING_MAX,
} from "./domain.ts";
import { requestsTo } from "./requests.ts";
import type { Checks } from "./transactions.ts";

type Library = typeof OpenidClient;
type Fetch = OpenidClient.CustomFetch;
type SentResponse = Awaited<ReturnType<Fetch>>;

/** Who logged in at a provider. */
export interface ProvenIdentity {
  readonly issuer: string;
  readonly subject: string;
  /** Null for an address that the provider has not verified. */
  readonly email: string | null;
  readonly name: string | null;
  /** Null without the claim. */
  readonly groups: ReadonlySet<string> | null;
  /** When the person logged in there, epoch milliseconds; null if the provider does not say so. */
  readonly authenticatedAt: number | null;
}

/** The user has not logged in at the provider, or has not agreed. */
export class LoginDenied extends Error {}

/** A provider, or what came back from it, does not do what it must. The message is for the operator. */
export class ProviderFailure extends Error {}

/** The errors with which a provider says that its user did not want to, or could not, log in. */
const DENIALS: readonly string[] = [
  "access_denied",
  "login_required",
  "consent_required",
  "interaction_required",
  "account_selection_required",
];

/** The library is loaded by the first login at a provider: a server without them starts and idles without it. */
function load(): Promise<Library> {
  return import("openid-client");
}

const KEYS_REQUEST = {
  method: "GET",
  headers: { accept: "application/json" },
  body: undefined,
  redirect: "manual",
} as const;
const JSON_BODY = { headers: { "content-type": "application/json" } } as const;

/** The keys of a provider, as of a time of our clock. */
interface Keys {
  readonly text: string;
  readonly jwks: JWKS;
  readonly fetchedAt: number;
}

/** What a provider is built on. */
export interface ProviderDeps {
  readonly clock: Pick<Clock, "now">;
  readonly outbound: Pick<OutboundClient, "send">;
}

/** A provider of logins by OpenID Connect. Nothing is requested before the first login. */
export class Provider {
  private known: { readonly metadata: ServerMetadata; readonly fetchedAt: number } | null = null;
  private discovering: Promise<ServerMetadata> | null = null;
  private keys: Keys | null = null;
  private fetchingKeys: Promise<{ readonly status: number; readonly text: string }> | null = null;
  /** Logins that are being verified. */
  private verifying = 0;
  private readonly send: Fetch;

  constructor(
    readonly settings: ProviderSettings,
    private readonly deps: ProviderDeps,
  ) {
    this.send = requestsTo(deps.outbound, settings.issuer);
  }

  /** Where a browser logs in. @throws ProviderFailure */
  async authorizationUrl(redirectUri: string, checks: Checks, isStepUp: boolean): Promise<URL> {
    return this.attempt(async () => {
      const { library, config } = await this.configured();
      return library.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: this.settings.scopes.join(" "),
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await library.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: "S256",
        max_age: String(isStepUp ? 0 : MAX_AGE_SECONDS),
      });
    });
  }

  /**
   * Who has logged in, by the address to which the provider has sent the browser back.
   * @throws LoginDenied, ProviderFailure
   */
  async identity(returned: URL, checks: Checks, isStepUp: boolean): Promise<ProvenIdentity> {
    if (this.verifying >= VERIFYING_MAX)
      throw new ProviderFailure(`${VERIFYING_MAX} logins wait for the provider already`);
    this.verifying += 1;
    return this.attempt(async () => {
      const { library, config } = await this.configured();
      // The library takes an empty one for none.
      if (returned.searchParams.get("iss") === "") throw new ProviderFailure("the issuer (iss) is empty");
      const tokens = await library.authorizationCodeGrant(config, returned, {
        expectedState: checks.state,
        expectedNonce: checks.nonce,
        pkceCodeVerifier: checks.verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new ProviderFailure("the token response has no ID token");
      this.assertClaims(claims, isStepUp);
      const { groupsClaim, allowedGroups, roles, trustEmail } = this.settings;
      const needs = { groups: allowedGroups.length + roles.size > 0, verified: !trustEmail, groupsClaim };
      const asksUserInfo =
        config.serverMetadata().userinfo_endpoint !== undefined && lacksClaims(claims, needs);
      const all: Claims = asksUserInfo
        ? withUserInfo(claims, await library.fetchUserInfo(config, tokens.access_token, claims.sub))
        : claims;
      const { auth_time: authTime } = claims;
      return {
        issuer: claims.iss,
        subject: claims.sub,
        email: verifiedEmail(all, trustEmail),
        name: nameOf(all),
        groups: groupsOf(all, groupsClaim),
        authenticatedAt: authTime === undefined ? null : authTime * 1000,
      };
    }).finally(() => {
      this.verifying -= 1;
    });
  }

  /** Requests the metadata and the keys, as a login does. @throws ProviderFailure */
  async examine(): Promise<void> {
    await this.attempt(async () => {
      const { jwks_uri: url = "" } = await this.metadata(await load());
      if (url === "") throw new ProviderFailure("the metadata names no keys (jwks_uri)");
      const { status } = await this.fetchKeys(url, KEYS_REQUEST);
      if (status !== 200) throw new ProviderFailure(`the keys (jwks_uri) respond with ${status}`);
    });
  }

  /** What the library leaves open. @throws ProviderFailure */
  private assertClaims(claims: OpenidClient.IDToken, isStepUp: boolean): void {
    const now = this.deps.clock.now() / 1000;
    const { azp, iat, sub, auth_time: authTime } = claims;
    if (azp !== undefined && azp !== this.settings.clientId)
      throw new ProviderFailure("the ID token is for another client (azp)");
    if (iat > now + TOLERANCE_SECONDS) throw new ProviderFailure("the ID token is from the future (iat)");
    if (sub === "" || sub.length > SUBJECT_LENGTH_MAX)
      throw new ProviderFailure("the subject (sub) is empty or too long");
    if (!isStepUp) return;
    if (authTime === undefined)
      throw new ProviderFailure("a step-up needs the time of the login (auth_time), which is missing");
    if (authTime < now - STEP_UP_SECONDS || authTime > now + TOLERANCE_SECONDS)
      throw new ProviderFailure("a step-up needs a login within the last minute (auth_time)");
  }

  private async attempt<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof ProviderFailure) throw error;
      throw await failureOf(error);
    }
  }

  /** The library with the configuration of this provider, as of now. */
  private async configured(): Promise<{ readonly library: Library; readonly config: Configuration }> {
    const library = await load();
    const { clientId, clientSecret } = this.settings;
    const metadata = await this.metadata(library);
    const clocks = {
      [library.clockSkew]: Math.round((this.deps.clock.now() - wallMs()) / 1000),
      [library.clockTolerance]: TOLERANCE_SECONDS,
    };
    const config = new library.Configuration(
      metadata,
      clientId,
      clocks,
      authOf(library, metadata, clientSecret),
    );
    this.prepare(library, config, (url, options) =>
      url === metadata.jwks_uri ? this.fetchKeys(url, options) : this.send(url, options),
    );
    // Without it, a token that a stranger has signed would do: the connection to the provider alone would vouch for it.
    library.enableNonRepudiationChecks(config);
    const { keys } = this;
    if (keys !== null) {
      const uat = Math.floor((wallMs() - this.ageOf(keys)) / 1000);
      library.setJwksCache(config, { jwks: structuredClone(keys.jwks), uat });
    }
    return { library, config };
  }

  private prepare(library: Library, config: Configuration, send: Fetch): void {
    config[library.customFetch] = send;
    config.timeout = REQUEST_TIMEOUT_MS / 1000;
    // The settings permit it for private addresses alone, and the guarded client checks that.
    if (this.settings.issuer.startsWith("http:")) library.allowInsecureRequests(config);
  }

  private async metadata(library: Library): Promise<ServerMetadata> {
    const { known } = this;
    const now = this.deps.clock.now();
    if (known !== null && Math.abs(now - known.fetchedAt) < METADATA_MS) return known.metadata;
    this.discovering ??= this.discover(library).finally(() => {
      this.discovering = null;
    });
    return this.discovering;
  }

  private async discover(library: Library): Promise<ServerMetadata> {
    const { issuer, clientId } = this.settings;
    const found = await library.discovery(new URL(issuer), clientId, undefined, library.None(), {
      [library.customFetch]: this.send,
      timeout: REQUEST_TIMEOUT_MS / 1000,
      execute: issuer.startsWith("http:") ? [library.allowInsecureRequests] : [],
    });
    const metadata = usedOf(found.serverMetadata());
    const offered = metadata.id_token_signing_alg_values_supported ?? ["RS256"];
    const accepted = offered.filter((algorithm) => ALGORITHMS.includes(algorithm));
    if (accepted.length === 0)
      throw new ProviderFailure(`the provider signs with none of ${ALGORITHMS.join(", ")}`);
    const usable = { ...metadata, id_token_signing_alg_values_supported: accepted };
    this.known = { metadata: usable, fetchedAt: this.deps.clock.now() };
    return usable;
  }

  private ageOf({ fetchedAt }: Keys): number {
    return Math.abs(this.deps.clock.now() - fetchedAt);
  }

  private async sendForText(url: string, options: Parameters<Fetch>[1]) {
    const response = await this.send(url, options);
    return { status: response.status, text: await response.text() };
  }

  /** The keys of the provider: requested at most once a minute, whatever tokens come. */
  private async fetchKeys(url: string, options: Parameters<Fetch>[1]): Promise<SentResponse> {
    const { keys } = this;
    if (keys !== null && this.ageOf(keys) < KEYS_PAUSE_MS) return new Response(keys.text, JSON_BODY);
    this.fetchingKeys ??= this.sendForText(url, options).finally(() => {
      this.fetchingKeys = null;
    });
    const { status, text } = await this.fetchingKeys;
    if (status !== 200) return new Response(text, { status });
    const jwks = keysIn(text);
    if (jwks === null) throw new ProviderFailure("the keys of the provider are no set of keys");
    this.keys = { text: JSON.stringify(jwks), jwks, fetchedAt: this.deps.clock.now() };
    return new Response(this.keys.text, JSON_BODY);
  }
}

/** The used part of the metadata: each login copies it. */
function usedOf(metadata: ServerMetadata): ServerMetadata {
  const { issuer, authorization_endpoint, token_endpoint, jwks_uri, userinfo_endpoint } = metadata;
  const { authorization_response_iss_parameter_supported, token_endpoint_auth_methods_supported } = metadata;
  const { id_token_signing_alg_values_supported } = metadata;
  const used = {
    issuer,
    authorization_endpoint,
    token_endpoint,
    jwks_uri,
    userinfo_endpoint,
    authorization_response_iss_parameter_supported,
    token_endpoint_auth_methods_supported,
    id_token_signing_alg_values_supported,
  };
  return JSON.parse(JSON.stringify(used)) as ServerMetadata;
}

/** How the provider wants to know this client: by the standard's default, unless its metadata does not have that. */
function authOf(library: Library, metadata: ServerMetadata, secret: string): ClientAuth {
  const { token_endpoint_auth_methods_supported: methods = ["client_secret_basic"] } = metadata;
  return methods.includes("client_secret_basic")
    ? library.ClientSecretBasic(secret)
    : library.ClientSecretPost(secret);
}

/** The keys in the text of a response; null if it has none. */
function keysIn(text: string): JWKS | null {
  try {
    const { keys } = JSON.parse(text) as { readonly keys?: unknown };
    const isSet = Array.isArray(keys) && keys.every((key) => typeof key === "object" && key !== null);
    return isSet ? { keys: keys.slice(0, KEYS_MAX) } : null;
  } catch {
    return null;
  }
}

/** Causes of an error that its message names. */
const CAUSES_MAX = 4;
/** What the library says of errors that are not its own. */
const UNKNOWN_TO_LIBRARY = "something went wrong";
/** Characters of each: a provider's own words can be in it. */
const MESSAGE_LENGTH_MAX = 300;

/** What an error of the library, or of a request, means. */
async function failureOf(error: unknown): Promise<Error> {
  const { AuthorizationResponseError, ResponseBodyError } = await load();
  if (error instanceof AuthorizationResponseError && DENIALS.includes(error.error))
    return new LoginDenied(error.error);
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError) {
    const description = error.error_description === undefined ? "" : ` (${echoed(error.error_description)})`;
    return new ProviderFailure(`the provider responded with ${echoed(error.error)}${description}`);
  }
  const messages = new Set<string>();
  let cause: unknown = error;
  for (let depth = 0; cause instanceof Error && depth < CAUSES_MAX; depth += 1) {
    messages.add(cause.message.slice(0, MESSAGE_LENGTH_MAX));
    cause = cause.cause;
  }
  if (cause instanceof Response) messages.add(String(cause.status));
  if (messages.size > 1) messages.delete(UNKNOWN_TO_LIBRARY);
  return new ProviderFailure([...messages].join(": "));
}
