import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  SIGNUP_WINDOW_MS,
  SIGNUPS_PER_WINDOW,
  SIGNUPS_TOTAL_PER_WINDOW,
} from "../../../src/areas/accounts/domain.ts";
import { isBearerKey } from "../../../src/kernel/secrets/key-format.ts";
import type { Answer, Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const HOUR_MS = SIGNUP_WINDOW_MS;
const PROXY = "127.0.0.1";

let closed: TestServer;
let free: TestServer;
let open: TestServer;
beforeAll(async () => {
  const args = (mode: string): string[] => ["--signup", mode, "--trust-proxy", `${PROXY},10.0.0.0/8`];
  [closed, free, open] = await Promise.all([
    startTestServer({ manualClock: true }),
    startTestServer({ manualClock: true, args: args("free") }),
    startTestServer({ manualClock: true, args: args("open") }),
  ]);
});
afterAll(() => Promise.all([closed.stop(), free.stop(), open.stop()]));

let address = 0;
/** A client address that no other test uses, as a trusted proxy reports it. */
function elsewhere(): string {
  address += 1;
  return `198.51.${address >> 8}.${address & 255}`;
}

function signUp(server: TestServer, body: unknown, from = elsewhere()): Promise<Answer> {
  return server.client(null).post("/v1/signup", body, { headers: { "x-forwarded-for": from } });
}

let count = 0;
function newEmail(): string {
  count += 1;
  return `person-${count}@example.com`;
}

async function accountsOf(operator: Client): Promise<{ email: string; tier: string }[]> {
  return (await operator.get("/v1/admin/accounts?limit=100")).body.accounts as never;
}

describe("201", () => {
  test.each([
    ["free", () => free],
    ["open", () => open],
  ])("in the mode %s, for the tier free: the response contains a working key", async (_, server) => {
    const email = newEmail();
    const answer = await signUp(server(), { email, tier: "free" });
    expect(answer.status).toBe(201);
    expect(Object.keys(answer.body).sort()).toEqual(["api_key", "user_id"]);
    expect(answer.body.user_id).toMatch(/^usr_[0-9A-Za-z]{20}$/);
    const key = String(answer.body.api_key);
    expect(key).toMatch(/^sm_[A-Za-z0-9]{43}_[a-f0-9]{8}$/);
    expect(isBearerKey(key)).toBe(true);
    const balance = await server().client(key).get("/v1/meter/balance");
    expect(balance.body).toEqual({ balance: 10_000, user_id: answer.body.user_id });
    expect((await accountsOf(server().operator))[0]).toMatchObject({ email, tier: "free", suspended: false });
  });

  test.each([
    "a@b",
    "first.last+tag@mail.example.co.uk",
    "UPPER@EXAMPLE.COM",
    "o'brien@example.com",
    `${"x".repeat(242)}@example.com`,
  ])("for the address %s", async (email) => {
    expect((await signUp(open, { email, tier: "free" })).status).toBe(201);
  });

  test("no key is needed; one is ignored", async () => {
    const headers = { "x-forwarded-for": elsewhere() };
    const answer = await open.operator.post("/v1/signup", { email: newEmail(), tier: "free" }, { headers });
    expect(answer.status).toBe(201);
  });
});

describe("400", () => {
  test.each([
    ["no body", undefined, ["email", "tier"]],
    ["no e-mail", { tier: "free" }, ["email"]],
    ["no tier", { email: "a@example.com" }, ["tier"]],
    ["an empty e-mail", { email: "", tier: "free" }, ["email"]],
    ["no @", { email: "example.com", tier: "free" }, ["email"]],
    ["two @", { email: "a@b@example.com", tier: "free" }, ["email"]],
    ["a space", { email: "a b@example.com", tier: "free" }, ["email"]],
    ["a line break", { email: "a@example.com\nBcc: b@example.com", tier: "free" }, ["email"]],
    ["255 characters", { email: `${"x".repeat(243)}@example.com`, tier: "free" }, ["email"]],
    ["a number as e-mail", { email: 5, tier: "free" }, ["email"]],
    ["the tier starter", { email: "a@example.com", tier: "starter" }, ["tier"]],
    ["the tier unlimited", { email: "a@example.com", tier: "unlimited" }, ["tier"]],
    ["the tier Free", { email: "a@example.com", tier: "Free" }, ["tier"]],
  ])("%s", async (_, body, fields) => {
    const before = (await accountsOf(open.operator)).length;
    const error = expectError(await signUp(open, body), "validation_error");
    expect(Object.keys(error.fields ?? {}).sort()).toEqual(fields);
    expect((await accountsOf(open.operator)).length).toBe(before);
  });
});

describe("403", () => {
  test.each([
    ["free", { email: "a@example.com", tier: "free" }],
    ["pro", { email: "a@example.com", tier: "pro" }],
    ["none at all", undefined],
  ])("in the mode closed, the default: tier %s", async (_, body) => {
    expectError(await signUp(closed, body), "forbidden");
    expect(await accountsOf(closed.operator)).toHaveLength(1);
  });

  test("in the mode free: tier pro", async () => {
    const email = newEmail();
    expectError(await signUp(free, { email, tier: "pro" }), "forbidden");
    expect((await accountsOf(free.operator)).map((account) => account.email)).not.toContain(email);
  });

  test("in the mode closed, attempts are not counted: the status stays 403", async () => {
    for (let attempt = 0; attempt < 12; attempt += 1) {
      expectError(await signUp(closed, {}, "203.0.113.200"), "forbidden");
    }
  });
});

describe("409", () => {
  test("for an address of another account, in any case", async () => {
    const email = newEmail();
    expect((await signUp(open, { email, tier: "free" })).status).toBe(201);
    for (const again of [email, email.toUpperCase(), email.replace("p", "P")]) {
      expectError(await signUp(open, { email: again, tier: "free" }), "conflict");
    }
    expectError(await open.operator.post("/v1/admin/accounts", { email, tier: "pro" }), "conflict");
  });

  test("for an address of an account that the operator created", async () => {
    const { email } = await open.account();
    expectError(await signUp(open, { email: email.toUpperCase(), tier: "free" }), "conflict");
  });

  test("for all but one of many concurrent signups", async () => {
    const email = newEmail();
    const answers = await Promise.all(Array.from({ length: 8 }, () => signUp(open, { email, tier: "free" })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(7);
  });
});

test("503 for the tier pro if no e-mail can be sent, and no account is created", async () => {
  const email = newEmail();
  const { error } = expectError(await signUp(open, { email, tier: "pro" }), "service_unavailable");
  expect(error.message).toContain("e-mail");
  expect((await accountsOf(open.operator)).map((account) => account.email)).not.toContain(email);
  expect((await signUp(open, { email, tier: "free" })).status).toBe(201);
});

describe("429: ten attempts an hour from one client address", () => {
  test("the eleventh is rejected until an hour after the first, and a rejected one does not count", async () => {
    const from = elsewhere();
    expect(SIGNUPS_PER_WINDOW).toBe(10);
    for (let attempt = 0; attempt < SIGNUPS_PER_WINDOW; attempt += 1) {
      expect((await signUp(open, { email: newEmail(), tier: "free" }, from)).status).toBe(201);
      await open.clock.advance(60_000);
    }
    const email = newEmail();
    const refused = await signUp(open, { email, tier: "free" }, from);
    expectError(refused, "rate_limit_exceeded");
    expect(refused.headers.get("retry-after")).toBe(String(50 * 60));
    await open.clock.advance(50 * 60_000 - 1);
    const still = await signUp(open, { email, tier: "free" }, from);
    expectError(still, "rate_limit_exceeded");
    expect(still.headers.get("retry-after")).toBe("1");
    await open.clock.advance(1);
    expect((await signUp(open, { email, tier: "free" }, from)).status).toBe(201);
    expectError(await signUp(open, { email: newEmail(), tier: "free" }, from), "rate_limit_exceeded");
    await open.clock.advance(HOUR_MS);
    expect((await signUp(open, { email: newEmail(), tier: "free" }, from)).status).toBe(201);
  });

  test("every attempt counts, also malformed and rejected ones", async () => {
    const from = elsewhere();
    const { email } = await open.account();
    const bodies = ["not JSON", {}, { email, tier: "free" }, { email: newEmail(), tier: "pro" }, undefined];
    const expected = [400, 400, 409, 503, 400];
    for (const body of [...bodies, ...bodies]) {
      const answer = await signUp(open, body, from);
      expect(answer.status).toBe(expected[bodies.indexOf(body)] as number);
    }
    expectError(await signUp(open, "not JSON", from), "rate_limit_exceeded");
  });

  test("other addresses are not affected", async () => {
    const from = elsewhere();
    for (let attempt = 0; attempt < 10; attempt += 1) await signUp(open, {}, from);
    expectError(await signUp(open, {}, from), "rate_limit_exceeded");
    expectError(await signUp(open, {}, elsewhere()), "validation_error");
  });

  test("IPv6 is counted by its /64 network, IPv4 mapped into it as IPv4", async () => {
    // A client can use any number of addresses of its /64 network.
    for (let attempt = 0; attempt < SIGNUPS_PER_WINDOW; attempt += 1) {
      expectError(await signUp(open, {}, `2001:db8:7:7:${attempt}::${attempt}`), "validation_error");
    }
    expectError(await signUp(open, {}, "2001:db8:7:7:abcd:ef01:2345:6789"), "rate_limit_exceeded");
    expectError(await signUp(open, {}, "2001:db8:7:8::1"), "validation_error");
    const from = elsewhere();
    for (let attempt = 0; attempt < SIGNUPS_PER_WINDOW; attempt += 1) await signUp(open, {}, from);
    expectError(await signUp(open, {}, `::ffff:${from}`), "rate_limit_exceeded");
    expectError(await signUp(open, {}, `::ffff:${elsewhere()}`), "validation_error");
  });

  test("the client address is the last one in X-Forwarded-For that is not a trusted proxy", async () => {
    const from = elsewhere();
    // The client controls only the addresses on the left, so it cannot choose its address.
    const spellings = [
      from,
      `1.2.3.4, ${from}`,
      `5.6.7.8,${from}`,
      `${from}, 10.1.2.3`,
      `9.9.9.9, ${from}, 10.0.0.1, ${PROXY}`,
      `nonsense, ${from}`,
      `::ffff:${from}`,
      ` ${from} `,
      `2001:db8::1, ${from}`,
      `${from},10.255.255.255`,
    ];
    for (const header of spellings) expectError(await signUp(open, {}, header), "validation_error");
    expectError(await signUp(open, {}, from), "rate_limit_exceeded");
    expectError(await signUp(open, {}, `7.7.7.7, ${from}`), "rate_limit_exceeded");
  });

  test("X-Forwarded-For is ignored if no proxy is trusted", async () => {
    const plain = await startTestServer({ manualClock: true, args: ["--signup", "open"] });
    try {
      for (let attempt = 0; attempt < 10; attempt += 1) {
        expectError(await signUp(plain, {}, `198.51.100.${attempt}`), "validation_error");
      }
      expectError(await signUp(plain, {}, "198.51.100.99"), "rate_limit_exceeded");
    } finally {
      await plain.stop();
    }
  });
});

describe(`429: ${SIGNUPS_TOTAL_PER_WINDOW} accounts an hour from all networks together`, () => {
  test("rejected signups do not count, and after an hour signups work again", async () => {
    const server = await startTestServer({
      manualClock: true,
      args: ["--signup", "free", "--trust-proxy", PROXY],
    });
    try {
      const { email } = await server.account();
      expectError(await signUp(server, { email, tier: "free" }), "conflict");
      const bodies = Array.from({ length: SIGNUPS_TOTAL_PER_WINDOW }, () => ({
        email: newEmail(),
        tier: "free",
      }));
      for (let from = 0; from < bodies.length; from += 50) {
        const unit = await Promise.all(bodies.slice(from, from + 50).map((body) => signUp(server, body)));
        expect(unit.filter(({ status }) => status !== 201)).toEqual([]);
      }
      const later = { email: newEmail(), tier: "free" };
      const rejected = await signUp(server, later);
      expectError(rejected, "rate_limit_exceeded");
      expect(rejected.headers.get("retry-after")).toBe(String(HOUR_MS / 1000));
      expect((await server.operator.post("/v1/admin/accounts", { ...later, tier: "pro" })).status).toBe(201);
      await server.clock.advance(HOUR_MS);
      expect((await signUp(server, { email: newEmail(), tier: "free" })).status).toBe(201);
    } finally {
      await server.stop();
    }
  });
});
