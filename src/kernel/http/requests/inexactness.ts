import { type Inexactness, InexactnessScan, isAsWritten } from "../../../json-text.ts";
import { slices } from "../../background/time-slices.ts";

/** Length of a body up to which it is compared with what it would be written as: writing a large one takes milliseconds. */
const COMPARED_LENGTH_MAX = 256 * 1024;

/** Tokens that are scanned in one step, about half a millisecond. */
export const TOKENS_PER_STEP = 2_000;

/** Whether a body is what `JSON.stringify` writes, so that a scan would find nothing. A large body is scanned instead. */
export function isKnownAsWritten(bodyText: string, body: unknown): boolean {
  return bodyText.length <= COMPARED_LENGTH_MAX && isAsWritten(bodyText, body);
}

/**
 * `findInexactness` of a member of a body, in {@link slices} of the event loop: a scan of a hundred thousand tokens takes 25 ms.
 * `body` is what `JSON.parse` made of the text.
 */
export async function findInexactnessInSlices(
  bodyText: string,
  body: unknown,
  member: string,
): Promise<Inexactness | null> {
  if (isKnownAsWritten(bodyText, body)) return null;
  const scan = new InexactnessScan(bodyText, member);
  while (!scan.advance(TOKENS_PER_STEP)) if (slices.isOver) await slices.next();
  return scan.found;
}
