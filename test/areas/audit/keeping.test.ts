import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SIDE, SIDE_BYTES_MAX, storedSide } from "../../../src/kernel/audit/redaction.ts";
import { USER_AGENT_LENGTH_MAX } from "../../../src/kernel/audit/trail.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { entriesIn, entriesOf, newestOf, switchFlag } from "./support.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

describe("retention of entries", () => {
  test("the oldest are removed, and sequences continue", async () => {
    const server = await startTestServer({ manualClock: true, args: ["--audit-retention-days", "2"] });
    try {
      await switchFlag(server.operator, "beta", true);
      const old = await newestOf(server.operator);
      await server.clock.advance(2 * DAY_MS);
      expect((await server.operator.get(`/v1/audit/${old.sequence}`)).status).toBe(200);
      await switchFlag(server.operator, "beta", false);
      await server.clock.advance(DAY_MS);
      expect((await server.operator.get(`/v1/audit/${old.sequence}`)).status).toBe(404);
      expect(await entriesOf(server.operator)).toHaveLength(1);
      await server.clock.advance(3 * DAY_MS);
      expect(entriesIn(await server.operator.get("/v1/admin/audit"))).toEqual([]);
      await server.restart();
      await switchFlag(server.operator, "beta", true);
      expect(Number((await newestOf(server.operator)).sequence)).toBeGreaterThan(Number(old.sequence) + 1);
    } finally {
      await server.stop();
    }
  });

  test("0: entries are stored forever", async () => {
    const server = await startTestServer({ manualClock: true, args: ["--audit-retention-days", "0"] });
    try {
      await switchFlag(server.operator, "beta", true);
      await server.clock.advance(4 * DAY_MS);
      expect(await entriesOf(server.operator)).toHaveLength(1);
    } finally {
      await server.stop();
    }
  });
});

describe("the stored sides of a change", () => {
  test(`a side of ${SIDE_BYTES_MAX} bytes is stored completely, a longer one is shortened`, () => {
    const whole = { name: "n", text: "x".repeat(SIDE_BYTES_MAX - '{"name":"n","text":""}'.length) };
    expect(storedSide(whole)).toEqual({ text: JSON.stringify(whole), truncated: false });
    const long = { name: "n", text: `${whole.text}x` };
    expect(storedSide(long)).toEqual({
      text: JSON.stringify({ name: "n", text: `${"x".repeat(SIDE.textMax)}…` }),
      truncated: true,
    });
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`f${at}`, "ü".repeat(200)]));
    const kept = storedSide(many);
    expect(kept.truncated).toBe(true);
    expect(Buffer.byteLength(kept.text)).toBeLessThanOrEqual(SIDE_BYTES_MAX);
    expect(Object.keys(JSON.parse(kept.text)).length).toBeGreaterThan(10);
  });

  test("secrets are detected by the name of their field, at any depth, set or not", () => {
    const fields = {
      secret: null,
      Token: "a",
      password: "b",
      api_key: ["c"],
      private_key: "d",
      key_id: "shown",
      nested: { list: [{ signing_secret: "e", flag_key: "shown" }], authorization: "f" },
      headers: { "X-One": "g" },
      url: "https://me:h@example.com:8443/path?i#j",
      other: "postgres://k@host?l",
      odd: "https://m@n@example.com\\o@p",
      text: "a sentence with https://q@example.com?r",
    };
    expect(JSON.parse(storedSide(fields).text)).toEqual({
      secret: "[secret]",
      Token: "[secret]",
      password: "[secret]",
      api_key: "[secret]",
      private_key: "[secret]",
      key_id: "shown",
      nested: { list: [{ signing_secret: "[secret]", flag_key: "shown" }], authorization: "[secret]" },
      headers: { "X-One": "[secret]" },
      url: "https://example.com:8443/path",
      other: "postgres://host",
      odd: "https://example.com\\o@p",
      text: "a sentence with https://q@example.com?r",
    });
  });
});

describe("addresses", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ args: ["--audit-ip", "off"] });
  });
  afterAll(() => server.stop());

  test("are not stored with --audit-ip off", async () => {
    await switchFlag(server.operator, "beta", true);
    expect(await newestOf(server.operator)).toMatchObject({ ip: null, request_id: expect.any(String) });
  });

  test(`${USER_AGENT_LENGTH_MAX} characters of a user agent are stored`, async () => {
    for (const [length, kept] of [
      [USER_AGENT_LENGTH_MAX, USER_AGENT_LENGTH_MAX],
      [USER_AGENT_LENGTH_MAX + 1, USER_AGENT_LENGTH_MAX],
    ] as const) {
      const headers = { "user-agent": "a".repeat(length) };
      await server.operator.post("/v1/projects", { name: "Shop" }, { headers });
      expect((await newestOf(server.operator)).user_agent).toBe("a".repeat(kept));
    }
  });
});

test("the removal of a deleted project is an entry of its account", async () => {
  const server = await startTestServer({ manualClock: true });
  try {
    const account = await server.account();
    const { body } = await account.post("/v1/projects", { name: "Shop" });
    await account.delete(`/v1/projects/${body.id}`);
    await server.clock.advance(1_000);
    const [removal] = await entriesOf(account);
    expect(removal).toMatchObject({ action: "projects.purge", actor: { type: "system", user_id: null } });
    expect(removal?.target).toEqual({ type: "project", id: String(body.id) });
  } finally {
    await server.stop();
  }
});
