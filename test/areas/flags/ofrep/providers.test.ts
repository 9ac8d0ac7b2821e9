import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { OFREPProvider } from "@openfeature/ofrep-provider";
import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";
import { type EvaluationContext, OpenFeature } from "@openfeature/server-sdk";
import { type Provider, ProviderStatus, OpenFeature as WebOpenFeature } from "@openfeature/web-sdk";
import type { Client } from "../../../support/client.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";

let server: TestServer;
let account: Client;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account();
  const pro = { attribute: "plan", op: "in", values: ["pro"] };
  const flags = [
    { flag_key: "bool", enabled: true, rules: [{ when: [pro], serve: { variant: "off" } }] },
    { flag_key: "text", enabled: true, type: "string", variants: { a: "A" }, default: { variant: "a" } },
    { flag_key: "number", enabled: true, type: "number", variants: { a: 7.5 }, default: { variant: "a" } },
    {
      flag_key: "object",
      enabled: true,
      type: "object",
      variants: { a: { b: [1] } },
      default: { variant: "a" },
      metadata: { owner: "ada" },
    },
    { flag_key: "none", enabled: false, type: "string", variants: { a: "A" }, default: { variant: "a" } },
  ];
  for (const flag of flags) expect((await account.post("/v1/gate", flag)).status).toBe(201);
});
afterAll(async () => {
  await OpenFeature.close();
  await WebOpenFeature.close();
  await server.stop();
});

/** Options of a provider. */
function settings(key: string | null, header: "Authorization" | "X-API-Key" = "Authorization") {
  const value = header === "Authorization" ? `Bearer ${key}` : String(key);
  return { baseUrl: server.url, headers: [[header, value]] as [string, string][] };
}

let domains = 0;

/** A client of the server SDK with a separate provider. */
async function sdk(key: string | null, header?: "X-API-Key") {
  const domain = `domain-${domains++}`;
  await OpenFeature.setProviderAndWait(domain, new OFREPProvider(settings(key, header)));
  return OpenFeature.getClient(domain);
}

describe("the server's provider", () => {
  test("evaluates flags of all types, by context", async () => {
    const flags = await sdk(account.key);
    expect(await flags.getBooleanDetails("bool", false)).toMatchObject({
      value: true,
      variant: "on",
      reason: "DEFAULT",
      flagMetadata: {},
    });
    const pro: EvaluationContext = { targetingKey: "u", plan: "pro" };
    expect(await flags.getBooleanDetails("bool", true, pro)).toMatchObject({
      value: false,
      variant: "off",
      reason: "TARGETING_MATCH",
    });
    expect(await flags.getStringValue("text", "-")).toBe("A");
    expect(await flags.getNumberValue("number", 0)).toBe(7.5);
    const object = await flags.getObjectDetails("object", {});
    expect(object).toMatchObject({ value: { b: [1] }, flagMetadata: { owner: "ada" }, reason: "STATIC" });
  });

  test("accepts X-API-Key", async () => {
    const flags = await sdk(account.key, "X-API-Key");
    expect(await flags.getStringValue("text", "-")).toBe("A");
  });

  test("returns the caller's default with a reason if there is no value", async () => {
    const flags = await sdk(account.key);
    const missing = await flags.getStringDetails("missing", "mine");
    expect(missing).toMatchObject({ value: "mine", errorCode: "FLAG_NOT_FOUND", reason: "ERROR" });
    // The provider does not encode this key.
    expect((await flags.getStringDetails("a b/c", "mine")).value).toBe("mine");
    expect((await flags.getStringDetails("none", "mine")).value).toBe("mine");
    const other = await flags.getNumberDetails("text", 3);
    expect(other).toMatchObject({ value: 3, errorCode: "TYPE_MISMATCH" });
    const invalid = await flags.getStringDetails("text", "mine", { targetingKey: 7 as never });
    expect(invalid).toMatchObject({ value: "mine", errorCode: "INVALID_CONTEXT" });
  });

  test("returns the caller's default without a key, without credits, and above the rate limit", async () => {
    const poor = await server.account({ balance: 0 });
    const free = await server.account({ tier: "free" });
    for (const key of ["sm_x", poor.key]) {
      const flags = await sdk(key);
      expect(await flags.getStringDetails("text", "mine")).toMatchObject({ value: "mine", reason: "ERROR" });
    }
    const flags = await sdk(free.key);
    let last = await flags.getStringDetails("text", "mine");
    for (let asked = 1; asked <= 60 && last.errorCode === "FLAG_NOT_FOUND"; asked += 1)
      last = await flags.getStringDetails("text", "mine");
    expect(last).toMatchObject({ value: "mine", errorCode: "GENERAL" });
    // It waits for the time that the server has sent and makes no request.
    const paused = await flags.getStringDetails("text", "mine");
    expect(paused.errorMessage).toContain("paused due to TooManyRequests");
  });
});

/** Statuses of a web provider's requests. */
class Recorder {
  readonly statuses: number[] = [];
  readonly etags: (string | null)[] = [];

  readonly fetch = async (input: string, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    this.etags.push(request.headers.get("if-none-match"));
    const response = await fetch(request);
    this.statuses.push(response.status);
    return response;
  };
}

async function webSdk(key: string | null, context: object) {
  const domain = `domain-${domains++}`;
  const recorder = new Recorder();
  const provider = new OFREPWebProvider({
    ...settings(key),
    fetchImplementation: recorder.fetch as never,
    changeDetection: "none",
    cacheMode: "disabled",
  });
  // Its type has omitted members as undefined.
  const ready = WebOpenFeature.setProviderAndWait(domain, provider as Provider, context as EvaluationContext);
  return { flags: WebOpenFeature.getClient(domain), recorder, domain, ready };
}

describe("the browsers' provider", () => {
  test("evaluates all flags; an unchanged response is 304, values of another context are not", async () => {
    const { flags, recorder, domain, ready } = await webSdk(account.key, { targetingKey: "u" });
    await ready;
    expect(flags.getBooleanValue("bool", false)).toBe(true);
    expect(flags.getStringValue("text", "-")).toBe("A");
    expect(flags.getNumberValue("number", 0)).toBe(7.5);
    expect(flags.getObjectDetails("object", {})).toMatchObject({ value: { b: [1] }, variant: "a" });
    expect(flags.getStringDetails("none", "mine")).toMatchObject({ value: "mine", reason: "DISABLED" });
    expect(flags.getStringDetails("missing", "mine").errorCode as string).toBe("FLAG_NOT_FOUND");
    // An attribute without a rule changes nothing; the plan does.
    await WebOpenFeature.setContext(domain, { targetingKey: "u", colour: "red" });
    expect(flags.getBooleanValue("bool", false)).toBe(true);
    await WebOpenFeature.setContext(domain, { targetingKey: "u", plan: "pro" });
    expect(flags.getBooleanValue("bool", true)).toBe(false);
    // The provider drops its ETag for another user.
    await WebOpenFeature.setContext(domain, { targetingKey: "v" });
    expect(flags.getBooleanValue("bool", false)).toBe(true);
    expect(recorder.statuses).toEqual([200, 304, 200, 200]);
    const [none, first, again, forgotten] = recorder.etags;
    expect([none, forgotten]).toEqual([null, null]);
    expect(first).toMatch(/^"[\w-]{22}"$/);
    expect(again).toBe(first ?? null);
  });

  test("starts before a user is known", async () => {
    const { flags, ready } = await webSdk(account.key, {});
    await ready;
    expect(flags.getBooleanValue("bool", false)).toBe(true);
  });

  test("fails permanently with an invalid key or without the scope", async () => {
    const { body } = await account.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["gate:read"] });
    for (const key of ["sm_x", String(body.secret)]) {
      const { flags, ready } = await webSdk(key, {});
      await expect(ready).rejects.toThrow();
      expect(flags.providerStatus).toBe(ProviderStatus.FATAL);
    }
  });

  test("fails to start without credits and with an invalid context", async () => {
    const poor = await server.account({ balance: 0 });
    const broke = await webSdk(poor.key, {});
    await expect(broke.ready).rejects.toThrow();
    expect(broke.flags.providerStatus).toBe(ProviderStatus.ERROR);
    const wrong = await webSdk(account.key, { targetingKey: 7 });
    await expect(wrong.ready).rejects.toThrow("status: 400");
  });
});
