import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { UsageError } from "../config/command-line.ts";
import { errorText, StartupError } from "../kernel/errors.ts";
import { ChainVerifier } from "../verify/chain.ts";
import { ChainEnd } from "../verify/chain-end.ts";
import { type CheckpointKeys, checkBundle } from "../verify/checkpoint.ts";
import { createNativeCrypto } from "../verify/native.ts";
import type { Arguments } from "./arguments.ts";
import { print } from "./output.ts";
import { Progress } from "./progress.ts";

/** Longest line: the largest log that the server takes, written out in full, is half of it. */
export const LINE_BYTES_MAX = 8 * 1024 * 1024;
/** Maximum of printed problems; further ones are counted. */
export const PROBLEMS_PRINTED_MAX = 50;

const CHECKPOINT_LINE = /^\{"checkpoint": ?"/;
const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

/**
 * `ninefold verify FILE`: checks one receipt, or a chain as JSON lines in ascending order, and compares it with checkpoints,
 * without a server. With `--log`, compares the log of one receipt. With `--bundle`, checks a bundle. Returns the exit code:
 * 0 when everything holds, 1 when not.
 */
export function verify(args: Arguments, printResult: (text: string) => void = print): number {
  const keys: CheckpointKeys = {
    publicKey: args.text("--public-key"),
    vkey: args.text("--vkey"),
    witnesses: args.texts("--witness"),
    quorum: args.integer("--quorum"),
  };
  const bundle = args.text("--bundle");
  const [file] = args.words;
  if (bundle !== null) return verifyBundle(bundle, keys, printResult);
  if (file === undefined) throw new UsageError("verify needs FILE or --bundle. Try ninefold verify --help.");
  return verifyFile(file, args, keys, printResult);
}

function verifyFile(
  file: string,
  args: Arguments,
  keys: CheckpointKeys,
  printResult: (text: string) => void,
): number {
  const log = args.text("--log");
  const logText = log === null ? null : smallText(log);
  const native = createNativeCrypto();
  const chain = new ChainVerifier(native, keys.publicKey);
  const notes = args.texts("--checkpoint").map((path) => smallText(path));
  const end = new ChainEnd(native, notes);
  const size = fileSize(file);
  const progress = new Progress();
  // Printed at the end, because the line with the progress is redrawn on a terminal.
  const problems: string[] = [];
  let found = 0;
  try {
    for (const { line, text, position } of receiptsOf(file)) {
      const note = checkpointIn(text);
      if (note !== null) {
        end.addCheckpoint(note);
        continue;
      }
      const verdict = chain.add(text, logText);
      if (logText !== null && chain.count > 1)
        throw new UsageError(
          "--log is for a file with one receipt. Write that receipt into a file of its own.",
        );
      end.add(verdict.problems.length === 0 ? verdict.receipt : null);
      const place =
        verdict.sequence === null ? `line ${line}` : `line ${line}, sequence_id ${verdict.sequence}`;
      found += verdict.problems.length;
      const room = Math.max(0, PROBLEMS_PRINTED_MAX - problems.length);
      problems.push(...verdict.problems.slice(0, room).map((problem) => `${place}: ${problem}\n`));
      progress.show("Verifying", "bytes", position, size);
    }
  } finally {
    progress.finish();
  }
  if (found > problems.length) problems.push(`… and ${found - problems.length} more\n`);
  const ending = end.finish({ ...keys, publicKey: chain.publicKey });
  const isValid = chain.count > 0 && chain.invalid === 0 && ending.problems.length === 0;
  // A single receipt has no end.
  const lines = isValid && chain.count > 1 ? ending.proved : [];
  const notValid =
    chain.invalid === 0 && chain.count > 0 ? ending.problems.map((problem) => `not valid: ${problem}`) : [];
  const results = notValid.length > 0 ? `${notValid.join("\n")}\n` : summary(chain);
  printResult(problems.join("") + results + lines.map((line) => `${line}\n`).join(""));
  return isValid ? 0 : 1;
}

function verifyBundle(path: string, keys: CheckpointKeys, printResult: (text: string) => void): number {
  const verdict = checkBundle(smallText(path), keys, createNativeCrypto());
  const { valid, sequence, origin, size, publicKey, errors = [] } = verdict;
  printResult(
    valid
      ? `valid: receipt ${sequence}, covered by the checkpoint of ${size} of ${origin}\npublic key: ${publicKey}\n`
      : errors.map((error) => `not valid: ${error}\n`).join(""),
  );
  return valid ? 0 : 1;
}

/** The note in a line `{"checkpoint": "…"}`, which an export ends with; null for every other line. */
function checkpointIn(text: string): string | null {
  if (!CHECKPOINT_LINE.test(text) || !isJson(text)) return null;
  const { checkpoint } = JSON.parse(text);
  return typeof checkpoint === "string" ? checkpoint : null;
}

/** The text of a checkpoint or a bundle. @throws StartupError */
function smallText(path: string): string {
  if (fileSize(path) > LINE_BYTES_MAX)
    throw new StartupError(`${path} is longer than ${LINE_BYTES_MAX} bytes.`);
  return readable(path, () => readFileSync(path, "utf8"));
}

function summary({ count, invalid, first, last, publicKey, withoutLog }: ChainVerifier): string {
  if (count === 0) return "not valid: the file holds no receipt\n";
  if (invalid > 0) return `not valid: ${invalid} of ${count} receipts have problems\n`;
  const range = count === 1 ? `receipt ${first}` : `receipts ${first} to ${last} (${count})`;
  const hashesOnly = withoutLog === 0 ? "" : `without log: ${withoutLog} (only their hashes were verified)\n`;
  return `valid: ${range}\n${hashesOnly}public key: ${publicKey}\n`;
}

/** The text of one receipt, and its position. */
interface Located {
  readonly line: number;
  readonly text: string;
  /** The end of it, in bytes from the beginning of the file. */
  readonly position: number;
}

/** The texts of the receipts in a file: its lines, or the whole file when that is one JSON text. */
function* receiptsOf(path: string): Generator<Located> {
  const whole = wholeText(path);
  if (whole !== null) {
    yield { line: 1, text: whole, position: fileSize(path) };
    return;
  }
  let line = 0;
  let position = 0;
  for (const bytes of linesOf(path)) {
    line += 1;
    position += bytes.length + 1;
    const text = bytes.toString("utf8").trim();
    if (text !== "") yield { line, text, position };
  }
}

/** A small file that is one JSON text over several lines; null for JSON lines. */
function wholeText(path: string): string | null {
  if (fileSize(path) > LINE_BYTES_MAX) return null;
  const text = readable(path, () => readFileSync(path, "utf8"));
  return isJson(text) ? text : null;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function fileSize(path: string): number {
  const status = readable(path, () => statSync(path, { throwIfNoEntry: false }));
  if (status === undefined) throw new StartupError(`There is no file ${path}.`);
  if (!status.isFile()) throw new StartupError(`${path} is not a file.`);
  return status.size;
}

/** Result of an access to a file. @throws StartupError with the file's name if the system rejects it */
function readable<T>(path: string, access: () => T): T {
  try {
    return access();
  } catch (error) {
    throw new StartupError(`${path} cannot be read (${errorText(error)}).`);
  }
}

/** The lines of a file of any size, read piece by piece. */
function* linesOf(path: string): Generator<Buffer> {
  const file = readable(path, () => openSync(path, "r"));
  try {
    let rest = Buffer.alloc(0);
    const chunk = Buffer.alloc(CHUNK_BYTES);
    for (let size = readSync(file, chunk); size > 0; size = readSync(file, chunk)) {
      const piece = chunk.subarray(0, size);
      let start = 0;
      for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
        yield Buffer.concat([rest, piece.subarray(start, end)]);
        rest = Buffer.alloc(0);
        start = end + 1;
      }
      rest = Buffer.concat([rest, piece.subarray(start)]);
      if (rest.length > LINE_BYTES_MAX)
        throw new StartupError(`A line is longer than ${LINE_BYTES_MAX} bytes: that is no receipt.`);
    }
    if (rest.length > 0) yield rest;
  } finally {
    closeSync(file);
  }
}
