import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { generatedFile } from "../../scripts/packages/formatted.ts";
import { GENERATE_COMMAND, GENERATED_FILE } from "../../scripts/packages/generate.ts";

const root = join(import.meta.dir, "../..");

test("the client's types and operations are those of the API's document", () => {
  const hint = `${GENERATED_FILE} differs from what the document says; run: ${GENERATE_COMMAND}`;
  expect(readFileSync(join(root, GENERATED_FILE), "utf8"), hint).toBe(generatedFile(root));
});
