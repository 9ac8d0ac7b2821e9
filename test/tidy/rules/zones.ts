// The house rules as data: which paths may do what. Patterns are globs on paths relative to the root.

const STORES = [
  "src/areas/*/**/store.ts",
  "src/areas/*/**/store-*.ts",
  "src/areas/*/**/*-store.ts",
  "src/areas/*/backup-check.ts",
];
/** Where routes are declared. */
const ROUTES = [
  "src/kernel/http/**",
  "src/kernel/resources/routes.ts",
  "src/areas/*/**/routes.ts",
  "src/areas/*/**/routes-*.ts",
  "src/areas/*/**/*-routes.ts",
];
const CLOCK = ["src/kernel/time/clock*.ts", "src/kernel/ids.ts"];

/** Files outside `kernel/storage` that need a database connection of their own, such as offline commands. */
const SQLITE_ALLOW_LIST: readonly string[] = [];

/** Files outside stores and the kernel that may contain SQL text. */
const SQL_TEXT_ALLOW_LIST: readonly string[] = [
  "src/backup/verification.ts",
  "src/cluster/engines/postgres.ts",
];

/** Runs inside users' test suites, not inside the server: it uses the runtime's own clock, environment and network. */
const TESTING = "src/testing/**";

/**
 * The package with which other programs call a server: it is not part of the server. It sends requests to the address
 * that its user configures, which the guarded client would reject, and it runs in its user's real time.
 */
const CLIENT = "src/client/**";

/**
 * The console and the portal: they run in browsers, in real time, and send requests to the server that they came from.
 */
export const BROWSER = ["src/pages/dashboard/**", "src/pages/portal/**"];
/** Other files of this tree that run there. */
export const BROWSER_IMPORTS = [
  ...BROWSER,
  "src/verify/**",
  "src/client/api.ts",
  "src/client/generated/**",
  "src/client/uuid.ts",
];
/** The packages that run there; no other part of `src/` needs the packages that render the console. */
export const BROWSER_PACKAGES = ["preact", "@preact/signals", "@simplewebauthn/browser", "lucide", "diff"];

/** Files that measure a real network and therefore read real time. */
const REAL_TIME_ALLOW_LIST: readonly string[] = ["src/kernel/outbound/**", CLIENT, ...BROWSER];

export const AREA_INDEX = "src/areas/*/index.ts";
export const COMPOSITION_ROOT = "src/app.ts";
export const MAIN = "src/main.ts";
export const DOMAIN = [
  "src/areas/*/**/domain.ts",
  "src/areas/*/**/domain-*.ts",
  "src/areas/*/**/*-domain.ts",
];
export const SQL_TEXT = ["src/kernel/**", ...STORES, ...SQL_TEXT_ALLOW_LIST];

/** Layers above kernel and areas. The kernel and the areas must not import them. */
export const ABOVE = [COMPOSITION_ROOT, MAIN, "src/cli/**", "src/pages/**"];

/** Exports of these files are used outside the tree. */
export const ENTRY_POINTS = [MAIN, CLIENT, "src/testing/index.ts", "src/verify/index.ts"];

/** Sources that are copied into other programs, so that they import only each other. */
export const STANDS_ALONE = [CLIENT];

/** The receipt verifier, which also runs in browsers: its sources import only each other. */
export const PORTABLE = ["src/verify/**", "src/json-text.ts"];

/** A package that only some files may import. */
export interface PackageRule {
  readonly rule: string;
  readonly packages: readonly string[];
  readonly zone: readonly string[];
  readonly fix: string;
}

export const PACKAGE_RULES: readonly PackageRule[] = [
  {
    rule: "browser-zone",
    packages: BROWSER_PACKAGES,
    zone: BROWSER,
    fix: "draw it in pages/dashboard or pages/portal",
  },
  {
    rule: "elysia-zone",
    packages: ["elysia", "@elysiajs"],
    zone: ROUTES,
    fix: "move what touches HTTP to the area's routes.ts or to kernel/http",
  },
  {
    rule: "sqlite-zone",
    packages: ["bun:sqlite", "node:sqlite"],
    zone: ["src/kernel/storage/**", ...SQLITE_ALLOW_LIST],
    fix: "take the kernel's database or unit of work as a parameter",
  },
  {
    rule: "croner-zone",
    packages: ["croner"],
    zone: ["src/kernel/scheduler/**", "src/kernel/scheduler.ts"],
    fix: "get the next time from the scheduler's calendar",
  },
  {
    rule: "outbound-zone",
    packages: [
      "node:http",
      "node:https",
      "node:http2",
      "node:dns",
      "node:dns/promises",
      "http",
      "https",
      "http2",
      "dns",
      "dns/promises",
      "undici",
    ],
    zone: ["src/kernel/outbound/**", TESTING],
    fix: "send through the guarded client of kernel/outbound",
  },
  {
    rule: "clock-zone",
    packages: ["node:timers", "timers", "node:perf_hooks", "perf_hooks"],
    zone: [...CLOCK, ...REAL_TIME_ALLOW_LIST],
    fix: "take a Clock as a parameter",
  },
];

/** Globals that only some files may use, as they are written in the code. */
export interface GlobalRule {
  readonly rule: string;
  readonly names: readonly string[];
  readonly zone: readonly string[];
  readonly fix: string;
}

export const GLOBAL_RULES: readonly GlobalRule[] = [
  {
    rule: "outbound-zone",
    names: ["fetch", "Bun.fetch", "Bun.dns", "XMLHttpRequest"],
    zone: ["src/kernel/outbound/**", CLIENT, TESTING, ...BROWSER],
    fix: "send through the guarded client of kernel/outbound",
  },
  {
    rule: "config-zone",
    names: ["process.env", "Bun.env", "import.meta.env"],
    zone: ["src/config.ts", "src/config/**", TESTING],
    fix: "add a setting to the configuration and take it as a parameter",
  },
  {
    rule: "clock-zone",
    names: [
      "Date.now",
      "Date()",
      "new Date()",
      "performance.now",
      "performance.timeOrigin",
      "process.hrtime",
      "Bun.nanoseconds",
      "Bun.sleep",
      "Bun.sleepSync",
      "setTimeout",
      "setInterval",
      "AbortSignal.timeout",
      "Math.random",
    ],
    zone: [...CLOCK, ...REAL_TIME_ALLOW_LIST, TESTING],
    fix: "take the Clock (time, timers) or Ids (randomness) as a parameter",
  },
  {
    rule: "clock-zone",
    names: ["setImmediate"],
    zone: [...CLOCK, ...REAL_TIME_ALLOW_LIST, "src/kernel/storage/writer*", "src/kernel/storage/database.ts"],
    fix: "hand the work to the writer or to the Clock",
  },
];

const compiled = new Map<string, Bun.Glob>();

/** True if a path matches one of the patterns. */
export function inZone(path: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => {
    const glob = compiled.get(pattern) ?? new Bun.Glob(pattern);
    compiled.set(pattern, glob);
    return glob.match(path);
  });
}
