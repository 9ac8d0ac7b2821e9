import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNinefold } from "../../src/testing/index.ts";
import { executable, TIMEOUT_MS } from "./support.ts";

test(
  "ninefold/testing runs the executable: time moves, nothing is left when standard input ends",
  async () => {
    const temporary = mkdtempSync(join(tmpdir(), "ninefold-binary-test-"));
    try {
      for (let start = 0; start < 3; start += 1) {
        const nf = await startNinefold({ command: executable(), env: { TMPDIR: temporary } });
        expect(readdirSync(temporary).map((name) => name.startsWith(`ninefold-${nf.pid}-`))).toEqual([true]);
        const before = await nf.now();
        expect(await nf.advance("3 days")).toBe(before + 259_200_000);
        await nf.stop();
        expect(nf.log()).not.toContain('"level":"error"');
        expect(readdirSync(temporary)).toEqual([]);
      }
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
  },
  TIMEOUT_MS,
);
