import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type EmbeddedPackage, embeddedPackages } from "./packages.ts";

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
