/** What can be told of a JSON text before it is parsed. Nothing here is of the server: the portable verifier uses it, too. */

/**
 * Levels of objects and arrays: half of what Python's reader takes (1,000), the least of the common ones. Deeper ones are
 * nobody's data, and both walking and writing them is dear: `JSON.stringify` takes seconds for some ten thousand levels.
 */
export const JSON_LEVELS_MAX = 500;

const QUOTE = 0x22;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Whether a JSON text has more levels of objects and arrays than so many. One pass at most, and none for most texts. Of a
 * text that is not JSON it may say anything.
 */
export function isNestedDeeper(json: string, levelsMax: number): boolean {
  // Every level takes two characters, and no text has more levels than brackets that open one.
  if (json.length <= 2 * levelsMax) return false;
  const objects = countUpTo(levelsMax + 1, json, "{");
  if (objects + countUpTo(levelsMax + 1 - objects, json, "[") <= levelsMax) return false;
  let level = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(json, at) - 1;
    } else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      level += 1;
      if (level > levelsMax) return true;
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) {
      level -= 1;
    }
  }
  return false;
}

function countUpTo(most: number, text: string, character: string): number {
  let found = 0;
  for (let at = text.indexOf(character); at >= 0 && found < most; at = text.indexOf(character, at + 1))
    found += 1;
  return found;
}

/** The position after the closing quote of the string that begins at `start`; the text's end when there is none. */
export function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end > 0 && isEscaped(json, end)) end = json.indexOf('"', end + 1);
  return end < 0 ? json.length : end + 1;
}

function isEscaped(json: string, quote: number): boolean {
  let backslashes = 0;
  while (json.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes += 1;
  return backslashes % 2 === 1;
}

/** Whether a value has more levels of objects and arrays than so many. It is walked no deeper than that. */
export function isValueDeeper(value: unknown, levelsMax: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levelsMax === 0) return true;
  return Object.values(value).some((member) => isValueDeeper(member, levelsMax - 1));
}
