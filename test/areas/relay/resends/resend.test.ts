import { describe, expect, test } from "bun:test";
import { RELAY_RETENTION_MS } from "../../../../src/areas/relay/domain.ts";
import { expectError } from "../../../support/errors.ts";
import { endpoint, type Scenario } from "../../../support/scenario.ts";
import { isSigned } from "../../../support/webhook-sink.ts";
import { relayStage } from "../support.ts";

const stage = relayStage();

const NOBODYS = "01a1fc2c-30c0-71d9-bf08-0e3cb4a7b202";
const resend = (id: string) => stage.account.post(`/v1/relay/${id}/resend`);

describe("POST /v1/relay/{relay_id}/resend", () => {
  /** The delivery that a scenario has created. */
  let id = NOBODYS;
  /** A scenario about that delivery. */
  const about = (make: () => Promise<string>, rest: Omit<Scenario, "before" | "request">): Scenario => ({
    ...rest,
    before: async ({ account }) => {
      stage.account = account;
      id = await make();
    },
    get request(): Scenario["request"] {
      return ["POST", `/v1/relay/${id}/resend`];
    },
  });
  const request: Scenario["request"] = ["POST", `/v1/relay/${NOBODYS}/resend`];
  const conflict = { status: 409, code: "conflict", spent: 1 };
  endpoint(() => stage.server, "POST /v1/relay/{relay_id}/resend", [
    about(async () => (await stage.failed(1))[0] ?? "", {
      name: "a failed delivery",
      status: 202,
      holds: { status: "scheduled" },
      spent: 1,
      after: (_, { body }) => expect(body["relay_id"]).toBe(id),
    }),
    about(() => stage.sent(), { name: "a delivered one, without content", ...conflict }),
    about(async () => String((await stage.ask({ delay: "1h" })).body["relay_id"]), {
      name: "a scheduled one",
      ...conflict,
      after: (_, answer) =>
        expect(answer.text).toContain("This delivery is scheduled: only a finished delivery can be resent."),
    }),
    { name: "an unknown one", request, status: 404, code: "not_found", spent: 1 },
    { name: "no key", as: "nobody", request, status: 401, code: "unauthorized" },
    { name: "no credits", account: { balance: 0 }, request, status: 402, code: "insufficient_balance" },
    {
      name: "a too long id",
      request: ["POST", `/v1/relay/${"x".repeat(65)}/resend`],
      status: 400,
      code: "validation_error",
    },
  ]);

  test("it is sent under the same ids with the same content; attempts continue, retries start again", async () => {
    stage.sink.answersBy(() => 500);
    const terms = { headers: { "X-Source": "billing" }, payload: { ü: 1 }, retry_schedule: ["1s"] };
    const relayId = await stage.sent(terms);
    await stage.server.clock.advance(10_000);
    expect(await stage.read(relayId)).toMatchObject({ status: "failed", attempts: 2 });
    await stage.server.clock.advance(3 * 86_400_000);
    await stage.restart();
    stage.sink.take();
    stage.sink.answers(500, 200);
    const now = stage.server.clock.now();
    expect((await resend(relayId)).status).toBe(202);
    expect(await stage.read(relayId)).toMatchObject({
      status: "scheduled",
      attempts: 2,
      scheduled_for: now,
      finished_at: null,
      response_status: 500,
    });
    await stage.restart();
    await stage.server.clock.advance(0);
    expect(await stage.read(relayId)).toMatchObject({ status: "delivering", attempts: 3 });
    await stage.server.clock.advance(2_000);
    const delivery = await stage.read(relayId);
    expect(delivery).toMatchObject({ status: "delivered", attempts: 4, error: null });
    expect(delivery.attempt_log.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
    const received = stage.sink.take();
    expect(received.map(({ body, headers }) => [body, headers.get("x-source")])).toEqual(
      Array(2).fill(['{"ü":1}', "billing"]),
    );
    for (const one of received) {
      expect(isSigned(one, stage.account.key ?? "")).toBe(true);
      expect([one.headers.get("webhook-id"), one.headers.get("x-svc-delivery-id")]).toEqual([
        relayId,
        relayId,
      ]);
    }
    expectError(await resend(relayId), "conflict");
  });

  test("it fails again, and is resent again", async () => {
    const [relayId = ""] = await stage.failed(1, { payload: undefined, body_base64: "AP8=" });
    for (let turn = 2; turn < 5; turn += 1) {
      stage.sink.answersBy(() => 400);
      expect((await resend(relayId)).status).toBe(202);
      await stage.server.clock.advance(0);
      expect(await stage.read(relayId)).toMatchObject({ status: "failed", attempts: turn });
    }
    expect(await stage.listed("status=failed")).toEqual([relayId]);
  });

  test("while in flight it is delivering, and cannot be resent or cancelled", async () => {
    const [relayId = ""] = await stage.failed(1);
    const { promise, resolve } = Promise.withResolvers<Response>();
    stage.sink.answersBy(() => promise);
    await resend(relayId);
    const advancing = stage.server.clock.advance(0);
    while (stage.sink.received.length === 0) await Bun.sleep(1);
    expect(await stage.read(relayId)).toMatchObject({ status: "delivering", attempts: 1 });
    expect(await stage.listed("status=delivering")).toEqual([relayId]);
    expectError(await resend(relayId), "conflict");
    expectError(await stage.account.delete(`/v1/relay/${relayId}`), "conflict");
    resolve(new Response());
    await advancing;
    expect(await stage.read(relayId)).toMatchObject({ status: "delivered", attempts: 2 });
  });

  test("cancelled before its first attempt, it has no content, and its attempts remain", async () => {
    const [relayId = ""] = await stage.failed(1);
    await resend(relayId);
    expect((await stage.account.delete(`/v1/relay/${relayId}`)).status).toBe(200);
    await stage.server.clock.advance(60_000);
    expect(stage.sink.take()).toEqual([]);
    expect(await stage.read(relayId)).toMatchObject({
      status: "cancelled",
      attempts: 1,
      response_status: 400,
    });
    expectError(await resend(relayId), "conflict");
  });

  test("404 for another project's delivery", async () => {
    const [relayId = ""] = await stage.failed(1);
    await stage.anew();
    expectError(await resend(relayId), "not_found");
  });

  test("it is deleted 7 days after it is finished", async () => {
    const [relayId = ""] = await stage.failed(1);
    await stage.server.clock.advance(RELAY_RETENTION_MS + 2 * 3_600_000);
    expectError(await resend(relayId), "not_found");
  });
});

test("the content of finished deliveries is deleted, except for failed ones", async () => {
  const { kernel } = stage.server.server;
  const kept = kernel.db.number(
    "SELECT count(*) AS n FROM relays WHERE body IS NOT NULL OR headers IS NOT NULL OR body_bytes IS NOT NULL",
  );
  const before = kept();
  await stage.sent({ headers: { "X-A": "1" } });
  await stage.sent({ payload: undefined, body_base64: "AP8=" });
  const cancelled = await stage.ask({ delay: "1h" });
  await stage.account.delete(`/v1/relay/${cancelled.body["relay_id"]}`);
  expect(kept()).toBe(before);
  await stage.failed(2, { headers: { "X-A": "1" } });
  expect(kept()).toBe(before + 2);
});
