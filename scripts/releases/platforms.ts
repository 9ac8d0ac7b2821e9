import { readFileSync } from "node:fs";
import { describeFormat, type ExecutableFormat, readFormat } from "./format.ts";

/** A platform with an executable. */
export interface Platform {
  /** Name of the platform in the names of files. */
  readonly name: string;
  /** Its name for `bun build --target`. */
  readonly target: string;
  /** The package with Bun for it, in the version that `package.json` pins. */
  readonly package: string;
  /** System, processor and C library as the package declares them; the installer rejects other packages. */
  readonly os: "linux" | "darwin" | "win32";
  readonly cpu: "x64" | "arm64";
  readonly libc?: "glibc" | "musl";
  /** Format of the built file. */
  readonly format: ExecutableFormat;
}

const GLIBC_X64 = "/lib64/ld-linux-x86-64.so.2";
const GLIBC_ARM64 = "/lib/ld-linux-aarch64.so.1";
const MUSL_X64 = "/lib/ld-musl-x86_64.so.1";
const MUSL_ARM64 = "/lib/ld-musl-aarch64.so.1";

/** Every platform that a release has executables for. */
export const PLATFORMS: readonly Platform[] = [
  linux("linux-x64", "x64", "glibc", GLIBC_X64),
  linux("linux-arm64", "arm64", "glibc", GLIBC_ARM64),
  linux("linux-x64-musl", "x64", "musl", MUSL_X64),
  linux("linux-arm64-musl", "arm64", "musl", MUSL_ARM64),
  darwin("darwin-x64", "x64"),
  darwin("darwin-arm64", "arm64"),
  {
    name: "windows-x64",
    target: "bun-windows-x64",
    package: "@oven/bun-windows-x64",
    os: "win32",
    cpu: "x64",
    format: { container: "PE", cpu: "x64", interpreter: null },
  },
];

/** The platforms with these names; all of them without a name. @throws Error for an unknown name. */
export function choosePlatforms(names: readonly string[]): readonly Platform[] {
  if (names.length === 0) return PLATFORMS;
  return [...new Set(names)].map((name) => {
    const platform = PLATFORMS.find((candidate) => candidate.name === name);
    if (platform === undefined) {
      throw new Error(`there is no platform "${name}": ${PLATFORMS.map((each) => each.name).join(", ")}`);
    }
    return platform;
  });
}

/** The platform of this machine, which can run its executables. @throws Error */
export function ownPlatform(): Platform {
  const own = describeFormat(readFormat(readFileSync(process.execPath)));
  const found = PLATFORMS.find(({ format }) => describeFormat(format) === own);
  if (found === undefined) throw new Error(`there is no platform for a machine that runs ${own}`);
  return found;
}

/** The file that a platform's executable is published as. */
export function releaseName({ name, os }: Platform, version: string): string {
  return `ninefold-${version}-${name}${os === "win32" ? ".exe" : ""}`;
}

function linux(name: string, cpu: "x64" | "arm64", libc: "glibc" | "musl", interpreter: string): Platform {
  const suffix = libc === "musl" ? "-musl" : "";
  return {
    name,
    target: `bun-linux-${cpu}${suffix}`,
    package: `@oven/bun-linux-${packageCpu(cpu)}${suffix}`,
    os: "linux",
    cpu,
    libc,
    format: { container: "ELF", cpu, interpreter },
  };
}

function darwin(name: string, cpu: "x64" | "arm64"): Platform {
  return {
    name,
    target: `bun-darwin-${cpu}`,
    package: `@oven/bun-darwin-${packageCpu(cpu)}`,
    os: "darwin",
    cpu,
    format: { container: "Mach-O", cpu, interpreter: null },
  };
}

function packageCpu(cpu: "x64" | "arm64"): string {
  return cpu === "arm64" ? "aarch64" : cpu;
}
