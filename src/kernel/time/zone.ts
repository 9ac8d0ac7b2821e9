/** The zone of times that nobody has chosen another one for. */
export const UTC = "UTC";

const NS_PER_MS = 1_000_000;

/** Milliseconds that clocks in a time zone, an IANA name, are ahead of UTC at a time, epoch milliseconds. */
export function offsetMs(at: number, zone: string): number {
  if (zone === UTC) return 0;
  const { offsetNanoseconds } = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone);
  return offsetNanoseconds / NS_PER_MS;
}
