import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COMPILER, COMPILER_ENVIRONMENT } from "../../scripts/packages/build.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { endOf } from "../support/ended.ts";
import { useTestServer } from "../support/server.ts";

/** The generators are installed here, with the versions that the page names. */
const PACKAGES = join(ROOT, "test/docs/generators");
const TIMEOUT_MS = 120_000;
/** Where the page expects the server. */
const URL_OF_PAGE = "http://127.0.0.1:9909";

const page = readFileSync(join(ROOT, "docs/guides/generate-a-client.md"), "utf8");
const { dependencies } = (await Bun.file(join(PACKAGES, "package.json")).json()) as {
  dependencies: Record<string, string>;
};

const server = useTestServer();
const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** The command and the program of a section of the page. */
function exampleIn(heading: string): { readonly command: string; readonly program: string } {
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  const command = /^npx (.+)$/m.exec(section)?.[1] ?? "";
  const program = /^```ts\n([\s\S]*?)^```$/m.exec(section)?.[1] ?? "";
  return { command, program };
}

/** The program file of a package's command, as `npx` finds it. */
function commandOf(name: string): string {
  const { bin } = JSON.parse(readFileSync(join(PACKAGES, "node_modules", name, "package.json"), "utf8"));
  return join(PACKAGES, "node_modules", name, Object.values<string>(bin)[0] ?? "");
}

/** A project as a reader has it: the installed packages, and strict types. */
function project(program: string): string {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-generated-"));
  folders.push(folder);
  symlinkSync(join(PACKAGES, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "program.ts"), program);
  writeFileSync(
    join(folder, "process.d.ts"),
    "declare const process: { env: Record<string, string | undefined> };\n",
  );
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: "es2022",
    lib: ["es2022", "dom", "dom.iterable"],
    types: [],
    module: "esnext",
    moduleResolution: "bundler",
    skipLibCheck: true,
  };
  const files = ["program.ts", "process.d.ts"];
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
  return folder;
}

test.each([["Types and fetch"], ["A function per operation"]])(
  "%s: the command makes a client that compiles, and the program runs with it",
  async (heading) => {
    const { command, program } = exampleIn(heading);
    const [name = "", ...args] = command.replace(URL_OF_PAGE, server.url).split(" ");
    expect(page).toContain(` ${(dependencies[name] ?? "?").split(".").slice(0, 2).join(".")}`);
    const cwd = project(program);
    const run = { cwd, timeoutMs: TIMEOUT_MS };
    const generated = await endOf([process.execPath, commandOf(name), ...args], run);
    expect(generated.code === 0 ? "" : generated.out + generated.error).toBe("");
    const compiled = await endOf([process.execPath, join(ROOT, COMPILER), "-p", "."], {
      ...run,
      environment: COMPILER_ENVIRONMENT,
    });
    expect(compiled.out).toBe("");
    const { key } = await server.account();
    const environment = { NINEFOLD_URL: server.url, NINEFOLD_API_KEY: String(key) };
    const { out, error } = await endOf([process.execPath, "program.ts"], { ...run, environment });
    expect([out.trim(), error]).toEqual(["1000", ""]);
  },
  TIMEOUT_MS,
);
