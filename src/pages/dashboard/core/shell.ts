/**
 * Characters that a terminal interprets when they are pasted: control characters, and those that change the text
 * direction.
 */
const ACTS = /[\p{Cc}\p{Cf}\u2028\u2029]/u;
/** The same, and characters with a meaning within `$'…'`. */
const ESCAPED = /[\p{Cc}\p{Cf}\u2028\u2029\\']/gu;

/** A text as one shell word. Control characters are escaped: `$'…'`. */
export function quoted(text: string): string {
  if (!ACTS.test(text)) return `'${text.replaceAll("'", "'\\''")}'`;
  return `$'${text.replace(ESCAPED, escaped)}'`;
}

/** The same, without quotes where none are needed. */
export function quotedIfNeeded(text: string): string {
  return /^[\w:/.%-]+$/.test(text) ? text : quoted(text);
}

const SHORT: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\\": "\\\\",
  "'": "\\'",
};

/** Octal bytes of UTF-8 mean the same in every shell and locale. */
function escaped(character: string): string {
  const short = SHORT[character];
  if (short !== undefined) return short;
  return [...new TextEncoder().encode(character)]
    .map((byte) => `\\${byte.toString(8).padStart(3, "0")}`)
    .join("");
}

/** `--globoff`: brackets and braces in a URL are literal. */
const CURL = "curl --globoff";

/** A request to this server. */
interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

/** A request as a curl command. The key is the variable that the command line reads: the console does not have it. */
export function curlLine(baseUrl: string, { method, path, body }: Sent): string {
  const parts = [CURL];
  const implied = body === undefined ? "GET" : "POST";
  if (method !== implied) parts.push(`-X ${method}`);
  parts.push('-H "Authorization: Bearer $NINEFOLD_API_KEY"');
  // With `-d`, a text that starts with @ would be read as a file name.
  if (body !== undefined) parts.push(`--data-raw ${quoted(JSON.stringify(body))}`);
  parts.push(quotedIfNeeded(baseUrl + path));
  return parts.join(" ");
}

/** A request to any address: what a delivery sends. */
export function curlTo(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string | null,
): string {
  const lines = [`${CURL} -X ${method}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body !== null) lines.push(`--data-raw ${quoted(body)}`);
  lines.push(quotedIfNeeded(url));
  return lines.join(" \\\n  ");
}

/** The ping of a heartbeat, as a command for a crontab. */
export function pingLine(url: string): string {
  return `${CURL} -fsS -m 10 --retry 5 ${quotedIfNeeded(url)}`;
}
