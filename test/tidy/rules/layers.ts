import type { Import } from "./imports.ts";
import { type Module, type Violation, violationAt } from "./model.ts";
import {
  ABOVE,
  AREA_INDEX,
  BROWSER,
  BROWSER_IMPORTS,
  BROWSER_PACKAGES,
  COMPOSITION_ROOT,
  DOMAIN,
  inZone,
  PACKAGE_RULES,
  PORTABLE,
  STANDS_ALONE,
} from "./zones.ts";

/** What an image is built from; it has none of the other folders. */
const BUILT_FROM = /^(src|scripts|migrations)\//;

/** Rules 1 to 3: which modules may import which. Types count as well. */
export function checkLayers(module: Module, imports: readonly Import[]): Violation[] {
  if (!BUILT_FROM.test(module.path)) return [];
  const found: Violation[] = [];
  for (const specifier of imports) {
    for (const [rule, message] of broken(module.path, specifier)) {
      found.push(violationAt(module, specifier.offset, rule, message));
    }
  }
  return found;
}

type Finding = readonly [rule: string, message: string];

function broken(from: string, specifier: Import): Finding[] {
  const apart = outside(from, specifier);
  if (!from.startsWith("src/")) return apart ? [apart] : [];
  const findings = [
    apart,
    packageZone(from, specifier),
    domain(from, specifier),
    standsAlone(from, specifier),
    portable(from, specifier),
    browser(from, specifier),
  ];
  const target = specifier.target;
  if (target) findings.push(kernelToArea(from, target), areaToArea(from, target), areaIndex(from, target));
  return findings.filter((finding) => finding !== undefined);
}

function outside(from: string, { target }: Import): Finding | undefined {
  if (!target?.includes("/") || BUILT_FROM.test(target)) return undefined;
  return [
    "built-alone",
    `${from} imports ${target}; an image is built from src, scripts and migrations alone`,
  ];
}

function kernelToArea(from: string, target: string): Finding | undefined {
  if (!from.startsWith("src/kernel/")) return undefined;
  if (!target.startsWith("src/areas/") && !inZone(target, ABOVE)) return undefined;
  return [
    "kernel-knows-no-area",
    `the kernel imports ${target}; declare what it needs in the kernel and let app.ts supply it`,
  ];
}

function areaToArea(from: string, target: string): Finding | undefined {
  const own = areaOf(from);
  if (own === undefined) return undefined;
  const other = areaOf(target);
  if ((other === undefined || other === own) && !inZone(target, ABOVE)) return undefined;
  return [
    "area-knows-no-area",
    `area ${own} imports ${target}; declare a port in areas/${own}/ports.ts and let app.ts supply it`,
  ];
}

function areaIndex(from: string, target: string): Finding | undefined {
  if (from === COMPOSITION_ROOT || !inZone(target, [AREA_INDEX])) return undefined;
  return [
    "only-app-builds-areas",
    `only app.ts imports ${target}; import the file that declares the name, or take it as a parameter`,
  ];
}

function domain(from: string, specifier: Import): Finding | undefined {
  if (!inZone(from, DOMAIN)) return undefined;
  if (specifier.target && mayDomainImport(from, specifier.target)) return undefined;
  return [
    "domain-is-pure",
    `${fileName(from)} imports "${specifier.specifier}"; it may import only kernel/data/duration-text, kernel/data/latencies, kernel/data/uptime, kernel/errors, kernel/outbound/retries, kernel/time/date-time, kernel/time/readable, kernel/time/units and its area's schema.ts, ports.ts and types`,
  ];
}

/** Modules of the kernel that domains may import: none has side effects. */
const PURE_KERNEL: ReadonlySet<string> = new Set([
  "src/kernel/errors.ts",
  "src/kernel/data/duration-text.ts",
  "src/kernel/data/latencies.ts",
  "src/kernel/data/uptime.ts",
  "src/kernel/outbound/retries.ts",
  "src/kernel/time/date-time.ts",
  "src/kernel/time/readable.ts",
  "src/kernel/time/units.ts",
]);

function mayDomainImport(from: string, target: string): boolean {
  if (PURE_KERNEL.has(target)) return true;
  if (areaOf(target) !== areaOf(from)) return false;
  return inZone(target, DOMAIN) || /^(schema|ports|types)(-[\w-]+)?\.ts$/.test(fileName(target));
}

function standsAlone(from: string, { specifier, target }: Import): Finding | undefined {
  if (!inZone(from, STANDS_ALONE) || (target && inZone(target, STANDS_ALONE))) return undefined;
  return [
    "client-stands-alone",
    `the client imports "${specifier}"; it goes into other programs without dependencies, so write it there, or generate it`,
  ];
}

function portable(from: string, { target }: Import): Finding | undefined {
  if (!inZone(from, PORTABLE) || !target || inZone(target, PORTABLE)) return undefined;
  return [
    "verifier-is-portable",
    `${from} imports ${target}; the verifier runs in browsers too, so it takes nothing from the server`,
  ];
}

/**
 * The console imports nothing of the server, and only packages that run in browsers; other code imports nothing of the
 * console.
 */
function browser(from: string, { specifier, target }: Import): Finding | undefined {
  if (!inZone(from, BROWSER)) {
    if (!target || !inZone(target, BROWSER)) return undefined;
    return ["browser-zone", `${from} imports ${target}; the console is built apart, and served as files`];
  }
  const known = target
    ? inZone(target, BROWSER_IMPORTS)
    : BROWSER_PACKAGES.some((name) => specifier === name || specifier.startsWith(`${name}/`));
  if (known || specifier.endsWith(".css")) return undefined;
  return [
    "browser-zone",
    `the console imports "${specifier}"; it runs in a browser, which has nothing of that`,
  ];
}

function packageZone(from: string, specifier: Import): Finding | undefined {
  const rule = PACKAGE_RULES.find(({ packages }) =>
    packages.some((name) => specifier.specifier === name || specifier.specifier.startsWith(`${name}/`)),
  );
  if (!rule || inZone(from, rule.zone)) return undefined;
  return [rule.rule, `"${specifier.specifier}" has no place here; ${rule.fix}`];
}

/** The types of that module are free for all, as those of a service's parameters are. */
function areaOf(path: string): string | undefined {
  return /^src\/areas\/([^/]+)\//.exec(path)?.[1];
}

function fileName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
