import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ROOT } from "../harness/processes/server-process.ts";
import { endOf } from "../support/ended.ts";

/** The findings of `scripts/lint` with the repository's configuration: `rule path` for each. */
async function found(files: Readonly<Record<string, string>>): Promise<string[]> {
  const root = mkdtempSync(join(folder, "tree-"));
  for (const [path, text] of Object.entries({ ...files, ".gitignore": "node_modules\n" })) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  cpSync(join(ROOT, "scripts", "biome.json"), join(root, "scripts", "biome.json"), { recursive: true });
  const biome = join(ROOT, "node_modules", "@biomejs", "biome", "bin", "biome");
  const options = ["lint", "--config-path=scripts/biome.json", "--error-on-warnings", "--reporter=json"];
  const { code, out } = await endOf([process.execPath, biome, ...options], {
    cwd: root,
    timeoutMs: TIMEOUT_MS,
  });
  const { diagnostics } = JSON.parse(out) as { diagnostics: readonly Diagnostic[] };
  expect(code === 0).toBe(diagnostics.length === 0);
  return diagnostics.map(({ category, location }) => `${category.split("/").at(-1)} ${location.path}`).sort();
}

interface Diagnostic {
  readonly category: string;
  readonly location: { readonly path: string };
}

const TIMEOUT_MS = 120_000;
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-lint-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("imports run in no circle", () => {
  const ring = (last: string): Record<string, string> => ({
    "src/a.ts": 'import { c } from "./b.ts";\nexport const a = (): unknown => c;\n',
    "src/b.ts": 'export { c } from "./c.ts";\n',
    "src/c.ts": `${last}\n`,
  });

  test.each([
    ['import { a } from "./a.ts";\nexport const c = (): unknown => a;', 3],
    ['import type { a } from "./a.ts";\nexport const c = (a: typeof a): unknown => a;', 3],
    ['export const c = (): unknown => import("./a.ts");', 3],
    ["export const c = 1;", 0],
  ])(
    "%j",
    async (last, count) => {
      const cycles = await found(ring(last));
      expect(cycles).toEqual(["a", "b", "c"].slice(0, count).map((name) => `noImportCycles src/${name}.ts`));
    },
    TIMEOUT_MS,
  );

  test(
    "nor in tests and scripts; two ways to the same file are no circle",
    async () => {
      const self = 'import { a } from "./b.ts";\nexport const b = (): unknown => a;\n';
      const back = 'import { b } from "./a.ts";\nexport const a = (): unknown => b;\n';
      const files = { "test/a.ts": self, "test/b.ts": back, "scripts/a.ts": self, "scripts/b.ts": back };
      const twice = {
        "src/a.ts": 'import { b } from "./b.ts";\nimport { c } from "./c.ts";\nexport const a = [b, c];\n',
        "src/b.ts": 'import { c } from "./c.ts";\nexport const b = c;\n',
        "src/c.ts": "export const c = 1;\n",
      };
      const paths = ["scripts/a.ts", "scripts/b.ts", "test/a.ts", "test/b.ts"];
      expect(await found({ ...files, ...twice })).toEqual(paths.map((path) => `noImportCycles ${path}`));
    },
    TIMEOUT_MS,
  );
});

test(
  "no default export but in declarations, and no any",
  async () => {
    const files = {
      "src/a.ts": "export default 1;\n",
      "src/b.ts": "const b = 1;\nexport { b as default };\n",
      "src/c.ts": "export const any: unknown = 1;\nexport const c = any as any;\n",
      "scripts/a.ts": "export default 1;\n",
      "test/a.test.ts": "export const a = (x: any): unknown => x;\n",
      "src/d.d.ts": "declare const d: string;\nexport default d;\n",
    };
    expect(await found(files)).toEqual([
      "noDefaultExport scripts/a.ts",
      "noDefaultExport src/a.ts",
      "noDefaultExport src/b.ts",
      "noExplicitAny src/c.ts",
      "noExplicitAny test/a.test.ts",
    ]);
  },
  TIMEOUT_MS,
);
