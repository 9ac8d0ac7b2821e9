import { expect, setDefaultTimeout, test } from "bun:test";
import { NOTES_MAX } from "../../../src/configuration/import/draft.ts";
import { INPUT_BYTES_MAX, INPUT_LEVELS_MAX, parseJson } from "../../../src/configuration/import/source.ts";
import { importSvix } from "../../../src/configuration/import/webhooks/svix.ts";
import { useImports } from "./support.ts";

/** Busy machines take longer. */
setDefaultTimeout(60_000);

const imports = useImports();

test("an input has a maximum size and depth", () => {
  expect(parseJson(`[]${" ".repeat(INPUT_BYTES_MAX - 2)}`, "a.json")).toEqual([]);
  expect(() => parseJson(`[]${" ".repeat(INPUT_BYTES_MAX - 1)}`, "a.json")).toThrow(
    `a.json is larger than ${INPUT_BYTES_MAX} bytes.`,
  );
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  expect(parseJson(nested(INPUT_LEVELS_MAX), "a.json")).toBeArray();
  expect(() => parseJson(nested(INPUT_LEVELS_MAX + 1), "a.json")).toThrow("is nested deeper than 64 levels");
  expect(() => parseJson("{", "a.json")).toThrow("a.json is not JSON");
});

/** Endpoints of the same name: each has a note of its secret, all the same one of `oauth`, and all but the first one of its name. */
const same = (count: number) =>
  Array.from({ length: count }, () => ({ url: "https://example.com/", uid: "a", oauth: "x" }));

test("notes beyond the limit are counted", () => {
  const { notes } = imports.run((draft) => importSvix(draft, same(NOTES_MAX), null));
  expect(notes).toHaveLength(NOTES_MAX + 1);
  expect(notes.at(-1)).toBe(`${NOTES_MAX} more notes are not shown.`);
});

test("a configuration that is larger than a file may be is an error", () => {
  const url = `https://example.com/${"x".repeat(1_000)}`;
  const large = Array.from({ length: 1_100 }, () => ({ url }));
  expect(() => imports.run((draft) => importSvix(draft, large, null))).toThrow("Import it in parts.");
});
