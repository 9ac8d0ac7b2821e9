import { describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import {
  renderTemplate,
  TEMPLATE_BODY_BYTES_MAX,
  TEMPLATE_BYTES_MAX,
  TEMPLATE_LEVELS_MAX,
} from "../../../../src/areas/relay/endpoints/template.ts";
import { expectError } from "../../../support/errors.ts";
import { customerOf, OWNER } from "../../../support/portal.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import { endpoint, type Scenario } from "../../../support/scenario.ts";
import { ingest, newBucket, setState } from "../../catch/support.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage({ NINEFOLD_RELAY_PAYLOAD_RETENTION_HOURS: "1" });

const PATH = "/v1/relay/endpoints";
const TIME = Date.parse("2026-03-10T12:00:00Z");
const bodies = () => stage.sink.take().map(({ body }) => body);

/** Renders a template, both given as JSON texts. */
async function rendered(template: string, json: string | null): Promise<string | null> {
  const source = { id: "msg_1", type: "order.paid", timestamp: TIME, json };
  const body = await renderTemplate(template, source);
  return body && Buffer.from(body).toString("utf8");
}

describe("a template", () => {
  const DATA =
    '{"id":"o_1","n":12345678901234567890,"list":[{"a":1},null,false],"__proto__":{"x":1},"a/b~c":"é","":0}';
  const CASES: readonly (readonly [name: string, template: string, result: string, json?: string | null])[] =
    [
      ["constants", '{"a":[1,"x",null,true,{}]}', '{"a":[1,"x",null,true,{}]}'],
      [
        "values",
        '{"a":{"$":"/data/id"},"b":[{"$":"/data/list/0/a"},{"$":"/data/list/2"}]}',
        '{"a":"o_1","b":[1,false]}',
      ],
      [
        "the parts",
        '[{"$":"/id"},{"$":"/type"},{"$":"/timestamp"}]',
        '["msg_1","order.paid","2026-03-10T12:00:00.000Z"]',
      ],
      ["the whole payload", '{"$":"/data"}', DATA],
      [
        "the root",
        '{"$":""}',
        '{"id":"msg_1","type":"order.paid","timestamp":"2026-03-10T12:00:00.000Z","data":{"a":1}}',
        '{"a":1}',
      ],
      [
        "digits of values and constants",
        '[{"$":"/data/n"},98765432109876543210,1.50]',
        "[12345678901234567890,98765432109876543210,1.5]",
      ],
      [
        "__proto__",
        '{"__proto__":{"$":"/data/__proto__/x"},"y":{"$":"/data/__proto__"}}',
        '{"__proto__":1,"y":{"x":1}}',
      ],
      ["escapes of pointers, and an empty name", '[{"$":"/data/a~1b~0c"},{"$":"/data/"}]', '["é",0]'],
      ["a missing member", '{"a":{"$":"/data/none"},"b":1}', '{"b":1}'],
      ["a missing item", '[{"$":"/data/none"},1]', "[null,1]"],
      ["null is not missing", '{"a":{"$":"/data/list/1","default":2}}', '{"a":null}'],
      [
        "defaults",
        '{"a":{"$":"/data/none","default":{"b":[1]}},"c":{"$":"/x","default":null}}',
        '{"a":{"b":[1]},"c":null}',
      ],
      ["all is missing", '{"$":"/data/none"}', "null"],
      [
        "no length, no index beyond or with zeros",
        '[{"$":"/data/list/length"},{"$":"/data/list/3"},{"$":"/data/list/00"},{"$":"/data/list/-1"}]',
        "[null,null,null,null]",
      ],
      [
        "of members with one name the last counts",
        '[{"$":"/data/a/b"},{"$":"/data/a"}]',
        "[null,2]",
        '{"a":{"b":1},"a":2}',
      ],
      [
        "a member below the last",
        '[{"$":"/data/a/b"},{"$":"/data/a/c"}]',
        "[null,3]",
        '{"a":{"b":1},"a":{"c":3}}',
      ],
      [
        "blanks and escapes in the text",
        '[{"$":"/data/a"},{"$":"/data/b/0"}]',
        '["x\\"}",{"c" : 1}]',
        ' { "\\u0061" : "x\\"}" , "b" : [ {"c" : 1} , 2 ] } ',
      ],
      ["no JSON", '{"a":{"$":"/data"},"b":{"$":"/id"}}', '{"b":"msg_1"}', null],
      ["a text", '{"a":{"$":"/data"},"b":{"$":"/data/0"}}', '{"a":"x"}', '"x"'],
      [
        "literals",
        '[{"$":"/data/0"},{"$":"/data/1"},{"$":"/data/2"},{"$":"/data/3"}]',
        "[true,false,null,-1.5e3]",
        "[true,false,null,-1.5e3]",
      ],
    ];
  test.each(CASES)("%s", async (_, template, result, json = DATA) => {
    expect(await rendered(template, json)).toBe(result);
  });

  test("makes a body of up to 1 MiB, and none beyond", async () => {
    const fitting = JSON.stringify({ a: "x".repeat(TEMPLATE_BODY_BYTES_MAX - 4) });
    const template = '[{"$":"/data/a"}]';
    expect((await rendered(template, fitting))?.length).toBe(TEMPLATE_BODY_BYTES_MAX);
    expect(await rendered(template, fitting.replace("x", "xx"))).toBeNull();
    const multibyte = JSON.stringify({ a: "é".repeat(TEMPLATE_BODY_BYTES_MAX / 2) });
    expect(await rendered(template, multibyte)).toBeNull();
    const often = JSON.stringify(Array(500).fill({ $: "/data" }));
    expect(await rendered(often, fitting)).toBeNull();
  });

  test("does not hold up others for a payload of 1 MiB, nor for members that are repeated", async () => {
    const many = JSON.stringify({ a: Array.from({ length: 150_000 }, (_, n) => n) });
    const repeated = `{${Array(80_000).fill('"a":{"b":1}').join(",")}}`;
    const paths = JSON.stringify(Array.from({ length: 400 }, (_, n) => ({ $: `/data/a/${n}/x` })));
    for (const json of [many, repeated])
      expect(await leastMs(TURN_MS_MAX, () => longestTurnMs(() => rendered(paths, json)))).toBeLessThan(
        TURN_MS_MAX,
      );
  });
});

describe("an endpoint with a template", () => {
  const TEMPLATE = {
    order: { $: "/data/id" },
    type: { $: "/type" },
    note: { $: "/data/note", default: "–" },
  };

  test("receives its result, which is signed, shown and searched; format is ignored", async () => {
    const { body: made } = await stage.account.post(PATH, {
      url: stage.sink.url("/a"),
      template: TEMPLATE,
      format: "raw",
    });
    expect(made["template"]).toEqual(TEMPLATE);
    const id = String(made["endpoint_id"]);
    const sent = (await messaging.send({ id: "o_7" }))[id] ?? "";
    const wanted = '{"order":"o_7","type":"invoice.paid","note":"–"}';
    expect((await stage.account.get(`/v1/relay/${sent}/body`)).body["body"]).toBe(wanted);
    await messaging.settle();
    const [request] = stage.sink.take();
    expect(request?.body).toBe(wanted);
    expect(request?.headers.get("content-type")).toBe("application/json");
    const at = new Date(1_000 * Number(request?.headers.get("webhook-timestamp")));
    const signed = new Webhook(String(made["secret"])).sign(
      request?.headers.get("webhook-id") ?? "",
      at,
      wanted,
    );
    expect(request?.headers.get("webhook-signature")).toBe(signed);
    expect(await stage.listed("q=%22order%22")).toEqual([sent]);
  });

  test("keeps the bytes of a delivery, whatever its template becomes, also over a restart", async () => {
    const id = await messaging.endpoint("/a", { template: TEMPLATE, retry_schedule: ["10s"] });
    stage.sink.answersBy(() => 500);
    await messaging.send({ id: "o_7" });
    await messaging.settle();
    const first = bodies();
    expect(first.length).toBe(1);
    await messaging.patch(id, { template: { other: 1 } });
    await stage.restart();
    stage.sink.answersBy(() => 200);
    await stage.server.clock.advance(12_000);
    expect(bodies()).toEqual(first);
    await messaging.send({ id: "o_7" });
    await messaging.settle();
    expect(bodies()).toEqual(['{"other":1}']);
    await messaging.patch(id, { template: null, format: "raw" });
    await messaging.send({ id: "o_7" });
    await messaging.settle();
    expect(bodies()).toEqual(['{"id":"o_7"}']);
  });

  test("receives the digits of its numbers, and __proto__", async () => {
    const template = '{"n":12345678901234567890,"__proto__":{"$":"/data/n"}}';
    const made = await stage.account.post(PATH, `{"url":"${stage.sink.url("/a")}","template":${template}}`);
    expect(made.status, made.text).toBe(201);
    expect(made.text).toContain(`"template":${template}`);
    await stage.restart();
    await stage.account.post(
      "/v1/relay/messages",
      '{"event_type":"a","payload":{"n":1.00000000000000000001}}',
    );
    await messaging.settle();
    expect(bodies()).toEqual(['{"n":12345678901234567890,"__proto__":1.00000000000000000001}']);
  });

  test("of a bucket receives events of any type, as JSON", async () => {
    const endpoint_id = await messaging.endpoint("/a", {
      template: { a: { $: "/data/a" }, id: { $: "/id" } },
    });
    const { id } = await newBucket(stage.account, { targets: [{ endpoint_id }], target_url: null });
    await setState(stage.account, id, "live");
    const { event_id } = await ingest(stage.server, id, '{"a": 1}');
    const form = await ingest(stage.server, id, "a=1", {
      "content-type": "application/x-www-form-urlencoded",
    });
    await messaging.settle();
    const taken = stage.sink.take();
    expect(taken.map(({ body }) => body).sort()).toEqual(
      [`{"a":1,"id":"${event_id}"}`, `{"id":"${form.event_id}"}`].sort(),
    );
    for (const { headers } of taken) expect(headers.get("content-type")).toBe("application/json");
  });

  test("fails a delivery whose result is above 1 MiB, without an attempt, and sends the next one", async () => {
    const twice = { a: { $: "/data" }, b: { $: "/data" } };
    const id = await messaging.endpoint("/a", { template: twice, max_concurrency: 1 });
    const sent = (await messaging.send({ text: "x".repeat(600_000) }))[id] ?? "";
    await messaging.send({ n: 1 });
    await messaging.settle();
    expect(await stage.read(sent)).toMatchObject({
      status: "failed",
      attempts: 0,
      error: "the body that the template makes is above 1 MiB",
    });
    expect(bodies()).toEqual(['{"a":{"n":1},"b":{"n":1}}']);
  });

  test("is shown in the portal, which does not change it", async () => {
    await stage.account.post(PATH, { url: stage.sink.url("/a"), template: TEMPLATE, owner_id: OWNER });
    const customer = await customerOf(stage.server, stage.account);
    const { body } = await customer.get("/v1/relay/portal/endpoints");
    const [shown] = body["endpoints"] as { endpoint_id: string }[];
    expect(shown).toMatchObject({ template: TEMPLATE, signature: null, order_by: null });
    const path = `/v1/relay/portal/endpoints/${shown?.endpoint_id}`;
    const changed = await customer.patch(path, { template: null, description: "x" });
    expect(changed.status, changed.text).toBe(200);
    expect(changed.body["template"]).toEqual(TEMPLATE);
  });
});

describe("rejected with 400", () => {
  const deep = (levels: number): object => (levels === 1 ? {} : [deep(levels - 1)]);
  const cases: readonly (readonly [name: string, template: unknown, field: string])[] = [
    ["a text", "x", "template"],
    ["a number for a pointer", { a: { $: 1 } }, "template.a.$"],
    ["a pointer without a slash", { a: [{ $: "data" }] }, "template.a.0.$"],
    ["a pointer with a wrong escape", { $: "/a~2" }, "template.$"],
    ["another member", { a: { $: "/data", b: 1 } }, "template.a.b"],
    ["a reference as default", { a: { $: "/data", default: [{ $: "/id" }] } }, "template.a.default"],
    ["too many levels", deep(TEMPLATE_LEVELS_MAX + 1), "template"],
    ["too long", { a: "x".repeat(TEMPLATE_BYTES_MAX) }, "template"],
  ];
  test.each(cases)("%s", async (_, template, field) => {
    const id = await messaging.endpoint("/a");
    const preview = { event_type: "a", payload: {}, template };
    for (const answer of [
      await stage.account.post(PATH, { url: "https://example.com/", template }),
      await stage.account.patch(`${PATH}/${id}`, { template }),
      await stage.account.post(`${PATH}/${id}/preview`, preview),
    ]) {
      expectError(answer, "validation_error");
      expect(Object.keys(answer.body["fields"] as object)).toEqual([field]);
    }
  });

  test("but the deepest and the longest are accepted", async () => {
    const longest = { a: "x".repeat(TEMPLATE_BYTES_MAX - '{"a":""}'.length) };
    for (const template of [deep(TEMPLATE_LEVELS_MAX), longest])
      expect((await stage.account.post(PATH, { url: "https://example.com/", template })).status).toBe(201);
  });
});

describe("POST /v1/relay/endpoints/{endpoint_id}/preview", () => {
  const NOBODYS = "ep_01a1fc2c30c071d9bf080e3cb4a7b202";
  const GIVEN = { event_type: "order.paid", payload: { id: "o_1" } };
  let id = NOBODYS;
  /** On an endpoint with a template. */
  const preview = (scenario: Omit<Scenario, "request">, body: object): Scenario => ({
    ...scenario,
    before: async (world) => {
      const terms = { url: stage.sink.url("/a"), template: { order: { $: "/data/id" } } };
      id = String((await world.account.post(PATH, terms)).body["endpoint_id"]);
      await scenario.before?.(world);
    },
    get request(): Scenario["request"] {
      return ["POST", `${PATH}/${id}/preview`, body];
    },
  });
  const rejected = (name: string, body: object, field: string): Scenario =>
    preview(
      {
        name,
        status: 400,
        code: "validation_error",
        after: (_, { body: error }) => expect(Object.keys(error["fields"] as object)).toEqual([field]),
      },
      body,
    );
  endpoint(() => stage.server, "POST /v1/relay/endpoints/{endpoint_id}/preview", [
    preview({ name: "a payload", status: 200, holds: { body: '{"order":"o_1"}' } }, GIVEN),
    preview(
      { name: "another template", status: 200, holds: { body: '["order.paid"]' } },
      { ...GIVEN, template: [{ $: "/type" }] },
    ),
    preview(
      {
        name: "no template: the format",
        status: 200,
        after: (_, { body }) =>
          expect(JSON.parse(String(body["body"]))).toMatchObject({ type: "order.paid", data: { id: "o_1" } }),
      },
      { ...GIVEN, template: null },
    ),
    preview(
      {
        name: "a message",
        status: 200,
        holds: { body: '{"order":"o_2"}' },
        before: ({ account }) =>
          account.post("/v1/relay/messages", { event_type: "a", payload: { id: "o_2" }, message_id: "m-2" }),
      },
      { message_id: "m-2" },
    ),
    preview({ name: "free", account: { balance: 0 }, status: 200, code: "" }, GIVEN),
    {
      name: "no key",
      as: "nobody",
      status: 401,
      code: "unauthorized",
      request: ["POST", `${PATH}/${NOBODYS}/preview`, GIVEN],
    },
    {
      name: "an unknown endpoint",
      status: 404,
      code: "not_found",
      request: ["POST", `${PATH}/${NOBODYS}/preview`, GIVEN],
    },
    preview({ name: "an unknown message", status: 404, code: "not_found" }, { message_id: "m-3" }),
    preview(
      {
        name: "a message whose payload is deleted",
        status: 409,
        code: "conflict",
        before: async ({ account }) => {
          await account.post("/v1/relay/messages", { event_type: "a", payload: {}, message_id: "m-4" });
          await messaging.settle();
          await stage.server.clock.advance(3 * 3_600_000);
        },
      },
      { message_id: "m-4" },
    ),
    rejected("nothing", {}, "event_type"),
    rejected("no payload", { event_type: "a" }, "payload"),
    rejected("both", { ...GIVEN, message_id: "m" }, "message_id"),
    rejected(
      "a result above 1 MiB",
      { ...GIVEN, payload: { id: "x".repeat(600_000) }, template: [{ $: "/data" }, { $: "/data" }] },
      "template",
    ),
  ]);
});
