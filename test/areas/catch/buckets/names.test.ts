import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { NAME_LENGTH_MAX } from "../../../../src/kernel/data/schema.ts";
import { expectError } from "../../../support/errors.ts";
import { sendRaw } from "../../../support/raw-http.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { type BucketBody, bucketOf, newBucket, setState } from "../support.ts";

let server: TestServer;
let account: AccountClient;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account();
});
afterEach(() => server.stop());

const BUCKETS = "/v1/catch/buckets";
const TARGET = "https://hooks.example.com/in";

async function found(name: string, by = account): Promise<string[]> {
  const { body } = await by.get(`${BUCKETS}?name=${encodeURIComponent(name)}`);
  return (body["buckets"] as BucketBody[]).map(({ id }) => id);
}

describe("a bucket's name", () => {
  test("is null by default, and finds the bucket only in its project", async () => {
    expect((await newBucket(account)).name).toBeNull();
    const { id, name } = await newBucket(account, { name: "Shop ü" });
    expect(name).toBe("Shop ü");
    expect(await found("Shop ü")).toEqual([id]);
    expect(await found("shop ü")).toEqual([]);
    const other = await server.account();
    expect(await found("Shop ü", other)).toEqual([]);
    await newBucket(other, { name: "Shop ü" });
  });

  test("is unique within a project: 409 identifies the bucket; after a change or deletion it is available again", async () => {
    const { id } = await newBucket(account, { name: "taken" });
    const again = await account.post(BUCKETS, { target_url: TARGET, name: "taken" });
    const error = expectError(again, "bucket_name_taken");
    expect(error).toMatchObject({ bucket_id: id });
    expect(error.error.message).toContain(id);
    const other = await newBucket(account, { name: "free" });
    const change = (terms: object) => account.patch(`${BUCKETS}/${other.id}`, terms);
    expectError(await change({ name: "taken", state: "live" }), "bucket_name_taken");
    expect(await bucketOf(account, other.id)).toMatchObject({ name: "free", state: "paused" });
    expect((await change({ name: "free" })).status).toBe(200);
    await account.patch(`${BUCKETS}/${id}`, { name: null });
    expect((await change({ name: "taken" })).body["name"]).toBe("taken");
    await account.delete(`${BUCKETS}/${other.id}`);
    const third = await newBucket(account, { name: "taken" });
    await server.restart();
    account = Object.assign(account, { url: server.url });
    expect(await bucketOf(account, third.id)).toMatchObject({ name: "taken" });
  });

  test("that is taken is reported before the tier's limit", async () => {
    const full = await server.account({ tier: "free" });
    const { id } = await newBucket(full, { name: "only" });
    const again = await full.post(BUCKETS, { target_url: TARGET, name: "only" });
    expect(expectError(again, "bucket_name_taken")).toMatchObject({ bucket_id: id });
  });

  test("has 1 to 100 characters on one line", async () => {
    await newBucket(account, { name: "🪣".repeat(NAME_LENGTH_MAX) });
    for (const name of ["", "x".repeat(NAME_LENGTH_MAX + 1), "a\nb", "a\u2029b", 7]) {
      expectError(await account.post(BUCKETS, { target_url: TARGET, name }), "validation_error");
    }
    expectError(await account.get(`${BUCKETS}?name=`), "validation_error");
  });
});

test("a paused bucket has a hint how to set it live; a live one has none", async () => {
  const { id, hint } = await newBucket(account);
  expect(hint).toBe(
    `The bucket is paused and forwards nothing. To start forwarding: PATCH ${BUCKETS}/${id} {"state": "live"}`,
  );
  await setState(account, id, "live");
  expect(await bucketOf(account, id)).not.toHaveProperty("hint");
});

describe("a bucket's ingest_url", () => {
  test("has the host of the request, and accepts events", async () => {
    const { id, ingest_url } = await newBucket(account);
    expect(ingest_url).toBe(`${server.url}/v1/in/${id}`);
    const answer = await fetch(String(ingest_url), { method: "POST", body: "{}" });
    expect(await answer.json()).toMatchObject({ status: "accepted" });
    const headers = { host: "hooks.example.com" };
    const { body } = await account.get(`${BUCKETS}/${id}`, { headers });
    expect(body["ingest_url"]).toBe(`http://hooks.example.com/v1/in/${id}`);
    const list = await account.get(BUCKETS, { headers });
    expect((list.body["buckets"] as BucketBody[])[0]?.ingest_url).toBe(String(body["ingest_url"]));
  });

  test("has the scheme of a trusted proxy, and of no other", async () => {
    const { id } = await newBucket(account);
    const scheme = async (of: TestServer, key: string | null, named: string) => {
      const headers = { "x-forwarded-proto": named };
      const { body } = await of.client(key).get(`${BUCKETS}/${id}`, { headers });
      return new URL(String(body["ingest_url"])).protocol;
    };
    expect(await scheme(server, account.key, "https")).toBe("http:");
    const behind = await startTestServer({ args: ["--trust-proxy", "127.0.0.1"] });
    try {
      const bucket = await newBucket(behind.operator);
      const named = async (value: string) => {
        const headers = { host: "hooks.example.com", "x-forwarded-proto": value };
        return (await behind.operator.get(`${BUCKETS}/${bucket.id}`, { headers })).body["ingest_url"];
      };
      expect(await named("https")).toBe(`https://hooks.example.com/v1/in/${bucket.id}`);
      expect(await named("HTTP")).toBe(`http://hooks.example.com/v1/in/${bucket.id}`);
      expect(await named("gopher")).toBe(`http://hooks.example.com/v1/in/${bucket.id}`);
    } finally {
      await behind.stop();
    }
  });

  test("starts with --public-url, whatever the request", async () => {
    const separateServer = await startTestServer({ args: ["--public-url", "https://hooks.example.com"] });
    try {
      const { id, ingest_url } = await newBucket(separateServer.operator);
      expect(ingest_url).toBe(`https://hooks.example.com/v1/in/${id}`);
      const headers = { host: "other.example.com" };
      const { body } = await separateServer.operator.get(`${BUCKETS}/${id}`, { headers });
      expect(body["ingest_url"]).toBe(`https://hooks.example.com/v1/in/${id}`);
    } finally {
      await separateServer.stop();
    }
  });

  test("is the listening address if Host is invalid", async () => {
    const { id } = await newBucket(account);
    const path = `${BUCKETS}/${id}`;
    const answer = await sendRaw(server.url, [
      `GET ${path} HTTP/1.1\r\nHost: a b\r\nAuthorization: Bearer ${account.key}\r\n\r\n`,
    ]);
    expect(answer?.body["ingest_url"]).toBe(`${server.url}/v1/in/${id}`);
  });
});
