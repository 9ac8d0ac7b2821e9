import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments } from "../../src/cli/arguments.ts";
import { commandNamed } from "../../src/cli/table.ts";
import { LINE_BYTES_MAX, PROBLEMS_PRINTED_MAX, verify } from "../../src/cli/verify.ts";
import { createNativeCrypto } from "../../src/verify/native.ts";
import { noteKey, vkeyOf } from "../../src/verify/note.ts";
import { bundleOf, checkpointOf, cosignedBy, publicKeyOf, witnessOf } from "../support/checkpoints.ts";
import { makeChain } from "../support/receipts.ts";

const MAIN = join(import.meta.dir, "../../src/main.ts");
const folder = mkdtempSync(join(tmpdir(), "ninefold-verify-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const chain = makeChain(
  Array.from({ length: 60 }, (_, index) => ({ entry: index, text: "é".repeat(index) })),
);
const key = String(chain[0]?.public_key.x);

const NO_END = "The end of the chain is not proved: no checkpoint was given.";
const native = createNativeCrypto();

function write(text: string | Uint8Array): string {
  const path = join(folder, `${crypto.randomUUID()}.jsonl`);
  writeFileSync(path, text);
  return path;
}

function lines(receipts: readonly unknown[]): string {
  return receipts.map((receipt) => `${JSON.stringify(receipt)}\n`).join("");
}

function run(...args: string[]): { code: number; text: string } {
  let text = "";
  const code = verify(readArguments(commandNamed("verify"), args), (piece) => {
    text += piece;
  });
  return { code, text };
}

describe("ninefold verify", () => {
  test.each([
    ["one receipt", JSON.stringify(chain[4]), "receipt 5"],
    ["one receipt over several lines", JSON.stringify(chain[4], null, 2), "receipt 5"],
    ["a chain", lines(chain), "receipts 1 to 60 (60)"],
    ["a chain without a newline at its end", lines(chain).trimEnd(), "receipts 1 to 60 (60)"],
    [
      "a chain with empty lines and the line ends of Windows",
      lines(chain).replaceAll("\n", "\r\n\r\n"),
      "receipts 1 to 60 (60)",
    ],
  ])("%s is valid", (_, text, found) => {
    const end = found.includes("receipts") ? `${NO_END}\n` : "";
    expect(run(write(text))).toEqual({ code: 0, text: `valid: ${found}\npublic key: ${key}\n${end}` });
  });

  describe("with the log of a receipt without one", () => {
    const { log, ...withoutLog } = chain[4] ?? {};
    const receipt = write(JSON.stringify(withoutLog));

    test("verifies the log, too", () => {
      expect(run(receipt, "--log", write(`${JSON.stringify(log)}\n`))).toEqual({
        code: 0,
        text: `valid: receipt 5\npublic key: ${key}\n`,
      });
    });

    test.each([
      ["another log", '{"entry":5}', "content_hash is not the hash of log"],
      ["no JSON", "hello", "the log is not JSON"],
    ])("%s is not valid", (_, text, problem) => {
      const { code, text: printed } = run(receipt, "--log", write(text));
      expect(code).toBe(1);
      expect(printed).toContain(problem);
    });

    test("a file with more than one receipt is an error", () => {
      expect(() => run(write(lines(chain)), "--log", write("{}"))).toThrow(
        "--log is for a file with one receipt",
      );
    });
  });

  describe("with a checkpoint", () => {
    const all = write(lines(chain));
    const sixty = write(checkpointOf(chain, 60));
    const covered = "checkpoint: 60 receipts of example.com/audit";

    test("proves where the chain ends", () => {
      expect(run(all, "--checkpoint", sixty)).toEqual({
        code: 0,
        text: `valid: receipts 1 to 60 (60)\npublic key: ${key}\n${covered}\n`,
      });
    });

    test("says how much of the chain an older one covers", () => {
      const { code, text } = run(all, "--checkpoint", write(checkpointOf(chain, 7)));
      expect(code).toBe(0);
      expect(text).toEndWith("The end of the chain is not proved: the checkpoint covers 7 of 60 receipts.\n");
    });

    test("detects a chain that was cut", () => {
      expect(run(write(lines(chain.slice(0, 41))), "--checkpoint", sixty)).toEqual({
        code: 1,
        text: "not valid: The chain ends at 41; the checkpoint covers 60.\n",
      });
    });

    test("detects a changed timestamp, which no signature covers", () => {
      const changed = chain.with(3, { ...(chain[3] as (typeof chain)[0]), timestamp: 5 });
      expect(run(write(lines(changed)))).toMatchObject({ code: 0 });
      expect(run(write(lines(changed)), "--checkpoint", sixty)).toEqual({
        code: 1,
        text: "not valid: The chain is not the one that the checkpoint of 60 receipts covers: a receipt was changed.\n",
      });
    });

    test("detects a chain that was rewritten with the chain's own key", () => {
      const rewritten = makeChain(chain.map((_, index) => ({ entry: index === 9 ? "other" : index })));
      expect(run(write(lines(rewritten)))).toMatchObject({ code: 0 });
      expect(run(write(lines(rewritten)), "--checkpoint", sixty).code).toBe(1);
    });

    test("needs the file from the first receipt on", () => {
      const { code, text } = run(write(lines(chain.slice(5))), "--checkpoint", sixty);
      expect([code, text]).toEqual([
        1,
        "not valid: A checkpoint can only be compared with all receipts from the first one on.\n",
      ]);
    });

    test("accepts several, of any size", () => {
      const paths = [0, 1, 31, 60].map((size) => write(checkpointOf(chain, size)));
      const { code, text } = run(all, ...paths.flatMap((path) => ["--checkpoint", path]));
      expect(code).toBe(0);
      expect(text.match(/^checkpoint: /gm)).toHaveLength(4);
    });

    test("reads the one that an export ends with", () => {
      const last = `${JSON.stringify({ checkpoint: checkpointOf(chain, 60) })}\n`;
      expect(run(write(lines(chain) + last)).text).toEndWith(`${covered}\n`);
      expect(run(write(lines(chain.slice(0, 59)) + last)).text).toBe(
        "not valid: The chain ends at 59; the checkpoint covers 60.\n",
      );
      const early = `${JSON.stringify({ checkpoint: checkpointOf(chain, 58) })}\n`;
      expect(run(write(lines(chain) + early)).text).toContain("is in the file after later receipts");
    });

    test("rejects one of another key, and a malformed one", () => {
      const other = makeChain([{ n: 1 }, { n: 2 }], new Uint8Array(32).fill(9));
      const { code, text } = run(all, "--checkpoint", write(checkpointOf(other, 2, 9)));
      expect(code).toBe(1);
      expect(text).toContain("no valid signature of example.com/audit with this key");
      expect(run(all, "--checkpoint", write("hello")).text).toBe(
        "not valid: the text is not a signed checkpoint\n",
      );
    });

    test("requires the key of --vkey, and the quorum of witnesses", () => {
      const vkey = vkeyOf(noteKey(native, "example.com/audit", publicKeyOf(7)));
      const witnesses = [11, 12].map((seed) => witnessOf(seed));
      const [one = "", two = ""] = witnesses.map(({ vkey: own }) => own);
      const cosigned = write(cosignedBy(checkpointOf(chain, 60), witnesses.slice(0, 1)));
      const args = [all, "--checkpoint", cosigned, "--vkey", vkey];
      expect(run(...args, "--witness", one).text).toEndWith(`${covered}, witnessed by witness.example/11\n`);
      expect(run(...args, "--witness", one, "--witness", two, "--quorum", "1").code).toBe(0);
      expect(run(...args, "--witness", one, "--witness", two)).toEqual({
        code: 1,
        text: "not valid: 1 of 2 witnesses have signed the checkpoint, 2 must have\n",
      });
      expect(run(all, "--checkpoint", sixty, "--vkey", vkey.replace("audit", "other")).code).toBe(1);
    });
  });

  test("verifies a bundle", () => {
    const path = write(JSON.stringify(bundleOf(chain, 5)));
    expect(run("--bundle", path, "--public-key", key)).toEqual({
      code: 0,
      text: `valid: receipt 5, covered by the checkpoint of 60 of example.com/audit\npublic key: ${key}\n`,
    });
    const changed = { ...bundleOf(chain, 5), receipt: chain[5] };
    expect(run("--bundle", write(JSON.stringify(changed)))).toEqual({
      code: 1,
      text: "not valid: the proof does not show that the checkpoint covers the receipt\n",
    });
  });

  test("reports each problem with its position", () => {
    const changed = [chain[0], { ...chain[1], log: { entry: 99 } }, chain[3]];
    expect(run(write(`${lines(changed)}no receipt\n`))).toEqual({
      code: 1,
      text: [
        "line 2, sequence_id 2: content_hash is not the hash of log",
        "line 3, sequence_id 4: sequence_id 4 follows 2: receipts between them are missing",
        "line 4: the receipt is not JSON",
        "not valid: 3 of 4 receipts have problems",
        "",
      ].join("\n"),
    });
  });

  test("requires the key of --public-key", () => {
    const path = write(lines(chain.slice(0, 2)));
    expect(run(path, "--public-key", key).code).toBe(0);
    expect(run(path, "--public-key", "A".repeat(43))).toEqual({
      code: 1,
      text: "line 1, sequence_id 1: public_key differs from the chain's key\nline 2, sequence_id 2: public_key differs from the chain's key\nnot valid: 2 of 2 receipts have problems\n",
    });
  });

  test("prints problems up to a maximum and counts the others", () => {
    const broken = chain.slice(0, PROBLEMS_PRINTED_MAX).map((receipt) => ({ ...receipt, log: { a: 1 } }));
    expect(run(write(lines(broken))).text.split("\n")).toHaveLength(PROBLEMS_PRINTED_MAX + 2);
    const more = chain.slice(0, PROBLEMS_PRINTED_MAX + 1).map((receipt) => ({ ...receipt, log: { a: 1 } }));
    const { text } = run(write(lines(more)));
    expect(text.split("\n")).toHaveLength(PROBLEMS_PRINTED_MAX + 3);
    expect(text).toContain("… and 1 more\n");
  });

  test("an empty file is not valid", () => {
    expect(run(write("\n\n"))).toEqual({ code: 1, text: "not valid: the file holds no receipt\n" });
  });

  test("a line has a maximum length", () => {
    const receipt = JSON.stringify(chain[0]);
    const padded = (bytes: number): string => `${" ".repeat(bytes - receipt.length)}${receipt}`;
    expect(run(write(`${padded(LINE_BYTES_MAX)}\n${JSON.stringify(chain[1])}\n`)).code).toBe(0);
    const tooLong = write(`${JSON.stringify(chain[0])}\n${" ".repeat(LINE_BYTES_MAX * 2)}`);
    expect(() => run(tooLong)).toThrow(`longer than ${LINE_BYTES_MAX} bytes`);
  });

  test("a file that is not UTF-8 is rejected", () => {
    const bytes = Buffer.from(lines([chain[0]]));
    bytes[bytes.indexOf("entry")] = 0xff;
    expect(run(write(bytes)).code).toBe(1);
  });

  test("a missing file and a folder are reported", () => {
    expect(() => run(join(folder, "missing"))).toThrow("There is no file");
    expect(() => run(folder)).toThrow("is not a file");
  });

  test("as a process: exit codes 0, 1 and 2", async () => {
    const exitCode = (...args: string[]): Promise<number> =>
      Bun.spawn([process.execPath, MAIN, "verify", ...args], { stdout: "ignore", stderr: "ignore" }).exited;
    expect(await exitCode(write(lines(chain)))).toBe(0);
    expect(await exitCode(write(lines([chain[0], chain[2]])))).toBe(1);
    expect(await exitCode(join(folder, "missing"))).toBe(1);
    expect(await exitCode()).toBe(2);
    expect(await exitCode("file", "--public-key")).toBe(2);
  });
});
