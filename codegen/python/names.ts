/** Words that are no names in Python. */
const KEYWORDS: ReadonlySet<string> = new Set([
  ..."False None True and as assert async await break class continue def del elif else except finally for from".split(
    " ",
  ),
  ..."global if import in is lambda nonlocal not or pass raise return try while with yield".split(" "),
]);

/** Whether a name is a keyword of Python. */
export function isKeyword(name: string): boolean {
  return KEYWORDS.has(name);
}

/** `grace_hours` for `graceHours`, and `import_` for `import`, which is a keyword. */
export function snake(name: string): string {
  const words = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return isKeyword(words) ? `${words}_` : words;
}

/** `RelayEndpoints` for `relay.endpoints`. */
export function pascal(name: string): string {
  return name
    .split(/[^A-Za-z0-9]+/)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join("");
}

/** A text in lines of at most `width` characters, as far as its words allow. */
export function textLines(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
