import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Document } from "../../codegen/document.ts";
import { GENERATE_COMMAND } from "../../codegen/generate.ts";
import { withErrors } from "../../codegen/guide-errors.ts";
import { withFields } from "../../codegen/guide-fields.ts";
import { withMethods } from "../../codegen/guide-methods.ts";
import { withLanguages } from "../../codegen/languages/pages.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { readPage } from "./page.ts";

const PAGES = [...new Bun.Glob("docs/**/*.md").scanSync(ROOT)].sort();
const document: Document = await Bun.file(join(ROOT, "test/golden/openapi.json")).json();

test(`the tables of fields and methods and the examples in other languages are those of the API's document; otherwise run ${GENERATE_COMMAND}`, () => {
  const fresh = (page: string): string =>
    withLanguages(
      page,
      withErrors(withMethods(withFields(readPage(page), document), document), document),
      document,
    );
  const stale = PAGES.filter((page) => fresh(page) !== readPage(page));
  expect(stale).toEqual([]);
});

const SMALL: Document = {
  paths: {},
  components: {
    responses: {
      "area.gone": {
        description: "`area.gone`: It is gone.",
        "x-status": 410,
        "x-remedy": "Create it again.",
      },
    },
    schemas: {
      Made: {
        type: "object",
        required: ["name"],
        properties: {
          name: { type: "string", pattern: "^[a-z]{1,9}$", description: "Name | title." },
          limits: { type: "array", items: { type: "object", properties: { cost: { type: "integer" } } } },
        },
      },
    },
  },
};

test.each([
  [
    "Made",
    [
      "| `name` | string, `^[a-z]{1,9}$`, required | Name \\| title. |",
      "| `limits` | array of objects |  |",
      "| `limits[].cost` | integer |  |",
    ],
  ],
  ["Made only limits", ["| `limits` | array of objects |  |", "| `limits[].cost` | integer |  |"]],
  ["Made without limits", ["| `name` | string, `^[a-z]{1,9}$`, required | Name \\| title. |"]],
])("a block with the fields of %s", (block, rows) => {
  const page = withFields(`<!-- fields: ${block} -->\nold\n<!-- /fields -->\nafter`, SMALL);
  const head = `<!-- fields: ${block} -->\n\n| field | value (default) | description |\n|---|---|---|\n`;
  expect(page).toBe(`${head}${rows.join("\n")}\n\n<!-- /fields -->\nafter`);
  expect(withFields(page, SMALL)).toBe(page);
});

test.each(["Missing", "Made only nothing"])("a block of %s is an error", (block) => {
  expect(() => withFields(`<!-- fields: ${block} -->\n<!-- /fields -->`, SMALL)).toThrow();
});

test("a block with all errors", () => {
  const page = withErrors("<!-- errors -->\nold\n<!-- /errors -->\nafter", SMALL);
  const section = "### area.gone\n\n**410** It is gone.\n\n**What to do**: Create it again.\n\n";
  expect(page).toBe(`<!-- errors -->\n\n${section}<!-- /errors -->\nafter`);
});

test("a block with the methods of the client", () => {
  const operation = { operationId: "keys.read", summary: "Get a key", tags: ["Keys"], responses: {} };
  const paths = { "/v1/keys": { get: operation } };
  const table = "| object | methods |\n|---|---|\n| `nf.keys` | `get()` |";
  const page = withMethods("<!-- methods -->\nold\n<!-- /methods -->\nafter", { ...SMALL, paths });
  expect(page).toBe(`<!-- methods -->\n\n${table}\n\n<!-- /methods -->\nafter`);
});
