import { hash } from "node:crypto";
import { accepts } from "./compression.ts";
import { names } from "./etag.ts";
import { sharedBytes } from "./outgoing-bodies.ts";
import type { RenderedResponse } from "./response.ts";

/** A file of the executable. It is read at the first request. */
export interface AssetSource {
  readonly contentType: string;
  /** Whether its path changes with its content, so that browsers never need to revalidate it. */
  readonly immutable: boolean;
  /** Headers beyond the usual ones. */
  readonly headers?: Readonly<Record<string, string>>;
  read(): Promise<Uint8Array<ArrayBuffer>>;
}

/** The content codings that files are stored in, the smallest first. */
const CODINGS = ["zstd", "gzip"] as const;
/** A file is compressed once, outside the event loop: at this level it is half as large again as at the highest, in a tenth of the time. */
const ZSTD_LEVEL = 12;

/** What is stored of a file: its compressed forms, and what its name is made of. */
interface Prepared {
  readonly name: string;
  readonly compressed: Readonly<Record<(typeof CODINGS)[number], Uint8Array<ArrayBuffer>>>;
}

/** A year in seconds: as long as a cache may keep anything. */
const IMMUTABLE = "public, max-age=31536000, immutable";
/** Stored, and revalidated each time: a 304 is cheap. */
const REVALIDATED = "no-cache";

/** Returns what responds with a file: compressed as the client accepts it, or 304 where it has the file already. */
export function asset(
  source: AssetSource,
): (call: { readonly request: Request }) => Promise<RenderedResponse> {
  let prepared: Promise<Prepared> | null = null;
  return async ({ request: { headers: sent } }) => {
    // A file that could not be read is read again by the next request.
    prepared ??= prepare(source).catch((error: unknown) => {
      prepared = null;
      throw error;
    });
    const { name, compressed } = await prepared;
    const accepted = sent.get("accept-encoding");
    const coding = CODINGS.find((coding) => accepts(accepted, coding));
    const etag = coding === undefined ? `"${name}"` : `"${name}-${coding}"`;
    const headers = {
      "cache-control": source.immutable ? IMMUTABLE : REVALIDATED,
      etag,
      vary: "Accept-Encoding",
      ...source.headers,
    };
    if (names(sent.get("if-none-match"), etag)) return { status: 304, text: "", headers };
    const coded = coding === undefined ? {} : { "content-encoding": coding };
    return {
      status: 200,
      text: "",
      bytes: coding === undefined ? await source.read() : compressed[coding],
      headers: { "content-type": source.contentType, ...headers, ...coded },
    };
  };
}

async function prepare(source: AssetSource): Promise<Prepared> {
  const bytes = await source.read();
  const gzip = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return {
    name: hash("sha256", bytes, "base64url"),
    compressed: {
      gzip: sharedBytes(new Uint8Array(await new Response(gzip).arrayBuffer())),
      zstd: sharedBytes(new Uint8Array(await Bun.zstdCompress(bytes, { level: ZSTD_LEVEL }))),
    },
  };
}
