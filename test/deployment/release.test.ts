import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { repositoryOf, sourcesOf, tryOut } from "../../scripts/releases/checkout.ts";
import { addressesOf, feedText, notesOf } from "../../scripts/releases/finish.ts";
import { ownPlatform, releaseName } from "../../scripts/releases/platforms.ts";
import { billOfMaterials } from "../../scripts/releases/sbom.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { endOf } from "../support/ended.ts";
import { IS_LONG } from "../support/long-form.ts";

const DATE = "2026-11-23T10:00:00Z";
const folder = mkdtempSync(join(tmpdir(), "ninefold-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LAST = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_COMMITTER_DATE: DATE, GIT_AUTHOR_DATE: DATE };
let checkout = "";

function git(...args: readonly string[]): string {
  const author = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"];
  const { exitCode, stdout, stderr } = Bun.spawnSync(["git", "-C", checkout, ...author, ...args], {
    env: { ...process.env, ...LAST },
  });
  if (exitCode !== 0) throw new Error(`${stdout}${stderr}`);
  return stdout.toString().trim();
}

const write = (name: string, text: string): void => writeFileSync(join(checkout, name), text);

beforeEach(() => {
  checkout = mkdtempSync(join(folder, "checkout-"));
  write("package.json", '{\n  "name": "x",\n  "version": "1.2.3"\n}\n');
  write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n- b\n\n## 1.2.3 (2026-11-22)\n\n- a\n");
  write(".gitignore", "/node_modules\n/.tools\n");
  git("init", "-q");
  git("add", "-A");
  git("commit", "-qm", "x");
});

describe("a release is made of", () => {
  test("the commit of its tag, with its date", () => {
    git("tag", "v1.2.3");
    expect(sourcesOf(checkout, "1.2.3")).toMatchObject({
      root: checkout,
      commit: git("rev-parse", "HEAD"),
      date: DATE,
    });
  });

  test.each<[string, string, () => void, string]>([
    ["a file that is not committed", "1.2.3", () => write("new", ""), "commit or remove first:\n?? new"],
    [
      "a changed file",
      "1.2.3",
      () => write("package.json", "{}"),
      "commit or remove first:\n M package.json",
    ],
    ["no tag", "1.2.4", () => undefined, "there is no tag v1.2.4"],
    [
      "a tag of another commit",
      "1.2.3",
      () => git("commit", "-q", "--allow-empty", "-m", "y"),
      "the tag v1.2.3 is not what is checked out",
    ],
    ["another version", "1.3.0", () => git("tag", "v1.3.0"), "package.json has the version 1.2.3"],
    [
      "no part of the changelog",
      "1.2.3",
      () => {
        write("CHANGELOG.md", "# Changelog\n");
        git("commit", "-qam", "y");
        git("tag", "-f", "v1.2.3");
      },
      "CHANGELOG.md has no part of 1.2.3",
    ],
    [
      "a part that is unreleased",
      "1.2.3",
      () => {
        write("CHANGELOG.md", "## 1.2.3 (unreleased)\n");
        git("commit", "-qam", "y");
        git("tag", "-f", "v1.2.3");
      },
      'CHANGELOG.md says "## 1.2.3 (unreleased)"',
    ],
  ])("nothing, with %s", (_, version, change, message) => {
    git("tag", "v1.2.3");
    change();
    expect(() => sourcesOf(checkout, version)).toThrow(message);
  });

  test("a copy, when it is only tried: with that version, and what is not committed", () => {
    write("new", "new");
    mkdirSync(join(checkout, "node_modules"));
    write("node_modules/x", "");
    const { root, commit, date, dispose } = tryOut(checkout, "2.0.0");
    expect(root).not.toBe(checkout);
    expect([commit, date]).toEqual([`${git("rev-parse", "HEAD")}-dirty`, DATE]);
    const read = (name: string): string => readFileSync(join(root, name), "utf8");
    expect(JSON.parse(read("package.json"))).toEqual({ name: "x", version: "2.0.0" });
    expect(read("CHANGELOG.md")).toContain("## 2.0.0 (2026-11-23)\n\n- b\n\n## 1.2.3 (2026-11-22)\n");
    expect([read("new"), read("node_modules/x")]).toEqual(["new", ""]);
    dispose();
    write("CHANGELOG.md", "## 2.0.0 (unreleased)\n\n- c\n");
    const again = tryOut(checkout, "2.0.0");
    expect(readFileSync(join(again.root, "CHANGELOG.md"), "utf8")).toBe("## 2.0.0 (2026-11-23)\n\n- c\n");
    again.dispose();
    expect(readFileSync(join(checkout, "node_modules/x"), "utf8")).toBe("");
    expect(readFileSync(join(checkout, "package.json"), "utf8")).toContain('"1.2.3"');
    expect(() => readFileSync(join(root, "new"))).toThrow();
  });
});

test.each([
  [[], "name one version, such as 1.2.3"],
  [["v1.2.3"], "name one version, such as 1.2.3"],
  [["1.2.3", "1.2.4"], "name one version, such as 1.2.3"],
  [["1.2.3", "--platform", "amiga"], 'there is no platform "amiga": '],
])("scripts/release rejects %p", async (args, message) => {
  const script = join(ROOT, "scripts/release.ts");
  const { code, out, error } = await endOf([process.execPath, script, ...args], { timeoutMs: 60_000 });
  expect([code, out]).toEqual([1, ""]);
  expect(error).toStartWith(`scripts/release: ${message}`);
});

test.each([
  [{}, null],
  [{ repository: "https://example.com/a" }, "https://example.com/a"],
  [{ repository: { type: "git", url: "git+https://example.com/a.git" } }, "https://example.com/a"],
])("the address of releases comes from package.json: %p", (manifest, address) => {
  write("package.json", JSON.stringify(manifest));
  expect(repositoryOf(checkout)).toBe(address);
  expect(addressesOf("https://example.com/a", "1.2.3")).toEqual({
    page: "https://example.com/a/releases/tag/v1.2.3",
    files: "https://example.com/a/releases/download/v1.2.3",
  });
});

test("the feed is one line of JSON", () => {
  const text = feedText({ version: "1.2.3", date: DATE }, "https://example.com/v1.2.3");
  expect(JSON.parse(text)).toEqual({ version: "1.2.3", date: DATE, url: "https://example.com/v1.2.3" });
});

test("the notes have the files, how to verify them, and the changes", () => {
  const files = mkdtempSync(join(folder, "notes-"));
  for (const name of [
    "ninefold-1.2.3-linux-x64",
    "ninefold-1.2.3-linux-x64.sha256",
    "ninefold_1.2.3_amd64.deb",
  ])
    writeFileSync(join(files, name), "");
  writeFileSync(join(files, "CHANGES-1.2.3.md"), "## 1.2.3 (2026-11-22)\n\n### Added\n\n- b\n");
  const notes = notesOf(files, { version: "1.2.3", date: DATE }, "RWQx", "https://example.com/v1.2.3");
  expect(notes).toContain(
    "| `ninefold-1.2.3-linux-x64` | executable |\n| `ninefold_1.2.3_amd64.deb` | Debian and Ubuntu |\n\n",
  );
  expect(notes).toContain("https://example.com/v1.2.3/{FILE,SHA256SUMS,SHA256SUMS.minisig}\n");
  expect(notes).toContain("minisign -V -P RWQx -m SHA256SUMS\n");
  expect(notes).toEndWith("## Changes\n\n### Added\n\n- b\n");
});

interface Bom {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly serialNumber: string;
  readonly metadata: { readonly timestamp: string; readonly component: { readonly version: string } };
  readonly components: readonly {
    readonly "bom-ref": string;
    readonly purl: string;
    readonly licenses: readonly unknown[];
    readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

describe("the bill of materials", () => {
  const text = billOfMaterials(ROOT, { version: "1.2.3", date: DATE });
  const bom = JSON.parse(text) as Bom;
  const refs = bom.components.map((component) => component["bom-ref"]);

  test("is CycloneDX 1.6, and the same each time", () => {
    expect([bom.bomFormat, bom.specVersion]).toEqual(["CycloneDX", "1.6"]);
    expect(bom.serialNumber).toMatch(
      /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect(bom.metadata).toMatchObject({ timestamp: DATE, component: { version: "1.2.3" } });
    expect(billOfMaterials(ROOT, { version: "1.2.3", date: DATE })).toBe(text);
    expect(billOfMaterials(ROOT, { version: "1.2.4", date: DATE })).not.toContain(bom.serialNumber);
  });

  test("has Bun, SQLite and every production dependency, with version, licence and hash", () => {
    const direct = Object.entries(manifest.dependencies).map(([name, version]) => `${name}@${version}`);
    expect(refs).toEqual(expect.arrayContaining([`Bun@${Bun.version}`, ...direct]));
    expect(new Set(refs).size).toBe(refs.length);
    expect(refs.filter((ref) => ref.startsWith("playwright") || ref.startsWith("typescript"))).toEqual([]);
    const elysia = bom.components.find(({ purl }) => purl.startsWith("pkg:npm/elysia@"));
    expect(elysia?.licenses).toEqual([{ license: { id: "MIT" } }]);
    for (const { purl, hashes = [] } of bom.components.filter((component) =>
      component.purl.startsWith("pkg:npm/"),
    )) {
      expect([purl, hashes]).toEqual([
        purl,
        [{ alg: "SHA-512", content: expect.stringMatching(/^[0-9a-f]{128}$/) }],
      ]);
    }
    expect(bom.components.map(({ purl }) => purl)).toContain(
      `pkg:npm/%40noble/hashes@${manifest.dependencies["@noble/hashes"]}`,
    );
  });

  test("says what needs what, of what it has", () => {
    const [own, ...others] = bom.dependencies;
    expect(own?.ref).toBe("ninefold@1.2.3");
    const known = new Set(refs);
    for (const { dependsOn } of bom.dependencies)
      expect(dependsOn.filter((ref) => !known.has(ref))).toEqual([]);
    const needed = new Set(bom.dependencies.flatMap(({ dependsOn }) => dependsOn));
    expect(refs.filter((ref) => !needed.has(ref))).toEqual([]);
    expect(others.find(({ ref }) => ref.startsWith("elysia@"))?.dependsOn.length).toBeGreaterThan(2);
  });
});

// Two whole builds, so only in the long form.
if (IS_LONG)
  test("the same sources give the same bytes, and minisign accepts what is signed", async () => {
    const make = async (name: string): Promise<string> => {
      const output = join(folder, name);
      const options = ["--dry-run", "--platform", ownPlatform().name, "--output", output];
      const command = ["sh", join(ROOT, "scripts/release"), "98.7.6", ...options];
      const environment = { NINEFOLD_BUN: process.execPath };
      const { code, error } = await endOf(command, { timeoutMs: 600_000, environment });
      expect([code, error]).toEqual([0, ""]);
      return output;
    };
    const [first, second] = [await make("first"), await make("second")];
    // Each dry run has a new key, which is in the notes, and therefore in the checksums.
    const hashes = (at: string): string[] =>
      readdirSync(at)
        .filter((name) => !/^NOTES|^SHA256SUMS|minisig$|\.pub$/.test(name))
        .sort()
        .map(
          (name) =>
            `${name} ${new Bun.CryptoHasher("sha256").update(readFileSync(join(at, name))).digest("hex")}`,
        );
    const platform = ownPlatform();
    const names = hashes(first).map((line) => line.split(" ")[0]);
    expect(names).toEqual(
      expect.arrayContaining([
        "feed.json",
        "ninefold-98.7.6.cdx.json",
        "ninefold-98.7.6.tgz",
        releaseName(platform, "98.7.6"),
        `ninefold-${platform.name}-98.7.6.tgz`,
        ...(platform.libc === "glibc" ? [expect.stringMatching(/^ninefold_98\.7\.6_.*\.deb$/)] : []),
      ]),
    );
    expect(hashes(second)).toEqual(hashes(first));
    for (const name of ["SHA256SUMS", "feed.json"]) {
      const command = ["minisign", "-V", "-p", "minisign.pub", "-m", name];
      expect(Bun.spawnSync(command, { cwd: first }).exitCode).toBe(0);
    }
    expect(Bun.spawnSync(["sha256sum", "--check", "--quiet", "SHA256SUMS"], { cwd: first }).exitCode).toBe(0);
  }, 1_300_000);
