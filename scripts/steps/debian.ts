import { existsSync } from "node:fs";
import { findBin } from "../benchmarks/postgres-cluster.ts";
import { runCheck, type StepResult } from "./step.ts";

/** Where a Chromium may be. The one without windows goes first: it takes half the processor time for the same pages. */
const CHROMIUM_PATHS = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

/** What tests need of the system beside what a small Debian has. */
const NEEDS = [
  { package: "chromium-headless-shell", tests: ["test/pages/"], isThere: () => findChromium() !== undefined },
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
  // The configurations in the guides are tried as they stand.
  ...["nginx", "caddy"].map((proxy) => ({
    package: proxy,
    tests: ["test/docs/", "test/examples/", "test/cluster/"],
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

/** The Chromium of this machine, if it has one. */
export function findChromium(): string | undefined {
  return CHROMIUM_PATHS.find((path) => existsSync(path));
}

/** Installs Debian's packages that these tests need where they are missing: a quarter of a minute. Null: none is. */
export async function installMissing(files: readonly string[]): Promise<StepResult | null> {
  const missing = NEEDS.filter(
    ({ tests, isThere }) => !isThere() && files.some((file) => tests.some((start) => file.startsWith(start))),
  );
  if (missing.length === 0) return null;
  const names = missing.map((need) => need.package).join(" ");
  const asRoot = process.getuid?.() === 0 ? "" : "sudo -n ";
  const install = `${asRoot}apt-get update && ${asRoot}apt-get install -y --no-install-recommends ${names}`;
  // Another program may hold the package manager for a moment, and a mirror may be busy: a second try costs little.
  const twice = `(${install}) || { sleep 10; ${install}; }`;
  const step = await runCheck(names, ["sh", "-c", twice]);
  if (step.failed === 0 && missing.every(({ isThere }) => isThere())) return { ...step, note: "installed" };
  const output = `${step.output}\nTests need ${names}, which could not be installed; run: ${install}`;
  return { ...step, passed: 0, failed: 1, output };
}
