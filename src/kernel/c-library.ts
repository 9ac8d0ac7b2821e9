import type { FFIFunction, Library } from "bun:ffi";

/** The C library on Linux, by its names with glibc and musl. */
const NAMES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];

/**
 * Functions of the C library, by their signatures. The runtime's interface to it is loaded by the first call: few processes need it.
 * @throws Error without a C library that is known, such as on macOS.
 */
export function openCLibrary<Functions extends Record<string, FFIFunction>>(
  functions: Functions,
): Library<Functions>["symbols"] {
  const { dlopen } = require("bun:ffi") as typeof import("bun:ffi");
  let failure: unknown;
  for (const name of NAMES) {
    try {
      return dlopen(name, functions).symbols;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}
