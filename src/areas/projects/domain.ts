import { type ErrorMeaning, registerErrors } from "../../kernel/errors.ts";

/** Characters of a project id after `proj_`. */
export const PROJECT_ID_LENGTH = 20;
/** Longest name, in characters. */
export const NAME_LENGTH_MAX = 100;
/** Longest description, in characters. */
export const DESCRIPTION_LENGTH_MAX = 500;
/** Longest slug, its number included. */
export const SLUG_LENGTH_MAX = 60;
/** Slug of a name without letters and digits. */
const DEFAULT_SLUG = "project";
/** The first number of a slug: the one without a number counts as 1. */
const FIRST_NUMBER = 2;
/** Numbers tried one by one; above them a binary search finds a free one, so that many equal names cost little. */
const LINEAR_ATTEMPTS_MAX = 32;

const codes = registerErrors({
  project_limit_exceeded: [
    403,
    "The account has as many projects as its tier allows.",
    "Delete projects that are not used, or request another tier from the operator.",
  ],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** Lower case, without accents, a dash for each run of other characters; `project` for an empty result. */
export function slugOf(name: string): string {
  const plain = name.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const slug = shortened(plain.replace(/[^a-z0-9]+/g, "-").replace(/^-/, ""), SLUG_LENGTH_MAX);
  return slug === "" ? DEFAULT_SLUG : slug;
}

/** The slug of a name, with a number (`-2` or higher) if it is taken. */
export function availableSlug(name: string, isTaken: (slug: string) => boolean): string {
  const slug = slugOf(name);
  if (!isTaken(slug)) return slug;
  return numbered(
    slug,
    lowestAvailableNumber((number) => isTaken(numbered(slug, number))),
  );
}

function numbered(slug: string, number: number): string {
  const suffix = `-${number}`;
  return shortened(slug, SLUG_LENGTH_MAX - suffix.length) + suffix;
}

function lowestAvailableNumber(isTaken: (number: number) => boolean): number {
  let taken = FIRST_NUMBER - 1;
  for (; taken < LINEAR_ATTEMPTS_MAX; taken += 1) {
    if (!isTaken(taken + 1)) return taken + 1;
  }
  let free = 2 * taken;
  while (isTaken(free)) {
    taken = free;
    free *= 2;
  }
  while (free - taken > 1) {
    const middle = Math.floor((taken + free) / 2);
    if (isTaken(middle)) taken = middle;
    else free = middle;
  }
  return free;
}

function shortened(slug: string, lengthMax: number): string {
  // There are no consecutive dashes, so removing one is enough.
  return slug.slice(0, lengthMax).replace(/-$/, "");
}
