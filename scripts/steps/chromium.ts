import { existsSync } from "node:fs";
import { runCheck, type StepResult } from "./step.ts";

/** Where a Chromium may be. */
const PATHS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The Chromium of this machine, if it has one. */
export function findChromium(): string | undefined {
  return PATHS.find((path) => existsSync(path));
}

/** Installs Debian's Chromium where there is none: the tests of the pages open them in it. A quarter of a minute. */
export async function installChromium(): Promise<StepResult> {
  const asRoot = process.getuid?.() === 0 ? "" : "sudo -n ";
  const install = `${asRoot}apt-get update && ${asRoot}apt-get install -y --no-install-recommends chromium`;
  // Another program may hold the package manager for a moment, and a mirror may be busy: a second try costs little.
  const twice = `(${install}) || { sleep 10; ${install}; }`;
  const step = await runCheck("chromium", ["sh", "-c", twice]);
  if (step.failed === 0 && findChromium() !== undefined) return { ...step, note: "installed" };
  const output = `${step.output}\nThe tests of the pages need Chromium and could not install it; run: ${install}`;
  return { ...step, passed: 0, failed: 1, output };
}
