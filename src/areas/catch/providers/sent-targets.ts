/**
 * What the runtime does to a request's target before anyone can read it: it percent-encodes, in capitals, what a URL does not
 * allow unencoded. In the query these are quotes and angle brackets, in the path also braces, `^` and the backtick, and in both
 * everything that is not ASCII. Senders sign what they sent.
 */
const ENCODED = {
  path: /%(?:22|3C|3E|5E|60|7B|7D)/g,
  query: /%(?:22|27|3C|3E)/g,
} as const;
const APOSTROPHE = /%27/g;
/** Encoded bytes of characters beyond ASCII. */
const BEYOND_ASCII = /(?:%[89A-F][0-9A-F]){1,4096}/g;

/** Sequences of one target of which each may have been sent in either way: that many make 64 forms. */
const MIXED_MAX = 6;
/** What may have been sent unencoded, in the path and in the query. */
const AMBIGUOUS = {
  path: /%(?:22|3C|3E|5E|60|7B|7D)|(?:%[89A-F][0-9A-F]){1,4096}/g,
  query: /%(?:22|27|3C|3E)|(?:%[89A-F][0-9A-F]){1,4096}/g,
} as const;

/**
 * The targets that a request may have been sent with, given the normalized one, the most likely first: as it is; with apostrophes,
 * which most encoders leave as they are; with all that a URL does not allow in ASCII; with other characters too; and, if there are
 * few of these, with each of them in either way.
 */
export function sentTargets(target: string): string[] {
  if (!target.includes("%")) return [target];
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = mark < 0 ? "" : target.slice(mark);
  const ascii = path.replace(ENCODED.path, decoded) + query.replace(ENCODED.query, decoded);
  const forms = [target, path + query.replace(APOSTROPHE, "'"), ascii, ascii.replace(BEYOND_ASCII, decoded)];
  return [...new Set([...forms, ...mixedTargets(path, query)])];
}

/** Every combination of encoded and unencoded sequences; none if there are too many sequences. */
function mixedTargets(path: string, query: string): string[] {
  const inPath = path.match(AMBIGUOUS.path)?.length ?? 0;
  const count = inPath + (query.match(AMBIGUOUS.query)?.length ?? 0);
  if (count > MIXED_MAX) return [];
  return Array.from({ length: 2 ** count }, (_, chosen) => {
    let at = 0;
    const choose = (sequence: string): string => {
      const isUnencoded = ((chosen >> at) & 1) === 1;
      at += 1;
      return isUnencoded ? decoded(sequence) : sequence;
    };
    return path.replace(AMBIGUOUS.path, choose) + query.replace(AMBIGUOUS.query, choose);
  });
}

/** Decodes a sequence; one that is not UTF-8 was sent as it is. */
function decoded(sequence: string): string {
  try {
    return decodeURIComponent(sequence);
  } catch {
    return sequence;
  }
}
