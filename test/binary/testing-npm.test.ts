import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { packPlatform } from "../../scripts/packages/platform.ts";
import { ownPlatform } from "../../scripts/releases/platforms.ts";
import { packedPackage } from "../client/installed.ts";
import { plainEnvironment, ROOT } from "../harness/processes/server-process.ts";
import { RUNTIMES } from "../testing/support.ts";
import { executable } from "./support.ts";

/** Packing and unpacking an executable takes a while on a busy machine. */
const TIMEOUT_MS = 120_000;
/** Compressing an executable takes seconds, as unpacking it does, and what is installed is the same. */
const NO_COMPRESSION = 0;

const folder = mkdtempSync(join(tmpdir(), "ninefold-npm-"));
const made = join(folder, "made");
const project = join(folder, "project");
const npm = Bun.which("npm");

beforeAll(async () => {
  for (const path of [made, project]) mkdirSync(path);
  const platform = packPlatform(ROOT, manifest, ownPlatform(), executable(), made, NO_COMPRESSION);
  const files = [await packedPackage(made), join(made, platform)];
  expect(files.every((file) => existsSync(file))).toBe(true);
  const install =
    npm === null
      ? [process.execPath, "add", "--dev", ...files]
      : [npm, "install", "--save-dev", "--offline", "--no-audit", "--no-fund", ...files];
  write("package.json", '{ "private": true, "type": "module" }');
  const { code, output } = await end(start(install));
  expect(output).not.toContain("ERR");
  expect(code).toBe(0);
  symlinkSync(join(ROOT, "node_modules/vitest"), join(project, "node_modules/vitest"));
}, TIMEOUT_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text: string): string {
  writeFileSync(join(project, name), text);
  return join(project, name);
}

type Program = Bun.Subprocess<"pipe", "pipe", "pipe">;

/** Starts a program in the project, without any `NINEFOLD_…` but those that are given. */
function start(command: readonly string[], environment: Record<string, string> = {}): Program {
  return Bun.spawn([...command], {
    cwd: project,
    env: plainEnvironment(environment),
    ...({ stdin: "pipe", stdout: "pipe", stderr: "pipe" } as const),
    timeout: TIMEOUT_MS / 2,
    killSignal: "SIGKILL",
  });
}

async function end(program: Program): Promise<{ code: number | null; output: string }> {
  const [out, error] = await Promise.all([program.stdout.text(), program.stderr.text(), program.exited]);
  return { code: program.exitCode, output: out + error };
}

const FIRST_TEST = `import { startNinefold } from "ninefold/testing";
import { expect, test } from "vitest";

test("a customer pays", async () => {
  const nf = await startNinefold();
  await nf.client.meter("customer-42").refill(100);
  await nf.advance("1 day");
  expect((await nf.client.meter("customer-42").deduct(3)).balance).toBe(97);
  await nf.stop();
});
`;

const LAUNCHER = "node_modules/.bin/ninefold";

describe.each(RUNTIMES.map((path) => [path.split("/").at(-1) ?? "", path] as const))(
  "in %s",
  (_, runtime) => {
    test(
      "a first test passes in the empty folder",
      async () => {
        write("first.test.js", FIRST_TEST);
        const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
        const { code, output } = await end(start([runtime, vitest, "run", "--no-color", "--no-cache"]));
        expect(output).toMatch(/^ *Tests {2}1 passed \(1\)$/m);
        expect(code).toBe(0);
      },
      TIMEOUT_MS,
    );

    test.each(["SIGTERM", "SIGINT"] as const)(
      "ninefold serve runs until %s, and on through SIGHUP",
      async (signal) => {
        const program = start([runtime, LAUNCHER, "serve", "--ephemeral", "--json", "--port", "0"]);
        const { value } = await program.stdout.getReader().read();
        const { url, pid } = JSON.parse(new TextDecoder().decode(value));
        expect(pid).not.toBe(program.pid);
        expect((await fetch(`${url}/v1/ping`)).status).toBe(200);
        // Ends neither of them: their output is no terminal that could have been closed.
        program.kill("SIGHUP");
        expect((await fetch(`${url}/v1/ping`)).status).toBe(200);
        program.kill(signal);
        await program.exited;
        expect([program.exitCode, program.signalCode]).toEqual([0, null]);
        await expect(fetch(`${url}/v1/ping`)).rejects.toThrow();
      },
      TIMEOUT_MS,
    );

    test(
      "arguments, standard streams and exit codes are the executable's own",
      async () => {
        const printed = await end(start([executable(), "version"]));
        expect(printed.output).toStartWith(`${manifest.version}\ncommit  `);
        expect(await end(start([runtime, LAUNCHER, "version"]))).toEqual(printed);
        const refused = await end(start([runtime, LAUNCHER, "serve", "--port", "99999"]));
        expect(refused).toEqual(await end(start([executable(), "serve", "--port", "99999"])));
        expect(refused.code).not.toBe(0);
        const program = start([
          runtime,
          LAUNCHER,
          "serve",
          "--ephemeral",
          "--stop-with-stdin",
          "--port",
          "0",
        ]);
        await program.stdin.end();
        expect((await end(program)).code).toBe(0);
      },
      TIMEOUT_MS,
    );

    test(
      "NINEFOLD_BINARY wins, and may not name the launcher",
      async () => {
        const other = write("other", '#!/bin/sh\necho "other $*"\nkill -KILL $$\n');
        chmodSync(other, 0o755);
        const program = start([runtime, LAUNCHER, "serve", "a b"], { NINEFOLD_BINARY: other });
        expect(await end(program)).toEqual({ code: null, output: "other serve a b\n" });
        expect(program.signalCode).toBe("SIGKILL");
        const self = start([runtime, LAUNCHER, "version"], { NINEFOLD_BINARY: join(project, LAUNCHER) });
        expect(await end(self)).toEqual({
          code: 1,
          output:
            "ninefold: NINEFOLD_BINARY is set to npm's launcher. Set it to the executable itself, or unset it.\n",
        });
      },
      TIMEOUT_MS,
    );
  },
);

test.skipIf(npm === null)(
  "npx ninefold runs it",
  async () => {
    const ran = await end(start(["npx", "--offline", "ninefold", "version"]));
    expect(ran.output).toContain(`${manifest.version}\n`);
    expect(ran.code).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  "without the package of the platform, launcher and startNinefold() say what is missing",
  async () => {
    rmSync(join(project, "node_modules/@ninefold"), { recursive: true });
    const missing = `No Ninefold to start: @ninefold/${ownPlatform().name}, which brings the executable for this machine, is not installed.`;
    const launched = await end(start([RUNTIMES.at(-1) ?? "", LAUNCHER, "serve"]));
    expect(launched.output).toStartWith(`ninefold: ${missing} Install again here`);
    expect(launched.code).toBe(1);
    // With the launcher on the PATH, as in npm's scripts.
    const script = write(
      "start.js",
      'import { startNinefold } from "ninefold/testing";\nawait startNinefold();\n',
    );
    const PATH = `${join(project, "node_modules/.bin")}:${process.env["PATH"]}`;
    const started = await end(start([RUNTIMES.at(-1) ?? "", script], { PATH }));
    expect(started.output).toContain(`Ninefold did not start: ${missing}`);
    expect(started.code).toBe(1);
  },
  TIMEOUT_MS,
);
