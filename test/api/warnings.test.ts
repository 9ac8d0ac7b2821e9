import { expect, test } from "bun:test";
import { useTestServer } from "../support/server.ts";

const server = useTestServer({ manualClock: true });

const UNKNOWN = ["Unknown field `period_sm`. Did you mean `period_ms`?"];

test("unknown fields are ignored and named in the response", async () => {
  const account = await server.account();
  const created = await account.post("/v1/pulse", {
    type: "heartbeat",
    name: "job",
    period_sm: 1,
    period_ms: 60_000,
  });
  expect([created.status, created.body["warnings"]]).toEqual([201, UNKNOWN]);
  const right = await account.post("/v1/pulse", { type: "heartbeat", name: "right", period_ms: 60_000 });
  expect(right.body).not.toHaveProperty("warnings");
});

test("unknown fields beside a log are named, but not those in it", async () => {
  const account = await server.account();
  await account.post("/v1/witness/sys/init");
  const { status, body } = await account.post("/v1/witness/log", { log: { sault: 1 }, sault: true });
  expect([status, body["warnings"]]).toEqual([200, ["Unknown field `sault`. Did you mean `salt`?"]]);
  expect((await account.post("/v1/witness/verify", { receipt: body })).body).toMatchObject({ valid: true });
});

test("unknown query parameters are named, also where an endpoint declares none", async () => {
  const account = await server.account();
  const list = await account.get("/v1/pulse?limt=5");
  expect(list.body["warnings"]).toEqual(["Unknown query parameter `limt`. Did you mean `limit`?"]);
  const balance = await account.get("/v1/meter/balance?verbose=1");
  expect(balance.body["warnings"]).toEqual(["Unknown query parameter `verbose`."]);
});

test("errors, deletions without a body and lists of other formats stay as they are", async () => {
  const account = await server.account();
  expect((await account.get("/v1/pulse/missing?x=1")).body).not.toHaveProperty("warnings");
  const exported = await account.get("/v1/audit/export?format=csv&x=1");
  expect([exported.status, exported.text.includes("warnings")]).toEqual([200, false]);
});

test("a repeat under an Idempotency-Key has the same response, with its warnings", async () => {
  const account = await server.account();
  const send = () =>
    account.post("/v1/meter/m/refill", { amount: 5, ammount: 6 }, { headers: { "idempotency-key": "once" } });
  const first = await send();
  const repeat = await send();
  expect(first.body["warnings"]).toEqual(["Unknown field `ammount`. Did you mean `amount`?"]);
  expect([repeat.text, repeat.headers.get("idempotent-replayed")]).toEqual([first.text, "true"]);
});

test("names that people try for time zones and durations are accepted", async () => {
  const account = await server.account();
  const beat = await account.post("/v1/pulse", { type: "heartbeat", name: "a", period: "1h", grace: "90s" });
  expect(beat.body).toMatchObject({ period_ms: 3_600_000, grace_ms: 90_000 });
  const cron = { type: "heartbeat", name: "b", schedule: "0 3 * * *", timezone: "Europe/Berlin" };
  expect((await account.post("/v1/pulse", cron)).body).toMatchObject({ tz: "Europe/Berlin" });
  const both = await account.post("/v1/pulse", { ...cron, name: "c", tz: "UTC" });
  expect([both.status, both.body["code"]]).toEqual([400, "validation_error"]);
});
