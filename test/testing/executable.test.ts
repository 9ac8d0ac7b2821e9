import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { findCommand, type Surroundings } from "../../src/testing/executable.ts";

let folder = "";
beforeEach(() => {
  // A new one each time: Bun remembers which folders there are.
  folder = mkdtempSync(join(tmpdir(), "ninefold-test-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Makes empty files, given by their paths in the scratch folder. */
function files(...paths: readonly string[]): void {
  for (const path of paths) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), "");
  }
}

function manifest(path: string, content: unknown): void {
  files(path);
  writeFileSync(join(folder, path), JSON.stringify(content));
}

function surroundings(differing: Partial<Surroundings> = {}): Surroundings {
  return {
    environment: {},
    moduleFolder: join(folder, "package", "dist"),
    runtime: "/usr/bin/runtime",
    isBun: false,
    os: "linux",
    cpu: "x64",
    hasGlibc: true,
    ...differing,
  };
}

const at = (path: string): string => join(folder, path);
const BUN = { isBun: true, runtime: "/usr/bin/bun" };

describe("the executable that is started", () => {
  test("is the one in NINEFOLD_BINARY before all others", () => {
    manifest("package/package.json", { name: "ninefold" });
    files("package/dist/ninefold", "package/src/main.ts", "elsewhere/nf");
    const environment = { NINEFOLD_BINARY: at("elsewhere/nf"), PATH: at("package/dist") };
    expect(findCommand(surroundings({ environment, ...BUN }))).toEqual([at("elsewhere/nf")]);
  });

  test("is the checkout's sources under Bun, from any of its folders", () => {
    manifest("package/package.json", { name: "ninefold" });
    files("package/dist/ninefold", "package/src/main.ts");
    const command = [
      "/usr/bin/bun",
      "--no-env-file",
      "--no-install",
      `--config=${at("package/bunfig.toml")}`,
      at("package/src/main.ts"),
    ];
    expect(findCommand(surroundings(BUN))).toEqual(command as never);
    const moduleFolder = at("package/src/testing");
    expect(findCommand(surroundings({ ...BUN, moduleFolder }))).toEqual(command as never);
  });

  test("is the built executable under Node, and under Bun where there are no sources", () => {
    manifest("package/package.json", { name: "ninefold" });
    files("package/dist/ninefold");
    expect(findCommand(surroundings(BUN))).toEqual([at("package/dist/ninefold")]);
    files("package/src/main.ts");
    expect(findCommand(surroundings())).toEqual([at("package/dist/ninefold")]);
  });

  test("is the first on the PATH if this module was bundled into another", () => {
    manifest("package/package.json", { name: "shop" });
    files("package/dist/ninefold", "second/ninefold", "third/ninefold");
    mkdirSync(at("first/ninefold"), { recursive: true });
    for (const name of ["second", "third"]) chmodSync(at(`${name}/ninefold`), 0o755);
    // A text of that name, which no shell would run.
    files("notes/ninefold");
    const environment = { PATH: ["", at("first"), at("notes"), at("second"), at("third")].join(":") };
    expect(findCommand(surroundings({ environment }))).toEqual([at("second/ninefold")]);
  });

  test("has the extension .exe on Windows", () => {
    manifest("package/package.json", { name: "ninefold" });
    files("package/dist/ninefold.exe");
    expect(findCommand(surroundings({ os: "win32" }))).toEqual([at("package/dist/ninefold.exe")]);
  });

  test("is that of the package for this platform before one on the PATH", () => {
    manifest("node_modules/ninefold/package.json", { name: "ninefold" });
    for (const name of ["linux-x64", "linux-x64-musl", "linux-arm64-musl", "darwin-arm64", "windows-x64"]) {
      manifest(`node_modules/@ninefold/${name}/package.json`, { name: `@ninefold/${name}` });
      files(`node_modules/@ninefold/${name}/bin/ninefold${name.startsWith("windows") ? ".exe" : ""}`);
    }
    files("path/ninefold");
    chmodSync(at("path/ninefold"), 0o755);
    const here = { moduleFolder: at("node_modules/ninefold/testing"), environment: { PATH: at("path") } };
    const found = (differing: Partial<Surroundings>) => findCommand(surroundings({ ...here, ...differing }));
    const bin = (name: string): [string] => [at(`node_modules/@ninefold/${name}`)];
    expect(found({})).toEqual(bin("linux-x64/bin/ninefold"));
    expect(found({ hasGlibc: false })).toEqual(bin("linux-x64-musl/bin/ninefold"));
    expect(found({ os: "darwin", cpu: "arm64" })).toEqual(bin("darwin-arm64/bin/ninefold"));
    expect(found({ os: "win32" })).toEqual(bin("windows-x64/bin/ninefold.exe"));
    // An installer that knows C libraries has omitted the other package, with any loader.
    expect(found({ cpu: "arm64" })).toEqual(bin("linux-arm64-musl/bin/ninefold"));
    expect(found({ cpu: "riscv64" })).toEqual([at("path/ninefold")]);
    const environment = { NINEFOLD_BINARY: at("path/ninefold") };
    expect(found({ environment })).toEqual([at("path/ninefold")]);
  });

  test("is found regardless of files in parent folders", () => {
    files("package/src/package.json", "package/src/testing/index.js");
    writeFileSync(at("package/package.json"), "null");
    manifest("package.json", { name: "ninefold" });
    files("dist/ninefold");
    const moduleFolder = at("package/src/testing");
    expect(findCommand(surroundings({ moduleFolder }))).toEqual([at("dist/ninefold")]);
  });

  test("is the file in NINEFOLD_BINARY also without a folder, not one on the PATH", () => {
    const environment = { NINEFOLD_BINARY: "package.json" };
    expect(findCommand(surroundings({ environment }))).toEqual([join(process.cwd(), "package.json")]);
  });

  test("is required with an error if there is none", () => {
    manifest("package/package.json", { name: "ninefold" });
    expect(() => findCommand(surroundings({ environment: { PATH: at("none") } }))).toThrow(
      "No Ninefold to start: @ninefold/linux-x64, which brings the executable for this machine, is not installed. Install again here, with optional dependencies and without a node_modules of another machine; or put the executable ninefold on the PATH, or name it in NINEFOLD_BINARY. In a checkout, scripts/build makes it.",
    );
  });

  test("is not searched elsewhere if NINEFOLD_BINARY names a missing file", () => {
    manifest("package/package.json", { name: "ninefold" });
    files("package/dist/ninefold");
    const environment = { NINEFOLD_BINARY: at("gone") };
    expect(() => findCommand(surroundings({ environment }))).toThrow(
      `NINEFOLD_BINARY is set to ${at("gone")}, which is not a file.`,
    );
    expect(findCommand(surroundings({ environment: { NINEFOLD_BINARY: "" } }))).toEqual([
      at("package/dist/ninefold"),
    ]);
  });
});
