import { timingSafeEqual } from "node:crypto";
import { Ninefold } from "ninefold/client";

const CREDITS_OF_NEW_CUSTOMERS = 100;
const CREDITS_PER_REPORT = 4;

const { NINEFOLD_URL, NINEFOLD_API_KEY, ADMIN_TOKEN = "", PORT = "3000" } = process.env;
const nf = new Ninefold({ url: NINEFOLD_URL, apiKey: NINEFOLD_API_KEY });

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(PORT),
  routes: {
    "/customers": { POST: createCustomer },
    "/reports": { POST: createReport },
    "/webhooks": { POST: webhookPage },
  },
});
console.log(`listening on ${server.url}`);

/** For you: creates a customer with credits and a key, which is shown only here. */
async function createCustomer(request: Request): Promise<Response> {
  if (!isAdmin(bearerOf(request))) return Response.json({ error: "unauthorized" }, { status: 401 });
  const { id } = (await request.json()) as { id: string };
  // With a key, a repeated request refills nothing twice.
  await nf.meter(id).refill(CREDITS_OF_NEW_CUSTOMERS, { idempotencyKey: `new-customer-${id}` });
  const { secret } = await nf.keys.create({
    prefix: "acme",
    name: id,
    owner_id: id,
    scopes: ["reports:write"],
    ratelimits: [{ name: "requests", limit: 60, duration_ms: 60_000 }],
  });
  return Response.json({ id, secret }, { status: 201 });
}

/** For customers: everything is decided and paid in one call, all or nothing. */
async function createReport(request: Request): Promise<Response> {
  const check = await nf.check({
    secret: bearerOf(request),
    require: ["reports:write"],
    ratelimits: [{ name: "requests" }],
    deduct: { amount: CREDITS_PER_REPORT },
    flags: ["pdf-reports"],
  });
  if (!check.allowed || check.owner_id === null)
    return Response.json({ error: check.code }, { status: check.status });
  const flag = check.flags?.["pdf-reports"];
  const isPdf = flag !== undefined && "value" in flag && flag.value === true;
  const report = { id: crypto.randomUUID(), format: isPdf ? "pdf" : "csv" };
  // Returns when the message is stored. Ninefold delivers it, and repeats what fails.
  await nf.relay.messages.send({
    event_type: "report.created",
    owner_id: check.owner_id,
    message_id: report.id,
    payload: report,
  });
  return Response.json({ ...report, credits: check.meter?.balance }, { status: 201 });
}

/** For customers: a link to the page on which they enter where their webhooks go. */
async function webhookPage(request: Request): Promise<Response> {
  const check = await nf.check({ secret: bearerOf(request), require: ["reports:write"] });
  if (!check.allowed || check.owner_id === null)
    return Response.json({ error: check.code }, { status: check.status });
  const { url } = await nf.relay.portal.create({ owner_id: check.owner_id, expires_in: "2h" });
  return Response.json({ url }, { status: 201 });
}

function bearerOf(request: Request): string {
  return /^Bearer (\S+)$/.exec(request.headers.get("authorization") ?? "")?.[1] ?? "none";
}

function isAdmin(token: string): boolean {
  const [given, expected] = [Buffer.from(token), Buffer.from(ADMIN_TOKEN)];
  return expected.length > 0 && given.length === expected.length && timingSafeEqual(given, expected);
}
