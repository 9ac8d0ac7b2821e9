/** Longer texts are not indented. */
const INDENTED_MAX = 256 * 1024;
/** Deeper levels are not indented further. */
const LEVELS_MAX = 40;

/** A JSON text with line breaks and indentation, and unchanged values; any other text, and a long one, as it is. */
export function indented(text: string): string {
  try {
    if (text.length > INDENTED_MAX || typeof JSON.parse(text) !== "object") return text;
  } catch {
    return text;
  }
  let [depth, last] = [0, ""];
  const line = (): string => `\n${"  ".repeat(Math.min(depth, LEVELS_MAX))}`;
  const parts: string[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const start = text.charAt(at);
    if (" \t\r\n".includes(start)) continue;
    const isEnd = start === "}" || start === "]";
    if (isEnd) depth -= 1;
    if (isEnd ? last !== "{" && last !== "[" : last === "{" || last === "[" || last === ",")
      parts.push(line());
    if (start === "{" || start === "[") depth += 1;
    const end = start === '"' ? endOfText(text, at) : at + 1;
    parts.push(start === ":" ? ": " : text.slice(at, end));
    last = start;
    at = end - 1;
  }
  return parts.join("");
}

/** The position after the closing quote of a string in valid JSON. */
function endOfText(text: string, start: number): number {
  let end = start + 1;
  while (text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
  return end + 1;
}
