import type { PieceBody } from "../../../kernel/outbound/piece-body.ts";
import type { StoredPayload } from "../store.ts";
import type { Pieces } from "./pieces.ts";

/** The body of a stored request: in memory, or to be read piece by piece. */
export function storedBody(large: Pick<Pieces, "bodyOf">, payload: StoredPayload): Uint8Array | PieceBody {
  return payload.upload === null ? payload.body : large.bodyOf(payload.upload, payload.body_bytes);
}
