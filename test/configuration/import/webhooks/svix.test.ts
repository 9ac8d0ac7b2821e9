import { expect, setDefaultTimeout, test } from "bun:test";
import { importSvix } from "../../../../src/configuration/import/webhooks/svix.ts";
import { losses, useImports } from "../support.ts";

/** Busy machines take longer. */
setDefaultTimeout(60_000);

const imports = useImports();

const TIMES = { createdAt: "2030-01-05T10:00:00Z", updatedAt: "2030-02-01T08:30:00Z" };
const BILLING = {
  id: "ep_2bVjVcYcPZpZbQmDq0zUqGdQyXk",
  uid: "billing",
  url: "https://billing.example.com/hooks",
  description: "Billing",
  filterTypes: ["invoice.paid", "invoice.failed"],
  channels: ["eu"],
  disabled: true,
  throttleRate: 10,
  metadata: { team: "billing" },
  headers: { headers: { "X-Source": "svix" }, sensitive: ["Authorization"] },
  ...TIMES,
};
const PLAIN = {
  id: "ep_2bVjWw9KxwYb0Cq1fQ5rT3nM7aB",
  uid: null,
  url: "https://example.com/all",
  version: 1,
  description: "",
  filterTypes: null,
  channels: null,
  disabled: false,
  rateLimit: null,
  metadata: {},
  ...TIMES,
};
const page = (data: readonly unknown[]) => ({ data, done: true, iterator: null, prevIterator: null });

test("the endpoints of one application", async () => {
  const imported = imports.run((draft) => importSvix(draft, page([BILLING, PLAIN]), "acme"));
  const { endpoints } = Bun.YAML.parse(imported.text) as Record<string, Record<string, unknown>>;
  expect(endpoints).toEqual({
    billing: {
      url: "https://billing.example.com/hooks",
      description: "Billing",
      event_types: ["invoice.paid", "invoice.failed"],
      channels: ["eu"],
      max_per_second: 10,
      metadata: { team: "billing" },
      state: "paused",
      owner_id: "acme",
      format: "raw",
      headers: { "X-Source": "svix", Authorization: { env: "ENDPOINTS_BILLING_AUTHORIZATION" } },
      secret: { env: "ENDPOINTS_BILLING_SECRET" },
    },
    [PLAIN.id]: {
      url: "https://example.com/all",
      owner_id: "acme",
      format: "raw",
      secret: { env: "ENDPOINTS_EP_2BVJWW9KXWYB0CQ1FQ5RT3NM7AB_SECRET" },
    },
  });
  expect(losses(imported)).toEqual([]);
  expect(imported.notes).toContain(
    "endpoint billing: secret: is a secret: set the environment variable ENDPOINTS_BILLING_SECRET to it",
  );
  const [before, after] = await imports.apply(imported.text);
  expect(before).toHaveLength(2);
  expect(after).toEqual([]);
});

test("all applications: owners by uid, event types, equal names get different keys", () => {
  const whole = {
    applications: page([
      { id: "app_1", uid: "acme", name: "Acme", metadata: {}, rateLimit: null, ...TIMES },
      { id: "app_2", uid: null, name: "Beta", metadata: { plan: "pro" }, rateLimit: 5, ...TIMES },
    ]),
    endpoints: { app_1: page([BILLING]), app_2: [BILLING] },
    event_types: page([
      {
        name: "invoice.paid",
        description: "An invoice",
        schemas: {},
        archived: false,
        deprecated: false,
        ...TIMES,
      },
    ]),
  };
  const imported = imports.run((draft) => importSvix(draft, whole, null));
  expect(imported.text).toContain("owner_id: acme");
  expect(imported.text).toContain("owner_id: app_2");
  expect(imported.text).toContain("invoice.paid:\n    description: An invoice");
  expect(losses(imported)).toEqual([
    "application app_2: metadata: not carried over",
    "application app_2: rateLimit: not carried over",
    "endpoint billing: name is billing 2 in endpoints",
  ]);
});

test("event types: the newest schema, without expressions", async () => {
  const schema = (version: string) => ({
    $schema: "http://json-schema.org/draft-07/schema#",
    title: version,
    type: "object",
    properties: { id: { type: "string", pattern: "^in_" } },
    required: ["id"],
    examples: [{ id: "in_1042" }],
  });
  const type = { description: "Paid.", archived: false, deprecated: false, featureFlags: null, ...TIMES };
  const imported = imports.run((draft) =>
    importSvix(
      draft,
      {
        endpoints: page([]),
        event_types: page([
          {
            ...type,
            name: "invoice.paid",
            schemas: { "2": schema("2"), "10": schema("10") },
            groupName: "invoice",
          },
          { ...type, name: "invoice.void", schemas: null, deprecated: true },
          { ...type, name: "invoice.old", schemas: null, archived: true, deprecated: true },
        ]),
      },
      null,
    ),
  );
  const { event_types: types } = Bun.YAML.parse(imported.text) as Record<string, Record<string, unknown>>;
  expect(types).toEqual({
    "invoice.paid": {
      description: "Paid.",
      schema: {
        title: "10",
        type: "object",
        properties: { id: { type: "string" } },
        required: ["id"],
        examples: [{ id: "in_1042" }],
      },
      example: { id: "in_1042" },
    },
    "invoice.void": { description: "Paid." },
    "invoice.old": { description: "Paid.", archived: true },
  });
  expect(losses(imported)).toEqual([
    "event type invoice.paid: schemas: only version 10, the newest, is carried over",
    "event type invoice.paid: groupName: not carried over",
    "event type invoice.paid: schema: pattern are not carried over: the rest of the schema is",
    "event type invoice.void: deprecated is not shown to customers: archive the type instead",
  ]);
  const [, after] = await imports.apply(imported.text);
  expect(after).toEqual([]);
});

test("an endpoint with a private key signs with it", () => {
  const key = Buffer.alloc(64, 7);
  const secret = { key: `whsk_${key.toString("base64")}` };
  const draft = imports.draft((draft) => importSvix(draft, page([{ ...PLAIN, secret }]), null));
  expect(draft.text()).toContain("signature:\n      scheme: ed25519");
  expect(draft.environment).toContain(`=whsk_${key.subarray(0, 32).toString("base64")}\n`);
});

test("a secret in the file is not printed, and further pages are noted", () => {
  const own = { ...PLAIN, secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" };
  const imported = imports.run((draft) => importSvix(draft, { ...page([own]), done: false }, null));
  expect(imported.text + imported.notes.join()).not.toContain("MfKQ9r8");
  expect(losses(imported)[0]).toContain("there are further pages");
});

test("the members that other requests return; the rate of earlier versions", () => {
  const key = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const transformation = { code: "function handler() {}", enabled: true };
  const imported = imports.run((draft) =>
    importSvix(draft, page([{ ...PLAIN, rateLimit: 7, secret: { key }, transformation }]), null),
  );
  expect(imported.text).toContain("max_per_second: 7");
  expect(imported.text + imported.notes.join()).not.toContain(key);
  expect(losses(imported)).toEqual([`endpoint ${PLAIN.id}: transformation: not carried over`]);
});

test.each([
  [{}, 'must be a list, or {"data": […]}'],
  ["x", 'must be a list, or {"data": […]}'],
  [[7], "endpoint must be an object."],
  [[{ uid: "a", filterTypes: [1] }], "endpoint a: filterTypes must be a list of texts."],
  [[{ uid: "a", metadata: { b: 1 } }], "endpoint a: metadata must be texts by name."],
])("%j is rejected", (value, message) => {
  expect(() => imports.run((draft) => importSvix(draft, value, null))).toThrow(message);
});
