import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sqliteVersion } from "../../src/kernel/storage/examine.ts";
import { ninefold, ROOT } from "./run.ts";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

interface License {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly text: string;
}

/** The installed packages that a package needs, with what they need, found as the runtime finds them. */
function installedClosure(folder: string, found = new Map<string, Manifest>()): Map<string, Manifest> {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  for (const name of Object.keys(manifest.dependencies ?? {})) {
    let from = folder;
    while (!existsSync(join(from, "node_modules", name))) from = dirname(from);
    const place = join(from, "node_modules", name);
    if (found.has(place)) continue;
    found.set(place, JSON.parse(readFileSync(join(place, "package.json"), "utf8")) as Manifest);
    installedClosure(place, found);
  }
  return found;
}

test("ninefold licenses --json lists Ninefold, the runtime and every production dependency", async () => {
  const { code, out, error } = await ninefold(["licenses", "--json"]);
  expect([code, error]).toEqual([0, ""]);
  const [ninefoldItself, bun, sqlite, ...packages] = JSON.parse(out) as License[];
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;
  const text = readFileSync(join(ROOT, "LICENSE"), "utf8").trim();
  expect(ninefoldItself).toEqual({ name: "ninefold", version, license: "MIT", text });
  expect([bun?.name, bun?.version]).toEqual(["Bun", Bun.version]);
  expect(bun?.text).toContain("JavaScriptCore");
  expect([sqlite?.name, sqlite?.version]).toEqual(["SQLite", sqliteVersion()]);
  const installed = [...installedClosure(ROOT).values()].map((value) => [
    value.name,
    value.version,
    value.license,
  ]);
  expect(installed.length).toBeGreaterThan(20);
  expect(packages.map((packageName) => [packageName.name, packageName.version, packageName.license])).toEqual(
    installed.sort(([a = ""], [b = ""]) => (a < b ? -1 : 1)),
  );
  for (const { name, text: licence } of packages) expect([name, licence]).not.toEqual([name, ""]);
  expect(packages.find(({ name }) => name === "elysia")?.text).toContain("Copyright");
});

test("ninefold licenses prints a list, then each text", async () => {
  const { out } = await ninefold(["licenses"]);
  expect(out).toMatch(/^ninefold \d+\.\d+\.\d+ +MIT\nBun /);
  expect(out).toMatch(/^elysia \d[^ \n]* +MIT$/m);
  expect(out).toContain("\nSQLite is in the public domain");
});
