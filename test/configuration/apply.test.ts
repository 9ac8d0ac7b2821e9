import { beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { ALIASES_MAX, DEPTH_MAX } from "../../src/configuration/document.ts";
import { processorMs } from "../support/processor-time.ts";
import { type AccountClient, useTestServer } from "../support/server.ts";
import { CLIENT, Configured } from "./support.ts";

/** Some tests send hundreds of requests; busy machines take longer. */
setDefaultTimeout(60_000);

const server = useTestServer({ manualClock: true, args: ["--allow-private-targets", "all"] });
let account: AccountClient;
let configured: Configured;
beforeEach(async () => {
  account = await server.account({ tier: "unlimited" });
  configured = new Configured(server, account.key ?? "");
});

/** One resource of each kind that refers to others, and the resources that they refer to. */
const slug = () => `page-${crypto.randomUUID().slice(0, 8)}`;
const fileWith = (page: string) => `ninefold: 1
project: default
flags:
  new-checkout: { enabled: true, description: "The new one" }
channels:
  ops: { kind: slack, url: { env: SLACK_URL } }
monitors:
  website: { url: https://example.com/, interval: 60000, channels: [ops], depends_on: base, headers: { Authorization: { env: A } } }
  base: { url: https://example.com/base, interval: 60000 }
status_pages:
  ${page}: { title: Shop, monitors: [website, base] }
endpoints:
  billing: { url: https://example.com/hooks, secret: { env: WHSEC } }
buckets:
  in: { targets: [{ endpoint: billing }], state: live }
schedules:
  nightly: { cron: "0 3 * * *", target_url: https://example.com/, payload: { env: prod } }
maintenance:
  Move: { schedule: "0 3 * * 0", duration_ms: 3600000, monitors: [website] }
`;

test("apply creates what is missing, in order; a second run changes nothing", async () => {
  const text = fileWith(slug());
  const steps = await configured.lines(text);
  expect(steps.map((line) => line.split(".")[0])).toEqual([
    "create flags",
    "create channels",
    "create endpoints",
    "create buckets",
    // Its dependencies come first.
    "create monitors",
    "create monitors",
    "create maintenance",
    "create status_pages",
    "create schedules",
  ]);
  await configured.apply(text);
  expect(await configured.lines(text)).toEqual([]);
  const { body } = await account.get("/v1/pulse");
  const monitors = body["monitors"] as { name: string; managed_by: string; depends_on: string | null }[];
  expect(monitors.map(({ managed_by }) => managed_by)).toEqual(["apply", "apply"]);
  expect(monitors.find(({ name }) => name === "website")?.depends_on).not.toBeNull();
  const [bucket] = (await account.get("/v1/catch/buckets")).body["buckets"] as { state: string }[];
  expect(bucket?.state).toBe("live");
});

test("apply that ends at any step is continued by the next run", async () => {
  const text = fileWith(slug());
  const stop = new Error("killed");
  for (let steps = (await configured.plan(text)).length; steps > 0; steps -= 1) {
    const interrupted = configured.apply(text, false, () => {
      throw stop;
    });
    expect(await interrupted.catch((error: unknown) => error)).toBe(stop);
    expect(await configured.plan(text)).toHaveLength(steps - 1);
  }
});

test("a changed line is one change; secrets are compared by their digests", async () => {
  const text = fileWith(slug());
  await configured.apply(text);
  expect(await configured.lines(text.replace("The new one", "Newer"))).toEqual([
    "change flags.new-checkout description",
  ]);
  expect(await configured.lines(text.replace("{ env: A }", "{ env: B_URL }"))).toEqual([
    "change monitors.website headers",
  ]);
  const rotated = text.replace("secret: { env: WHSEC }", "secret: { env: OTHER_TOKEN }");
  const [step] = await configured.plan(rotated);
  expect(step?.fields).toEqual([{ field: "secret", old: "(sensitive)", new: "(sensitive)" }]);
  const moved = text.replace("interval: 60000, channels", "interval: 90000, channels");
  await configured.apply(moved);
  expect(await configured.lines(moved)).toEqual([]);
});

test("a changed URL is sent with the unchanged secrets that are sent there", async () => {
  const text = `ninefold: 1
endpoints:
  billing: { url: "https://a.example.com/", headers: { Authorization: { env: A } }, secret: { env: WHSEC } }
monitors:
  website: { url: "https://a.example.com/", interval: 60000, headers: { Authorization: { env: A } } }
  secured:
    url: "https://a.example.com/"
    interval: 60000
    tls_client_certificate: ${JSON.stringify(CLIENT.cert)}
    tls_client_key: { env: TLS_CLIENT_KEY }
schedules:
  nightly: { cron: "0 3 * * *", target_url: "https://a.example.com/", headers: { Authorization: { env: A } } }
`;
  const scopes = ["relay:*", "pulse:*", "projects:read", "catch:*"];
  const { body } = await account.post("/v1/keys", { prefix: "sm", name: "deploy", scopes });
  const narrow = new Configured(server, String(body["secret"]));
  await narrow.apply(text);
  const moved = text.replaceAll("a.example.com", "b.example.com");
  expect(await narrow.lines(moved)).toEqual([
    "change endpoints.billing url",
    "change monitors.website url",
    "change monitors.secured url",
    "change schedules.nightly target_url",
  ]);
  await narrow.apply(moved);
  expect(await narrow.lines(moved)).toEqual([]);
  const without = moved
    .replaceAll("b.example.com", "c.example.com")
    .replace(", headers: { Authorization: { env: A } }, secret", ", secret");
  await expect(narrow.apply(without)).rejects.toThrow("Send headers again with the new url");
});

test("a split without a hash has the default one", async () => {
  const text = `ninefold: 1
flags:
  rollout:
    enabled: true
    type: boolean
    rules:
      - when: [{ attribute: country, op: in, values: [DE] }]
        serve: { split: [{ variant: "on", weight: 1 }, { variant: "off", weight: 1 }] }
    default: { split: [{ variant: "on", weight: 1 }, { variant: "off", weight: 9 }] }
`;
  await configured.apply(text);
  expect(await configured.lines(text)).toEqual([]);
  expect(await configured.lines(text.replace("weight: 9", "weight: 8"))).toEqual([
    "change flags.rollout default",
  ]);
});

test("what exists is adopted: changed, and never pruned; what apply has created is", async () => {
  await account.post("/v1/gate", { flag_key: "by-hand", enabled: false });
  await account.post("/v1/gate", { flag_key: "unnamed-in-the-file", enabled: false });
  const text = "ninefold: 1\nflags:\n  by-hand: { enabled: true }\n  by-file: { enabled: true }\n";
  expect(await configured.lines(text)).toEqual(["change flags.by-hand enabled", "create flags.by-file"]);
  await configured.apply(text);
  const empty = "ninefold: 1\n";
  expect(await configured.lines(empty)).toEqual([]);
  expect(await configured.lines(empty, true)).toEqual(["delete flags.by-file"]);
  await configured.apply(empty, true);
  expect(await configured.lines(empty, true)).toEqual([]);
  const { flags } = (await account.get("/v1/gate")).body as { flags: string[] };
  expect(flags.sort()).toEqual(["by-hand", "unnamed-in-the-file"]);
});

describe("event types, which a PUT creates and replaces", () => {
  const PATH = "/v1/relay/event-types";
  const file = (fields: string) => `ninefold: 1\nevent_types:\n  invoice.paid: { ${fields} }\n`;
  const shown = async () => (await account.get(`${PATH}/invoice.paid`)).body;

  test("a change keeps what the file omits, and the mark", async () => {
    await configured.apply(file("description: Paid, example: { amount: 1.5 }, enforce: true"));
    expect(await shown()).toMatchObject({ description: "Paid", enforce: true, managed_by: "apply" });
    const text = file("schema: { type: object, required: [amount] }");
    expect(await configured.lines(text)).toEqual(["change event_types.invoice.paid schema"]);
    await configured.apply(text);
    expect(await shown()).toMatchObject({
      description: "Paid",
      example: { amount: 1.5 },
      enforce: true,
      schema: { required: ["amount"] },
      managed_by: "apply",
    });
    await account.send("PUT", `${PATH}/invoice.paid`, { description: "By hand" });
    expect(await shown()).toMatchObject({ description: "By hand", managed_by: "apply" });
  });

  test("archived in the file archives, and without it the type comes back", async () => {
    const archived = file("description: Old, archived: true");
    await configured.apply(archived);
    expect(await shown()).toMatchObject({ description: "Old", archived: true });
    expect(await configured.lines(archived)).toEqual([]);
    const changed = file("description: Older, archived: true");
    await configured.apply(changed);
    expect(await shown()).toMatchObject({ description: "Older", archived: true });
    const back = file("description: Older");
    expect(await configured.lines(back)).toEqual(["change event_types.invoice.paid archived"]);
    await configured.apply(back);
    expect(await shown()).toMatchObject({ description: "Older", archived: false });
    await configured.apply(changed);
    expect(await shown()).toMatchObject({ archived: true });
    expect(await configured.export()).toContain(
      "event_types:\n  invoice.paid:\n    description: Older\n    archived: true\n",
    );
  });

  test("prune archives once, and only what apply has created", async () => {
    await account.send("PUT", `${PATH}/by.hand`, {});
    await configured.apply(file("enforce: true"));
    const empty = "ninefold: 1\n";
    expect(await configured.lines(empty)).toEqual([]);
    expect(await configured.lines(empty, true)).toEqual(["delete event_types.invoice.paid"]);
    await configured.apply(empty, true);
    expect(await shown()).toMatchObject({ archived: true });
    expect(await configured.lines(empty, true)).toEqual([]);
  });

  test.each([
    ["ninefold.x: {}", "name must not start with ninefold."],
    ["'a b': {}", "name must be"],
    ["a: { schema: { pattern: x } }", "schema"],
    ["a: { archived: soon }", "archived must be"],
    ["a: { renamed_from: b }", "the name of one of event_types cannot change"],
  ])("%s is a mistake of the file", (line, message) => {
    expect(() => configured.read(`ninefold: 1\nevent_types:\n  ${line}\n`)).toThrow(message);
  });
});

describe("roles of keys, which a PUT creates and replaces", () => {
  const shown = async () => (await account.get("/v1/keys/roles/editor")).body;
  const file = (fields: string) => `ninefold: 1\nroles:\n  editor: { ${fields} }\n`;

  test("a change keeps what the file omits, and the mark", async () => {
    await configured.apply(file("description: Writes, permissions: [a.read]"));
    const text = file("permissions: [a.write]");
    expect(await configured.lines(text)).toEqual(["change roles.editor permissions"]);
    await configured.apply(text);
    expect(await configured.lines(text)).toEqual([]);
    expect(await shown()).toMatchObject({
      description: "Writes",
      permissions: ["a.write"],
      managed_by: "apply",
    });
  });

  test("prune deletes what apply has created, after the keys that have it, and nothing that other keys have", async () => {
    await account.put("/v1/keys/roles/by-hand", { permissions: [] });
    const text = `${file("permissions: [a.read]")}keys:\n  shop: { prefix: shop, scopes: [x], roles: [editor] }\n`;
    expect(await configured.lines(text)).toEqual(["create roles.editor", "create keys.shop"]);
    await configured.apply(text);
    expect(await configured.lines(text)).toEqual([]);
    const empty = "ninefold: 1\n";
    expect(await configured.lines(empty)).toEqual([]);
    expect(await configured.lines(empty, true)).toEqual(["delete keys.shop", "delete roles.editor"]);
    const terms = { prefix: "acme", name: "other", scopes: ["x"], roles: ["editor"] };
    const { body } = await account.post("/v1/keys", terms);
    await expect(configured.apply(empty, true)).rejects.toThrow("The role editor is in use");
    await account.delete(`/v1/keys/${body["key_id"]}`);
    await configured.apply(empty, true);
    expect(await configured.lines(empty, true)).toEqual([]);
    const { roles } = (await account.get("/v1/keys/roles")).body as { roles: { name: string }[] };
    expect(roles.map(({ name }) => name)).toEqual(["by-hand"]);
  });
});

test("deletions run in reverse order, so that nothing is in use", async () => {
  const text = fileWith(slug());
  await configured.apply(text);
  await configured.apply("ninefold: 1\n", true);
  for (const [path, key] of [
    ["/v1/relay/endpoints", "endpoints"],
    ["/v1/catch/buckets", "buckets"],
    ["/v1/pulse/channels", "channels"],
  ] as const)
    expect((await account.get(path)).body[key]).toEqual([]);
});

test("several projects: missing ones are created, each with resources of its own", async () => {
  const text = `ninefold: 1
project: shop
name: Shop
flags: { a: { enabled: true } }
---
project: blog
description: Texts
flags: { a: { enabled: false } }
`;
  expect(await configured.lines(text)).toEqual([
    "create project.shop",
    "create flags.a",
    "create project.blog",
    "create flags.a",
  ]);
  await configured.apply(text);
  expect(await configured.lines(text)).toEqual([]);
  expect(await configured.lines(text.replace("Texts", "Posts"))).toEqual(["change project.blog description"]);
  expect(await configured.export("shop")).toBe(
    "ninefold: 1\nproject: shop\nname: Shop\nflags:\n  a:\n    enabled: true\n",
  );
});

test("a field that cannot be changed is an error that says so", async () => {
  const file = (kind: string) =>
    `ninefold: 1\nchannels:\n  ops: { kind: ${kind}, url: { env: SLACK_URL } }\n`;
  await configured.apply(file("slack"));
  expect(configured.plan(file("discord"))).rejects.toThrow(
    "f.yaml:3:16: kind of channels.ops cannot be changed: use another name, or delete the resource first",
  );
});

test.each([
  [
    "monitors",
    "nightly: { type: heartbeat }",
    "nightly: { url: https://example.com, interval: 60000 }",
    "type",
  ],
  [
    "endpoints",
    "shop: { url: https://example.com }",
    "shop: { url: https://example.com, owner_id: a }",
    "owner_id",
  ],
])(
  "%s: a field that changes accept, but cannot change, is an error of the plan",
  async (section, before, after, field) => {
    const file = (line: string) => `ninefold: 1\n${section}:\n  ${line}\n`;
    await configured.apply(file(before));
    expect(await configured.lines(file(before))).toEqual([]);
    expect(configured.plan(file(after))).rejects.toThrow(`${field} of ${section}.`);
  },
);

test("two monitors with one slug are an error of the plan, in the file and with one on the server", async () => {
  const file = (...lines: string[]) =>
    `ninefold: 1\nmonitors:\n${lines.map((line) => `  ${line}\n`).join("")}`;
  const [a, b] = ["a: { type: heartbeat, slug: nightly }", "b: { type: heartbeat, slug: nightly }"];
  const problem = "slug of monitors.b is that of a";
  await expect(configured.plan(file(a, b))).rejects.toThrow(`f.yaml:4:31: ${problem}`);
  await configured.apply(file(a));
  await expect(configured.plan(file(b))).rejects.toThrow(problem);
  // One that gives its slug up in the same file.
  await configured.apply(file("a: { type: heartbeat, slug: weekly }", b));
});

test("a bucket cannot have both kinds of targets", async () => {
  const file = (target: string) =>
    `ninefold: 1\nendpoints:\n  e: { url: https://example.com/e }\nbuckets:\n  in: { ${target} }\n`;
  const [url, targets] = ["target_url: https://example.com/in", "targets: [{ endpoint: e }]"];
  await configured.apply(file(url));
  await expect(configured.plan(file(targets))).rejects.toThrow("set target_url to null");
  await configured.apply(file(`${targets}, target_url: null`));
  await expect(configured.plan(file(url))).rejects.toThrow("set targets to []");
  await configured.apply(file(`${url}, targets: []`));
});

test("monitors that depend on themselves are an error of the plan", async () => {
  const file = (a: string, b: string) =>
    `ninefold: 1\nmonitors:\n  a: { type: heartbeat, depends_on: ${a} }\n  b: { type: heartbeat, depends_on: ${b} }\n`;
  await configured.apply(file("null", "a"));
  for (const [a, b] of [
    ["a", "null"],
    ["b", "a"],
  ] as const)
    await expect(configured.plan(file(a, b))).rejects.toThrow("and so to itself");
});

test("200 resources: a plan takes less than a second, an apply less than five", async () => {
  const monitors = Array.from(
    { length: 100 },
    (_, at) => `  m${at}: { url: https://example.com/${at}, interval: 60000, headers: { X-A: b } }\n`,
  );
  const flags = Array.from({ length: 100 }, (_, at) => `  f${at}: { enabled: true }\n`);
  const text = `ninefold: 1\nmonitors:\n${monitors.join("")}flags:\n${flags.join("")}`;
  // The command and the server run on one thread here.
  expect(await processorMs(() => configured.apply(text))).toBeLessThan(5_000);
  const planning = await processorMs(async () => expect(await configured.lines(text)).toEqual([]));
  expect(planning).toBeLessThan(1_000);
});

describe("mistakes, each with its line and column, before anything is changed", () => {
  const flag = "ninefold: 1\nflags:\n";
  const website = "ninefold: 1\nmonitors:\n  website:\n    url: https://example.com/\n";
  const aliases = `ninefold: 1\nflags:\n  a: &a { enabled: true }\n`;
  test.each([
    ["an empty file", "", "f.yaml:1:1: is empty"],
    ["no version", "flags: {}\n", "f.yaml:1:1: the version of the format is missing: write ninefold: 1"],
    ["another version", "ninefold: 2\n", "f.yaml:1:11: this version of Ninefold reads format 1 alone"],
    [
      "an unknown scope",
      'ninefold: 1\nkeys:\n  web: { prefix: sm, scopes: ["gate:raed"] }\n',
      "f.yaml:3:22: keys.web: scopes",
    ],
    ["not YAML", "a: [1\n", "f.yaml:2:1: is not YAML"],
    [
      "an unknown section",
      "ninefold: 1\nmonitor: {}\n",
      "f.yaml:2:1: there is no section monitor. Did you mean monitors?",
    ],
    [
      "an unknown field",
      `${website}    intervall: 60000\n`,
      "f.yaml:5:5: there is no field intervall. Did you mean interval?",
    ],
    [
      "a wrong type",
      `${website}    interval: soon\n`,
      "f.yaml:5:5: monitors.website: interval must be an integer",
    ],
    [
      "a value beyond a limit",
      `${website}    interval: 1\n`,
      "f.yaml:5:5: monitors.website: interval must be an integer from",
    ],
    [
      "a required field",
      "ninefold: 1\nschedules:\n  a: { payload: {} }\n",
      "f.yaml:3:3: schedules.a: cron is required",
    ],
    [
      "a name twice",
      `${flag}  a: { enabled: true }\n  a: { enabled: true }\n`,
      "f.yaml:4:3: a occurs twice: remove one of them",
    ],
    [
      "a project twice",
      "ninefold: 1\nproject: a\n---\nproject: a\n",
      "f.yaml:4:1: the project a occurs twice",
    ],
    [
      "a number for a text",
      `${flag}  a: { enabled: true, description: 3.10 }\n`,
      'description must be a text: quote it, as "3.10"',
    ],
    [
      "an octal for a text",
      `${flag}  a: { enabled: true, description: 012 }\n`,
      'f.yaml:3:36: description must be a text: quote it, as "012"',
    ],
    [
      "a secret as text",
      "ninefold: 1\nchannels:\n  a: { kind: slack, url: https://x.example/ }\n",
      "f.yaml:3:26: url is a secret: write {env: NAME} or {file: PATH} in place of the text",
    ],
    [
      "a credential in a header",
      `${website}    headers: { Authorization: Bearer x }\n`,
      "Authorization is a secret",
    ],
    ["a bad name", `${flag}  A B: { enabled: true }\n`, "f.yaml:3:3: flags.A B: flag_key must be 1 to"],
    [
      "a nested mistake",
      `${flag}  a:\n    enabled: true\n    rules:\n      - when: [{ attribute: a, op: equals }]\n        serve: { variant: on }\n`,
      "f.yaml:6:32: flags.a: rules.0.when.0.op must be one of",
    ],
    ["deep nesting", `a: ${"[".repeat(2_000)}`, `is nested deeper than ${DEPTH_MAX} levels`],
    [
      "deep nesting below the parser's limit",
      `a: ${"[".repeat(200)}${"]".repeat(200)}`,
      `is nested deeper than ${DEPTH_MAX} levels`,
    ],
    [
      "too many aliases",
      `${aliases}${Array.from({ length: ALIASES_MAX + 1 }, (_, at) => `  b${at}: *a\n`).join("")}`,
      `has more than ${ALIASES_MAX} aliases`,
    ],
    ["an alias of itself", "ninefold: 1\nflags: &a { b: *a }\n", "is nested deeper than"],
    [
      "a reference to nothing",
      "ninefold: 1\nflags: { a: { enabled: true } }\nmonitors:\n  website: { url: https://example.com/, interval: 60000, channels: [nobody] }\n",
      "f.yaml:4:68: channels of monitors.website: there is no nobody in channels",
    ],
    [
      "a reference to nothing in a new project",
      "ninefold: 1\nproject: new\nbuckets:\n  in: { targets: [{ endpoint: nobody }] }\n",
      "f.yaml:4:18: targets of buckets.in: there is no nobody in endpoints",
    ],
    [
      "groups next to the short form",
      "ninefold: 1\nstatus_pages:\n  p: { title: P, monitors: [], groups: [] }\n",
      "f.yaml:3:18: monitors is short for one group: use either monitors or groups",
    ],
    [
      "a second document of a wrong form",
      "ninefold: 1\n---\n- a\n",
      "f.yaml:3:1: a document must be a mapping of names to values",
    ],
  ])("%s", async (_, text, message) => {
    const failed = await configured.apply(text).catch((error: Error) => error.message);
    expect(String(failed)).toContain(message);
    expect((await account.get("/v1/gate")).body["flags"]).toEqual([]);
  });

  test("words that other parsers take for values stay texts", async () => {
    for (const word of ["no", "on", "2026-01-01"]) {
      await configured.apply(`${flag}  a: { enabled: true, description: ${word} }\n`);
      const { body } = await account.get("/v1/gate/a/definition");
      expect(body["description"]).toBe(word);
    }
  });

  test("aliases up to the limit", async () => {
    const text = `${aliases}${Array.from({ length: ALIASES_MAX }, (_, at) => `  b${at}: *a\n`).join("")}`;
    expect(await configured.plan(text)).toHaveLength(ALIASES_MAX + 1);
  });
});

test("10,000 resources are read in two seconds: a schema is compiled once", async () => {
  const flags = Array.from({ length: 10_000 }, (_, at) => `  f${at}: { enabled: true }\n`);
  const text = `ninefold: 1\nflags:\n${flags.join("")}`;
  expect(await processorMs(() => configured.read(text))).toBeLessThan(2_000);
});

test("a chain of 10,000 monitors is planned from its end", async () => {
  const length = 10_000;
  const monitors = Array.from({ length }, (_, at) => {
    const next = at + 1 < length ? `, depends_on: m${at + 1}` : "";
    return `  m${at}: { url: https://a.example/, interval: 60000${next} }\n`;
  });
  const steps = await configured.plan(`ninefold: 1\nmonitors:\n${monitors.join("")}`);
  expect(steps).toHaveLength(length);
  expect([steps[0]?.name, steps.at(-1)?.name]).toEqual([`m${length - 1}`, "m0"]);
});

test("a mapping of 50,000 keys is read in time that grows with its length", async () => {
  const keys = Array.from({ length: 50_000 }, (_, at) => `k${at}: 1`);
  const reading = () => configured.read(`ninefold: 1\n${keys.join("\n")}\n`);
  const failing = await processorMs(() => expect(reading).toThrow("f.yaml:2:1: there is no section k0"));
  expect(failing).toBeLessThan(2_500);
});

test("a key of another account neither changes nor prunes the project of the same slug", async () => {
  const text = "ninefold: 1\nflags: { shared: { enabled: true } }\n";
  await configured.apply(text);
  const stranger = await server.account({ tier: "unlimited" });
  const other = new Configured(server, stranger.key ?? "");
  expect(await other.lines("ninefold: 1\n", true)).toEqual([]);
  expect(await other.lines(text)).toEqual(["create flags.shared"]);
  expect(await configured.lines(text)).toEqual([]);
});

test("--prune deletes in the projects of its file only", async () => {
  const text = (project: string) => `ninefold: 1\nproject: ${project}\nflags: { own: { enabled: true } }\n`;
  await configured.apply(text("one"));
  await configured.apply(text("two"));
  await configured.apply("ninefold: 1\nproject: two\n", true);
  expect(await configured.lines(text("one"), true)).toEqual([]);
  expect(await configured.lines(text("two"))).toEqual(["create flags.own"]);
});

test("a file with a byte order mark, CRLF and names of any script", async () => {
  const text =
    "\uFEFFninefold: 1\r\nmonitors:\r\n  Büro 東京:\r\n    url: https://example.com/\r\n    interval: 60000\r\n";
  await configured.apply(text);
  expect(await configured.lines(text)).toEqual([]);
  const { monitors } = (await account.get("/v1/pulse")).body as { monitors: { name: string }[] };
  expect(monitors.map(({ name }) => name)).toEqual(["Büro 東京"]);
});

test("a new name is another resource; the old one is deleted by --prune only", async () => {
  const file = (name: string) =>
    `ninefold: 1\nmonitors:\n  ${name}: { url: https://example.com/, interval: 60000 }\n`;
  await configured.apply(file("before"));
  expect(await configured.lines(file("after"))).toEqual(["create monitors.after"]);
  expect(await configured.lines(file("after"), true)).toEqual([
    "create monitors.after",
    "delete monitors.before",
  ]);
});

test("a project that is deleted between plan and apply is an error", async () => {
  await configured.apply("ninefold: 1\nproject: gone\n");
  const text = "ninefold: 1\nproject: gone\nflags: { a: { enabled: true }, b: { enabled: true } }\n";
  const { projects } = (await account.get("/v1/projects")).body as {
    projects: { id: string; slug: string }[];
  };
  const id = projects.find((project) => project.slug === "gone")?.id;
  const deletion = async () => {
    const { status } = await account.delete(`/v1/projects/${id}`);
    expect(status).toBeLessThan(300);
  };
  const applied = configured.apply(text, false, undefined, deletion);
  expect(applied).rejects.toThrow("create flags.a, line 3: The server rejected the request");
});

/** Creations that a configuration file does not have, and why. */
const NOT_IN_FILES: Readonly<Record<string, string>> = {
  "projects.create": "a document is a project",
  "keys.create": "keys of a project have a route of their own",
  "people.create": "an invitation",
  "people.me.passkeys.create": "a credential",
  "session.invitation.accept": "a login",
};

test("every operation that creates a resource with a name is in files, or is exempt by name", () => {
  const { routes } = server.server.app.http;
  const named = routes.filter(({ method, body, responses, operation }) => {
    const fields = Object.keys(body?.properties ?? {});
    const hasName = ["name", "title", "slug", "flag_key"].some((field) => fields.includes(field));
    const isCreation =
      method === "PUT" ? 201 in responses && 200 in responses : method === "POST" && 201 in responses;
    const isNamed = method === "PUT" || hasName;
    return isCreation && isNamed && operation.byPortal !== true;
  });
  const sections = named.flatMap(({ operation }) => operation.file?.section ?? []);
  expect(sections).toEqual(expect.arrayContaining(["monitors", "channels", "status_pages", "flags", "keys"]));
  const missing = named.filter(({ operation }) => operation.file === undefined);
  expect(missing.map(({ operation }) => operation.name).sort()).toEqual(Object.keys(NOT_IN_FILES).sort());
});

test("what others refer to is created before them", () => {
  const order = configured.kinds.map(({ section }) => section);
  for (const { section, refersTo } of configured.kinds)
    for (const other of refersTo) expect(order.indexOf(other)).toBeLessThanOrEqual(order.indexOf(section));
});

test("durations have both forms, and zones all names; a later run changes nothing", async () => {
  const text = `ninefold: 1
schedules:
  nightly: { cron: "0 3 * * *", target_url: https://example.com/, timezone: Europe/Berlin, retry_schedule: [5000, 5m] }
monitors:
  backup: { type: heartbeat, schedule: "0 3 * * *", time_zone: Europe/Berlin, grace: 10m, start_grace_ms: 2h, max_runs_per_period: 1 }
  shop: { url: https://example.com/, interval: 60s, retry_interval: 15s }
buckets:
  in: { target_url: https://example.com/in, state: live, deduplicate_hours: 2d }
`;
  await configured.apply(text);
  expect(await configured.lines(text)).toEqual([]);
  const { body } = await account.get("/v1/relay/schedules");
  expect(body["schedules"]).toMatchObject([{ time_zone: "Europe/Berlin", retry_schedule: ["5s", "5m"] }]);
  const { body: monitors } = await account.get("/v1/pulse");
  expect(monitors["monitors"]).toMatchObject([
    { interval: 60_000, retry_interval: 15_000 },
    { tz: "Europe/Berlin", grace_ms: 600_000, start_grace_ms: 7_200_000, max_runs_per_period: 1 },
  ]);
});

test.each([
  ["monitors: { b: { type: heartbeat, period: 1x } }", "period_ms must be an integer", 'such as "1m"'],
  ["monitors: { b: { type: heartbeat, period: 60 } }", "period_ms must be an integer", 'such as "1m"'],
  [
    "monitors: { b: { type: heartbeat, tz: UTC, timezone: UTC } }",
    "timezone is another name of tz",
    "remove one",
  ],
  [
    "schedules: { b: { cron: '@daily', target_url: 'https://a.example', retry_schedule: [5] } }",
    "retry_schedule",
    "5s",
  ],
])("%s is rejected", (resources, ...said) => {
  for (const part of said) expect(() => configured.read(`ninefold: 1\n${resources}\n`)).toThrow(part);
});

test.each([
  ["monitors: { b: { type: tcp, host: db.example.com, interval: 60000 } }", "monitors.b: port is required"],
  ["monitors: { b: { type: dns, interval: 60000 } }", "monitors.b: host is required"],
  [
    "monitors: { b: { url: https://example.com/, interval: 60000, headers: { Connection: close } } }",
    "monitors.b: headers.Connection is set by the server itself",
  ],
  [
    "endpoints: { b: { url: https://example.com/, headers: { Host: elsewhere } } }",
    "endpoints.b: headers.Host is set by the server itself",
  ],
  [
    "schedules: { b: { cron: '@daily', target_url: https://a.example, headers: { X-Svc-Event: a } } }",
    "schedules.b: headers.X-Svc-Event is set by the server itself",
  ],
  ["monitors: { b: { url: https://, interval: 60000 } }", "f.yaml:2:18: monitors.b: url must be an http"],
  ["monitors: { b: { interval: 60000 } }", "monitors.b: url is required"],
  ["monitors: { b: { type: heartbeat, url: https://example.com/ } }", "monitors.b: url is a field of"],
  ["monitors: { b: { type: heartbeat, schedule: '0 0 30 2 *' } }", "monitors.b: schedule never occurs"],
  [
    "monitors: { b: { type: tcp, host: a/b, port: 5, interval: 60000 } }",
    "monitors.b: host must be the name",
  ],
  [
    "monitors: { b: { url: https://example.com/, interval: 60000, json_path: $.a } }",
    "monitors.b: json_value",
  ],
  [
    "monitors: { b: { url: https://example.com/, interval: 60000, timeout: 5000, degraded_ms: 6000 } }",
    "monitors.b: degraded_ms must be less than",
  ],
  ["flags: { config: { enabled: true } }", 'flag_key must not be "config"'],
  ["flags: { b: { enabled: true, default: { variant: c } } }", "flags.b: default must be the name of one"],
  [
    "flags: { b: { enabled: true, type: number } }",
    "flags.b: variants is required for a flag of type number",
  ],
  ["endpoints: { b: { url: ftp://example.com/ } }", "endpoints.b: url must be an http or https URL"],
  [
    "endpoints: { b: { url: https://example.com/, filter: { a: { $gte: [] } } } }",
    "endpoints.b: filter.a.$gte must be a number",
  ],
  [
    "schedules: { b: { cron: '0 0 30 2 *', target_url: https://a.example } }",
    "schedules.b: cron matches no date",
  ],
  ["schedules: { b: { cron: '@daily' } }", "schedules.b: target_url is required unless event_type is given"],
  ["schedules: { b: { cron: '@daily', event_type: ninefold.x } }", "schedules.b: event_type must not begin"],
  ["channels: { b: { kind: telegram, chat_id: '5' } }", "channels.b: config.token is required for the kind"],
  [
    "channels: { b: { kind: email, to: [a@example.com], chat_id: '5' } }",
    "chat_id is not a field of the kind",
  ],
  ["maintenance: { b: { monitors: [] } }", "maintenance.b: starts_at is required"],
  ["status_pages: { bbb: { title: B, website_url: 'javascript:1' } }", "website_url must be a URL"],
  ["buckets: { b: { target_url: https:// } }", "buckets.b: target_url must be an http"],
  ["buckets: { b: { target_url: https://a.example, provider: custom } }", "buckets.b: signature is required"],
])("%s is rejected before anything is changed, as by the server", async (resources, said) => {
  expect(() => configured.read(`ninefold: 1\n${resources}\n`)).toThrow(said);
});

describe("a number that a double does not hold", () => {
  test.each([
    [
      "flags: { b: { enabled: true, type: number, variants: { a: 9007199254740993 }, default: { variant: a } } }",
    ],
    ["flags: { b: { enabled: true, metadata: { a: 9007199254740993 } } }"],
    ["flags: { b: { enabled: true, metadata: { a: +9007199254740993 } } }"],
    ["flags: { b: { enabled: true, metadata: { a: 0x20000000000001 } } }"],
    ["flags: { b: { enabled: true, metadata: { a: .inf } } }"],
    ["flags: { b: { enabled: true, metadata: { a: -.INF } } }"],
    ["flags: { b: { enabled: true, metadata: { a: .nan } } }"],
    ["flags: { b: { enabled: true, metadata: { a: 1e400 } } }"],
    ["endpoints: { b: { url: https://example.com/, filter: { a: 9007199254740993 } } }"],
    ["schedules: { b: { cron: '@daily', target_url: https://a.example, payload: 9007199254740993 } }"],
    ["schedules: { b: { cron: '@daily', target_url: https://a.example, payload: { a: .inf } } }"],
    [
      "monitors: { b: { url: https://a.example/, interval: 60000, json_path: $.a, json_value: 9007199254740993 } }",
    ],
  ])("is rejected: %s", (resources) => {
    expect(() => configured.read(`ninefold: 1\n${resources}\n`)).toThrow("f.yaml:2:");
  });

  test("keeps its digits in the payload of a schedule, which a file and an export have", async () => {
    const payload = '{"id":1234567890123456789,"price":0.12345678901234567891,"huge":[1e400]}';
    const text = `ninefold: 1\nschedules: { b: { cron: '@daily', target_url: "https://a.example/", payload: ${payload} } }\n`;
    await configured.apply(text);
    expect(await configured.lines(text)).toEqual([]);
    const { body } = await account.get("/v1/relay/schedules?name=b");
    const [{ schedule_id }] = body["schedules"] as [{ schedule_id: string }];
    const { text: stored } = await account.get(`/v1/relay/schedules/${schedule_id}`);
    expect(stored).toContain(`"payload":${payload}`);
    const exported = await configured.export();
    for (const number of ["1234567890123456789", "0.12345678901234567891", "1e400"])
      expect(exported).toContain(` ${number}\n`);
    expect(await configured.lines(exported)).toEqual([]);
  });

  test("keeps its digits in the schema of an event type, which a file and an export have", async () => {
    const text =
      "ninefold: 1\nevent_types:\n  a.b:\n    schema:\n      maximum: 9007199254740993\n    example:\n      n: 9007199254740992.5\n";
    await configured.apply(text);
    expect(await configured.lines(text)).toEqual([]);
    expect(await configured.export()).toContain(text.slice(text.indexOf("event_types")));
  });

  test("is one that a double holds, however it is written", async () => {
    const values = "[0x1F, 0o17, +5, .5, 5., 1e3, 9007199254740992, 0.10000000000000001]";
    await configured.apply(
      `ninefold: 1\nflags: { b: { enabled: true, type: object, variants: { a: { v: ${values} } }, default: { variant: a } } }\n`,
    );
    const { body } = await account.get("/v1/gate/b/definition");
    expect(body["variants"]).toEqual({ a: { v: [31, 15, 5, 0.5, 5, 1000, 9007199254740992, 0.1] } });
  });
});

test("a project has a time zone, under any of its names, which an export has unless it is UTC", async () => {
  const account = await server.account();
  const configured = new Configured(server, account.key ?? "");
  expect(await configured.export()).not.toContain("time_zone");
  for (const [name, zone] of [
    ["time_zone", "Europe/Berlin"],
    ["timezone", "Asia/Tokyo"],
    ["tz", "Europe/Paris"],
  ]) {
    const text = `ninefold: 1\n${name}: ${zone}\n`;
    expect(await configured.lines(text)).toEqual(["change project.default time_zone"]);
    await configured.apply(text);
    expect(await configured.lines(text)).toEqual([]);
    expect(await configured.export()).toContain(`time_zone: ${zone}\n`);
  }
  await expect(configured.lines("ninefold: 1\ntime_zone: Mars/Base\n")).rejects.toThrow(
    "time_zone must be the IANA name of a time zone",
  );
  await expect(configured.lines("ninefold: 1\ntime_zone: UTC\ntz: UTC\n")).rejects.toThrow(
    "write one of them",
  );
});

test("in a project with review, changes of flags are proposed, once, and the review begins last", async () => {
  const account = await server.account();
  const configured = new Configured(server, account.key ?? "");
  const proposals: string[] = [];
  const apply = async (text: string, prune = false) => {
    await configured.apply(text, prune, (_, outcome) => proposals.push(...outcome.proposals));
    return proposals.splice(0);
  };
  const flags = "flags: { a: { enabled: true }, b: { enabled: true } }\n";
  expect(await apply(`ninefold: 1\nreview: true\n${flags}`)).toEqual([]);
  expect(await configured.lines(`ninefold: 1\nreview: true\n${flags}`)).toEqual([]);
  expect(await configured.export()).toContain("review: true\n");
  const changed = "ninefold: 1\nflags: { a: { enabled: true, tags: [x] }, c: { enabled: true } }\n";
  const made = await apply(changed, true);
  expect(made).toHaveLength(3);
  expect(await apply(changed, true)).toEqual(made);
  const { body } = await account.get("/v1/gate/config/proposals?status=open");
  expect(body["proposals"]).toMatchObject([
    { flag_key: "b", before: { enabled: true }, after: null },
    { flag_key: "c", before: null, after: { enabled: true } },
    { flag_key: "a", before: { tags: null }, after: { tags: ["x"] } },
  ]);
  expect((await account.get("/v1/gate")).body).toEqual({ flags: ["b", "a"] });
  expect(await configured.lines(`ninefold: 1\nreview: false\n${flags}`)).toEqual([
    "change project.default review",
  ]);
  expect(await apply(`ninefold: 1\nreview: false\nflags: { a: { enabled: false } }\n`)).toEqual([]);
  await expect(configured.lines("ninefold: 1\nreview: maybe\n")).rejects.toThrow(
    "review must be true or false",
  );
});

test("scheduled changes of flags are compared until they have passed", async () => {
  const account = await server.account();
  const configured = new Configured(server, account.key ?? "");
  const later = '{ at: "2099-01-01T00:00:00Z", set: { enabled: false } }';
  const first = '{ at: "2098-01-01T02:00:00+02:00", set: { tags: [x] } }';
  const past = '{ at: "2020-01-01T00:00:00Z", set: { enabled: true } }';
  const file = (...changes: string[]) =>
    `ninefold: 1\nflags: { f: { enabled: true, scheduled: [${changes.join(", ")}] } }\n`;
  await configured.apply(file(later, past, first));
  expect(await configured.lines(file(later, past, first))).toEqual([]);
  expect(await configured.lines(file(first, later))).toEqual([]);
  expect(await configured.lines(file(later))).toEqual(["change flags.f scheduled"]);
  expect(await configured.lines("ninefold: 1\nflags: { f: { enabled: true } }\n")).toEqual([]);
  const exported = await configured.export();
  expect(exported).toContain("2098-01-01T00:00:00.000Z");
  expect(exported).not.toContain("chg_");
  expect(await configured.lines(exported)).toEqual([]);
  await expect(
    configured.lines(file('{ at: "2099-01-01T00:00:00Z", set: { default: { variant: x } } }')),
  ).rejects.toThrow("must be the name of one of the flag's variants");
});
