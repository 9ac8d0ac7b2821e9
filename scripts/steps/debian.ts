import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runCheck, type StepResult } from "./step.ts";

/** The Chromium without windows takes half the processor time for the same pages. */
const HEADLESS_SHELL = "chromium-headless-shell";
const HEADLESS_SHELL_PATH = `/usr/bin/${HEADLESS_SHELL}`;

/** Where a Chromium may be, the best one first. */
const CHROMIUM_PATHS = [
  HEADLESS_SHELL_PATH,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

/** What tests need of the system in addition to what a small Debian has. */
const NEEDS = [
  { package: HEADLESS_SHELL, tests: ["test/pages/"], isThere: () => findChromium() !== undefined },
  // The guides are pasted into a shell, as their readers do.
  ...["curl", "jq"].map((tool) => ({
    package: tool,
    tests: ["test/docs/", "test/client/", "test/examples/"],
    isThere: () => Bun.which(tool) !== null,
  })),
  // Signatures of a release are verified by the program that its users have, and shell scripts by a linter.
  ...["minisign", "shellcheck"].map((tool) => ({
    package: tool,
    tests: ["test/deployment/"],
    isThere: () => findProgram(tool) !== null,
  })),
  // Examples in the guides run in every language that they are in.
  ...["golang-go", "php-cli", "php-curl"].map((name) => ({
    package: name,
    tests: ["test/docs/"],
    isThere: () => existsSync(`/usr/share/doc/${name}`),
  })),
  // The Python package is tested with Debian's Python, and its types with Debian's checker.
  { package: "python3-venv", tests: ["test/python/", "test/docs/"], isThere: hasPythonVenv },
  { package: "mypy", tests: ["test/python/"], isThere: () => existsSync("/usr/bin/mypy") },
  {
    package: "iputils-ping",
    tests: ["test/areas/monitors/", "test/pages/"],
    isThere: () => findProgram("ping") !== null,
  },
  // The configurations in the guides are tried as they stand.
  ...["nginx", "caddy"].map((proxy) => ({
    package: proxy,
    tests: ["test/docs/", "test/examples/", "test/cluster/", "test/deployment/"],
    isThere: () => findProgram(proxy) !== null,
  })),
  // The commit log is tested with the real engines.
  { package: "etcd-server", tests: ["test/cluster/"], isThere: () => findProgram("etcd") !== null },
  { package: "postgresql", tests: ["test/cluster/"], isThere: () => findBin() !== null },
];

/** A program of this machine, also one of those that only root has in its path. */
export function findProgram(name: string): string | null {
  return Bun.which(name, { PATH: `${process.env["PATH"]}:/usr/sbin:/usr/bin` });
}

/** Whether Debian's Python can create virtual environments, which is in a package of its own. */
function hasPythonVenv(): boolean {
  if (!existsSync("/usr/bin/python3")) return false;
  return Bun.spawnSync(["/usr/bin/python3", "-c", "import ensurepip"], { stderr: "ignore" }).success;
}

/** The Chromium of this machine, if it has one. */
export function findChromium(): string | undefined {
  return CHROMIUM_PATHS.find((path) => existsSync(path));
}

/** Debian installs the server's programs outside of PATH, one folder per version. The newest is used. */
export function findBin(): string | null {
  const root = "/usr/lib/postgresql";
  try {
    const versions = readdirSync(root).sort((a, b) => Number(b) - Number(a));
    for (const version of versions) {
      const bin = join(root, version, "bin");
      if (readdirSync(bin).includes("initdb") && readdirSync(bin).includes("pgbench")) return bin;
    }
  } catch {
    // Other systems have them in PATH.
  }
  const initdb = Bun.which("initdb");
  return initdb !== null && Bun.which("pgbench") !== null ? join(initdb, "..") : null;
}

/** PostgreSQL does not run as root. In that case it runs as this user. */
export function otherUser(): string | null {
  if (process.getuid?.() !== 0) return null;
  const { success } = Bun.spawnSync(["id", "postgres"], { stdout: "ignore", stderr: "ignore" });
  return success ? "postgres" : "nobody";
}

/** Installs Debian's packages that these tests need where they are missing: a quarter of a minute. Null: none is. */
export async function installMissing(files: readonly string[]): Promise<StepResult | null> {
  const missing = NEEDS.filter(
    ({ tests, isThere }) => !isThere() && files.some((file) => tests.some((start) => file.startsWith(start))),
  );
  if (missing.length === 0) return null;
  const names = missing.map((need) => need.package).join(" ");
  const install = commandFor(names);
  // Another program may hold the package manager for a moment, and a mirror may be busy: a second try costs little.
  const twice = `(${install}) || { sleep 10; ${install}; }`;
  const step = await runCheck(names, ["sh", "-c", twice]);
  if (step.failed === 0 && missing.every(({ isThere }) => isThere())) return { ...step, note: "installed" };
  const output = `${step.output}\nTests need ${names}, which could not be installed; run: ${install}`;
  return { ...step, passed: 0, failed: 1, output };
}

/**
 * Installs the Chromium without windows where only another one is: it saves all pages together much more time than that
 * takes. Where it is not to be had, the other one serves. Null: there was nothing to do.
 */
export async function installHeadlessShell(): Promise<StepResult | null> {
  if (existsSync(HEADLESS_SHELL_PATH) || findProgram("apt-get") === null) return null;
  const step = await runCheck(HEADLESS_SHELL, ["sh", "-c", `${commandFor(HEADLESS_SHELL)} || true`]);
  const isThere = existsSync(HEADLESS_SHELL_PATH);
  return { ...step, note: isThere ? "installed" : "not to be had here: the tests of pages take longer" };
}

/** The shell command that installs packages. */
function commandFor(names: string): string {
  const asRoot = process.getuid?.() === 0 ? "" : "sudo -n ";
  return `${asRoot}apt-get update && ${asRoot}apt-get install -y --no-install-recommends ${names}`;
}
