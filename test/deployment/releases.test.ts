import { afterEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buildArtifact } from "../../scripts/releases/build.ts";
import { changesOf, writeSums } from "../../scripts/releases/finish.ts";
import { describeFormat, readFormat } from "../../scripts/releases/format.ts";
import {
  choosePlatforms,
  ownPlatform,
  PLATFORMS,
  type Platform,
  releaseName,
} from "../../scripts/releases/platforms.ts";
import { obtainRuntime, type Run } from "../../scripts/releases/runtime.ts";
import { ROOT } from "../harness/processes/server-process.ts";

const folder = mkdtempSync(join(tmpdir(), "ninefold-test-"));
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
});

function platform(name: string): Platform {
  const [found] = choosePlatforms([name]);
  if (found === undefined) throw new Error(name);
  return found;
}

/** The first bytes of an ELF file: one program header, which names the interpreter. */
function elf(machine: number, interpreter: string): Uint8Array {
  const bytes = new Uint8Array(256);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, 0x7f454c46);
  view.setUint16(18, machine, true);
  view.setBigUint64(32, 64n, true);
  view.setUint16(54, 56, true);
  view.setUint16(56, 1, true);
  view.setUint32(64, 3, true);
  view.setBigUint64(64 + 8, 128n, true);
  view.setBigUint64(64 + 32, BigInt(interpreter.length + 1), true);
  bytes.set(new TextEncoder().encode(interpreter), 128);
  return bytes;
}

function machO(cpu: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(64));
  view.setUint32(0, 0xfeedfacf, true);
  view.setUint32(4, cpu, true);
  return new Uint8Array(view.buffer);
}

function pe(machine: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(128));
  view.setUint16(0, 0x4d5a);
  view.setUint32(60, 64, true);
  view.setUint32(64, 0x50450000);
  view.setUint16(68, machine, true);
  return new Uint8Array(view.buffer);
}

describe("the platforms", () => {
  test("are all of them, or those that are named, once each", () => {
    expect(choosePlatforms([]).map(({ name }) => name)).toEqual([
      "linux-x64",
      "linux-arm64",
      "linux-x64-musl",
      "linux-arm64-musl",
      "darwin-x64",
      "darwin-arm64",
      "windows-x64",
    ]);
    const chosen = choosePlatforms(["windows-x64", "linux-x64", "windows-x64"]);
    expect(chosen.map(({ name }) => name)).toEqual(["windows-x64", "linux-x64"]);
    expect(() => choosePlatforms(["linux-x64", "amiga"])).toThrow(
      'there is no platform "amiga": linux-x64, linux-arm64, linux-x64-musl, linux-arm64-musl, darwin-x64, darwin-arm64, windows-x64',
    );
  });

  test("have packages, targets and files of their own", () => {
    expect(PLATFORMS.map((each) => [each.package, each.target, releaseName(each, "1.2.3")])).toEqual([
      ["@oven/bun-linux-x64", "bun-linux-x64", "ninefold-1.2.3-linux-x64"],
      ["@oven/bun-linux-aarch64", "bun-linux-arm64", "ninefold-1.2.3-linux-arm64"],
      ["@oven/bun-linux-x64-musl", "bun-linux-x64-musl", "ninefold-1.2.3-linux-x64-musl"],
      ["@oven/bun-linux-aarch64-musl", "bun-linux-arm64-musl", "ninefold-1.2.3-linux-arm64-musl"],
      ["@oven/bun-darwin-x64", "bun-darwin-x64", "ninefold-1.2.3-darwin-x64"],
      ["@oven/bun-darwin-aarch64", "bun-darwin-arm64", "ninefold-1.2.3-darwin-arm64"],
      ["@oven/bun-windows-x64", "bun-windows-x64", "ninefold-1.2.3-windows-x64.exe"],
    ]);
  });
});

describe("what goes with the executables", () => {
  const CHANGELOG =
    "# Changelog\n\n## Unreleased\n\n- c\n\n## 1.2.3 (2026-11-22)\n\n### Added\n- b\n\n## 1.2\n\n- a\n";

  test("is the part of the changelog that is the version's", () => {
    expect(changesOf(CHANGELOG, "1.2.3")).toBe("## 1.2.3 (2026-11-22)\n\n### Added\n- b\n");
    expect(changesOf(CHANGELOG, "1.2")).toBe("## 1.2\n\n- a\n");
    expect(() => changesOf(CHANGELOG, "1.2.4")).toThrow("CHANGELOG.md has no part of 1.2.4");
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
    expect(changesOf(readFileSync(join(ROOT, "CHANGELOG.md"), "utf8"), version)).toStartWith(`## ${version}`);
  });

  test("are checksums of the version's files", () => {
    for (const name of ["ninefold-1.2.3-linux-x64", "ninefold-1.2.3.tgz", "CHANGES-1.2.3.md"])
      writeFileSync(join(folder, name), name);
    for (const name of ["ninefold-1.2.2.tgz", "ninefold-1.2.3-linux-x64.sha256"])
      writeFileSync(join(folder, name), name);
    writeSums(folder, "1.2.3");
    const sums = ["CHANGES-1.2.3.md", "ninefold-1.2.3-linux-x64", "ninefold-1.2.3.tgz"].map(
      (name) => `${new Bun.CryptoHasher("sha256").update(name).digest("hex")}  ${name}\n`,
    );
    expect(readFileSync(join(folder, "SHA256SUMS"), "utf8")).toBe(sums.join(""));
  });

  test("the platform of this machine is known by what it runs", () => {
    expect(ownPlatform()).toMatchObject({ os: process.platform, cpu: process.arch });
  });
});

describe("the format of an executable", () => {
  test.each([
    ["ELF x64 /lib64/ld-linux-x86-64.so.2", elf(62, "/lib64/ld-linux-x86-64.so.2")],
    ["ELF arm64 /lib/ld-musl-aarch64.so.1", elf(183, "/lib/ld-musl-aarch64.so.1")],
    ["Mach-O x64", machO(0x01000007)],
    ["Mach-O arm64", machO(0x0100000c)],
    ["PE x64", pe(0x8664)],
    ["PE arm64", pe(0xaa64)],
  ])("%s", (text, bytes) => {
    expect(describeFormat(readFormat(bytes))).toBe(text);
  });

  test("of the running Bun is read from the real file", () => {
    const { cpu } = readFormat(readFileSync(process.execPath));
    expect(cpu).toBe(process.arch as "x64");
  });

  test.each([
    ["nothing", new Uint8Array()],
    ["a script", new TextEncoder().encode(`#!/bin/sh\n${" ".repeat(100)}`)],
    ["another processor", elf(40, "/lib/ld-linux.so.3")],
    ["a head that was cut off", elf(62, "/lib64/ld-linux-x86-64.so.2").subarray(0, 80)],
    ["32 bits", machO(7)],
    ["a DOS program", pe(0x14c)],
  ])("is refused: %s", (_, bytes) => {
    expect(() => readFormat(bytes)).toThrow("no 64-bit executable of Linux, macOS or Windows");
  });
});

/** Writes a file of a foreign package, as the installer does. */
function installed(at: string, { package: name, os }: Platform): void {
  const file = join(at, "node_modules", ...name.split("/"), "bin", os === "win32" ? "bun.exe" : "bun");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "bun");
}

describe("a platform's Bun", () => {
  const sha256 = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");
  const listed = (text: string) =>
    PLATFORMS.map((each) => `${sha256(text)}  ${each.package.replace("@oven/", "")}@1.2.3\n`).join("");
  const store = (run: Run, knownHashes = `# Hashes\n${listed("bun")}`) => ({
    folder: join(folder, "tools"),
    version: "1.2.3",
    bun: "/bun",
    knownHashes,
    run,
  });
  const installs: Run = (_, at) => {
    installed(at, platform("linux-x64"));
    return Promise.resolve({ code: 0, output: "" });
  };

  test.each([
    ["another one than is known", listed("another"), `is not the known one: its SHA-256 is ${sha256("bun")}`],
    ["one of which nothing is known", "# Hashes\n", "has no hash of bun-linux-x64@1.2.3"],
    [
      "one of another version",
      listed("bun").replaceAll("1.2.3", "1.2.4"),
      "has no hash of bun-linux-x64@1.2.3",
    ],
  ])("is rejected when it is %s, also after it was stored", async (_, known, message) => {
    await expect(obtainRuntime(store(installs, known), platform("linux-x64"))).rejects.toThrow(message);
    expect(readdirSync(join(folder, "tools"))).toEqual([]);
    await obtainRuntime(store(installs), platform("linux-x64"));
    await expect(obtainRuntime(store(installs, known), platform("linux-x64"))).rejects.toThrow(message);
  });

  test("of every platform has a hash in the repository, of the version that is pinned", () => {
    const known = readFileSync(join(ROOT, "scripts/bun.sha256"), "utf8");
    const { engines } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
      engines: { bun: string };
    };
    for (const { package: name } of PLATFORMS) {
      expect(known).toMatch(new RegExp(`^[0-9a-f]{64}  ${name.replace("@oven/", "")}@${engines.bun}$`, "m"));
    }
  });

  test.each([
    ["linux-arm64-musl", ["--os=linux", "--cpu=arm64", "--libc=musl", "@oven/bun-linux-aarch64-musl@1.2.3"]],
    ["linux-x64", ["--os=linux", "--cpu=x64", "--libc=glibc", "@oven/bun-linux-x64@1.2.3"]],
    ["windows-x64", ["--os=win32", "--cpu=x64", "@oven/bun-windows-x64@1.2.3"]],
  ])("comes from its package, once: %s", async (name, args) => {
    const commands: (readonly string[])[] = [];
    const run: Run = (command, at) => {
      commands.push(command);
      installed(at, platform(name));
      return Promise.resolve({ code: 0, output: "" });
    };
    const first = await obtainRuntime(store(run), platform(name));
    expect(readFileSync(first, "utf8")).toBe("bun");
    expect(await obtainRuntime(store(run), platform(name))).toBe(first);
    expect(commands).toEqual([["/bun", "add", "--exact", "--ignore-scripts", "--no-progress", ...args]]);
    expect(readdirSync(join(folder, "tools"))).toEqual([`bun-1.2.3-${name}`]);
  });

  test.each([
    ["fails", 1],
    ["brings nothing", 0],
  ])("is not kept when the installer %s", async (_, code) => {
    const run: Run = () => Promise.resolve({ code, output: "error: no such package\n" });
    await expect(obtainRuntime(store(run), platform("darwin-x64"))).rejects.toThrow(
      "@oven/bun-darwin-x64@1.2.3 could not be installed:\nerror: no such package",
    );
    expect(readdirSync(join(folder, "tools"))).toEqual([]);
  });
});

describe("an artifact", () => {
  const release = join(folder, "release");
  /** Replaces `scripts/build`: writes these bytes to the requested file. */
  const builder =
    (bytes: Uint8Array | string, commands: (readonly string[])[] = []): Run =>
    (command) => {
      commands.push(command);
      const out = command.find((part) => part.startsWith("--outfile="))?.slice("--outfile=".length);
      if (out !== undefined) writeFileSync(out, bytes);
      return Promise.resolve({ code: 0, output: out === undefined ? "1.2.3\n" : "" });
    };
  const shop = (run: Run) => ({ root: "/checkout", folder: release, version: "1.2.3", run });

  test("is built by the common command on the platform's Bun, and has a checksum file next to it", async () => {
    const commands: (readonly string[])[] = [];
    const bytes = pe(0x8664);
    const made = await buildArtifact(
      shop(builder(bytes, commands)),
      platform("windows-x64"),
      "/foreign/bun.exe",
      false,
    );
    const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
    const file = "ninefold-1.2.3-windows-x64.exe";
    expect(made).toEqual({ file, bytes: 128, sha256, checked: "format" });
    expect(commands).toEqual([
      [
        "sh",
        "/checkout/scripts/build",
        "--target=bun-windows-x64",
        "--compile-executable-path=/foreign/bun.exe",
        expect.stringMatching(/^--outfile=.*\/ninefold\.exe$/) as unknown as string,
      ],
    ]);
    expect(readdirSync(release).sort()).toEqual([file, `${file}.sha256`]);
    expect(readFileSync(join(release, `${file}.sha256`), "utf8")).toBe(`${sha256}  ${file}\n`);
    expect(statSync(join(release, file)).mode & 0o777).toBe(0o755);
  });

  test("is run where it can be run", async () => {
    const commands: (readonly string[])[] = [];
    const bytes = elf(62, "/lib64/ld-linux-x86-64.so.2");
    const made = await buildArtifact(shop(builder(bytes, commands)), platform("linux-x64"), "/bun", true);
    expect(made.checked).toBe("ran");
    expect(commands[1]).toEqual([expect.stringMatching(/\/ninefold$/) as unknown as string, "version"]);
  });

  test.each([
    [
      "another platform's",
      elf(62, "/lib/ld-musl-x86_64.so.1"),
      "is ELF x64 /lib/ld-musl-x86_64.so.1, but has to be ELF x64 /lib64/ld-linux-x86-64.so.2",
    ],
    ["no executable", "#!/bin/sh".padEnd(200), "no 64-bit executable"],
  ])("is rejected when it is %s, and leaves no file", async (_, bytes, message) => {
    const work = buildArtifact(shop(builder(bytes)), platform("linux-x64"), "/bun", false);
    await expect(work).rejects.toThrow(message);
    expect(readdirSync(release)).toEqual([]);
  });

  test("is rejected when it prints another version, or the build fails", async () => {
    const bytes = elf(62, "/lib64/ld-linux-x86-64.so.2");
    const lying: Run = async (command, at) => ({ ...(await builder(bytes)(command, at)), output: "0.0.1\n" });
    await expect(buildArtifact(shop(lying), platform("linux-x64"), "/bun", true)).rejects.toThrow(
      /ninefold version printed "0\.0\.1\\n" with exit code 0$/,
    );
    const failing: Run = () => Promise.resolve({ code: 1, output: "error: oh\n" });
    await expect(buildArtifact(shop(failing), platform("linux-x64"), "/bun", true)).rejects.toThrow(
      "the build for linux-x64 failed:\nerror: oh",
    );
    expect(readdirSync(release)).toEqual([]);
  });
});

test("scripts/build --all rejects an unknown platform before it builds anything", async () => {
  const child = Bun.spawn(["sh", join(import.meta.dir, "..", "..", "scripts", "build"), "--all", "amiga"], {
    env: { ...process.env, NINEFOLD_BUN: process.execPath },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect([out, code]).toEqual(["", 1]);
  expect(error).toStartWith('scripts/build: there is no platform "amiga": linux-x64, ');
});
