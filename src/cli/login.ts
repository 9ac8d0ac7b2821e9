import { mkdirSync, readSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { ask, rejection } from "../api/http-api.ts";
import { UsageError } from "../config/command-line.ts";
import { credentialsPath, DEFAULT_URL, readText } from "../config/sources.ts";
import { StartupError } from "../kernel/errors.ts";
import { isBearerKey } from "../kernel/secrets/key-format.ts";
import type { Arguments } from "./arguments.ts";
import { print } from "./output.ts";

/** Longest line that is read from a terminal. */
const LINE_BYTES_MAX = 1_024;

/** `ninefold login`: verifies an API key and stores it for later commands. Resolves to the exit code. */
export async function login(args: Arguments): Promise<number> {
  const url = args.words[0] ?? DEFAULT_URL;
  const file = args.text("--api-key-file");
  if (file === null && !process.stdin.isTTY)
    throw new UsageError("login needs --api-key-file FILE where nobody can be asked.");
  const key = (file === null ? typedKey() : readText(file, "--api-key-file")).trim();
  if (!isBearerKey(key)) throw new StartupError("This is not a well-formed API key (sm_…).");
  const { status, body } = await ask({ url, key }, "GET", "/v1/projects?limit=1");
  // A key without the scope is valid as well.
  if (status >= 300 && status !== 403) throw rejection(status, body ?? {});
  const path = credentialsPath();
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // A new file, so that nobody has it open.
  rmSync(path, { force: true });
  writeFileSync(path, `${JSON.stringify({ url, key })}\n`, { mode: 0o600, flag: "wx" });
  print(`Logged in to ${url}. The key is stored in ${path}.\n`);
  return 0;
}

/** `ninefold logout`: removes the stored key. Resolves to the exit code. */
export function logout(): number {
  rmSync(credentialsPath(), { force: true });
  print("Logged out.\n");
  return 0;
}

/** A line from the terminal, which does not show it. */
function typedKey(): string {
  print("API key: ");
  process.stdin.setRawMode(true);
  try {
    let typed = "";
    const byte = Buffer.alloc(1);
    while (typed.length < LINE_BYTES_MAX && readSync(0, byte) === 1) {
      const sign = byte.toString("latin1");
      if (sign === "\r" || sign === "\n") break;
      // Ctrl-C and Ctrl-D.
      if (sign === "\x03" || sign === "\x04") throw new StartupError("Nothing was stored.");
      typed = sign === "\x7f" ? typed.slice(0, -1) : typed + sign;
    }
    return typed;
  } finally {
    process.stdin.setRawMode(false);
    print("\n");
  }
}
