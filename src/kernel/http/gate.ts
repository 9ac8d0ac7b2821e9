import { type ApiError, rejectionBy } from "../errors.ts";
import type { Cancel } from "../time/clock.ts";

/** Decides whether a response may leave. */
export interface ResponseGate {
  /** @throws ApiError with the response to a request that would wait in vain: it is not begun. */
  assertOpen(): void;
  /** Undefined: at once. @throws ApiError with the response to send instead. */
  pass(): Promise<void> | undefined;
  /** Calls `interrupt` when nothing may wait any longer. */
  onInterrupted(interrupt: (error: ApiError) => void): Cancel;
}

/** Holds a response back until the gate lets it pass; in its place comes what `reject` makes of the gate's error. */
export async function gated(
  gate: ResponseGate,
  handle: () => Response | Promise<Response>,
  reject: (error: unknown) => Response | Promise<Response>,
): Promise<Response> {
  const closed = rejectionBy(() => gate.assertOpen());
  if (closed !== null) return reject(closed);
  const response = handle();
  const left = Promise.withResolvers<Response>();
  const cancel = gate.onInterrupted(left.reject);
  const leave = async (): Promise<void> => {
    const sent = response instanceof Promise ? await response : response;
    const passing = gate.pass();
    if (passing !== undefined) await passing;
    left.resolve(sent);
  };
  leave().catch(left.reject);
  try {
    return await left.promise;
  } catch (error) {
    // Nobody reads it, so it would be counted for ever.
    Promise.resolve(response).then(
      ({ body }) => body?.cancel(),
      () => undefined,
    );
    return reject(error);
  } finally {
    cancel();
  }
}
