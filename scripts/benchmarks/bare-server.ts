// The baseline: Bun.serve with nothing around it. Reads and answers the same JSON as a tenant deduct and an own
// balance do, in the quickest way there is, and keeps nothing.

const HEADERS = { "content-type": "application/json" };
const ANSWER_TO_GET = { balance: 1_000_000_000, user_id: "usr_00000000000000000000" };

async function answer(request: Request): Promise<Response> {
  if (request.method === "GET") return new Response(JSON.stringify(ANSWER_TO_GET), { headers: HEADERS });
  const { amount } = JSON.parse(await request.text()) as { amount: number };
  const body = { balance: 1_000_000_000 - amount, meter_id: "meter-000000" };
  return new Response(JSON.stringify(body), { headers: HEADERS });
}

const server = Bun.serve({ hostname: "127.0.0.1", port: 0, development: false, fetch: answer });
console.log(server.url.origin);
