import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  publicKeyFile,
  publicKeyText,
  readSecretKey,
  signFile,
  throwAwayKey,
} from "../../scripts/releases/minisign.ts";
import { readPublicKey, signatureProblem } from "../../src/cli/upgrade/minisign.ts";

const folder = mkdtempSync(join(tmpdir(), "ninefold-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => join(folder, name);

/** Debian's minisign, which the tests install. */
function minisign(...args: readonly string[]): { code: number; output: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["minisign", ...args], { cwd: folder, stdin: "ignore" });
  return { code: exitCode, output: `${stdout}${stderr}` };
}

const FILE = "SHA256SUMS";
const TEXT = Buffer.from("0123  ninefold-1.2.3-linux-x64\n");
writeFileSync(at(FILE), TEXT);

describe("signatures of a release", () => {
  test("are accepted by minisign, with the file's trusted comment", () => {
    const key = throwAwayKey();
    writeFileSync(at("own.pub"), publicKeyFile(key));
    writeFileSync(at(`${FILE}.minisig`), signFile(TEXT, "ninefold 1.2.3", key));
    const verified = minisign("-V", "-p", "own.pub", "-m", FILE);
    expect(verified.output).toContain(
      "Signature and comment signature verified\nTrusted comment: ninefold 1.2.3",
    );
    expect(verified.code).toBe(0);
    expect(minisign("-V", "-P", publicKeyText(key), "-m", FILE).code).toBe(0);
    expect(minisign("-V", "-P", publicKeyText(throwAwayKey()), "-m", FILE).code).not.toBe(0);
    writeFileSync(at("other"), `${TEXT}!`);
    const other = ["-V", "-P", publicKeyText(key), "-x", `${FILE}.minisig`, "-m", "other"];
    expect(minisign(...other).code).not.toBe(0);
  });

  test("are made with the key of minisign -G -W, and the same as its own are accepted", () => {
    expect(minisign("-G", "-W", "-p", "made.pub", "-s", "made.key").code).toBe(0);
    const file = readFileSync(at("made.key"), "utf8");
    const key = readSecretKey(file);
    const publicKey = readFileSync(at("made.pub"), "utf8").split("\n")[1] ?? "";
    expect(publicKeyText(key)).toBe(publicKey);
    expect(publicKeyFile(key)).toBe(readFileSync(at("made.pub"), "utf8"));
    expect(readSecretKey(file.split("\n")[1] ?? "")).toEqual(key);
    writeFileSync(at(`${FILE}.minisig`), signFile(TEXT, "x", key));
    expect(minisign("-V", "-p", "made.pub", "-m", FILE).code).toBe(0);

    expect(minisign("-S", "-s", "made.key", "-m", FILE, "-t", "made by minisign").code).toBe(0);
    const read = readPublicKey(publicKey);
    if (read === null) throw new Error(publicKey);
    expect(signatureProblem(TEXT, readFileSync(at(`${FILE}.minisig`), "utf8"), read)).toBeNull();
  });

  test("are the same each time", () => {
    const key = throwAwayKey();
    expect(signFile(TEXT, "x", key)).toBe(signFile(TEXT, "x", key));
  });
});

describe("a release key is rejected, without being shown,", () => {
  const secret = (): Buffer => {
    minisign("-G", "-W", "-f", "-p", "some.pub", "-s", "some.key");
    return Buffer.from(readFileSync(at("some.key"), "utf8").split("\n")[1] ?? "", "base64");
  };
  test.each([
    [
      "if it is malformed",
      () => Buffer.from("secret"),
      "NINEFOLD_RELEASE_KEY is not a secret key of minisign",
    ],
    [
      "if it has a password",
      () => Buffer.concat([Buffer.from("EdScB2"), secret().subarray(6)]),
      "NINEFOLD_RELEASE_KEY has a password; make one without by minisign -G -W",
    ],
    [
      "if it is damaged",
      () => secret().fill(0, 62, 70),
      "NINEFOLD_RELEASE_KEY is damaged: its public key is another one's",
    ],
  ])("%s", (_, make, message) => {
    expect(() => readSecretKey(make().toString("base64"))).toThrow(message);
  });
});
