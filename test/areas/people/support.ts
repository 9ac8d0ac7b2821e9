import type { Client } from "../../support/client.ts";
import type { TestServer } from "../../support/server.ts";
import { Browser } from "../session/support.ts";
import { SoftwareAuthenticator } from "./authenticator.ts";

/** The public URL of servers of these tests: passkeys need a host name with HTTPS. */
export const ORIGIN = "https://ninefold.example.com";
/** The arguments of their server, which trusts this machine as a proxy. */
export const ARGS = ["--public-url", ORIGIN, "--trust-proxy", "127.0.0.1"] as const;

let invited = 0;

/** A person who has joined: their browser, logged in, and their passkey. */
export class PersonBrowser extends Browser {
  readonly authenticator = new SoftwareAuthenticator(ORIGIN);
  personId = "";
  email = "";

  /** Accepts an invitation. */
  async accept(url: string): Promise<this> {
    const token = tokenOf(url);
    const { body, text } = await this.post("/v1/session/invitation", { token });
    const options = body["options"] as { challenge: string } | undefined;
    if (options === undefined) throw new Error(`no invitation: ${text}`);
    const credential = this.authenticator.create(options);
    const answer = await this.post("/v1/session/invitation/accept", { token, credential });
    if (answer.status !== 201) throw new Error(`not accepted: ${answer.text}`);
    return this;
  }

  /** Logs in by the passkey; in a session of the person it is a step-up. */
  async logInByPasskey(deviation = {}) {
    const { body } = await this.post("/v1/session/passkey/options");
    const credential = this.authenticator.get(body["options"] as { challenge: string }, deviation);
    return this.post("/v1/session/passkey", { credential });
  }
}

/** The token in a link of an invitation. */
export function tokenOf(url: unknown): string {
  return String(url).split("/").at(-1) ?? "";
}

/** Invites a person. */
export async function invite(inviter: Client, terms: object): Promise<Record<string, unknown>> {
  invited += 1;
  const answer = await inviter.post("/v1/people", { email: `person-${invited}@example.com`, ...terms });
  if (answer.status !== 201) throw new Error(`not invited: ${answer.text}`);
  return answer.body;
}

/** Invites a person, who accepts in a browser of their own. */
export async function join(
  server: Pick<TestServer, "url">,
  inviter: Client,
  terms: object,
): Promise<PersonBrowser> {
  const person = await invite(inviter, terms);
  const browser = await new PersonBrowser(server).accept(String(person["invitation_url"]));
  browser.personId = String(person["person_id"]);
  browser.email = String(person["email"]);
  return browser;
}
