import { BASE_URL, type Request } from "./api.ts";

/** A request as a line for a terminal. The key is the variable that the command line reads: the console does not know it. */
export function curlOf({ method, path, body }: Request): string {
  const parts = ["curl"];
  const implied = body === undefined ? "GET" : "POST";
  if (method !== implied) parts.push(`-X ${method}`);
  parts.push('-H "Authorization: Bearer $NINEFOLD_API_KEY"');
  if (body !== undefined) parts.push(`-d ${quoted(JSON.stringify(body))}`);
  parts.push(quotedIfNeeded(BASE_URL + path));
  return parts.join(" ");
}

/** Any request, to any address: what a delivery sends. */
export function curlTo(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string | null,
): string {
  const lines = [`curl -X ${method}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body !== null) lines.push(`--data-binary ${quoted(body)}`);
  lines.push(quotedIfNeeded(url));
  return lines.join(" \\\n  ");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function quotedIfNeeded(url: string): string {
  return /^[\w:/.%-]*$/.test(url) ? url : quoted(url);
}
