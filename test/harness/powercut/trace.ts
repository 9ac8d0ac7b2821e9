/** The kinds of notes. The numbers are the shim's. */
export const NOTE = {
  create: 1,
  write: 2,
  cut: 3,
  syncBegin: 4,
  syncEnd: 5,
  rename: 6,
  unlink: 7,
  folder: 8,
  answer: 9,
  content: 10,
  fault: 11,
  unknown: 12,
} as const;

/** One operation below the folder, or one response that was sent. */
export interface Note {
  readonly type: number;
  readonly inode: number;
  /** The offset of a write, the size of a truncation, the number of a sync. */
  readonly a: number;
  /** The error of a sync; 0 when it succeeded. */
  readonly b: number;
  readonly bytes: Buffer;
}

const HEAD_BYTES = 32;
const REQUEST_ID = /\r\nx-request-id: ([^\r\n]{1,100})\r\n/i;

/** What the server wrote, synced and returned, in order. */
export class Trace {
  readonly notes: readonly Note[];
  /** Number of notes after which the response to each request was sent. */
  private readonly responded = new Map<string, number>();

  constructor(file: Buffer) {
    this.notes = parseNotes(file);
    this.notes.forEach((note, index) => {
      if (note.type === NOTE.unknown)
        throw new Error(`the server calls ${note.bytes.toString()}, which cannot be followed`);
      if (note.type !== NOTE.answer) return;
      const id = REQUEST_ID.exec(note.bytes.toString("latin1"))?.[1];
      if (id !== undefined) this.responded.set(id, index + 1);
    });
  }

  /** Number of notes after which the response with this request id was sent. */
  respondedAt(requestId: string): number {
    const at = this.responded.get(requestId);
    if (at === undefined) throw new Error(`the trace does not have the response to request ${requestId}`);
    return at;
  }
}

/** The notes of a file. An incomplete note at its end, of a killed process, is omitted. */
function parseNotes(file: Buffer): Note[] {
  const notes: Note[] = [];
  for (let at = 0; at + HEAD_BYTES <= file.length; ) {
    const end = at + HEAD_BYTES + file.readUInt32LE(at + 4);
    if (end > file.length) break;
    notes.push({
      type: file.readUInt32LE(at),
      inode: Number(file.readBigUInt64LE(at + 8)),
      a: Number(file.readBigInt64LE(at + 16)),
      b: Number(file.readBigInt64LE(at + 24)),
      bytes: file.subarray(at + HEAD_BYTES, end),
    });
    at = end;
  }
  return notes;
}
