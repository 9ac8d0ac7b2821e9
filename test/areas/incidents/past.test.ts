import { expect, test } from "bun:test";
import { INCIDENT_UPDATES_MAX } from "../../../src/areas/incidents/schema.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { TEST_START_MS, useTestServer } from "../../support/server.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
const INCIDENTS = "/v1/pulse/incidents";
const server = useTestServer({ manualClock: true });
const at = (ms: number) => new Date(TEST_START_MS + ms).toISOString();

type Shown = Readonly<Record<string, unknown>>;

async function created(owner: Client, body: object): Promise<Shown & { id: string }> {
  const made = await owner.post(INCIDENTS, { title: "Down", ...body });
  expect(made.status, made.text).toBe(201);
  return made.body as Shown & { id: string };
}

test("an incident of the past has its times and its updates", async () => {
  const owner = await server.account({ tier: "unlimited" });
  const updates = [
    { at: at(-2 * DAY), status: "investigating", message: "We look into it." },
    { at: at(-2 * DAY + 10 * MINUTE), status: "identified" },
    { at: at(-2 * DAY + 40 * MINUTE), status: "resolved", message: "It works again." },
    { at: at(-DAY), status: "resolved", message: "The postmortem." },
  ];
  const incident = await created(owner, { started_at: at(-2 * DAY - MINUTE), updates, public: true });
  expect(incident).toMatchObject({
    kind: "manual",
    status: "resolved",
    started_at: at(-2 * DAY - MINUTE),
    resolved_at: at(-2 * DAY + 40 * MINUTE),
    public: true,
  });
  const read = (await owner.get(`${INCIDENTS}/${incident.id}`)).body;
  expect((read["updates"] as Shown[]).map(({ at, status, message }) => ({ at, status, message }))).toEqual(
    updates.map((update) => ({ message: "", ...update })),
  );
});

test("an open one goes on; times alone make an incident without updates", async () => {
  const owner = await server.account({ tier: "unlimited" });
  const open = await created(owner, {
    started_at: at(-MINUTE),
    updates: [{ at: at(-MINUTE), status: "identified" }],
  });
  expect(open).toMatchObject({ status: "identified", resolved_at: null });
  const closed = await owner.post(`${INCIDENTS}/${open.id}/updates`, { status: "resolved" });
  expect(closed.body["status"]).toBe("resolved");
  const plain = await created(owner, {
    started_at: at(-DAY),
    resolved_at: at(-DAY),
    message: "It was short.",
  });
  expect(plain).toMatchObject({ status: "resolved", started_at: at(-DAY), resolved_at: at(-DAY) });
  expect(plain["updates"]).toMatchObject([{ at: at(-DAY), message: "It was short." }]);
});

test("times that contradict each other are rejected, as are those to come", async () => {
  const owner = await server.account({ tier: "unlimited" });
  const updates = (...given: [number, string][]) => ({
    started_at: at(-DAY),
    updates: given.map(([ms, status]) => ({ at: at(ms), status })),
  });
  const rejected: [string, object][] = [
    ["started_at", { started_at: at(DAY) }],
    ["started_at", { started_at: "yesterday" }],
    ["resolved_at", { started_at: at(-DAY), resolved_at: at(DAY) }],
    ["resolved_at", { started_at: at(-DAY), resolved_at: at(-2 * DAY) }],
    ["updates.0.at", updates([-2 * DAY, "identified"])],
    ["updates.1.at", updates([-MINUTE, "identified"], [-2 * MINUTE, "monitoring"])],
    ["updates.0.at", updates([DAY, "identified"])],
    ["updates.1.status", updates([-MINUTE, "resolved"], [-MINUTE, "monitoring"])],
    ["message", { ...updates([-MINUTE, "identified"]), message: "Both" }],
  ];
  for (const [field, body] of rejected) {
    const answer = await owner.post(INCIDENTS, { title: "Down", ...body });
    expectError(answer, "validation_error");
    expect(answer.text, field).toContain(`"${field}"`);
  }
  const many = Array.from({ length: INCIDENT_UPDATES_MAX }, () => ({
    at: at(-MINUTE),
    status: "monitoring",
  }));
  await created(owner, { started_at: at(-DAY), updates: many });
  const tooMany = { title: "Down", started_at: at(-DAY), updates: [...many, ...many.slice(0, 1)] };
  expectError(await owner.post(INCIDENTS, tooMany), "validation_error");
});

test("the list can be that of manual incidents", async () => {
  const owner = await server.account({ tier: "unlimited" });
  const open = await created(owner, {});
  const resolved = await created(owner, { started_at: at(-DAY), resolved_at: at(-MINUTE) });
  const listed = async (query: string) => {
    const { body } = await owner.get(`${INCIDENTS}?kind=manual${query}`);
    return (body["incidents"] as Shown[]).map(({ id }) => id);
  };
  expect(await listed("")).toEqual([resolved.id, open.id]);
  expect(await listed("&status=open")).toEqual([open.id]);
  expect(await listed("&status=resolved")).toEqual([resolved.id]);
  const both = await owner.get(`${INCIDENTS}?kind=manual&monitor_id=${crypto.randomUUID()}`);
  expectError(both, "validation_error");
  expectError(await owner.get(`${INCIDENTS}?kind=auto`), "validation_error");
});
