import type { RelayEndpointItem, RelayEndpointPatch } from "../../../../client/generated/api.ts";
import { textOf } from "../../ui/field.tsx";
import { headersOf, jsonProblem } from "./relay-form.tsx";

/** For a list of waits that is empty: an empty field means the usual ones. */
export const NO_RETRIES = "none";
/** Stands for what is not shown of a header. */
export const COVERED = "[secret]";

/** What was entered. A figure or waits that are left empty are undefined: the usual ones, or those of before. */
export function termsOf(data: FormData) {
  const text = (name: string): string => textOf(data, name) ?? "";
  const words = (name: string): string[] =>
    text(name)
      .split(/[\s,]+/)
      .filter((one) => one !== "");
  const figure = (name: string): number | undefined => (text(name) === "" ? undefined : Number(text(name)));
  const waits = words("retry_schedule");
  return {
    url: text("url"),
    name: textOf(data, "name") ?? null,
    description: textOf(data, "description") ?? null,
    event_types: words("event_types"),
    channels: words("channels"),
    filter: filterIn(text("filter")),
    format: data.get("format") === "raw" ? "raw" : "envelope",
    headers: headersOf(text("headers")),
    retry_schedule: waits.length === 0 ? undefined : waits.filter((one) => one !== NO_RETRIES),
    timeout_ms: figure("timeout_ms"),
    max_concurrency: figure("max_concurrency"),
    max_per_second: figure("max_per_second") ?? null,
    disable_after_hours: figure("disable_after_hours"),
    notify_email: data.get("notify_email") === "yes",
    keep_responses: data.get("keep_responses") === "yes",
  } as const;
}

function filterIn(text: string): object | null {
  const problem = jsonProblem(text);
  if (problem !== null) throw new Error(`The filter: ${problem}`);
  return text === "" ? null : JSON.parse(text);
}

/** What was entered that is not as it was: a header that is covered stays as it is, while no other is changed. */
export function changesOf(data: FormData, before: RelayEndpointItem): RelayEndpointPatch {
  const entered = Object.entries(termsOf(data));
  const isAsBefore = (name: string, value: unknown): boolean =>
    JSON.stringify(value) === JSON.stringify(before[name as keyof RelayEndpointItem]);
  const changes: RelayEndpointPatch = Object.fromEntries(
    entered.filter(([name, value]) => !isAsBefore(name, value)),
  );
  const covered = Object.entries(changes.headers ?? {}).find(([, value]) => value === COVERED);
  if (covered === undefined) return changes;
  throw new Error(`Enter the header ${covered[0]} anew: ${COVERED} only stands for it.`);
}
