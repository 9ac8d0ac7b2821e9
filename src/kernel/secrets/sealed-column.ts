import type { Vault } from "./vault.ts";

/** Identifies the row of a sealed value: its id, or a number that never changes. */
type RowId = string | number;

/**
 * A column whose values are sealed, each for the row that has it: in another row it cannot be opened. Exports and restores
 * read it by the same declaration.
 */
export interface SealedColumn<Value> {
  seal(vault: Pick<Vault, "seal">, id: RowId, value: Value): Uint8Array;
  /** The same; null for null, and for an object without members. */
  sealOrNull(vault: Pick<Vault, "seal">, id: RowId, value: Value | null): Uint8Array | null;
  /** @throws Error for a value of another row, or of another master key */
  open(vault: Pick<Vault, "open">, id: RowId, sealed: Uint8Array): Value;
  /** The same; null for null, and for the empty value that a restore without the master key leaves. */
  openOrNull(vault: Pick<Vault, "open">, id: RowId, sealed: Uint8Array | null): Value | null;
}

/** A sealed text. `purpose`: what it is, such as `ping-key`. It is part of what is stored: never change it. */
export function sealedText(purpose: string): SealedColumn<string> {
  return sealedColumn(purpose, { encode: (value) => value, decode: (text) => text });
}

/** A sealed value that is JSON, such as headers or settings; `purpose` as of {@link sealedText}. */
export function sealedJson<Value extends object>(purpose: string): SealedColumn<Value> {
  return sealedColumn<Value>(purpose, { encode: JSON.stringify, decode: JSON.parse });
}

interface Encoding<Value> {
  readonly encode: (value: Value) => string;
  readonly decode: (text: string) => Value;
}

function sealedColumn<Value>(purpose: string, { encode, decode }: Encoding<Value>): SealedColumn<Value> {
  const column: SealedColumn<Value> = {
    seal: (vault, id, value) => vault.seal(encode(value), `${purpose}:${id}`),
    sealOrNull: (vault, id, value) => (isEmpty(value) ? null : column.seal(vault, id, value as Value)),
    open: (vault, id, sealed) => decode(vault.open(sealed, `${purpose}:${id}`)),
    openOrNull: (vault, id, sealed) =>
      sealed === null || sealed.length === 0 ? null : column.open(vault, id, sealed),
  };
  return column;
}

/** Whether nothing is stored of a value. */
function isEmpty(value: unknown): value is null {
  return value === null || (typeof value === "object" && Object.keys(value).length === 0);
}
