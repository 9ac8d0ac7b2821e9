import { ApiError, invalidField } from "../../errors.ts";
import { nextTurn } from "../../time/clock.ts";

/** A request as far as it shows how its body is sent. */
type Sent = Pick<Request, "headers" | "signal">;

/** Whether the body is sent in chunks, behind which trailer fields can follow (RFC 9112, section 7.1.2). */
export function isChunked({ headers }: Pick<Sent, "headers">): boolean {
  return headers.has("transfer-encoding");
}

/**
 * The runtime takes trailer fields for the next request: it sends a 400 of its own in place of the response, and closes the
 * connection. Without this check, a request would be carried out whose sender reads that it was malformed, and repeats it.
 *
 * @throws ApiError `invalid_request` for trailer fields that are announced
 */
export function assertNoTrailersAnnounced({ headers }: Pick<Sent, "headers">): void {
  if (!headers.has("trailer")) return;
  throw new ApiError(
    "invalid_request",
    "Trailer fields cannot be read. Send the request without them, or with a Content-Length in place of chunks.",
    { headers: { connection: "close" } },
  );
}

/**
 * Waits until the runtime has parsed what arrived together with the end of a body in chunks: trailer fields that are not
 * announced have closed the connection then.
 *
 * @throws ApiError `validation_error`, which nobody receives
 */
export async function assertNoTrailers({ signal }: Pick<Sent, "signal">): Promise<void> {
  await nextTurn();
  if (signal.aborted) throw invalidField("body", "must not have trailer fields");
}
