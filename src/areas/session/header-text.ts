/** The longest name of a person. */
const NAME_LENGTH_MAX = 100;
/** The text of a header: its bytes are UTF-8, or words of RFC 2047. Null for an empty one. */
export function decodedHeader(value: string | null): string | null {
  if (value === null) return null;
  const text = withoutEncodedWords(utf8Of(value)).trim();
  return text === "" ? null : text;
}

/** The name of a person in a header; null for none. */
export function nameIn(value: string | null): string | null {
  return decodedHeader(value)?.slice(0, NAME_LENGTH_MAX) ?? null;
}

/** Headers arrive as one character per byte. Bytes that are not UTF-8 stay as they are. */
function utf8Of(value: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(value, "latin1"));
  } catch {
    return value;
  }
}

function withoutEncodedWords(text: string): string {
  let result = "";
  let isAfterEncoded = false;
  for (const word of text.split(" ")) {
    const decoded = decodedWord(word);
    // Spaces between two encoded words belong to neither.
    const isJoined = result === "" || (isAfterEncoded && decoded !== null);
    result += `${isJoined ? "" : " "}${decoded ?? word}`;
    isAfterEncoded = decoded !== null;
  }
  return result;
}

/** The text of a word of RFC 2047, as Tailscale encodes names; null for any other. */
function decodedWord(word: string): string | null {
  const [start, charset = "", encoding = "", content = "", end, ...more] = word.split("?");
  if (start !== "=" || end !== "=" || more.length > 0) return null;
  const bytes = encoding.toUpperCase() === "B" ? Buffer.from(content, "base64") : quotedBytes(content);
  if (charset.toLowerCase() === "utf-8") return bytes.toString("utf8");
  return ["iso-8859-1", "us-ascii"].includes(charset.toLowerCase()) ? bytes.toString("latin1") : null;
}

/** The bytes of quoted text: `=C3` stands for a byte, and `_` for a space. */
function quotedBytes(content: string): Buffer {
  const latin = content
    .replaceAll("_", " ")
    .replaceAll(/=([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(latin, "latin1");
}
