// The body of `add-checkpoint` (c2sp.org/tlog-witness).
import { fromBase64, toBase64 } from "../../../verify/bytes.ts";
import { type Checkpoint, type Note, parseCheckpoint, parseNote } from "../../../verify/note.ts";
import { HASH_BYTES } from "../../../verify/tree.ts";

/** Most lines of a proof: those of the largest tree. */
const PROOF_LINES_MAX = 63;

/** Media type of the response with the size that a witness last cosigned. */
export const SIZE_TYPE = "text/x.tlog.size";

const OLD = "old ";
const SIZE = /^(?:0|[1-9][0-9]{0,15})$/;

/** A checkpoint with the proof that it continues the tree of an older size. */
export interface Submission {
  readonly oldSize: number;
  readonly hashes: readonly Uint8Array[];
  readonly note: Note;
  readonly checkpoint: Checkpoint;
}

/** Returns the text of a submission. `note` ends in a newline. */
export function submissionText(oldSize: number, hashes: readonly Uint8Array[], note: string): string {
  return [`${OLD}${oldSize}`, ...hashes.map(toBase64), "", note].join("\n");
}

/** Parses a submission; null if it is malformed. */
export function parseSubmission(text: string): Submission | null {
  const end = text.indexOf("\n\n");
  if (end < 0) return null;
  const [old = "", ...lines] = text.slice(0, end).split("\n");
  const oldSize = old.startsWith(OLD) ? parseSize(old.slice(OLD.length)) : null;
  if (oldSize === null || lines.length > PROOF_LINES_MAX) return null;
  const hashes: Uint8Array[] = [];
  for (const line of lines) {
    const hash = fromBase64(line);
    if (hash?.length !== HASH_BYTES) return null;
    hashes.push(hash);
  }
  const note = parseNote(text.slice(end + 2));
  const checkpoint = note && parseCheckpoint(note.text);
  return note === null || checkpoint === null ? null : { oldSize, hashes, note, checkpoint };
}

/** Parses the size of a tree, in digits without leading zeros; null for any other text. */
export function parseSize(text: string): number | null {
  const size = Number(text);
  return SIZE.test(text) && Number.isSafeInteger(size) ? size : null;
}
