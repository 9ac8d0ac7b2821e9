import { expect, test } from "bun:test";
import { DEDUPLICATE_HOURS_MAX, DEDUPLICATION_MS } from "../../../../src/areas/relay/domain.ts";
import { relayStage } from "../support.ts";

const stage = relayStage();

const ONE = { deduplication_id: "invoice-1" };
const balance = async () => Number((await stage.account.get("/v1/meter/balance")).body["balance"]);

test("a repeated id creates no second delivery for a day, whatever the request, and is free of charge", async () => {
  const first = await stage.ask(ONE);
  expect([first.status, first.body["deduplicated"]]).toEqual([201, undefined]);
  const before = await balance();
  const second = await stage.ask({ ...ONE, delay: "1h", payload: { other: 1 }, method: "PUT" });
  expect([second.status, second.body]).toEqual([200, { ...first.body, deduplicated: true }]);
  await stage.server.clock.advance(DEDUPLICATION_MS - 1);
  expect(stage.sink.take().map(({ body }) => body)).toEqual(['{"n":1}']);
  const later = await stage.ask(ONE);
  expect([later.status, later.body["relay_id"]]).toEqual([200, first.body["relay_id"]]);
  expect(later.body["status"]).toBe("delivered");
  expect(await balance()).toBe(before);
  await stage.server.clock.advance(1);
  const anew = await stage.ask(ONE);
  expect(anew.status).toBe(201);
  expect(anew.body["relay_id"]).not.toBe(first.body["relay_id"]);
  expect(await balance()).toBe(before - 1);
});

test("concurrent requests create one delivery, also after a restart; another id or project creates another one", async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => stage.ask(ONE)));
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201]);
  expect(new Set(answers.map(({ body }) => body["relay_id"])).size).toBe(1);
  await stage.restart();
  expect((await stage.ask(ONE)).status).toBe(200);
  expect((await stage.ask({ deduplication_id: "invoice-2" })).status).toBe(201);
  const project = await stage.account.post("/v1/projects", { name: "Shop" });
  const terms = { prefix: "sm", name: "k", scopes: ["*"] };
  const key = await stage.account.post(`/v1/projects/${project.body.id}/keys`, terms);
  const body = { target_url: stage.sink.url(), method: "POST", delay: "1h", ...ONE };
  expect((await stage.server.client(String(key.body.secret)).post("/v1/relay", body)).status).toBe(201);
});

test("a rejected request does not use the id", async () => {
  const far = { target_url: stage.sink.url(), method: "POST", at: 9_999_999_999_999, ...ONE };
  expect((await stage.account.post("/v1/relay", far)).status).toBe(400);
  expect((await stage.ask(ONE)).status).toBe(201);
});

test("an Idempotency-Key repeats the first response, also a deduplicated one", async () => {
  const body = { target_url: stage.sink.url(), method: "POST", delay: "1h", ...ONE };
  const post = (key: string) =>
    stage.account.post("/v1/relay", body, { headers: { "idempotency-key": key } });
  const [first, repeat, other, otherAgain] = [
    await post("a"),
    await post("a"),
    await post("b"),
    await post("b"),
  ];
  expect([first?.status, repeat?.status, other?.status, otherAgain?.status]).toEqual([201, 201, 200, 200]);
  expect([repeat, otherAgain].map((one) => one?.headers.get("idempotent-replayed"))).toEqual([
    "true",
    "true",
  ]);
});

test("ids are deleted after a week, and with their project", async () => {
  const rows = stage.server.server.kernel.db.number("SELECT count(*) AS n FROM relay_deduplication");
  await stage.ask(ONE);
  await stage.server.clock.advance((DEDUPLICATE_HOURS_MAX + 2) * 3_600_000);
  expect(rows()).toBe(0);
  const project = await stage.account.post("/v1/projects", { name: "Shop" });
  const terms = { prefix: "sm", name: "k", scopes: ["*"] };
  const key = await stage.account.post(`/v1/projects/${project.body.id}/keys`, terms);
  const body = { target_url: stage.sink.url(), method: "POST", delay: "1h", ...ONE };
  await stage.server.client(String(key.body.secret)).post("/v1/relay", body);
  expect(rows()).toBe(1);
  await stage.account.delete(`/v1/projects/${project.body.id}`);
  await stage.server.clock.advance(1_000);
  expect(rows()).toBe(0);
});
