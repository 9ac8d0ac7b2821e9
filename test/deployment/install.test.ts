import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isBearerKey } from "../../src/kernel/secrets/key-format.ts";
import { plainEnvironment, ROOT } from "../harness/processes/server-process.ts";

const SERVICE = "etc/systemd/system/ninefold.service";
const SYSTEM_COMMANDS = [
  "+ useradd --system --user-group --no-create-home --home-dir /var/lib/ninefold --shell /usr/sbin/nologin ninefold",
  "+ chown ninefold:ninefold /var/backups/ninefold",
  "+ systemctl daemon-reload",
  "+ systemctl enable ninefold.service",
];

let folder = "";
let stage = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-test-"));
  stage = join(folder, "stage");
  mkdirSync(stage);
  program("bin/root/id", '[ "$1" = -u ] && echo 0');
  program("bin/user/id", '[ "$1" = -u ] && echo 1000');
  program("ninefold", "echo 1.2.3");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a small program. */
function program(name: string, code: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${code}\n`);
  chmodSync(path, 0o755);
  return path;
}

interface Ended {
  readonly code: number;
  readonly lines: readonly string[];
}

/** Runs scripts/install below the stage, as root or, according to a fake `id`, as another user. */
function install(args: readonly string[], as: "root" | "user" = "root"): Ended {
  const command = ["sh", join(ROOT, "scripts", "install"), "--root", stage, ...args];
  const environment = plainEnvironment({ PATH: `${join(folder, "bin", as)}:${process.env["PATH"]}` });
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { env: environment });
  return { code: exitCode, lines: `${stdout}${stderr}`.trimEnd().split("\n") };
}

const plain = (): readonly string[] => ["--executable", join(folder, "ninefold")];
const read = (path: string): string => readFileSync(join(stage, path), "utf8");
const mode = (path: string): string => (statSync(join(stage, path)).mode & 0o777).toString(8);

/** Every file below the stage. */
function files(): string[] {
  const names = readdirSync(stage, { recursive: true, encoding: "utf8" });
  return names.filter((name) => statSync(join(stage, name)).isFile()).sort();
}

const INSTALLED = [
  "etc/ninefold/master.key",
  "etc/ninefold/ninefold.toml",
  "etc/ninefold/operator.key",
  SERVICE,
  "usr/local/bin/ninefold",
];

describe("as root", () => {
  test("the executable, its service, a configuration and two keys are put in their places", () => {
    const { code, lines } = install(plain());
    expect(lines.filter((line) => line.startsWith("+ "))).toEqual([
      ...SYSTEM_COMMANDS,
      "+ systemctl restart ninefold.service",
    ]);
    expect(lines.at(-1)).toBe("ninefold: version 1.2.3");
    expect(code).toBe(0);
    expect(files()).toEqual(INSTALLED);
    expect(INSTALLED.map(mode)).toEqual(["600", "644", "600", "644", "755"]);
    expect(read("etc/ninefold/master.key")).toMatch(/^[0-9a-f]{64}$/);
    expect(isBearerKey(read("etc/ninefold/operator.key").trimEnd())).toBe(true);
    expect(read("usr/local/bin/ninefold")).toBe("#!/bin/sh\necho 1.2.3\n");
    expect(read(SERVICE)).toBe(readFileSync(join(ROOT, "packaging", "ninefold.service"), "utf8"));
  });

  test("done again it changes nothing, and does not restart the service", () => {
    install(plain());
    writeFileSync(join(stage, "etc/ninefold/ninefold.toml"), "port = 1\n");
    const before = files().map(read);
    const { code, lines } = install(plain());
    expect(lines).toContain("ninefold: /usr/local/bin/ninefold is up to date");
    expect(lines).toContain(`ninefold: /${SERVICE} is up to date`);
    expect(lines).toContain("+ systemctl start ninefold.service");
    expect(lines).not.toContain("+ systemctl restart ninefold.service");
    expect(code).toBe(0);
    expect(files().map(read)).toEqual(before);
  });

  test("a new version replaces the executable alone, and restarts the service", () => {
    install(plain());
    const before = INSTALLED.slice(0, -1).map(read);
    program("ninefold", "echo 1.2.4");
    const { lines } = install(plain());
    expect(lines).toContain("+ systemctl restart ninefold.service");
    expect(lines.at(-1)).toBe("ninefold: version 1.2.4");
    expect(read("usr/local/bin/ninefold")).toContain("1.2.4");
    expect(INSTALLED.slice(0, -1).map(read)).toEqual(before);
    expect(files()).toEqual(INSTALLED);
  });

  test("another prefix is the one that the service runs", () => {
    install([...plain(), "--prefix", "/opt/ninefold/"]);
    expect(existsSync(join(stage, "opt/ninefold/bin/ninefold"))).toBe(true);
    expect(read(SERVICE)).toContain("\nExecStart=/opt/ninefold/bin/ninefold serve --config");
  });

  test("a database that is there keeps the key that it is sealed with", () => {
    mkdirSync(join(stage, "var/lib/ninefold"), { recursive: true });
    writeFileSync(join(stage, "var/lib/ninefold/ninefold.db"), "");
    const refused = install(plain());
    expect(refused.lines.at(-1)).toBe(
      "ninefold: /var/lib/ninefold/ninefold.db is there, but its master key is not: put it into /etc/ninefold/master.key and run this again.",
    );
    expect(refused.code).toBe(1);
    expect(existsSync(join(stage, "etc/ninefold/master.key"))).toBe(false);
    writeFileSync(join(stage, "var/lib/ninefold/master.key"), "the key\n");
    expect(install(plain()).code).toBe(0);
    expect([read("etc/ninefold/master.key"), mode("etc/ninefold/master.key")]).toEqual(["the key\n", "600"]);
  });

  test("--uninstall takes away executable and service, and leaves configuration, keys and data", () => {
    install(plain());
    mkdirSync(join(stage, "var/lib/ninefold"), { recursive: true });
    const { code, lines } = install(["--uninstall"]);
    expect(lines).toEqual([
      "+ systemctl disable --now ninefold.service",
      "+ systemctl daemon-reload",
      "ninefold: /usr/local/bin/ninefold is removed",
      `ninefold: ${stage}/etc/ninefold stays; remove it yourself when nothing in it is needed any more`,
      `ninefold: ${stage}/var/lib/ninefold stays; remove it yourself when nothing in it is needed any more`,
      `ninefold: ${stage}/var/backups/ninefold stays; remove it yourself when nothing in it is needed any more`,
    ]);
    expect(code).toBe(0);
    expect(files()).toEqual(INSTALLED.slice(0, 3));
    expect(install(["--uninstall"]).code).toBe(0);
    expect(install(plain()).code).toBe(0);
    expect(files()).toEqual(INSTALLED);
  });

  test("--dry-run prints what would be done, and does none of it", () => {
    const { code, lines } = install([...plain(), "--dry-run"]);
    expect(lines.filter((line) => !line.startsWith("+ "))).toEqual([]);
    expect(lines).toContain(`+ mv -f ${stage}/usr/local/bin/ninefold.new ${stage}/usr/local/bin/ninefold`);
    expect(lines).toContain("+ systemctl restart ninefold.service");
    expect(code).toBe(0);
    expect(files()).toEqual([]);
  });

  test("--no-service installs the executable alone", () => {
    expect(install([...plain(), "--no-service"]).lines).toEqual([
      "ninefold: /usr/local/bin/ninefold is installed",
      "ninefold: no service is set up; start it by: /usr/local/bin/ninefold serve",
      "ninefold: version 1.2.3",
    ]);
    expect(files()).toEqual(["usr/local/bin/ninefold"]);
  });
});

test("as another user the executable alone is installed", () => {
  expect(install(plain(), "user").lines).toContain(
    "ninefold: no service is set up; start it by: /usr/local/bin/ninefold serve",
  );
  expect(files()).toEqual(["usr/local/bin/ninefold"]);
});

test.each([
  [["--colour"], "ninefold: there is no option --colour; see scripts/install --help."],
  [["--prefix"], "ninefold: --prefix needs a value; see scripts/install --help."],
  [["--prefix", "local"], "ninefold: --prefix must be an absolute path, not local."],
  [
    ["--executable", "/nowhere"],
    "ninefold: there is no /nowhere: run scripts/build first, or name another with --executable.",
  ],
  [
    ["--executable", "/dev/null/x"],
    "ninefold: there is no /dev/null/x: run scripts/build first, or name another with --executable.",
  ],
])("refused: %p", (args, line) => {
  expect(install(args)).toEqual({ code: 1, lines: [line] });
  expect(files()).toEqual([]);
});

test("rejected: an executable that does not run here", () => {
  const path = program("broken", "exit 1");
  expect(install(["--executable", path])).toEqual({
    code: 1,
    lines: [`ninefold: ${path} does not run on this machine.`],
  });
});

test("--help says what there is", () => {
  const { code, lines } = install(["--help"]);
  expect([code, lines[0]]).toEqual([0, "Usage: scripts/install [OPTIONS]"]);
});
