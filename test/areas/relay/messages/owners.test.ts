import { describe, expect, test } from "bun:test";
import { METADATA_LENGTH_MAX, OWNER_ID_LENGTH_MAX } from "../../../../src/kernel/data/schema.ts";
import { expectError } from "../../../support/errors.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

const PATH = "/v1/relay/endpoints";
const create = (change: object = {}) =>
  stage.account.post(PATH, { url: stage.sink.url("/hooks"), ...change });

/** The values of a field in the items of a list. */
async function listed(path: string, name: string, field: string): Promise<unknown[]> {
  const { body, text } = await stage.account.get(path);
  if (!Array.isArray(body[name])) throw new Error(text);
  return (body[name] as Record<string, unknown>[]).map((one) => one[field]);
}

describe("an endpoint", () => {
  test("has an owner_id and metadata; an update changes and removes the latter", async () => {
    const { body } = await create({ owner_id: "acme", metadata: { plan: "pro" } });
    expect(body).toMatchObject({ owner_id: "acme", metadata: { plan: "pro" } });
    const path = `${PATH}/${body["endpoint_id"]}`;
    expect((await stage.account.patch(path, { description: "x" })).body).toMatchObject({
      owner_id: "acme",
      metadata: { plan: "pro" },
    });
    await stage.account.patch(path, { metadata: { plan: "free" } });
    expect((await stage.account.get(path)).body).toMatchObject({
      owner_id: "acme",
      metadata: { plan: "free" },
    });
    const cleared = await stage.account.patch(path, { owner_id: "acme", metadata: null });
    expect(cleared.body).toMatchObject({ owner_id: "acme", metadata: {} });
  });

  test.each([
    ["a customer to another", "acme", "globex"],
    ["a customer to the account", "acme", null],
    ["the account to a customer", null, "acme"],
  ])("cannot pass from %s", async (_, from, to) => {
    const endpoint = await messaging.endpoint("/a", { owner_id: from, state: "paused" });
    const path = `${PATH}/${endpoint}`;
    const before = await stage.account.get(path);
    const rejected = await stage.account.patch(path, { owner_id: to, state: "live", name: "new" });
    expectError(rejected, "conflict");
    expect(rejected.body["error"]).toMatchObject({
      message:
        "The owner of an endpoint cannot be changed: its deliveries belong to the owner. Create an endpoint for the new owner, and delete this one.",
    });
    expect((await stage.account.get(path)).body).toEqual(before.body);
    const same = await stage.account.patch(path, { owner_id: from, name: "new" });
    expect([same.status, same.body["owner_id"], same.body["name"]]).toEqual([200, from, "new"]);
  });

  test("has neither by default", async () => {
    expect((await create()).body).toMatchObject({ owner_id: null, metadata: {} });
  });

  test("keeps both over a restart", async () => {
    const { body } = await create({ owner_id: "acme", metadata: { plan: "pro" } });
    await stage.restart();
    expect(await messaging.read(String(body["endpoint_id"]))).toMatchObject({
      owner_id: "acme",
      metadata: { plan: "pro" },
    });
  });

  test.each([
    ["the longest owner_id", { owner_id: "Az09_.:@-".padEnd(OWNER_ID_LENGTH_MAX, "x") }],
    ["the longest metadata", { metadata: { k: "x".repeat(METADATA_LENGTH_MAX - 8) } }],
  ])("may have %s", async (_, change) => {
    const answer = await create(change);
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject(change);
  });

  test.each([
    ["an empty owner_id", "owner_id", ""],
    ["an owner_id with a blank", "owner_id", "a b"],
    ["an owner_id with another letter", "owner_id", "ü"],
    ["an owner_id with a slash", "owner_id", "a/b"],
    ["an owner_id of two lines", "owner_id", "a\nb"],
    ["an owner_id that is too long", "owner_id", "x".repeat(OWNER_ID_LENGTH_MAX + 1)],
    ["an owner_id that is a number", "owner_id", 5],
    ["metadata that is no object", "metadata", "text"],
    ["metadata with a number", "metadata", { k: 1 }],
    ["metadata with a number under a name of two lines", "metadata", { "a\nb": 1 }],
    ["metadata that is too long", "metadata", { k: "x".repeat(METADATA_LENGTH_MAX - 7) }],
  ])("rejects %s", async (_, field, value) => {
    const { body } = await create();
    for (const answer of [
      await create({ [field]: value }),
      await stage.account.patch(`${PATH}/${body["endpoint_id"]}`, { [field]: value }),
    ]) {
      expectError(answer, "validation_error");
      expect(Object.keys(answer.body["fields"] as object)[0]?.split(".")[0]).toBe(field);
    }
  });

  test("of a customer receives no notices", async () => {
    const notices = { event_types: ["ninefold.*"] };
    expectError(await create({ owner_id: "acme", ...notices }), "validation_error");
    const own = await create(notices);
    expect(own.status).toBe(201);
    const acme = await messaging.endpoint("/acme", { owner_id: "acme" });
    expectError(await stage.account.patch(`${PATH}/${acme}`, notices), "validation_error");
  });

  test("of a customer that is disabled is named in the notice to the account's own endpoint", async () => {
    await messaging.endpoint("/own", { event_types: ["ninefold.*"] });
    await messaging.endpoint("/acme", { owner_id: "acme" });
    stage.sink.answersBy(({ path }) => (path === "/acme" ? 410 : 200));
    await messaging.send({}, { owner_id: "acme" });
    await messaging.settle();
    const [notice] = stage.sink.take().filter(({ path }) => path === "/own");
    expect(JSON.parse(notice?.body ?? "{}")).toMatchObject({
      type: "ninefold.endpoint.disabled",
      data: { owner_id: "acme" },
    });
  });
});

test("endpoints are listed by owner_id", async () => {
  const [acme] = [await messaging.endpoint("/a", { owner_id: "acme" })];
  await messaging.endpoint("/b", { owner_id: "acme2" });
  await messaging.endpoint("/c");
  expect(await listed(`${PATH}?owner_id=acme`, "endpoints", "endpoint_id")).toEqual([acme]);
  expect(await listed(`${PATH}?owner_id=nobody`, "endpoints", "endpoint_id")).toEqual([]);
  expectError(await stage.account.get(`${PATH}?owner_id=a%20b`), "validation_error");
});

describe("a message", () => {
  test("with an owner_id goes to all endpoints of this customer that match it, without one to those without", async () => {
    await messaging.endpoint("/acme/1", { owner_id: "acme" });
    await messaging.endpoint("/acme/2", { owner_id: "acme", event_types: ["invoice.*"] });
    await messaging.endpoint("/acme/orders", { owner_id: "acme", event_types: ["order.*"] });
    await messaging.endpoint("/globex", { owner_id: "globex" });
    await messaging.endpoint("/own");
    await messaging.send({ n: 1 }, { owner_id: "acme" });
    await messaging.settle();
    expect(messaging.takenPaths()).toEqual(["/acme/1", "/acme/2"]);
    await messaging.send({ n: 2 });
    await messaging.settle();
    expect(messaging.takenPaths()).toEqual(["/own"]);
    expect(await messaging.send({ n: 3 }, { owner_id: "nobody" })).toEqual({});
  });

  test("of a batch goes to its own customer", async () => {
    await messaging.endpoint("/acme", { owner_id: "acme" });
    await messaging.endpoint("/globex", { owner_id: "globex" });
    const message = { event_type: "order.paid", payload: {} };
    const messages = [{ ...message, owner_id: "acme" }, { ...message, owner_id: "globex" }, message];
    const { body, status } = await stage.account.post("/v1/relay/messages/batch", { messages });
    expect(status).toBe(201);
    const sent = body["messages"] as { deliveries: unknown[] }[];
    expect(sent.map(({ deliveries }) => deliveries.length)).toEqual([1, 1, 0]);
    await messaging.settle();
    expect(messaging.takenPaths()).toEqual(["/acme", "/globex"]);
  });

  test("does not reach the customer with the same id in another project or account", async () => {
    await messaging.endpoint("/acme", { owner_id: "acme" });
    const other = await stage.server.account();
    const sent = { event_type: "order.paid", payload: {}, owner_id: "acme" };
    expect((await other.post("/v1/relay/messages", sent)).body["deliveries"]).toEqual([]);
    const { body: project } = await stage.account.post("/v1/projects", { name: "Staging" });
    const { body: key } = await stage.account.post(`/v1/projects/${project["id"]}/keys`, {
      prefix: "sm",
      name: "staging",
      scopes: ["relay:*"],
    });
    const staging = stage.server.client(String(key["secret"]));
    expect((await staging.post("/v1/relay/messages", sent)).body["deliveries"]).toEqual([]);
  });

  test("is returned with its owner_id, and listed by it in pages", async () => {
    for (let n = 0; n < 5; n += 1) {
      await messaging.send({ n }, { owner_id: "acme", message_id: `m-${n}` });
      await messaging.send({ n }, { owner_id: "globex" });
    }
    const { body } = await stage.account.get("/v1/relay/messages/m-3");
    expect(body["owner_id"]).toBe("acme");
    const first = await stage.account.get("/v1/relay/messages?owner_id=acme&limit=3");
    const cursor = String(first.body["cursor"]);
    const rest = await listed(
      `/v1/relay/messages?owner_id=acme&limit=3&cursor=${cursor}`,
      "messages",
      "message_id",
    );
    const ids = (first.body["messages"] as { message_id: string }[]).map(({ message_id }) => message_id);
    expect([...ids, ...rest]).toEqual(["m-4", "m-3", "m-2", "m-1", "m-0"]);
    const typed = "/v1/relay/messages?owner_id=acme&event_type=other";
    expect(await listed(typed, "messages", "message_id")).toEqual([]);
    expectError(await stage.account.get("/v1/relay/messages?owner_id=a%20b"), "validation_error");
    const bad = { event_type: "a", payload: {}, owner_id: "a b" };
    expectError(await stage.account.post("/v1/relay/messages", bad), "validation_error");
  });
});

describe("deliveries by owner_id", () => {
  test("are those of all messages to the customer, in pages, newest first", async () => {
    const [a, b] = [
      await messaging.endpoint("/a", { owner_id: "acme" }),
      await messaging.endpoint("/b", { owner_id: "acme" }),
    ];
    await messaging.endpoint("/c", { owner_id: "globex" });
    const sent: string[] = [];
    for (let n = 0; n < 4; n += 1) {
      const ids = await messaging.send({ n }, { owner_id: "acme" });
      sent.unshift(ids[b] ?? "", ids[a] ?? "");
      await messaging.send({ n }, { owner_id: "globex" });
    }
    expect(await stage.listed("owner_id=acme")).toEqual(sent);
    const pages: string[] = [];
    let query = "owner_id=acme&limit=3";
    for (let page = 0; page < 3; page += 1) {
      const { body } = await stage.account.get(`/v1/relay?${query}`);
      const deliveries = body["deliveries"] as { relay_id: string }[];
      pages.push(...deliveries.map(({ relay_id }) => relay_id));
      expect(deliveries.length).toBe(page < 2 ? 3 : 2);
      expect(body["cursor"] === undefined).toBe(page === 2);
      query = `owner_id=acme&limit=3&cursor=${body["cursor"]}`;
    }
    expect(pages).toEqual(sent);
    expect(await stage.listed(`owner_id=acme&endpoint_id=${a}`)).toEqual(
      sent.filter((_, at) => at % 2 === 1),
    );
    expect(await stage.listed("owner_id=nobody")).toEqual([]);
  });

  test("are filtered by status, type, time and error", async () => {
    await messaging.endpoint("/a", { owner_id: "acme", retry_schedule: [] });
    stage.sink.answersBy(() => 500);
    const [failed] = Object.values(await messaging.send({}, { owner_id: "acme" }));
    await messaging.settle();
    stage.sink.answersBy(() => 200);
    const [delivered] = Object.values(
      await messaging.send({}, { owner_id: "acme", event_type: "order.paid" }),
    );
    await messaging.settle();
    expect(await stage.listed("owner_id=acme&status=failed")).toEqual([failed ?? ""]);
    expect(await stage.listed("owner_id=acme&status=delivered")).toEqual([delivered ?? ""]);
    expect(await stage.listed("owner_id=acme&status=scheduled")).toEqual([]);
    expect(await stage.listed("owner_id=acme&error=http")).toEqual([failed ?? ""]);
    expect(await stage.listed("owner_id=acme&error=timeout")).toEqual([]);
    expect(await stage.listed("owner_id=acme&event_type=order.paid")).toEqual([delivered ?? ""]);
    expect(await stage.listed("owner_id=acme&filter=pulse")).toEqual([]);
    expect(await stage.listed("owner_id=acme&until=1")).toEqual([]);
  });

  test("are complete over pages that end within a message to very many endpoints", async () => {
    const account = await stage.server.account({ tier: "scale", balance: 10_000 });
    const endpoint = { url: "https://example.com/", owner_id: "acme", state: "paused" };
    for (let count = 0; count < 300; count += 1) {
      expect((await account.post(PATH, endpoint)).status).toBe(201);
      if (count % 100 === 0) await stage.server.clock.advance(60_000);
    }
    const message = { event_type: "a", payload: {}, owner_id: "acme" };
    for (let sent = 0; sent < 5; sent += 1) await account.post("/v1/relay/messages", message);
    const seen: string[] = [];
    let query = "owner_id=acme&limit=100&status=scheduled";
    for (let page = 0; page < 20; page += 1) {
      const { body } = await account.get(`/v1/relay?${query}`);
      seen.push(...(body["deliveries"] as { relay_id: string }[]).map(({ relay_id }) => relay_id));
      if (body["cursor"] === undefined) break;
      query = `owner_id=acme&limit=100&status=scheduled&cursor=${body["cursor"]}`;
    }
    expect(seen.length).toBe(1_500);
    expect(new Set(seen).size).toBe(1_500);
    // None matches: each page ends after a thousand rows, and the last one is reached.
    const first = await account.get("/v1/relay?owner_id=acme&status=failed");
    expect(first.body["deliveries"]).toEqual([]);
    const second = await account.get(`/v1/relay?owner_id=acme&status=failed&cursor=${first.body["cursor"]}`);
    expect(second.body).toEqual({ deliveries: [] });
  });

  test("include those of earlier messages that were created later, at the time of their creation", async () => {
    const a = await messaging.endpoint("/a", { owner_id: "acme" });
    await messaging.endpoint("/c", { owner_id: "globex" });
    const ofA: string[] = [];
    const send = async (n: number) => {
      await messaging.send({ n }, { owner_id: "globex", message_id: `other-${n}` });
      return messaging.send({ n }, { owner_id: "acme", message_id: `m-${n}` });
    };
    for (let n = 0; n < 4; n += 1) ofA.unshift((await send(n))[a] ?? "");
    const b = await messaging.endpoint("/b", { owner_id: "acme", retry_schedule: [] });
    const d = await messaging.endpoint("/d", { owner_id: "globex" });
    stage.sink.answersBy(({ path }) => (path === "/b" ? 500 : 200));
    for (const id of [b, d]) await stage.account.post(`${PATH}/${id}/recover`, { since: 0 });
    await messaging.settle();
    const ofB: string[] = [];
    for (let n = 0; n < 4; n += 1) {
      const { body } = await stage.account.get(`/v1/relay/messages/m-${n}`);
      const deliveries = body["deliveries"] as { relay_id: string; endpoint_id: string }[];
      ofB.unshift(deliveries.find(({ endpoint_id }) => endpoint_id === b)?.relay_id ?? "");
    }
    const last = await send(4);
    const all = [last[b] ?? "", last[a] ?? "", ...ofB, ...ofA];
    for (const limit of [1, 3, 5, 100]) {
      const pages: string[] = [];
      let cursor = "";
      do {
        const { body } = await stage.account.get(`/v1/relay?owner_id=acme&limit=${limit}${cursor}`);
        pages.push(...(body["deliveries"] as { relay_id: string }[]).map(({ relay_id }) => relay_id));
        cursor = body["cursor"] === undefined ? "" : `&cursor=${body["cursor"]}`;
      } while (cursor !== "");
      expect(pages).toEqual(all);
    }
    await messaging.settle();
    expect(await stage.listed(`owner_id=acme&endpoint_id=${b}&status=failed`)).toEqual([
      last[b] ?? "",
      ...ofB,
    ]);
    const resend = await stage.account.post("/v1/relay/resend", { endpoint_id: b, dry_run: true });
    expect(resend.body).toEqual({ matched: 5 });
  });

  test("are found behind a thousand that were created later and are deleted", async () => {
    const a = await messaging.endpoint("/a", { owner_id: "acme" });
    const sent = await messaging.send({}, { owner_id: "acme" });
    const { db, writer } = stage.server.server.kernel;
    const add = db.change<[]>(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100)
       INSERT INTO relay_later_deliveries SELECT ref, 1000000 + i, project_ref, owner_id FROM n,
       (SELECT * FROM relay_messages ORDER BY ref DESC LIMIT 1)`,
    );
    await writer.submit((tx) => add(tx));
    const first = await stage.account.get("/v1/relay?owner_id=acme");
    expect(first.body["deliveries"]).toEqual([]);
    expect(await stage.listed(`owner_id=acme&cursor=${first.body["cursor"]}`)).toEqual([sent[a] ?? ""]);
  });

  test("include test events, and are found behind a thousand messages without deliveries", async () => {
    const endpoint = await messaging.endpoint("/a", { owner_id: "acme", event_types: ["never"] });
    const { body } = await stage.account.post(`${PATH}/${endpoint}/test`, {});
    const message = { event_type: "other", payload: {}, owner_id: "acme" };
    for (let batch = 0; batch < 11; batch += 1)
      await stage.account.post("/v1/relay/messages/batch", { messages: Array(100).fill(message) });
    const first = await stage.account.get("/v1/relay?owner_id=acme");
    expect(first.body["deliveries"]).toEqual([]);
    expect(await stage.listed(`owner_id=acme&cursor=${first.body["cursor"]}`)).toEqual([
      String(body["relay_id"]),
    ]);
  });
});
