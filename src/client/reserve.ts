import type { AnswerOf } from "./api.ts";
import type { Meter } from "./areas/methods.ts";
import { isWithoutAnswer, NinefoldError } from "./errors.ts";
import type { HoldBody } from "./generated/api.ts";
import { randomUuid } from "./uuid.ts";

/** Result of a function that ran on a reservation: the amount used, and the value to return. */
export interface Used<T> {
  /** Credits to capture, 0 or more. Above the hold, as much as is available. */
  readonly used: number;
  readonly result: T;
}

/** The hold, as passed to the function. */
export type Reservation = AnswerOf<"meter.holds.create">;

/** A function that runs on a reservation. */
export type ReservedWork<T> = (hold: Reservation) => Used<T> | Promise<Used<T>>;

/** Runs a function on a hold: see {@link Ninefold.reserve}. */
export async function reserve<T>(meter: Meter, body: HoldBody, work: ReservedWork<T>): Promise<T> {
  const hold_id = body.hold_id ?? randomUuid();
  const hold = await meter.hold({ ...body, hold_id }).catch((error) => {
    // The response may have been lost after the hold was created. A hold with a given id may belong to another
    // process.
    if (body.hold_id === undefined && isWithoutAnswer(error)) meter.release(hold_id).catch(() => {});
    throw error;
  });
  if (hold.status !== "open") {
    const message = `The hold ${hold_id} is ${hold.status}: use another hold_id.`;
    throw new NinefoldError(message, { code: "conflict", extras: { status: hold.status } });
  }
  const { used, result } = await run(work, hold).catch(async (error: unknown) => {
    // If this fails, the hold expires.
    await meter.release(hold_id).catch(() => {});
    throw error;
  });
  // Not released if this fails: it may have been captured although the response was lost.
  await capture(meter, hold_id, used);
  return result;
}

/** Errors of the function reject the promise, also synchronous ones. */
async function run<T>(work: ReservedWork<T>, hold: Reservation): Promise<Used<T>> {
  return work(hold);
}

/** If the work outlasted the hold, the amount used is deducted. */
async function capture(meter: Meter, holdId: string, used: number): Promise<void> {
  try {
    await meter.capture(holdId, { amount: used, over: "cap" });
  } catch (error) {
    const isOver = error instanceof NinefoldError && error.extras["status"] === "expired";
    if (!isOver) throw error;
    if (used > 0) await meter.deduct(used);
  }
}
