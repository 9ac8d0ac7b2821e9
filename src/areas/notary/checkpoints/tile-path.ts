import { TILE_WIDTH } from "../tree/hash-tree.ts";

/** Highest level of a tile in c2sp.org/tlog-tiles. */
const LEVEL_MAX = 63;

/** What a path below `tile/` names. */
export interface TilePath {
  /** Null: entries instead of hashes. */
  readonly level: number | null;
  readonly index: number;
  /** Number of hashes or entries, from 1 to 256. */
  readonly width: number;
}

/** Level, index and width. Five groups of digits reach every tree that a number can count. */
const PATH = /^(entries|0|[1-9][0-9]?)\/((?:x[0-9]{3}\/){0,4}[0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/;

/** Parses a path such as `0/x001/x234/067.p/12`; null for every other spelling. */
export function parseTilePath(path: string): TilePath | null {
  const [, name, groups = "", partial] = PATH.exec(path) ?? [];
  if (name === undefined) return null;
  // Only index 0 has a group of zeros in front.
  if (groups.startsWith("x000")) return null;
  const level = name === "entries" ? null : Number(name);
  const width = partial === undefined ? TILE_WIDTH : Number(partial);
  const index = Number(groups.replaceAll(/[x/]/g, ""));
  if (level !== null && level > LEVEL_MAX) return null;
  if (partial !== undefined && width >= TILE_WIDTH) return null;
  return { level, index, width };
}

/** Returns the path of a tile, the reverse of {@link parseTilePath}. */
export function tilePath({ level, index, width }: TilePath): string {
  const digits = String(index);
  const padded = digits.padStart(Math.ceil(digits.length / 3) * 3, "0");
  const groups = padded.match(/[0-9]{3}/g) ?? [];
  const last = groups.pop();
  const name = [...groups.map((group) => `x${group}`), last].join("/");
  return `${level ?? "entries"}/${name}${width === TILE_WIDTH ? "" : `.p/${width}`}`;
}

/** Number of hashes or entries that the tile has in a tree of this size: 0 to 256. */
export function widthAt({ level, index }: TilePath, size: number): number {
  const hashes = Math.floor(size / TILE_WIDTH ** (level ?? 0));
  return Math.min(TILE_WIDTH, Math.max(0, hashes - index * TILE_WIDTH));
}
