import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { generatedFiles } from "../../scripts/packages/formatted.ts";
import { GENERATE_COMMAND, GENERATED_FOLDER } from "../../scripts/packages/generate.ts";

const root = join(import.meta.dir, "../..");

test("the client's types and operations are those of the API's document", () => {
  const folder = join(root, GENERATED_FOLDER);
  const found = Object.fromEntries(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]),
  );
  const hint = `${GENERATED_FOLDER} differs from what the document says; run: ${GENERATE_COMMAND}`;
  expect(found, hint).toEqual(Object.fromEntries(generatedFiles(root)));
});
