import type { Ids } from "../../../kernel/ids.ts";
import adjectives from "./adjectives.txt" with { type: "text" };
import nouns from "./nouns.txt" with { type: "text" };

/** At least 200 adjectives. Adding or removing a word does not affect existing buckets. */
export const ADJECTIVES = adjectives.trim().split(/\s+/);
/** At least 200 nouns. */
export const NOUNS = nouns.trim().split(/\s+/);

/** Numbers of six digits. */
const NUMBER_MIN = 100_000;
const NUMBERS = 900_000;

/** A random bucket id such as `brave-otter-314159`: easy to read aloud, and hard enough to guess for a public path. */
export function newBucketId(ids: Ids): string {
  return `${pick(ids, ADJECTIVES)}-${pick(ids, NOUNS)}-${NUMBER_MIN + below(ids, NUMBERS)}`;
}

function pick(ids: Ids, words: readonly string[]): string {
  return words[below(ids, words.length)] ?? "";
}

/** A number below `limit`, from 48 random bits: the bias of the remainder is negligible. */
function below(ids: Ids, limit: number): number {
  return Buffer.from(ids.bytes(6)).readUIntBE(0, 6) % limit;
}
