import { Client } from "../../support/client.ts";
import type { TestServer } from "../../support/server.ts";

/** The header that pages of the server send with every request. */
export const OWN_PAGE = { "x-ninefold-session": "1" };

let browsers = 0;

/**
 * A browser: it has no key, and sends the cookie that it received. Logins are limited by network: if the server
 * trusts this machine as a proxy, each browser has its own network.
 */
export class Browser extends Client {
  cookie = "";
  readonly headers: Record<string, string> = { ...OWN_PAGE };

  constructor(server: Pick<TestServer, "url">) {
    super(server.url, null);
    browsers += 1;
    this.headers["x-forwarded-for"] = `10.1.${browsers >> 8}.${browsers & 255}`;
  }

  override async send(...[method, path, body, options]: Parameters<Client["send"]>) {
    const own = this.cookie === "" ? this.headers : { ...this.headers, cookie: this.cookie };
    const answer = await super.send(method, path, body, {
      ...options,
      headers: { ...own, ...options?.headers },
    });
    const [set] = answer.headers.getSetCookie();
    if (set !== undefined) this.cookie = set.includes("Max-Age=0") ? "" : (set.split(";")[0] ?? "");
    return answer;
  }

  /** Logs in with a key. */
  async logIn(key: string | null): Promise<this> {
    const answer = await this.post("/v1/session", { key });
    if (answer.status !== 201) throw new Error(`no session: ${answer.text}`);
    return this;
  }
}

/** A browser with a session of a key. */
export function loggedIn(server: TestServer, key: string | null): Promise<Browser> {
  return new Browser(server).logIn(key);
}
