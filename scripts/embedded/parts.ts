import { Database } from "bun:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A part of the executable. */
export interface EmbeddedPart {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  /** The licence's full text, or where it is. */
  readonly text: string;
  /** Its npm package; absent for Ninefold itself, Bun and SQLite. */
  readonly package?: EmbeddedPackage;
}

/** Everything that an executable consists of: Ninefold, the runtime with its database, and the packages by name. */
export function embeddedParts(root: string): EmbeddedPart[] {
  const text = (path: string): string => readFileSync(join(root, path), "utf8").trim();
  const { version, license, engines } = JSON.parse(text("package.json")) as {
    version: string;
    license: string;
    engines: { bun: string };
  };
  return [
    { name: "ninefold", version, license, text: text("LICENSE") },
    // The licence of Bun; those of its libraries are in the text.
    { name: "Bun", version: engines.bun, license: "MIT", text: text("scripts/embedded/bun.txt") },
    {
      name: "SQLite",
      version: sqliteVersion(),
      license: "blessing",
      text: text("scripts/embedded/sqlite.txt"),
    },
    ...embeddedPackages(root).map((one) => ({
      name: one.name,
      version: one.version,
      license: one.license,
      text: one.text,
      package: one,
    })),
  ];
}

/** The version of SQLite in the runtime. */
function sqliteVersion(): string {
  using db = new Database(":memory:");
  const row = db.query<{ version: string }, []>("SELECT sqlite_version() AS version").get();
  return row?.version ?? "unknown";
}

/** An npm package in the executable. */
interface EmbeddedPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  /** The licence in full, with notices. */
  readonly text: string;
  /** Hash of the package as the registry has it, as in the lockfile: `sha512-…`. */
  readonly integrity: string;
  /** Its dependencies as `name@version`. */
  readonly needs: readonly string[];
}

/** A line of `packages` in bun.lock: name and version, registry, dependencies, and hash. */
type Locked = readonly [
  resolved: string,
  registry: string,
  needs: Partial<Record<"dependencies" | "optionalDependencies", Record<string, string>>>,
  integrity: string,
];

interface Lockfile {
  readonly workspaces: { readonly "": { readonly dependencies: Record<string, string> } };
  readonly packages: Readonly<Record<string, Locked>>;
}

/** The used part of an installed package's manifest. */
interface Manifest {
  readonly license?: unknown;
  readonly author?: string | { readonly name: string };
}

/** Licences that name their authors, so that the text must be included. */
const TEXT_FILE = /^(licen[sc]e|copying|notice)([.-].*)?$/i;

/**
 * The production dependencies of a repository, including indirect ones, sorted by name: from its lockfile, with the
 * licences of the installed packages.
 *
 * @throws Error for a package without a licence: it must be reviewed before it is distributed.
 */
function embeddedPackages(root: string): EmbeddedPackage[] {
  const { workspaces, packages } = Bun.JSONC.parse(readFileSync(join(root, "bun.lock"), "utf8")) as Lockfile;
  const found = new Map<string, EmbeddedPackage>();
  const pending = Object.keys(workspaces[""].dependencies).map((name) => placeOf(packages, "", name));
  for (const place of pending) {
    if (found.has(place)) continue;
    const [resolved, , needed, integrity] = packages[place] as Locked;
    const wanted = Object.keys({ ...needed.dependencies, ...needed.optionalDependencies });
    const places = wanted.map((name) => placeOf(packages, place, name));
    pending.push(...places);
    const needs = places.map((one) => (packages[one] as Locked)[0]).sort();
    const at = resolved.lastIndexOf("@");
    const [name, version] = [resolved.slice(0, at), resolved.slice(at + 1)];
    found.set(place, { name, version, integrity, needs, ...licenseOf(root, place) });
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The key in the lockfile of a package's dependency: its own copy, or the common one. @throws Error */
function placeOf(packages: Lockfile["packages"], from: string, name: string): string {
  const places = from === "" ? [name] : [`${from}/${name}`, name];
  const place = places.find((one) => one in packages);
  if (place === undefined) throw new Error(`bun.lock has no ${name}, which ${from || "package.json"} needs`);
  return place;
}

function licenseOf(root: string, place: string): Pick<EmbeddedPackage, "license" | "text"> {
  // `a/b` is a's copy of b. A scope contains a slash, too.
  const nested = place.replaceAll(/(?<=^|\/)(@[^/]+\/)?[^/]+(?=\/|$)/g, (name) => `node_modules/${name}`);
  const folder = join(root, nested);
  const { license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  if (typeof license !== "string") throw new Error(`${place} names no licence`);
  const files = readdirSync(folder).filter((name) => TEXT_FILE.test(name));
  const texts = files.sort().map((name) => readFileSync(join(folder, name), "utf8").trim());
  // A package without a file for its licence: its name and author are used.
  if (texts.length === 0) texts.push(`${license}, ${typeof author === "string" ? author : author?.name}`);
  return { license, text: texts.join("\n\n") };
}
