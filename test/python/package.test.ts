import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { buildPython } from "../../scripts/packages/build.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { endOf } from "../support/ended.ts";
import { PYTHON } from "./python.ts";

const TIMEOUT_MS = 120_000;
const folder = mkdtempSync(join(tmpdir(), "ninefold-python-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function must(...command: string[]): Promise<string> {
  const { code, out, error } = await endOf(command, { timeoutMs: TIMEOUT_MS, cwd: folder });
  expect(code === 0 ? "" : out + error).toBe("");
  return out.trim();
}

test(
  "wheel and source distribution have the same bytes each time, install without a network, and have the version of package.json",
  async () => {
    const made = ["a", "b"].map((name) => {
      const built = join(folder, name);
      mkdirSync(built);
      const files = buildPython(ROOT, built, PYTHON);
      return files.map((file) => [file, Bun.hash(readFileSync(join(built, file)))]);
    });
    expect(made[0]).toEqual(made[1] ?? []);
    expect(made[0]?.map(([file]) => file)).toEqual([
      `ninefold-${manifest.version}-py3-none-any.whl`,
      `ninefold-${manifest.version}.tar.gz`,
    ]);
    await must(PYTHON, "-m", "venv", "venv");
    const python = join(folder, "venv/bin/python");
    for (const [file = ""] of made[0] ?? []) {
      const options = ["--no-index", "--quiet", "--force-reinstall", "--disable-pip-version-check"];
      await must(python, "-m", "pip", "install", ...options, join(folder, "a", String(file)));
      const program = [
        "import ninefold, os",
        "folder = os.path.dirname(ninefold.__file__)",
        "print(ninefold.__version__, os.path.exists(os.path.join(folder, 'py.typed')), 'venv' in folder)",
      ];
      expect(await must(python, "-c", program.join("\n"))).toBe(`${manifest.version} True True`);
    }
    await must(python, "-m", "pip", "check", "--disable-pip-version-check");
  },
  TIMEOUT_MS,
);
