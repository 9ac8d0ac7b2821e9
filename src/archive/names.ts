/** Longest time that a name of an object needs: 8 digits of an epoch, 12 of a sequence number. */
const [EPOCH_DIGITS, SEQ_DIGITS] = [8, 12];
const BASE = /^b\/([0-9a-f]{8})-([0-9a-f]{12})$/;
const ENTRY = /^e\/([0-9a-f]{8})\/([0-9a-f]{12})$/;

/**
 * What the name of an object says: the number of its history, and of an entry. A server without a cluster gives its history the
 * epoch of its entries; that of a cell goes on through the epochs of its leaders.
 */
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

/**
 * The name of the object with which a leader of a cluster claims a new history: no other one has the same number. It has no
 * entries, which are numbered from 1.
 */
export function claimName(epoch: number): string {
  return entryName({ epoch, seq: 0 });
}

/** The name after those of all entries of an epoch. */
export function lastNameOf(epoch: number): string {
  return entryName({ epoch, seq: 16 ** SEQ_DIGITS - 1 });
}

/** Reads the name of a base; null for any other object. */
export function baseNamed(name: string): NamedPosition | null {
  return read(BASE, name);
}

/** Reads the name of an object of entries: the first of them; null for any other object, and for a claim. */
export function entryNamed(name: string): NamedPosition | null {
  const named = read(ENTRY, name);
  return named?.seq === 0 ? null : named;
}

/** Reads the name of a claim; null for any other object. */
export function claimNamed(name: string): NamedPosition | null {
  const named = read(ENTRY, name);
  return named?.seq === 0 ? named : null;
}

function read(pattern: RegExp, name: string): NamedPosition | null {
  const [, epoch, seq] = pattern.exec(name) ?? [];
  if (epoch === undefined || seq === undefined) return null;
  return { epoch: Number.parseInt(epoch, 16), seq: Number.parseInt(seq, 16) };
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}
