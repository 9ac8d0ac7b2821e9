import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { StartupError } from "../../../src/kernel/errors.ts";
import { lockFolder } from "../../../src/kernel/storage/folder-lock.ts";
import { Scratch, thrown } from "../support.ts";

let scratch: Scratch;
let path: string;
beforeEach(() => {
  scratch = new Scratch();
  path = scratch.path("ninefold.lock");
});
afterEach(() => scratch.remove());

/** Starts a second process that takes the lock, and waits until it has it. */
async function startHolder() {
  const holder = Bun.spawn([process.execPath, join(import.meta.dir, "folder-lock-holder.ts"), path], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await holder.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("locked\n");
  return holder;
}

function refusal(): StartupError {
  const error = thrown(() => lockFolder(path));
  expect(error).toBeInstanceOf(StartupError);
  return error as StartupError;
}

describe("the lock on the data folder", () => {
  test("prevents a second start until it is released", () => {
    const release = lockFolder(path);
    expect(refusal().message).toBe(
      `Another Ninefold process is using this data folder (${path} is locked). Stop it first.`,
    );
    release();
    lockFolder(path)();
  });

  test("has mode 0600", () => {
    const release = lockFolder(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    release();
  });

  test("of another process holds while that runs, and is released when it is killed", async () => {
    const holder = await startHolder();
    try {
      expect(refusal().message).toContain("Another Ninefold process is using this data folder");
    } finally {
      holder.kill("SIGKILL");
      await holder.exited;
    }
    lockFolder(path)();
  });

  test("in a missing folder is an error", () => {
    path = scratch.path("missing/ninefold.lock");
    expect(refusal().message).toContain("The data folder cannot be written");
  });
});
