import { hash } from "node:crypto";
import { names, takesGzip } from "../kernel/http/etag.ts";
import type { PageHandler } from "../kernel/http/http.ts";

/** A file that the executable carries. Nothing of it is read before somebody asks for it. */
export interface AssetSource {
  readonly contentType: string;
  /** Whether its path changes with its content, so that browsers need never ask again. */
  readonly immutable: boolean;
  /** Headers beyond the usual ones. */
  readonly headers?: Readonly<Record<string, string>>;
  read(): Promise<Uint8Array<ArrayBuffer>>;
}

/** What is kept of a file: the smaller form, and the name of both. */
interface Prepared {
  readonly etag: string;
  readonly zipped: Uint8Array<ArrayBuffer>;
  readonly zippedEtag: string;
}

/** A year in seconds: as long as a cache may keep anything. */
const KEPT_FOR_EVER = "public, max-age=31536000, immutable";
/** Kept, and asked about each time: an answer of 304 costs nothing. */
const KEPT_AND_ASKED = "no-cache";

/** Answers with a file: compressed where the client takes gzip, and with 304 where it has the file already. */
export function asset(source: AssetSource): PageHandler {
  let prepared: Promise<Prepared> | null = null;
  return async ({ request }) => {
    // A file that could not be read is read again by the next request.
    prepared ??= prepare(source).catch((error: unknown) => {
      prepared = null;
      throw error;
    });
    const { etag, zipped, zippedEtag } = await prepared;
    const zip = takesGzip(request.headers.get("accept-encoding"));
    const tag = zip ? zippedEtag : etag;
    const headers = {
      "cache-control": source.immutable ? KEPT_FOR_EVER : KEPT_AND_ASKED,
      etag: tag,
      vary: "Accept-Encoding",
      ...source.headers,
    };
    if (names(request.headers.get("if-none-match"), tag)) return { status: 304, text: "", headers };
    const encoding = zip ? { "content-encoding": "gzip" } : {};
    return {
      status: 200,
      text: "",
      bytes: zip ? zipped : await source.read(),
      headers: { "content-type": source.contentType, ...headers, ...encoding },
    };
  };
}

async function prepare(source: AssetSource): Promise<Prepared> {
  const bytes = await source.read();
  const name = hash("sha256", bytes, "base64url");
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  const zipped = new Uint8Array(await new Response(stream).arrayBuffer());
  return { etag: `"${name}"`, zipped, zippedEtag: `"${name}-gzip"` };
}
