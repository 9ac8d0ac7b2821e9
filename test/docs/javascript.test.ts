import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COMPILER, COMPILER_ENVIRONMENT } from "../../scripts/packages/build.ts";
import { ROOT } from "../harness/processes/server-process.ts";

const TIMEOUT_MS = 60_000;
/** What Node 20 has, the oldest version that the client supports. */
const LANGUAGE = "es2023";
/** The compiler's errors for something that a later version of the language has. */
const LATER = /error TS(?:2550|2583|2585|2568):/;

const folder = mkdtempSync(join(tmpdir(), "ninefold-javascript-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Every program of the pages and examples, by the name of its file. */
function programs(): [name: string, text: string][] {
  const pages = [...new Bun.Glob("docs/**/*.md").scanSync(ROOT), "README.md"];
  const blocks = pages.flatMap((page) =>
    [...readFileSync(join(ROOT, page), "utf8").matchAll(/^```(js|ts)\n([\s\S]*?)^```$/gm)].map(
      ([, kind, text = ""], at): [string, string] => [`${page.replaceAll("/", "-")}-${at}.${kind}`, text],
    ),
  );
  const examples = [...new Bun.Glob("examples/**/*.{js,mjs,ts}").scanSync(ROOT)].map(
    (path): [string, string] => [path.replaceAll("/", "-"), readFileSync(join(ROOT, path), "utf8")],
  );
  return [...blocks, ...examples];
}

/** The lines of the compiler about parts of the language that Node 20 does not have. */
async function laterParts(files: readonly (readonly [name: string, text: string])[]): Promise<string[]> {
  for (const [name, text] of files) writeFileSync(join(folder, name), `${text}\nexport {};\n`);
  const compilerOptions = {
    allowJs: true,
    checkJs: true,
    noEmit: true,
    skipLibCheck: true,
    strict: false,
    types: [],
    target: LANGUAGE,
    lib: [LANGUAGE, "dom", "dom.iterable"],
    module: "esnext",
    moduleResolution: "bundler",
  };
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions, files: files.map(([name]) => name) }),
  );
  const child = Bun.spawn([process.execPath, join(ROOT, COMPILER), "-p", "tsconfig.json"], {
    cwd: folder,
    env: { ...process.env, ...COMPILER_ENVIRONMENT },
  });
  return (await child.stdout.text()).split("\n").filter((line) => LATER.test(line));
}

test(
  "programs in the pages and examples need nothing that Node 20 does not have",
  async () => {
    const all = programs();
    expect(all.length).toBeGreaterThan(30);
    const wrong = [
      "later.js",
      "const all = await Array.fromAsync([]);\nconst one = Promise.withResolvers();",
    ] as const;
    const found = await laterParts([...all, wrong]);
    expect(found.map((line) => line.slice(0, line.indexOf("(")))).toEqual(["later.js", "later.js"]);
  },
  TIMEOUT_MS,
);
