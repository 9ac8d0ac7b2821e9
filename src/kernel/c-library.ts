import type { FFIFunction, Library } from "bun:ffi";

/** The C library of a system: on Linux by its names with glibc and musl. */
const NAMES: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  linux: ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"],
  darwin: ["libSystem.B.dylib"],
};

/**
 * Functions of the C library, by their signatures. The runtime's interface to it is loaded by the first call: few processes need it.
 * `systems`: where these functions have these signatures.
 *
 * @throws Error on other systems, and without a C library that is known.
 */
export function openCLibrary<Functions extends Record<string, FFIFunction>>(
  functions: Functions,
  systems: readonly NodeJS.Platform[] = ["linux"],
): Library<Functions>["symbols"] {
  const { dlopen } = require("bun:ffi") as typeof import("bun:ffi");
  let failure: unknown = new Error("the C library of this system is not known");
  for (const name of systems.includes(process.platform) ? (NAMES[process.platform] ?? []) : []) {
    try {
      return dlopen(name, functions).symbols;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}
