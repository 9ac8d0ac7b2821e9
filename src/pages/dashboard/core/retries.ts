/** Input for an empty list of retries; an empty field means the default. */
export const NO_RETRIES = "none";

/** The delays in a field, separated by commas or spaces; undefined for an empty field. */
export function retriesIn(text: string | undefined): string[] | undefined {
  const words = (text ?? "").split(/[\s,]+/).filter((one) => one !== "");
  return words.length === 0 ? undefined : words.filter((one) => one !== NO_RETRIES);
}

/** Delays as a field shows them; undefined for the default. */
export function retryText(schedule: readonly string[] | null | undefined): string | undefined {
  if (!schedule) return undefined;
  return schedule.length === 0 ? NO_RETRIES : schedule.join(", ");
}
