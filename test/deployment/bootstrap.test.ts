import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { plainEnvironment, ROOT } from "../harness/processes/server-process.ts";

const VERSION = "9.9.9";
/** The programs that the script may use, except those that hash. */
const TOOLS = [
  "awk",
  "cat",
  "cksum",
  "cut",
  "dirname",
  "head",
  "ls",
  "mkdir",
  "mv",
  "rm",
  "sed",
  "sh",
  "sleep",
];
const HASHERS = ["sha256sum", "shasum", "openssl"] as const;

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "ninefold-test-"));
  for (const name of ["scripts", "bin", "registry"]) mkdirSync(join(root, name));
  copyFileSync(join(ROOT, "scripts/bootstrap"), join(root, "scripts/bootstrap"));
  writeFileSync(join(root, "package.json"), `{ "engines": {\n"bun": "${VERSION}"\n} }`);
  writeFileSync(join(root, "bun.lock"), "{}");
  for (const tool of TOOLS) link(tool);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Lets the script find a program of this machine, if it exists. */
function link(tool: string): void {
  const path = Bun.which(tool);
  if (path !== null) symlinkSync(path, join(root, "bin", tool));
}

function program(path: string, code: string): string {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${code}\n`);
  chmodSync(file, 0o755);
  return file;
}

/** A registry whose `bun` is this program, which records that it ran. Returns its hash. */
function registryHas(packageName: string): string {
  const file = program("registry/bun", `: >"${root}/ran"\n[ "$1" != --version ] || echo ${VERSION}`);
  program(
    "bin/npm",
    `while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/@oven/${packageName}/bin"
cat "${file}" >"$2/node_modules/@oven/${packageName}/bin/bun"
"${Bun.which("chmod")}" 755 "$2/node_modules/@oven/${packageName}/bin/bun"`,
  );
  return new Bun.CryptoHasher("sha256").update(readFileSync(file)).digest("hex");
}

function listed(...lines: readonly string[]): void {
  writeFileSync(join(root, "scripts/bun.sha256"), ["# Hashes", ...lines, ""].join("\n"));
}

function bootstrap(): { code: number; errors: string; ran: boolean } {
  const { exitCode, stderr } = Bun.spawnSync(["/bin/sh", join(root, "scripts/bootstrap")], {
    env: { ...plainEnvironment({}), PATH: join(root, "bin") },
  });
  return { code: exitCode, errors: stderr.toString(), ran: existsSync(join(root, "ran")) };
}

describe("a Bun that npm fetched", () => {
  for (const hasher of HASHERS) {
    test.skipIf(Bun.which(hasher) === null)(`is run when its hash is the known one, by ${hasher}`, () => {
      link(hasher);
      // shasum is a script of Perl's.
      if (hasher === "shasum") link("perl");
      listed(`${"0".repeat(64)}  bun-other@${VERSION}`, `${registryHas("bun-this")}  bun-this@${VERSION}`);
      expect(bootstrap()).toMatchObject({ code: 0, ran: true });
      expect(existsSync(join(root, ".tools", `bun-${VERSION}`))).toBe(true);
    });
  }

  const refused: readonly (readonly [string, (hash: string) => string[], string])[] = [
    [
      "is not the known one",
      () => [`${"1".repeat(64)}  bun-this@${VERSION}`],
      "is not the known one, so it was not run",
    ],
    [
      "is of a platform that is not listed",
      (hash) => [`${hash}  bun-other@${VERSION}`],
      "does not list, so it was not run",
    ],
    [
      "is of a version that is not listed",
      (hash) => [`${hash}  bun-this@9.9.8`],
      "does not list, so it was not run",
    ],
  ];
  test.each(refused)("is not run, nor kept, when it %s", (_, lines, message) => {
    link(HASHERS.find((hasher) => Bun.which(hasher) !== null) ?? "openssl");
    listed(...lines(registryHas("bun-this")));
    const { code, errors, ran } = bootstrap();
    expect(errors).toContain(message);
    expect(errors).toContain(`@oven/bun-this@${VERSION}`);
    expect({ code, ran }).toEqual({ code: 1, ran: false });
    expect(existsSync(join(root, ".tools", `bun-${VERSION}`))).toBe(false);
    expect(bootstrap()).toMatchObject({ code: 1, ran: false });
  });

  test("is not run where nothing can hash it", () => {
    listed(`${registryHas("bun-this")}  bun-this@${VERSION}`);
    const { code, errors, ran } = bootstrap();
    expect(errors).toContain("needs sha256sum, shasum or openssl");
    expect({ code, ran }).toEqual({ code: 1, ran: false });
  });
});
