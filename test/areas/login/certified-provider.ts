import { createServer, type RequestListener, type Server } from "node:http";
import { join } from "node:path";

/** What the tests use of `oidc-provider`, which has no types. */
interface CertifiedProviderPackage {
  readonly default: new (issuer: string, configuration: object) => { callback(): RequestListener };
}

/** The package is one of this folder, so that other tests do not need it. */
async function load(): Promise<CertifiedProviderPackage> {
  const entry = join(import.meta.dir, "node_modules", "oidc-provider", "lib", "index.js");
  return (await import(entry)) as CertifiedProviderPackage;
}

/** A real provider, certified by the OpenID Foundation. Everyone can log in, with their e-mail address as name. */
export class CertifiedProvider {
  readonly clientId = "ninefold";
  readonly clientSecret = "a secret of thirty-two characters";
  /** Groups of people, by their e-mail address. */
  readonly groups = new Map<string, readonly string[]>();
  private readonly server: Server = createServer();
  issuer = "";

  /** `redirectUris`: where it may send browsers back to. */
  async start(redirectUris: readonly string[]): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    const address = this.server.address();
    this.issuer = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
    const { default: Provider } = await load();
    const client = {
      client_id: this.clientId,
      client_secret: this.clientSecret,
      redirect_uris: redirectUris,
    };
    const provider = new Provider(this.issuer, {
      clients: [client],
      cookies: { keys: ["of these tests"] },
      claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
      scopes: ["openid", "email", "profile", "groups"],
      findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => this.claimsOf(id) }),
    });
    this.server.on("request", provider.callback());
    return this;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private claimsOf(email: string) {
    return {
      sub: email,
      email,
      email_verified: true,
      name: "Ann Other",
      groups: this.groups.get(email) ?? [],
    };
  }
}

/** A browser at the provider: it fills in its forms. */
export class ProviderBrowser {
  private readonly cookies = new Map<string, string>();
  /** The forms that it has filled in, by what they ask for. */
  readonly forms: string[] = [];

  constructor(private readonly email: string) {}

  /** Logs in, or not if the provider still knows the browser. Returns where the provider sends the browser back to. */
  async authorize(url: string): Promise<string> {
    const { origin } = new URL(url);
    let next: { readonly url: string; readonly form?: URLSearchParams } = { url };
    for (let step = 0; step < 20; step += 1) {
      const response = await this.send(next.url, next.form);
      const location = response.headers.get("location");
      if (location !== null) {
        const to = new URL(location, next.url);
        if (to.origin !== origin) return to.href;
        next = { url: to.href };
        continue;
      }
      const page = await response.text();
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1] ?? "";
      const action = /action="([^"]+)"/.exec(page)?.[1] ?? "";
      if (prompt === "") throw new Error(`no form: ${response.status} ${page.slice(0, 500)}`);
      this.forms.push(prompt);
      next = {
        url: new URL(action, next.url).href,
        form: new URLSearchParams({ prompt, login: this.email, password: "any" }),
      };
    }
    throw new Error("the provider does not come to an end");
  }

  private async send(url: string, form: URLSearchParams | undefined): Promise<Response> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, {
      redirect: "manual",
      headers: { cookie },
      ...(form === undefined ? {} : { method: "POST", body: form }),
    });
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      if (value === "") this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }
}
