import { describe, expect, test } from "bun:test";
import { readPage, stepsOf } from "./page.ts";
import { Reader } from "./reader.ts";
import { surprise } from "./surprise.ts";

/** A section waits for a first check, which runs within five seconds. */
const TIMEOUT_MS = 180_000;
const MOST_COMMANDS = 10;

const [, start = "", ...SECTIONS] = readPage("docs/guides/quick-starts.md").split(/^(?=## )/m);

describe("each quick start works alone, after the start, in at most ten commands", () => {
  test.each(SECTIONS.map((section) => [/^## (.*)$/m.exec(section)?.[1] ?? "", section]))(
    "%s",
    async (_title, section) => {
      await using reader = new Reader();
      const steps = stepsOf(section);
      expect(steps.length).toBeLessThanOrEqual(MOST_COMMANDS);
      const surprises = (await reader.paste([...stepsOf(start), ...steps])).map(([step, outcome]) =>
        surprise(step, outcome),
      );
      expect(surprises.filter((surprise) => surprise !== null).join("\n\n")).toBe("");
      // The last command shows what was made: its result is documented, or it waits for it.
      const last = steps.at(-1);
      expect(last === undefined || last.says.length > 0 || last.command.startsWith("until ")).toBe(true);
    },
    TIMEOUT_MS,
  );
});
