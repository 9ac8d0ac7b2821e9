// The baseline: Bun.serve with nothing around it. Reads and answers the same JSON as a tenant deduct, an own balance,
// a notary log and a webhook do, in the quickest way there is, and keeps nothing.

const HEADERS = { "content-type": "application/json" };
const ANSWER_TO_GET = { balance: 1_000_000_000, user_id: "usr_00000000000000000000" };

const RECEIPT = {
  version: 1,
  sequence_id: "1000000",
  content_hash: "0".repeat(64),
  prev_hash: "0".repeat(64),
  chain_hash: "0".repeat(64),
  signature: "0".repeat(128),
  timestamp: 1_760_000_000_000,
  public_key: { kty: "OKP", crv: "Ed25519", x: "A".repeat(43) },
};

const RECEIVED = { status: "accepted", verification: "valid" };

async function answer(request: Request): Promise<Response> {
  if (request.method === "GET") return new Response(JSON.stringify(ANSWER_TO_GET), { headers: HEADERS });
  const { amount, log, id } = JSON.parse(await request.text()) as {
    amount: number;
    log?: object;
    id?: string;
  };
  if (id !== undefined)
    return new Response(JSON.stringify({ ...RECEIVED, event_id: id }), { headers: HEADERS });
  if (log !== undefined) return new Response(JSON.stringify({ ...RECEIPT, log }), { headers: HEADERS });
  const body = { balance: 1_000_000_000 - amount, meter_id: "meter-000000" };
  return new Response(JSON.stringify(body), { headers: HEADERS });
}

const server = Bun.serve({ hostname: "127.0.0.1", port: 0, development: false, fetch: answer });
console.log(server.url.origin);
