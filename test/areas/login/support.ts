import type { OidcProvider } from "../../../src/config/oidc.ts";
import type { Client } from "../../support/client.ts";
import { PersonBrowser } from "../people/support.ts";
import type { Deviation, HostileProvider } from "./hostile-provider.ts";

/** The settings of a provider. */
export function settings(
  provider: Pick<HostileProvider, "issuer" | "clientId" | "clientSecret">,
  terms: Partial<OidcProvider> = {},
): OidcProvider {
  const { issuer, clientId, clientSecret } = provider;
  return {
    name: "sso",
    label: "Company",
    issuer,
    clientId,
    clientSecret,
    scopes: ["openid", "email", "profile"],
    allowedDomains: [],
    allowedGroups: [],
    groupsClaim: "groups",
    roles: new Map(),
    create: false,
    trustEmail: false,
    account: null,
    ...terms,
  };
}

/** A browser that logs in at providers. It sends the cookie of its session only within this site. */
export class LoginBrowser extends PersonBrowser {
  loginCookie = "";

  override async send(...[method, path, body, options]: Parameters<Client["send"]>) {
    const session = this.cookie;
    const answer = await super.send(method, path, body, options);
    const [set = ""] = answer.headers.getSetCookie();
    if (!set.includes("_login=")) return answer;
    this.cookie = session;
    this.loginCookie = set.includes("Max-Age=0") ? "" : (set.split(";")[0] ?? "");
    return answer;
  }

  /** Begins a login from a page of this server. Returns where the browser is sent to. */
  async begin(name = "sso", query = ""): Promise<string> {
    const cookie = [this.cookie, this.loginCookie].filter((one) => one !== "").join("; ");
    const { status, headers, text } = await this.get(`/login/oidc/${name}${query}`, { headers: { cookie } });
    if (status !== 303) throw new Error(`no login begun: ${status} ${text}`);
    return headers.get("location") ?? "";
  }

  /** Comes back from a provider: the cookie of the session is not sent. Returns where the browser is sent to. */
  async comeBack(url: string): Promise<string> {
    const { pathname, search } = new URL(url);
    const { status, headers, text } = await this.get(pathname + search, {
      headers: { cookie: this.loginCookie },
    });
    if (status !== 303) throw new Error(`not back: ${status} ${text}`);
    return headers.get("location") ?? "";
  }

  /** Logs in at a provider. Returns where the browser is in the end. */
  async logInAt(
    provider: HostileProvider,
    deviation: Deviation = {},
    query = "",
    name = "sso",
  ): Promise<string> {
    return this.comeBack(provider.authorize(await this.begin(name, query), deviation));
  }

  /** The session as the page sees it; null without one. */
  async session(): Promise<Record<string, unknown> | null> {
    return (await this.get("/v1/session")).body["session"] as Record<string, unknown> | null;
  }
}

/** Where the login page shows an error. */
export function failure(code: string): string {
  return `/dashboard/#/login?error=${code}`;
}

/** The e-mail address of the person whose session a browser has; null without one. */
export async function whose(browser: LoginBrowser): Promise<string | null> {
  const person = (await browser.session())?.["person"] as { readonly email: string } | undefined;
  return person?.email ?? null;
}

/** Entries of an account's audit log, newest first, with an action. */
export async function audited(client: Client, action: string): Promise<Record<string, unknown>[]> {
  const { body } = await client.get(`/v1/audit?action=${action}`);
  return body["entries"] as Record<string, unknown>[];
}
