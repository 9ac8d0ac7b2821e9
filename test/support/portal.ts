import type { Client } from "./client.ts";
import type { TestServer } from "./server.ts";

/** The customer of most tests. */
export const OWNER = "acme";

/** The token of a new portal link. @throws Error when it is not created. */
export async function portalToken(account: Client, body: object = {}): Promise<string> {
  const answer = await account.post("/v1/relay/portal", { owner_id: OWNER, ...body });
  const url = String(answer.body["url"]);
  if (answer.status !== 201) throw new Error(`no portal link: ${answer.text}`);
  return url.slice(url.indexOf("#token=") + "#token=".length);
}

/** A customer with a portal link. */
export async function customerOf(server: TestServer, account: Client, body: object = {}): Promise<Client> {
  return server.client(await portalToken(account, body));
}

/** What a customer's paths name. */
export type Owned = Readonly<Record<"endpoint_id" | "relay_id", string>>;

/** The ids of a running recovery, which a customer started for another endpoint of its own. */
export async function startRecovery(
  server: TestServer,
  account: Client,
  url: string,
  owner_id: string = OWNER,
): Promise<Readonly<Record<"resend_id", string>>> {
  const customer = await customerOf(server, account, { owner_id });
  const created = await customer.post("/v1/relay/portal/endpoints", { url });
  const path = `/v1/relay/portal/endpoints/${String(created.body["endpoint_id"])}/recover`;
  const { body, text } = await customer.post(path, { since: 0 });
  if (body["resend_id"] === undefined) throw new Error(`no recovery: ${text}`);
  return { resend_id: String(body["resend_id"]) };
}

/** An endpoint of a customer, and a finished delivery to it. */
export async function makeOwned(
  server: TestServer,
  account: Client,
  url: string,
  owner_id: string = OWNER,
): Promise<Owned> {
  const created = await account.post("/v1/relay/endpoints", { url, owner_id, retry_schedule: [] });
  const sent = await account.post("/v1/relay/messages", {
    event_type: "order.paid",
    payload: { n: 1 },
    owner_id,
  });
  const deliveries = sent.body["deliveries"] as { relay_id: string }[] | undefined;
  if (deliveries?.[0] === undefined) throw new Error(`no delivery: ${created.text} ${sent.text}`);
  for (let turn = 0; turn < 6; turn += 1) await server.clock.advance(1);
  return { endpoint_id: String(created.body["endpoint_id"]), relay_id: deliveries[0].relay_id };
}
