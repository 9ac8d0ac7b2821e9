import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readHeaders, storedHeaders } from "../../../src/areas/catch/event-headers.ts";
import {
  KNOWN_NAME_LENGTH_MAX,
  NAMES_KNOWN_MAX,
  SecretNames,
} from "../../../src/kernel/secrets/secret-names.ts";
import { createVault } from "../../../src/kernel/secrets/vault.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { accepted, type BucketBody, LOOPBACK_ALLOWED, newBucket, Receiver, setState } from "./support.ts";

const SECRET = "very-secret-value-4711";
const SECRETS = {
  authorization: `Bearer ${SECRET}`,
  "proxy-authorization": `Basic ${SECRET}`,
  cookie: `session=${SECRET}; a=b`,
  "x-api-key": SECRET,
  "x-gitlab-token": SECRET,
  "x-webhook-secret": SECRET,
};
const PLAIN = { "user-agent": "GitHub-Hookshot/1", "x-github-event": "push", "x-plain": "seen" };

const names = new SecretNames();

describe("which headers are sealed", () => {
  test.each([
    ...Object.keys(SECRETS),
    ...["set-cookie", "apikey", "api_key", "token", "x-auth-token", "x-amz-security-token", "x-password"],
    ...["x-telegram-bot-api-secret-token", "cf-access-jwt-assertion", "x-auth", "x-shopify-access-token"],
  ])("%s is", (name) => expect(names.has(name)).toBe(true));

  test.each([
    ...Object.keys(PLAIN),
    ...["content-type", "stripe-signature", "svix-id", "x-hub-signature-256", "x-author", "keynote", "host"],
  ])("%s is not", (name) => expect(names.has(name)).toBe(false));

  test("a limited number of names is remembered; the result for each stays the same", () => {
    const seen = new SecretNames();
    for (let number = 0; number < NAMES_KNOWN_MAX; number += 1)
      expect(seen.has(`x-${number}${number % 2 === 0 ? "-token" : ""}`)).toBe(number % 2 === 0);
    expect(seen.size).toBe(NAMES_KNOWN_MAX);
    expect(seen.has("x-one-more-key")).toBe(true);
    expect(seen.size).toBeLessThanOrEqual(NAMES_KNOWN_MAX);
    expect([seen.has("x-0-token"), seen.has("x-1")]).toEqual([true, false]);
  });

  test("names that are too long are not remembered", () => {
    const seen = new SecretNames();
    const longest = `${"x".repeat(KNOWN_NAME_LENGTH_MAX - "-token".length)}-token`;
    expect([seen.has(longest), seen.size]).toEqual([true, 1]);
    expect([seen.has(`x${longest}`), seen.has(`x${longest}`), seen.size]).toEqual([true, true, 1]);
  });
});

test("property: stored headers are read as received, and contain no secret in plain text", () => {
  const vault = createVault(new Uint8Array(32).fill(3));
  const name = fc.oneof(
    fc.constantFrom(...Object.keys(SECRETS), "x-a", "__proto__", "constructor", "accept"),
  );
  const value = fc
    .string({ unit: fc.constantFrom(..."abc 019=;,:\"'\\"), maxLength: 20 })
    .map((text) => text.trim());
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value)), (list) => {
      const headers = new Headers(list.map(([key, text]): [string, string] => [key, `<${key} ${text}>`]));
      const stored = storedHeaders(headers, vault, "a-bucket-1");
      expect(JSON.stringify(readHeaders(stored, vault, "a-bucket-1"))).toBe(JSON.stringify(headers));
      for (const [key, text] of list) {
        if (names.has(key)) expect(stored).not.toContain(JSON.stringify(`<${key} ${text}>`).slice(1, -1));
      }
    }),
  );
});

test("sealed headers of one bucket do not open in another", () => {
  const vault = createVault(new Uint8Array(32).fill(3));
  const stored = storedHeaders(new Headers(SECRETS), vault, "one-bucket-1");
  expect(() => readHeaders(stored, vault, "another-bucket-1")).toThrow();
});

describe("on a server", () => {
  let server: TestServer;
  let account: AccountClient;
  let receiver: Receiver;
  let bucket: BucketBody;
  beforeAll(async () => {
    receiver = new Receiver();
    server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
    account = await server.account();
    bucket = await newBucket(account, { target_url: receiver.url });
  });
  afterAll(async () => {
    await server.stop();
    await receiver.stop();
  });

  const rowOf = (id: string) => {
    const { db } = server.server.kernel;
    const sequence = Number.parseInt(id.slice(4), 32);
    return db.one<{ headers: string }, [number]>("SELECT headers FROM catch_payloads WHERE sequence = ?")(
      sequence,
    );
  };
  const headersOf = async (id: string) =>
    (await account.get(`/v1/catch/${bucket.id}/events/${id}`)).body["headers"] as Record<string, string>;

  test("credentials of senders are not in plain text in the file, and the owner can read them", async () => {
    const id = await accepted(server, bucket.id, "{}", { ...PLAIN, ...SECRETS });
    const stored = rowOf(id)?.headers ?? "";
    expect(stored).toContain("GitHub-Hookshot/1");
    expect(stored).not.toContain(SECRET);
    expect(await headersOf(id)).toMatchObject({ ...PLAIN, ...SECRETS });
    expect(Object.keys(await headersOf(id)).filter((name) => !/^[a-z0-9-]+$/.test(name))).toEqual([]);
  });

  test("an event stored by an earlier version is still readable", async () => {
    const id = await accepted(server, bucket.id);
    const sequence = Number.parseInt(id.slice(4), 32);
    const old = JSON.stringify({ host: "h", authorization: "Bearer old" });
    server.server.kernel.db.execute(
      `UPDATE catch_payloads SET headers = '${old}' WHERE sequence = ${sequence}`,
    );
    expect(await headersOf(id)).toEqual({ host: "h", authorization: "Bearer old" });
  });

  test("the provider's headers are forwarded, including sealed ones, and no others", async () => {
    await setState(account, bucket.id, "live");
    await server.clock.advance(0);
    receiver.hits.splice(0);
    const shopify = { "x-shopify-topic": "orders/paid", "x-shopify-access-token": SECRET };
    const hmac = { "x-shopify-hmac-sha256": "AAAA" };
    await accepted(server, bucket.id, "{}", { ...SECRETS, ...shopify, ...hmac });
    await server.clock.advance(0);
    const [hit] = receiver.hits;
    for (const [name, value] of Object.entries(shopify)) expect(hit?.headers.get(name)).toBe(value);
    for (const name of Object.keys(SECRETS)) expect(hit?.headers.get(name)).toBeNull();
  });
});
