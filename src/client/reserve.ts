import type { AnswerOf } from "./api.ts";
import type { Meter } from "./areas/meter.ts";
import { isWithoutAnswer, NinefoldError } from "./errors.ts";
import type { HoldBody } from "./generated/api.ts";
import { randomUuid } from "./uuid.ts";

/** What a function that ran on a reservation says: what it used, and what is handed on. */
export interface Used<T> {
  /** Credits to be captured, 0 or more: of what exceeds the hold, as much as is available. */
  readonly used: number;
  readonly result: T;
}

/** A hold, as the function that runs on it gets it. */
export type Reservation = AnswerOf<"meter.holds.create">;

/** What runs on a reservation. */
export type ReservedWork<T> = (hold: Reservation) => Used<T> | Promise<Used<T>>;

/** Runs a function on a hold: see {@link Ninefold.reserve}. */
export async function reserve<T>(meter: Meter, body: HoldBody, work: ReservedWork<T>): Promise<T> {
  const hold_id = body.hold_id ?? randomUuid();
  const hold = await meter.hold({ ...body, hold_id }).catch((error) => {
    // The answer may have been lost, and the hold stand. One whose id was given may be somebody else's, too.
    if (body.hold_id === undefined && isWithoutAnswer(error)) meter.release(hold_id).catch(() => {});
    throw error;
  });
  if (hold.status !== "open") {
    const message = `The hold ${hold_id} is ${hold.status}: take another hold_id.`;
    throw new NinefoldError(message, { code: "conflict", extras: { status: hold.status } });
  }
  const { used, result } = await run(work, hold).catch(async (error: unknown) => {
    // Should this fail, the hold expires.
    await meter.release(hold_id).catch(() => {});
    throw error;
  });
  // Not released when this fails: it may have been captured without our knowing.
  await capture(meter, hold_id, used);
  return result;
}

/** What the function throws, also where it is not asynchronous, comes out of the promise. */
async function run<T>(work: ReservedWork<T>, hold: Reservation): Promise<Used<T>> {
  return work(hold);
}

/** Where the work took longer than the hold lasts, what it used is deducted. */
async function capture(meter: Meter, holdId: string, used: number): Promise<void> {
  try {
    await meter.capture(holdId, { amount: used, over: "cap" });
  } catch (error) {
    const isOver = error instanceof NinefoldError && error.extras["status"] === "expired";
    if (!isOver) throw error;
    if (used > 0) await meter.deduct(used);
  }
}
