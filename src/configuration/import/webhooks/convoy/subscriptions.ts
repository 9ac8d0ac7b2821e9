import { HOUR_MS, SECOND_MS } from "../../../../kernel/time/units.ts";
import type { Draft } from "../../draft.ts";
import { isObject, SourceObject, shown } from "../../source.ts";
import { eventTypesOf } from "../endpoints.ts";
import { bodyFilterOf } from "../filters.ts";
import { retryScheduleOf } from "../retries.ts";
import { STATE, seconds } from "./fields.ts";
import type { Project } from "./project.ts";

/** Longest delay of exponential retries. */
const DELAY_MS_MAX = 2 * HOUR_MS;

/** A subscription of an endpoint. */
export interface Subscription {
  readonly source: SourceObject;
  readonly name: string;
  readonly endpointId: string;
  /** Null for messages. */
  readonly sourceId: string | null;
  readonly filter: Readonly<Record<string, unknown>> | null;
  readonly eventTypes: readonly string[] | null;
  readonly retrySchedule: readonly string[] | null;
  readonly isHeld: boolean;
}

/** Reads a subscription; null for one of the command line, which passes events to a program. @throws StartupError */
export function subscriptionOf(draft: Draft, value: unknown, project: Project): Subscription | null {
  const source = new SourceObject(draft, "subscription", value);
  const name = source.text("name") ?? source.text("uid") ?? "subscription";
  source.label = `subscription ${shown(name)}`;
  if (source.text("type") === "cli") {
    source.noteLoss("type", "cli is not carried over: use ninefold listen");
    return null;
  }
  const endpoint = source.any("endpoint_metadata");
  const from = source.any("source_metadata");
  const filters = new SourceObject(draft, source.label, source.any("filter_config") ?? {}, "subscription");
  const eventTypes = eventTypesOf(filters, "event_types");
  const conditions = new SourceObject(
    draft,
    `${source.label}: filter`,
    filters.any("filter") ?? {},
    "filter",
  );
  const { filter, isWhole } = bodyFilterOf(conditions, true);
  const hasFunction = source.text("function") !== null;
  if (hasFunction)
    source.note("function", "not carried over: no code is run, an endpoint can have a template");
  const isOnce = source.text("delivery_mode") === "at_most_once";
  const retrySchedule = isOnce ? [] : retriesOf(source, project);
  source.ignore(...STATE, "endpoint_metadata", "source_metadata", "device_metadata", "status");
  if (isObject(source.any("alert_config")))
    source.noteChange(
      "alert_config",
      "is that of notices: an endpoint that fails sends ninefold.endpoint.failing",
    );
  source.rest();
  return {
    source,
    name,
    endpointId: idIn(endpoint) ?? source.text("endpoint_id") ?? "",
    sourceId: idIn(from) ?? source.text("source_id"),
    filter,
    eventTypes,
    retrySchedule,
    isHeld: !isWhole || hasFunction,
  };
}

function idIn(value: unknown): string | null {
  const id = isObject(value) ? value["uid"] : null;
  return typeof id === "string" && id !== "" ? id : null;
}

/** Those of the subscription, else of the project; null for the default. */
function retriesOf(subscription: SourceObject, project: Project): readonly string[] | null {
  for (const value of [subscription.any("retry_config"), project.retries]) {
    const label = `${subscription.label}: retries`;
    const retries = new SourceObject(subscription.draft, label, value ?? {}, "subscription");
    const [duration, count] = [seconds(retries, "duration"), retries.number("retry_count") ?? 0];
    // Some versions return one without values.
    if (duration === 0 && count === 0) continue;
    return retryScheduleOf(subscription, "retry_count", {
      isExponential: retries.text("type") === "exponential",
      intervalMs: duration * SECOND_MS,
      count,
      delayMsMax: DELAY_MS_MAX,
    });
  }
  return null;
}
