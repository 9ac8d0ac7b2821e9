import { firstNotBefore } from "../../kernel/data/sorted.ts";

/** A held text with one of these suffixes covers every text that starts with the text before the `*`. */
const WILDCARD_SUFFIXES = [":*", ".*", "/*"] as const;

/**
 * Texts that a key holds: scopes or permissions. A required text is covered if it is among them, if `*` is, or if one ends in
 * `:*`, `.*` or `/*` and the required one starts with the text before the `*`. For verify only; `hasScope` decides what
 * credentials of this API may do.
 */
export class HeldTexts {
  readonly set: ReadonlySet<string>;
  private readonly hasAll: boolean;
  /** What stands before the `*` of texts that end in one, sorted; none of them begins with another. */
  private readonly stems: readonly string[];

  constructor(readonly list: readonly string[]) {
    this.set = new Set(list);
    this.hasAll = this.set.has("*");
    this.stems = shortestStems(list);
  }

  /** Whether a required text is covered: a lookup and a binary search, however many texts are held. */
  covers(required: string): boolean {
    if (this.hasAll || this.set.has(required)) return true;
    // As no stem begins with another, only the last one that is not after the text can be its beginning.
    const { stems } = this;
    const stem = stems[firstNotBefore(0, stems.length, (at) => (stems[at] ?? "") <= required) - 1];
    return stem !== undefined && required.startsWith(stem);
  }
}

function shortestStems(list: readonly string[]): readonly string[] {
  const all = list.filter((text) => WILDCARD_SUFFIXES.some((suffix) => text.endsWith(suffix)));
  if (all.length === 0) return all;
  const shortest: string[] = [];
  for (const stem of all.map((text) => text.slice(0, -1)).sort()) {
    const last = shortest.at(-1);
    if (last === undefined || !stem.startsWith(last)) shortest.push(stem);
  }
  return shortest;
}
