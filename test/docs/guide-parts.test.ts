import { describe, expect, test } from "bun:test";
import { highlighted } from "../../scripts/guides/code-blocks.ts";
import { type OperationEntry, Operations } from "../../scripts/guides/operations.ts";
import { treeOf } from "../../scripts/guides/tree.ts";

describe("highlighted code", () => {
  test.each([
    [
      "sh",
      'A=1\ncurl -H "$A" \'{"b": 1}\'\n# 200 <ok>',
      ["variable", "keyword", "option", "string", "string", "comment"],
    ],
    ["ts", 'const a = "b"; // c\nreturn 12;', ["keyword", "string", "comment", "keyword", "number"]],
    ["toml", '# c\n[a]\nb = "c"', ["comment", "keyword", "keyword", "string"]],
    ["unknown", "const a", []],
  ])("%s", (language, code, kinds) => {
    const html = highlighted(code, language);
    expect([...html.matchAll(/<span class="(\w+)">/g)].map(([, kind]) => kind)).toEqual(kinds);
  });

  test("keeps every character", () => {
    const code = "# <a> & \"b\" 'c'\ncurl $URL/$ID --data-raw '{\"x\":\n 1}'";
    const text = highlighted(code, "sh").replaceAll(/<[^>]*>/g, "");
    expect(text).toBe(
      code.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;"),
    );
  });
});

describe("operations of a page", () => {
  const entry = (method: string, path: string): OperationEntry => ({
    id: `${method} ${path}`,
    area: "A",
    method,
    path,
    summary: "S",
  });
  const operations = new Operations([
    entry("GET", "/v1/a"),
    entry("POST", "/v1/a"),
    entry("GET", "/v1/a/{id}"),
    entry("GET", "/v1/a/stats"),
    entry("PATCH", "/v1/a/{id}"),
  ]);
  const ids = (block: string): string[] => operations.requested(block).map(({ id }) => id);

  test("the method follows from the options of curl", () => {
    expect(ids('curl -H "$AUTH" $URL/v1/a')).toEqual(["GET /v1/a"]);
    expect(ids("curl -H \"$AUTH\" $URL/v1/a -d '{}'")).toEqual(["POST /v1/a"]);
    expect(ids("curl -X PATCH -d '{}' \"$URL/v1/a/$ID?x=1\"")).toEqual(["PATCH /v1/a/{id}"]);
  });

  test("a fixed segment is preferred to a parameter, and unknown paths have no operation", () => {
    expect(ids("A=$(curl $URL/v1/a/stats)\ncurl $URL/v1/a/1 | jq\ncurl $URL/v1/none")).toEqual([
      "GET /v1/a/stats",
      "GET /v1/a/{id}",
    ]);
    expect(operations.mentioned("GET /v1/a/{a_id}?x")?.id).toBe("GET /v1/a/{id}");
    expect(operations.mentioned("/v1/a")).toBeUndefined();
  });
});

test("every file is in one group of the site tree, new ones in that of their folder", () => {
  const files = ["README.md", "docs/README.md", "docs/api/new.md", "docs/guides/b.md", "docs/other.md"];
  expect(treeOf(files)).toEqual([
    { title: "Start", files: ["docs/README.md", "README.md"] },
    { title: "Guides", files: ["docs/guides/b.md"] },
    { title: "Services", files: ["docs/api/new.md"] },
    { title: "Project", files: ["docs/other.md"] },
  ]);
});
