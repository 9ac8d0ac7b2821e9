import type { RelayEndpointItem, RelayEndpointPatch } from "../../../../client/generated/api.ts";
import { retriesIn } from "../../core/retries.ts";
import { textOf } from "../../ui/field.tsx";
import { headersOf, jsonProblem } from "./relay-form.tsx";

/** Shown instead of a header's stored value. */
export const HIDDEN = "[secret]";

/** The values entered. Empty numbers and delays are undefined: the default, or unchanged. */
export function fieldsOf(data: FormData) {
  const text = (name: string): string => textOf(data, name) ?? "";
  const words = (name: string): string[] =>
    text(name)
      .split(/[\s,]+/)
      .filter((one) => one !== "");
  const formatNumber = (name: string): number | undefined =>
    text(name) === "" ? undefined : Number(text(name));
  return {
    url: text("url"),
    name: textOf(data, "name") ?? null,
    description: textOf(data, "description") ?? null,
    event_types: words("event_types"),
    channels: words("channels"),
    filter: filterIn(text("filter")),
    format: data.get("format") === "raw" ? "raw" : "envelope",
    headers: headersOf(text("headers")),
    retry_schedule: retriesIn(textOf(data, "retry_schedule")),
    timeout_ms: formatNumber("timeout_ms"),
    max_concurrency: formatNumber("max_concurrency"),
    max_per_second: formatNumber("max_per_second") ?? null,
    disable_after_hours: formatNumber("disable_after_hours"),
    notify_email: data.get("notify_email") === "yes",
    keep_responses: data.get("keep_responses") === "yes",
  } as const;
}

function filterIn(text: string): object | null {
  const problem = jsonProblem(text);
  if (problem !== null) throw new Error(`The filter: ${problem}`);
  return text === "" ? null : JSON.parse(text);
}

/** The values that changed. Headers with a hidden value stay as they are unless another header changes. */
export function changesOf(data: FormData, before: RelayEndpointItem): RelayEndpointPatch {
  const fields = Object.entries(fieldsOf(data));
  const isAsBefore = (name: string, value: unknown): boolean =>
    JSON.stringify(value) === JSON.stringify(before[name as keyof RelayEndpointItem]);
  const changes: RelayEndpointPatch = Object.fromEntries(
    fields.filter(([name, value]) => !isAsBefore(name, value)),
  );
  const covered = Object.entries(changes.headers ?? {}).find(([, value]) => value === HIDDEN);
  if (covered === undefined) return changes;
  throw new Error(`Enter the value of the header ${covered[0]} again: ${HIDDEN} is a placeholder.`);
}
