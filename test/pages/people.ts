import type { TestServer } from "../support/server.ts";
import { Console } from "./console.ts";
import { VirtualAuthenticator } from "./virtual-authenticator.ts";

/** The part of a link that the console reads, for another host of the same server. */
export function placeOf(url: unknown): string {
  return new URL(String(url)).hash;
}

/** A person in the console, logged in, with a device of their own. */
export interface PersonVisit {
  readonly visit: Console;
  readonly device: VirtualAuthenticator;
  /** Empty if they have joined by a link. */
  readonly id: string;
}

/** Invites a person, who joins in a browser of their own. `terms`: of the invitation, or its link. */
export async function joinConsole(server: TestServer, terms: object | string): Promise<PersonVisit> {
  const body: Record<string, unknown> =
    typeof terms === "string" ? {} : (await server.operator.post("/v1/people", terms)).body;
  const link = typeof terms === "string" ? terms : body["invitation_url"];
  const visit = await Console.openAt(server, "#/nowhere");
  const { page } = visit;
  const device = await VirtualAuthenticator.connect(page);
  await page.goto("about:blank");
  await page.goto(`${visit.url}/dashboard/${placeOf(link)}`);
  await page.getByRole("button", { name: "Create passkey" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  return { visit, device, id: String(body["person_id"] ?? "") };
}
