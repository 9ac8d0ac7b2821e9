import { type Asked, ask, type Keys, type Recorded } from "./world.ts";

/** All requests for the content of a filled folder, in order. */
export function readsOf({ keys, things }: Pick<Recorded, "keys" | "things">): Asked[] {
  const get = (as: string, ...paths: readonly string[]): Asked[] =>
    paths.map((path) => ({ as, method: "GET", path }));
  const verify = (as: string, name: string): Asked => ({
    as,
    method: "POST",
    path: "/v1/keys/verify",
    body: { secret: keys[name] },
  });
  const monitors = ["well", "broken"].map((name) => `/v1/pulse/${things[`monitor ${name}`]}`);
  const buckets = ["live", "paused", "failing"].map((name) => String(things[`bucket ${name}`]));
  return [
    ...get("operator", "/v1/admin/accounts?limit=100", "/v1/meter/balance", "/v1/keys"),
    ...["free", "starter", "pro", "pro successor", "scale", "shop", "gone", "reader"].flatMap((as) =>
      get(as, "/v1/meter/balance", "/v1/meter/customer-1/balance", "/v1/meter/customer-1/history"),
    ),
    ...get(
      "scale",
      "/v1/meter/history?limit=100",
      "/v1/meter/customer-2/history",
      "/v1/meter/emptied/balance",
    ),
    ...get("scale", "/v1/projects", `/v1/projects/${things["shop"]}`, `/v1/projects/${things["gone"]}`),
    ...get("scale", `/v1/projects/${things["shop"]}/overview`),
    ...get(
      "scale",
      "/v1/keys?limit=100",
      `/v1/keys/${things["key customer"]}`,
      `/v1/keys/${things["key ending"]}`,
    ),
    ...["customer", "rotated", "successor", "revoked", "expired", "ending", "gone", "reader"].map((name) =>
      verify("scale", name),
    ),
    verify("shop", "customer"),
    ...get("scale", "/v1/gate", "/v1/gate/config", "/v1/gate/new-checkout", "/v1/gate/of-the-deleted"),
    ...get("shop", "/v1/gate/config"),
    ...get("scale", "/v1/latch/invoice:42", "/v1/latch/report", "/v1/latch/free"),
    ...get("scale", "/v1/pulse", "/v1/pulse?status=down", ...monitors),
    ...get("scale", ...monitors.map((path) => `${path}/history?limit=100`)),
    ...get("free", "/v1/pulse", `/v1/pulse/${things["monitor plain"]}/history`),
    ...get("scale", "/v1/relay?limit=100", "/v1/relay?filter=pulse"),
    ...["delivered", "failed", "waiting", "cancelled"].flatMap((name) =>
      get("scale", `/v1/relay/${things[`relay ${name}`]}`),
    ),
    ...get("scale", "/v1/catch/buckets", ...buckets.map((id) => `/v1/catch/${id}/events`)),
    ...["live", "paused", "failing"].flatMap((name) =>
      get("scale", `/v1/catch/${things[`bucket ${name}`]}/events/${things[`event ${name}`]}`),
    ),
    ...get("nobody", `/v1/witness/pubkey/${things["chain"]}`),
    ...get("scale", "/v1/witness/receipts", "/v1/witness/receipts/2", "/v1/witness/config"),
    ...get("shop", "/v1/witness/receipts"),
  ];
}

/** A response as it is recorded and compared: of an error only its code, since its text may change. */
export async function answerTo(
  url: string,
  keys: Keys,
  asked: Asked,
): Promise<{ status: number; answer: unknown }> {
  const { status, body } = await ask(url, keys, asked);
  return { status, answer: status >= 400 ? { code: body["code"] } : body };
}
