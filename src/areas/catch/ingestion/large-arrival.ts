import { slices } from "../../../kernel/background/time-slices.ts";
import type { LargeBody } from "../../../kernel/http/requests/large-body.ts";
import { mebibytesOf } from "../domain.ts";
import type { Upload } from "../large/pieces.ts";
import type { BodyHashes } from "../providers/body-hashes.ts";
import type { LargePayload } from "../store.ts";

/** Where the pieces of a body go. */
interface Receiving {
  readonly body: LargeBody;
  readonly upload: Upload;
  readonly hashes: BodyHashes;
  /** Counts further MiB of a body without a declared length. Returns whether they are within the bucket's limit. */
  readonly admit: (mebibytes: number) => boolean;
}

/**
 * Stores a body while it arrives, and hashes it. Its sender waits while a piece is written: one is in memory at a time. Null when the
 * bucket's limit is reached.
 *
 * @throws ApiError as {@link LargeBody.next}; `read_only` when the database is not writable
 */
export async function storePieces({ body, upload, hashes, admit }: Receiving): Promise<LargePayload | null> {
  // The limit has counted the declared length, or the first MiB.
  let counted = mebibytesOf(body.declared ?? 1);
  for (;;) {
    const piece = await body.next();
    if (piece === null) break;
    const started = mebibytesOf(body.size);
    if (started > counted && !admit(started - counted)) return null;
    counted = Math.max(counted, started);
    // Pieces of many bodies can arrive together.
    if (slices.isOver) await slices.next();
    hashes.update(piece);
    await upload.write(piece);
  }
  hashes.complete();
  return { upload: upload.ref, body_bytes: body.size, sha256: hashes.bodyDigest };
}
