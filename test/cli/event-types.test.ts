import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";
import { ninefold } from "./run.ts";

/** Each test runs some processes; busy machines take longer. */
setDefaultTimeout(60_000);

let server: TestServer;
let account: AccountClient;
let environment: Record<string, string>;
const folder = mkdtempSync(join(tmpdir(), "ninefold-event-types-"));
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(async () => {
  account = await server.account();
  environment = { NINEFOLD_API_KEY: String(account.key), NINEFOLD_URL: server.url };
});

const imported = (...args: string[]) => ninefold(["event-types", "import", ...args], { environment });
const file = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const names = async () => {
  const { event_types: types } = (await account.get("/v1/relay/event-types")).body as {
    event_types: { name: string }[];
  };
  return types.map(({ name }) => name).sort();
};

const YAML = `openapi: 3.1.0
webhooks:
  invoice.paid:
    post:
      summary: An invoice was paid
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/Invoice" } } } }
      responses: { 200: { description: ok } }
components: { schemas: { Invoice: { type: object, properties: { amount: { type: number, multipleOf: 0.01 } } } } }
`;

test("imports YAML: the types that are new, changed and the same", async () => {
  const path = file("openapi.yaml", YAML);
  const trial = await imported(path, "--dry-run");
  expect([trial.code, trial.out, trial.error]).toEqual([
    0,
    "result   name\ncreated  invoice.paid\nNothing was changed.\n",
    "",
  ]);
  expect(await names()).toEqual([]);
  const first = await imported(path);
  expect([first.code, first.out, first.error]).toEqual([0, "result   name\ncreated  invoice.paid\n", ""]);
  expect((await account.get("/v1/relay/event-types/invoice.paid")).body).toMatchObject({
    description: "An invoice was paid",
    schema: { $ref: "#/$defs/Invoice", $defs: { Invoice: { type: "object" } } },
  });
  expect((await imported(path)).out).toBe("result     name\nunchanged  invoice.paid\n");
  const changed = await imported(file("changed.yaml", YAML.replace("was paid", "was paid in full")));
  expect(changed.out).toBe("result   name\nupdated  invoice.paid\n");
});

test("imports JSON; a webhook that is skipped is told on standard error, and by the exit code", async () => {
  const post = { requestBody: { content: { "application/json": { schema: { type: "object" } } } } };
  const webhooks = { "a.b": { post }, "ninefold.x": { post }, none: { get: {} } };
  const path = file("openapi.json", JSON.stringify({ openapi: "3.1.0", webhooks }, null, "\t"));
  const { code, out, error } = await imported(path);
  expect([code, out]).toEqual([1, "result   name\ncreated  a.b\nskipped  ninefold.x\nskipped  none\n"]);
  expect(error).toContain("none was skipped: has no post\n");
  expect(error).toContain("ninefold.x was skipped: ");
  expect(await names()).toEqual(["a.b"]);
  const again = await imported(path, "--json");
  expect(again.code).toBe(1);
  expect(JSON.parse(again.out)).toMatchObject({
    created: [],
    unchanged: ["a.b"],
    skipped: [{ name: "ninefold.x" }, { name: "none", reason: "has no post" }],
  });
});

test("says what is wrong with a file, and where", async () => {
  for (const [text, message] of [
    ["", "f.yaml:1:1: is empty"],
    ["- a\n", "f.yaml:1:1: must be an OpenAPI document, which is a mapping"],
    ["a: 1\n---\nb: 2\n", "f.yaml:3:1: a second document begins"],
    ["a: 1\na: 2\n", "f.yaml:2:1: "],
  ] as const) {
    const { code, out, error } = await imported(file("f.yaml", text));
    expect([code, out]).toEqual([1, ""]);
    expect(error).toContain(message);
  }
  const empty = await imported(file("f.yaml", "openapi: 3.1.0\n"));
  expect([empty.code, empty.out]).toEqual([0, "The document has no webhooks.\n"]);
  expect((await imported()).code).toBe(2);
});
