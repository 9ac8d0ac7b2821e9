import { loginRejected } from "../../../kernel/callers/caller.ts";
import { ApiError } from "../../../kernel/errors.ts";
import type { OpenCall } from "../../../kernel/http/requests/call.ts";
import type { RenderedResponse } from "../../../kernel/http/responses/response.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import { ThrottledWarning } from "../../../kernel/throttled-warning.ts";
import type {
  IdentityLogin,
  LoginAccounts,
  LoginPeople,
  LoginRequest,
  LoginSessions,
  ProviderSettings,
} from "../ports.ts";
import { judge } from "./claims.ts";
import { LOGIN_MS, type LoginError, returnTo } from "./domain.ts";
import { LoginDenied, type ProvenIdentity, Provider, ProviderFailure } from "./provider.ts";
import { Transactions } from "./transactions.ts";

/** What logins at providers are built on. */
export interface OidcDeps<Verified> {
  readonly providers: readonly ProviderSettings[];
  readonly sessions: LoginSessions<Verified>;
  readonly people: LoginPeople<Verified>;
  readonly accounts: LoginAccounts;
  readonly outbound: Pick<OutboundClient, "send">;
}

type OidcKernel = Pick<Kernel, "clock" | "ids" | "vault" | "log">;

/** A browser navigates here: no cache keeps it, and the next page does not learn its address, which has a code. */
const NAVIGATION = { "cache-control": "no-store", "referrer-policy": "no-referrer" } as const;

/** Logins at providers by OpenID Connect: to the provider, and back. */
export class OidcLogins<Verified> {
  readonly providers: readonly Provider[];
  private readonly transactions: Transactions;
  private readonly failures: ThrottledWarning;

  constructor(
    kernel: OidcKernel,
    private readonly deps: OidcDeps<Verified>,
  ) {
    this.providers = deps.providers.map(
      (settings) => new Provider(settings, { clock: kernel.clock, outbound: deps.outbound }),
    );
    this.transactions = new Transactions(kernel);
    this.failures = new ThrottledWarning(kernel.log, "a login at a provider failed", kernel.clock);
  }

  /** Sends a browser to a provider. @throws ApiError `rate_limit_exceeded` */
  async begin(provider: Provider, call: OpenCall): Promise<RenderedResponse> {
    const { sessions } = this.deps;
    assertRead(call);
    sessions.assertPersonMayAttempt(call.clientAddress);
    const query = queryOf(call);
    const transaction = {
      isStepUp: query.get("step_up") === "true",
      session: sessions.tokenHashOf(call),
      returnTo: returnTo(query.get("return_to"), prefixOf(call)),
    };
    const { name } = provider.settings;
    const { checks, cookie } = this.transactions.begin(name, transaction, this.cookieOf(call));
    try {
      const url = await provider.authorizationUrl(redirectUri(provider, call), checks, transaction.isStepUp);
      return redirect(url.href, this.setCookie(call, cookie));
    } catch (error) {
      return this.failed(provider, call, error, null);
    }
  }

  /** Takes a browser back from a provider, logged in or not. @throws ApiError `rate_limit_exceeded` */
  async end(provider: Provider, call: OpenCall): Promise<RenderedResponse> {
    assertRead(call);
    this.deps.sessions.assertPersonMayAttempt(call.clientAddress);
    const state = queryOf(call).get("state") ?? "";
    const begun = this.transactions.end(provider.settings.name, state, this.cookieOf(call));
    const login = { ...requestOf(call), sessionAtStart: begun?.transaction.session ?? null };
    const cookie = begun === null ? null : this.setCookie(call, begun.cookie);
    const outcome: { error: unknown } = { error: null };
    const prove = async () => {
      if (begun === null) throw new LoginExpired();
      const returned = new URL(redirectUri(provider, call) + new URL(call.request.url).search);
      const identity = await provider.identity(returned, begun.checks, begun.transaction.isStepUp);
      const terms = this.termsOf(provider.settings, identity, begun.transaction);
      return (tx: Parameters<LoginPeople<Verified>["logIn"]>[0]) => this.deps.people.logIn(tx, terms, login);
    };
    try {
      const opened = await this.deps.sessions.openPerson(
        login,
        // Whatever was wrong, sessions see a rejected login, which they count.
        () =>
          prove().catch((error) => {
            outcome.error = error;
            throw error instanceof ApiError ? error : loginRejected();
          }),
        "oidc",
      );
      return redirect(prefixOf(call) + (begun?.transaction.returnTo ?? ""), opened.cookie);
    } catch (error) {
      return this.failed(provider, call, outcome.error ?? error, cookie);
    }
  }

  /** What a login may change, by the rules of its provider. */
  private termsOf(
    settings: ProviderSettings,
    identity: ProvenIdentity,
    transaction: { readonly isStepUp: boolean; readonly session: Uint8Array | null },
  ): IdentityLogin {
    const { sessions } = this.deps;
    const { issuer, subject, email, name, authenticatedAt, groups } = identity;
    const { role, rejection } = judge(settings, email, groups);
    const { isStepUp, session } = transaction;
    const stepUpOf = session === null ? null : sessions.personWithToken(session);
    if (isStepUp && stepUpOf === null) throw loginRejected();
    return {
      issuer,
      subject,
      email,
      name,
      authenticatedAt,
      accountRef: this.accountOf(settings),
      role,
      createsAs: settings.create ? (role ?? "viewer") : null,
      rejection,
      stepUpOf: isStepUp ? stepUpOf : null,
    };
  }

  /** The account of a provider; null: any. @throws ProviderFailure for one that does not exist. */
  private accountOf({ account }: ProviderSettings): number | null {
    if (account === null) return null;
    const ref = this.deps.accounts.refOf(account);
    if (ref > 0) return ref;
    throw new ProviderFailure(`there is no account ${account}, which the setting account names`);
  }

  /** Shows the login page with an error. The log says more. @throws what is not about the login. */
  private failed(
    provider: Provider,
    call: OpenCall,
    error: unknown,
    cookie: string | null,
  ): RenderedResponse {
    const { name } = provider.settings;
    if (error instanceof ProviderFailure) this.failures.note(name, { provider: name, reason: error.message });
    const code = codeOf(error);
    return redirect(`${prefixOf(call)}/dashboard/#/login?error=${code}`, cookie);
  }

  private cookieName({ origin }: OpenCall): string {
    const { plain, secure } = this.deps.sessions.loginCookies;
    return origin.startsWith("https:") ? secure : plain;
  }

  private cookieOf(call: OpenCall): string | null {
    return this.deps.sessions.readCookie(call.request.headers.get("cookie"), this.cookieName(call));
  }

  /** The page of the provider sends the browser back: a stricter cookie would not come along. */
  private setCookie(call: OpenCall, value: string): string {
    const name = this.cookieName(call);
    const secure = name.startsWith("__Host-") ? "; Secure" : "";
    const seconds = value === "" ? 0 : LOGIN_MS / 1000;
    return `${name}=${value}; HttpOnly; SameSite=Lax; Path=/; Max-Age=${seconds}${secure}`;
  }
}

/** There is no such login in progress: it took too long, was used, or was begun by another browser. */
class LoginExpired extends Error {}

/** @throws what is neither about the provider nor a rejected login. */
function codeOf(error: unknown): LoginError {
  if (error instanceof LoginExpired) return "expired";
  if (error instanceof LoginDenied) return "denied";
  if (error instanceof ProviderFailure) return "provider";
  if (error instanceof ApiError && error.status === 401) return "refused";
  throw error;
}

/** HEAD would use up what its GET needs. */
function assertRead({ request }: OpenCall): void {
  if (request.method !== "GET")
    throw new ApiError("method_not_allowed", "Only GET logs in. Open this address in a browser.");
}

function queryOf({ request }: OpenCall): URLSearchParams {
  return new URL(request.url).searchParams;
}

function requestOf(call: OpenCall): Omit<LoginRequest, "sessionAtStart"> {
  const { request, origin, requestId, requestOrigin, clientAddress } = call;
  return { request, origin, requestId, requestOrigin, clientAddress };
}

/** The path under which a proxy serves this server, without a slash at its end. */
function prefixOf({ baseUrl }: OpenCall): string {
  return new URL(baseUrl).pathname.replace(/\/$/, "");
}

function redirectUri({ settings }: Provider, { baseUrl }: OpenCall): string {
  return `${baseUrl}/login/oidc/${settings.name}/callback`;
}

function redirect(location: string, cookie: string | null): RenderedResponse {
  const set = cookie === null ? {} : { "set-cookie": cookie };
  return { status: 303, text: "", headers: { ...NAVIGATION, location, ...set } };
}
