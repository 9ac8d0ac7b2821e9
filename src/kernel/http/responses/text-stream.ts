import { slices, type TimeSlices } from "../../background/time-slices.ts";
import type { OpenCall } from "../requests/call.ts";

/** Text that is made while it is sent. */
export interface TextSource {
  /** The next piece, made within some milliseconds; null at the end. */
  next(): string | null;
  /** Called once, however the sending ends. */
  end(): void;
}

const UTF8 = new TextEncoder();

/**
 * The body of a response whose text is made a piece at a time, as fast as its reader takes it. However fast that is, other
 * requests have their turn between the slices.
 */
export function textStream(
  call: OpenCall,
  source: TextSource,
  timeSlices: Pick<TimeSlices, "isOver" | "next"> = slices,
): ReadableStream<Uint8Array> | string {
  // Nobody would ever read it.
  if (call.request.method === "HEAD") {
    source.end();
    return "";
  }
  call.setIdleTimeout(0);
  let hasEnded = false;
  const end = (): void => {
    if (!hasEnded) source.end();
    hasEnded = true;
  };
  // A client that goes away does not always cancel.
  call.request.signal.addEventListener("abort", end, { once: true });
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          if (timeSlices.isOver) await timeSlices.next();
          const text = hasEnded ? null : source.next();
          if (text !== null) return controller.enqueue(UTF8.encode(text));
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        end();
      },
      cancel: end,
    },
    // Nothing is made before it is requested.
    { highWaterMark: 0 },
  );
}
