import type { RenderedAnswer } from "./answer.ts";

/** Characters of a digest that tell two answers apart: 132 bits. */
const TAG_LENGTH = 22;

/**
 * An answer under the name that its bytes give it, or 304 without a body where the caller has it already. What the answer
 * was made of does not count: whatever changes a byte of it changes its name.
 */
export function taggedAnswer(answer: RenderedAnswer, request: Request): RenderedAnswer {
  if (answer.status !== 200) return answer;
  const etag = `"${Bun.CryptoHasher.hash("sha256", answer.text, "base64url").slice(0, TAG_LENGTH)}"`;
  const headers = { ...answer.headers, etag };
  const isKnown = names(request.headers.get("if-none-match"), etag);
  return isKnown ? { status: 304, text: "", headers } : { ...answer, headers };
}

/** Whether an `If-None-Match` names this answer. A proxy that packs answers weakens their names: that counts for nothing. */
function names(header: string | null, etag: string): boolean {
  if (header === null) return false;
  return header.split(",").some((part) => {
    const tag = part.trim();
    return tag === "*" || (tag.startsWith("W/") ? tag.slice(2) : tag) === etag;
  });
}
