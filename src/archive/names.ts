/** Longest time that a name of an object needs: 8 digits of an epoch, 12 of a sequence number. */
const [EPOCH_DIGITS, SEQ_DIGITS] = [8, 12];
const BASE = /^b\/([0-9a-f]{8})-([0-9a-f]{12})$/;
const ENTRY = /^e\/([0-9a-f]{8})\/([0-9a-f]{12})$/;

/** What the name of an object says. */
export interface NamedPosition {
  readonly epoch: number;
  readonly seq: number;
}

/** Beginning of the names of all bases. */
export const BASES = "b/";
/** Beginning of the names of all entries. */
export const ENTRIES = "e/";

/**
 * The name of the object with the entries from `first` on, until the next object. Without the number of its last entry: two
 * servers that continue the same history must meet at the same name, where only one of them can write.
 */
export function entryName({ epoch, seq }: NamedPosition): string {
  return `${entriesOf(epoch)}${hex(seq, SEQ_DIGITS)}`;
}

/** Beginning of the names of an epoch's entries. */
export function entriesOf(epoch: number): string {
  return `${ENTRIES}${hex(epoch, EPOCH_DIGITS)}/`;
}

/**
 * The name of a base. It contains the entry `seq` and those before it, and possibly some after it: its header has its
 * position. The objects after `seq` complete it.
 */
export function baseName({ epoch, seq }: NamedPosition): string {
  return `${BASES}${hex(epoch, EPOCH_DIGITS)}-${hex(seq, SEQ_DIGITS)}`;
}

/** Reads the name of a base; null for any other object. */
export function baseNamed(name: string): NamedPosition | null {
  return read(BASE, name);
}

/** Reads the name of an object of entries: the first of them; null for any other object. */
export function entryNamed(name: string): NamedPosition | null {
  return read(ENTRY, name);
}

function read(pattern: RegExp, name: string): NamedPosition | null {
  const [, epoch, seq] = pattern.exec(name) ?? [];
  if (epoch === undefined || seq === undefined) return null;
  return { epoch: Number.parseInt(epoch, 16), seq: Number.parseInt(seq, 16) };
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}
