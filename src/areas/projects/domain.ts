import { type ErrorMeaning, registerErrors } from "../../kernel/errors.ts";

/** Characters of a project id after `proj_`. */
export const PROJECT_ID_LENGTH = 20;
/** Longest name, in characters. */
export const NAME_LENGTH_MAX = 100;
/** Longest description, in characters. */
export const DESCRIPTION_LENGTH_MAX = 500;
/** Longest slug, its number included. */
export const SLUG_LENGTH_MAX = 60;
/** Slug of a name of which nothing is left. */
const SLUG_OF_NOTHING = "project";
/** The first number of a slug: the one without a number counts as 1. */
const FIRST_NUMBER = 2;
/** Numbers tried one by one; beyond them the free one is found by doubling, so that many equal names cost little. */
const NUMBERS_TRIED_IN_TURN = 32;

const codes = registerErrors({
  project_limit_exceeded: [403, "The account has as many projects as its tier allows."],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** Lower case, without accents, a dash for each run of other characters; `project` when nothing is left. */
export function slugOf(name: string): string {
  const plain = name.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const slug = shortened(plain.replace(/[^a-z0-9]+/g, "-").replace(/^-/, ""), SLUG_LENGTH_MAX);
  return slug === "" ? SLUG_OF_NOTHING : slug;
}

/** The slug of a name, with a number (`-2` or higher) if it is taken. */
export function freeSlug(name: string, isTaken: (slug: string) => boolean): string {
  const slug = slugOf(name);
  if (!isTaken(slug)) return slug;
  return numbered(
    slug,
    freeNumber((number) => isTaken(numbered(slug, number))),
  );
}

function numbered(slug: string, number: number): string {
  const suffix = `-${number}`;
  return shortened(slug, SLUG_LENGTH_MAX - suffix.length) + suffix;
}

function freeNumber(isTaken: (number: number) => boolean): number {
  let taken = FIRST_NUMBER - 1;
  for (; taken < NUMBERS_TRIED_IN_TURN; taken += 1) {
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
  // No two dashes follow each other.
  return slug.slice(0, lengthMax).replace(/-$/, "");
}
