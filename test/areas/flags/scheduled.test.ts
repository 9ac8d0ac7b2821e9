import { describe, expect, test } from "bun:test";
import { SCHEDULED_MAX } from "../../../src/areas/flags/scheduled/schema.ts";
import { endpoint, play, type Scenario } from "../../support/scenario.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const server = useTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });

const HOUR_MS = 3_600_000;
/** A time of the test clock, so many hours after its start or after now. */
function inHours(hours: number): string {
  return new Date(server.clock.now() + hours * HOUR_MS).toISOString();
}

function save(account: AccountClient, fields: object) {
  return account.post("/v1/gate", { flag_key: "f", enabled: true, ...fields });
}

async function definition(account: AccountClient) {
  return (await account.get("/v1/gate/f/definition")).body as Record<string, unknown> & {
    scheduled: { id: string; at: string; set: object; status: string; error: string | null; by: object }[];
  };
}

const ONE_RULE = [{ when: [{ attribute: "plan", op: "in", values: ["pro"] }], serve: { variant: "on" } }];

/** A save that is rejected, of a flag that stays unchanged. */
function rejected(name: string, scheduled: unknown, fields: object): Scenario {
  return {
    name,
    request: ["POST", "/v1/gate", { flag_key: "f", enabled: true, scheduled }],
    status: 400,
    code: "gate.rule_invalid",
    holds: { fields },
    after: async ({ account }) => expect((await account.get("/v1/gate/f/definition")).status).toBe(404),
  };
}

const later = (set: unknown) => [{ at: "2099-01-01T00:00:00Z", set }];

describe("POST /v1/gate with scheduled rejects", () => {
  for (const scenario of [
    rejected("no list", {}, { scheduled: ["must be a list of at most 20 changes"] }),
    rejected(
      "a change too many",
      Array.from({ length: SCHEDULED_MAX + 1 }, () => later({ enabled: true })[0]),
      { scheduled: ["must be a list of at most 20 changes"] },
    ),
    rejected("no time", [{ set: { enabled: true } }], { "scheduled[0].at": expect.anything() }),
    rejected("a time in the past", [{ at: "2020-01-01T00:00:00Z", set: { enabled: true } }], {
      "scheduled[0].at": ["must be in the future"],
    }),
    rejected("an empty change", later({}), {
      "scheduled[0].set": ["must have at least one field of a save"],
    }),
    ...["flag_key", "scheduled", "managed_by", "if_version", "other"].map((name) =>
      rejected(`a change with ${name}`, later({ [name]: 1 }), {
        "scheduled[0].set": [`must not have "${name}"`],
      }),
    ),
    rejected("a change that does not fit", later({ default: { variant: "blue" } }), {
      "scheduled[0].set.default": ["must be the name of one of the flag's variants"],
    }),
    rejected("a switch of another type", later({ enabled: "on" }), {
      "scheduled[0].set.enabled": ["must be true or false"],
    }),
    rejected("a rule that is not valid", later({ rules: [{ when: [], serve: { variant: "on" } }] }), {
      "scheduled[0].set.rules[0].when": expect.anything(),
    }),
  ] satisfies Scenario[])
    test(scenario.name, () => play(server, scenario));

  test("a number that a double does not hold", async () => {
    const account = await server.account();
    const text = `{"flag_key":"f","enabled":true,"scheduled":[{"at":"2099-01-01T00:00:00Z","set":{"variants":{"on":9007199254740993}}}]}`;
    const { body } = await account.post("/v1/gate", text);
    expect(Object.keys(body.fields as object)).toEqual(["scheduled[0].set.variants.on"]);
  });

  test("changes of an archived flag; archiving drops those that it has", async () => {
    const account = await server.account();
    const scheduled = [{ at: inHours(1), set: { enabled: false } }];
    await save(account, { scheduled });
    const { version } = await definition(account);
    expect((await save(account, { archived: true, scheduled })).status).toBe(201);
    expect(await definition(account)).toMatchObject({
      archived: true,
      scheduled: [],
      version: Number(version) + 1,
    });
    const { status, body } = await save(account, { scheduled });
    expect([status, body.fields]).toEqual([400, { scheduled: ["must be omitted for an archived flag"] }]);
    await save(account, { archived: false });
    await server.clock.advance(2 * HOUR_MS);
    expect(await definition(account)).toMatchObject({ enabled: true });
  });
});

describe("scheduled changes", () => {
  test("apply at their times, each with a version and an entry of the audit log", async () => {
    const account = await server.account();
    const saved = await save(account, {
      enabled: false,
      scheduled: [
        { at: inHours(3), set: { rules: ONE_RULE, default: { variant: "off" } } },
        { at: inHours(1), set: { enabled: true } },
      ],
    });
    expect(saved.body).toEqual({ success: true, flag_key: "f", version: 1 });
    const { scheduled } = await definition(account);
    const by = { type: "key", key_id: null, key_name: null, user_id: account.userId, owner_id: null };
    const pending = { status: "pending", error: null, by };
    expect(scheduled).toEqual([
      { id: scheduled[0]?.id ?? "", at: inHours(1), set: { enabled: true }, ...pending },
      {
        id: scheduled[1]?.id ?? "",
        at: inHours(3),
        set: { rules: ONE_RULE, default: { variant: "off" } },
        ...pending,
      },
    ]);
    await server.clock.advance(HOUR_MS);
    expect(await definition(account)).toMatchObject({ enabled: true, version: 2, scheduled: [scheduled[1]] });
    await server.clock.advance(2 * HOUR_MS);
    expect(await definition(account)).toMatchObject({
      version: 3,
      default: { variant: "off" },
      rules: ONE_RULE,
      scheduled: [],
    });
    const { entries } = (await account.get("/v1/audit?target_type=flag&target_id=f")).body as {
      entries: Record<string, unknown>[];
    };
    expect(entries).toMatchObject([
      {
        action: "gate.save",
        summary: "Flag f 1 rule changed, as scheduled",
        actor: { type: "schedule", id: scheduled[1]?.id, by },
        project_id: expect.stringMatching(/^proj_/),
        ip: null,
      },
      {
        action: "gate.save",
        summary: "Flag f switched on, as scheduled",
        actor: { type: "schedule", id: scheduled[0]?.id, by },
        before: { enabled: false },
        after: { enabled: true },
      },
      { action: "gate.save", actor: { type: "key" } },
    ]);
    const found = await account.get("/v1/audit?actor=schedule");
    expect(found.body.entries).toHaveLength(2);
    expect((await account.get(`/v1/audit?actor=${account.userId}&target_id=f`)).body.entries).toHaveLength(3);
  });

  test("are replaced as a whole; equal ones stay, and omitted they are not changed", async () => {
    const account = await server.account();
    const first = { at: inHours(1), set: { enabled: false } };
    const second = { at: inHours(2), set: { enabled: true } };
    await save(account, { scheduled: [first, second] });
    const ids = (await definition(account)).scheduled.map(({ id }) => id);
    expect((await save(account, { scheduled: [second, first] })).body.version).toBe(1);
    // A response can be sent back.
    const { scheduled } = await definition(account);
    expect((await save(account, { scheduled })).body.version).toBe(1);
    await save(account, { tags: ["a"] });
    expect((await definition(account)).scheduled.map(({ id }) => id)).toEqual(ids);
    await save(account, { scheduled: [second, { at: inHours(3), set: { enabled: false } }] });
    const [kept, added] = (await definition(account)).scheduled;
    expect([kept?.id, added?.at]).toEqual([ids[1], inHours(3)]);
    expect(ids).not.toContain(added?.id);
    await save(account, { scheduled: null });
    expect((await definition(account)).scheduled).toEqual([]);
    await server.clock.advance(4 * HOUR_MS);
    expect(await definition(account)).toMatchObject({ enabled: true, tags: ["a"] });
  });

  test("are checked in their order: a later one may use what an earlier one adds", async () => {
    const account = await server.account();
    const variants = { on: true, off: false, other: true };
    const use = { at: inHours(2), set: { default: { variant: "other" } } };
    expect((await save(account, { scheduled: [use] })).status).toBe(400);
    expect((await save(account, { scheduled: [use, { at: inHours(1), set: { variants } }] })).status).toBe(
      201,
    );
    await server.clock.advance(2 * HOUR_MS);
    expect(await definition(account)).toMatchObject({ default: { variant: "other" }, scheduled: [] });
  });

  test("of the same time apply in the order of the list, and those that were missed in their order", async () => {
    const account = await server.account();
    const at = inHours(1);
    const set = (variant: string) => ({ default: { variant } });
    await save(account, {
      scheduled: [
        { at: inHours(2), set: { description: "last" } },
        { at, set: set("off") },
        { at, set: set("on") },
        { at, set: set("off") },
      ],
    });
    await server.halt();
    await server.clock.advance(5 * HOUR_MS);
    await server.start();
    await server.clock.advance(0);
    const again = server.client(account.key);
    const { body } = await again.get("/v1/gate/f/definition");
    expect(body).toMatchObject({
      default: { variant: "off" },
      description: "last",
      version: 5,
      scheduled: [],
    });
    const { entries } = (await again.get("/v1/audit?actor=schedule")).body as {
      entries: { after: object }[];
    };
    expect(entries.map(({ after }) => ({ ...after, scheduled: undefined })).reverse()).toEqual([
      { default: { variant: "off" } },
      { default: { variant: "on" } },
      { default: { variant: "off" } },
      { description: "last" },
    ] as never);
  });

  test("that no longer fit stay as failed with the reason, and a notice is sent", async () => {
    const sink = new WebhookSink();
    try {
      const account = await server.account({ balance: 100 });
      const url = sink.url("/notices");
      const event_types = ["ninefold.flag.schedule_failed"];
      expect((await account.post("/v1/relay/endpoints", { url, event_types })).status).toBe(201);
      await save(account, {
        variants: { on: true, off: false, blue: true },
        default: { variant: "on" },
        scheduled: [
          { at: inHours(1), set: { default: { variant: "blue" } } },
          { at: inHours(2), set: { enabled: false } },
        ],
      });
      await save(account, { variants: { on: true, off: false } });
      const at = inHours(1);
      await server.clock.advance(HOUR_MS);
      const error = "default must be the name of one of the flag's variants";
      const { scheduled, version } = await definition(account);
      expect([version, scheduled.length]).toEqual([2, 2]);
      expect(scheduled[0]).toMatchObject({ at, status: "failed", error });
      const [notice] = sink.received.map(({ body }) => JSON.parse(body));
      expect(notice).toMatchObject({
        type: "ninefold.flag.schedule_failed",
        data: { flag_key: "f", id: scheduled[0]?.id, at, error },
      });
      // Sent back it stays; the next one applies; left out it is gone.
      expect((await save(account, { scheduled })).body.version).toBe(2);
      await server.clock.advance(HOUR_MS);
      const after = await definition(account);
      expect(after).toMatchObject({ enabled: false, version: 3, scheduled: [scheduled[0]] });
      await save(account, { scheduled: [] });
      expect((await definition(account)).scheduled).toEqual([]);
    } finally {
      sink.stop();
    }
  });

  test("count in the bytes of the project's definitions, and in the price of a save", async () => {
    const account = await server.account({ balance: 10 });
    const values = Array.from({ length: 60 }, (_, index) => `${index}`.padStart(200, "0"));
    const rules = [{ when: [{ attribute: "a", op: "in", values }], serve: { variant: "on" } }];
    const balance = async () => Number((await account.get("/v1/meter/balance")).body.balance);
    await save(account, { scheduled: [{ at: inHours(1), set: { rules } }] });
    expect(await balance()).toBe(7);
    const bytes = server.server.kernel.db.number<[string]>(
      "SELECT bytes AS n FROM flag_projects WHERE project_ref = (SELECT p.ref FROM projects p JOIN accounts a ON a.ref = p.account_ref WHERE a.user_id = ?)",
    );
    const size = JSON.stringify({ rules }).length;
    expect(bytes(account.userId)).toBe(size);
    await server.clock.advance(HOUR_MS);
    expect((await definition(account)).rules).toEqual(rules);
    expect(await balance()).toBe(7);
    expect(bytes(account.userId)).toBe(size);
    await account.delete("/v1/gate/f");
    expect(bytes(account.userId)).toBe(0);
  });

  test("of a deleted flag, of a deleted project and of a suspended account do not apply", async () => {
    const { db } = server.server.kernel;
    const rows = () => db.number("SELECT count(*) AS n FROM flag_schedules")();
    const jobs = () => db.number("SELECT count(*) AS n FROM jobs WHERE kind = 'gate.schedule'")();
    const before = [rows(), jobs()];
    const account = await server.account();
    const scheduled = [{ at: inHours(1), set: { enabled: false } }];
    await save(account, { scheduled });
    await account.delete("/v1/gate/f");
    expect([rows(), jobs()]).toEqual(before);
    const project = await account.post("/v1/projects", { name: "Other" });
    const terms = { prefix: "sm", name: "k", scopes: ["*"] };
    const made = await account.post(`/v1/projects/${project.body.id}/keys`, terms);
    const other = server.client(String(made.body.secret));
    await other.post("/v1/gate", { flag_key: "f", enabled: true, scheduled });
    await account.delete(`/v1/projects/${project.body.id}`);
    await server.clock.advance(0);
    expect([rows(), jobs()]).toEqual(before);
    await save(account, { scheduled: [{ at: inHours(1), set: { enabled: false } }] });
    const path = `/v1/admin/accounts/${account.userId}`;
    await server.operator.patch(path, { suspended: true });
    await server.clock.advance(2 * HOUR_MS);
    await server.operator.patch(path, { suspended: false });
    expect((await definition(account)).enabled).toBe(true);
    await server.clock.advance(60_000);
    expect((await definition(account)).enabled).toBe(false);
  });

  test("notify streams of changes when they apply, not when they are scheduled", async () => {
    const account = await server.account({ balance: 10 });
    await save(account, {});
    const versions = async () => {
      const [project] = (await account.get("/v1/projects")).body.projects as { id: string }[];
      return server.server.kernel.db.all<{ version: number; public_version: number }, [string]>(
        "SELECT version, public_version FROM flag_projects f JOIN projects p ON p.ref = f.project_ref WHERE p.id = ?",
      )(project?.id ?? "");
    };
    await save(account, { scheduled: [{ at: inHours(1), set: { enabled: false } }] });
    expect(await versions()).toEqual([{ version: 2, public_version: 1 }]);
    await server.clock.advance(HOUR_MS);
    expect(await versions()).toEqual([{ version: 3, public_version: 3 }]);
  });
});

const PATH = "/v1/gate/f/scheduled/chg_known";

describe("DELETE /v1/gate/{flagKey}/scheduled/{id}", () => {
  endpoint(() => server, "DELETE /v1/gate/{flagKey}/scheduled/{id}", [
    {
      name: "an unknown flag",
      request: ["DELETE", "/v1/gate/f/scheduled/chg_1"],
      status: 404,
      code: "flag_not_found",
    },
    {
      name: "an unknown change",
      before: ({ account }) => save(account, {}),
      request: ["DELETE", "/v1/gate/f/scheduled/chg_1"],
      status: 404,
      code: "not_found",
    },
    {
      name: "no flag's key",
      request: ["DELETE", "/v1/gate/F/scheduled/x"],
      status: 400,
      code: "validation_error",
    },
    {
      name: "the change of a flag",
      before: async ({ account }) => {
        await save(account, { scheduled: [{ at: inHours(1), set: { enabled: false } }] });
        const { db } = server.server.kernel;
        db.execute(
          "UPDATE flag_schedules SET id = 'chg_known' WHERE flag_ref = (SELECT max(ref) FROM flags)",
        );
      },
      request: ["DELETE", PATH],
      status: 200,
      body: { success: true, flag_key: "f", version: 2 },
    },
    { name: "no key", as: "nobody", request: ["DELETE", PATH], status: 401, code: "unauthorized" },
    {
      name: "an Idempotency-Key used for another flag",
      headers: { "idempotency-key": "k" },
      before: ({ account }) => account.delete("/v1/gate/g", { headers: { "idempotency-key": "k" } }),
      request: ["DELETE", "/v1/gate/f/scheduled/chg_1"],
      status: 409,
      code: "conflict",
    },
  ]);

  test("one of two, with an entry of the audit log", async () => {
    const account = await server.account();
    await save(account, {
      scheduled: [
        { at: inHours(1), set: { enabled: false } },
        { at: inHours(2), set: { description: "later" } },
      ],
    });
    const [first, second] = (await definition(account)).scheduled;
    const cancelled = await account.delete(`/v1/gate/f/scheduled/${first?.id}`);
    expect([cancelled.status, cancelled.body]).toEqual([200, { success: true, flag_key: "f", version: 2 }]);
    expect((await definition(account)).scheduled).toEqual([second] as never);
    const { entries } = (await account.get("/v1/audit?action=gate.scheduled.cancel")).body as {
      entries: object[];
    };
    expect(entries).toMatchObject([
      {
        summary: "Flag f 1 change cancelled",
        before: {
          scheduled: [
            { at: first?.at, set: first?.set },
            { at: second?.at, set: second?.set },
          ],
        },
        after: { scheduled: [{ at: second?.at, set: second?.set }] },
      },
    ]);
    await server.clock.advance(3 * HOUR_MS);
    expect(await definition(account)).toMatchObject({ enabled: true, description: "later", scheduled: [] });
  });
});
