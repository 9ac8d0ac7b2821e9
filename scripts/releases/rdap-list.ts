import { readFileSync, writeFileSync } from "node:fs";
import { readBootstrap } from "../../src/areas/monitors/registry/bootstrap.ts";

const TIMEOUT_MS = 30_000;
/** Part of the known suffixes that a new list has at least: fewer are a list that was cut off. */
const SUFFIXES_PART_MIN = 0.9;

/**
 * Replaces a list of RDAP servers (RFC 9224) by the one at a URL, if that is newer and valid. Returns what was done, with the
 * dates of the lists.
 */
export async function renewRdapList(file: string, url: string): Promise<string> {
  const old = readFileSync(file, "utf8");
  const before = publicationOf(old);
  try {
    const text = await textAt(url);
    const [least, count] = [readBootstrap(old).size * SUFFIXES_PART_MIN, readBootstrap(text).size];
    const after = publicationOf(text);
    if (count < least) throw new Error(`it has only ${count} suffixes`);
    if (after <= before) return `The list of RDAP servers is the newest one, of ${before}.`;
    writeFileSync(file, `${JSON.stringify(JSON.parse(text), null, 2)}\n`);
    return `The list of RDAP servers is now that of ${after}; it was that of ${before}.`;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return `The list of RDAP servers stays that of ${before}: ${url} cannot be used (${why}).`;
  }
}

/** Day on which a list was published. @throws Error without one */
export function publicationOf(text: string): string {
  const { publication } = JSON.parse(text) as { readonly publication?: unknown };
  const day = typeof publication === "string" ? /^\d{4}-\d\d-\d\d/.exec(publication)?.[0] : undefined;
  if (day === undefined) throw new Error("it has no date of publication");
  return day;
}

/** @throws Error */
async function textAt(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.text();
}
