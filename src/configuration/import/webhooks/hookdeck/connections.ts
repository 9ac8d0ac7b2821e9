import { DAY_MS, SECOND_MS } from "../../../../kernel/time/units.ts";
import type { Draft } from "../../draft.ts";
import { isObject, SourceObject, shown } from "../../source.ts";
import { bodyFilterOf } from "../filters.ts";
import { retryScheduleOf } from "../retries.ts";
import { type Destination, destinationOf, type Forward } from "./destinations.ts";

/** Fields of all objects that are state. */
export const STATE = ["id", "team_id", "created_at", "updated_at", "disabled_at"];

/** A connection of a source. */
export interface Connection {
  /** Target of the source's bucket; null if there is no endpoint for it. */
  readonly target: Readonly<Record<string, unknown>> | null;
  readonly forward: Forward;
}

/** What the rules of a connection are here. */
interface Rules {
  readonly filter: Readonly<Record<string, unknown>> | null;
  readonly retrySchedule: readonly string[];
  /** Whether the receiver would get what the rules change or exclude. */
  readonly isHeld: boolean;
}

/** The endpoints of an import: connections to one destination share one if they differ in their filters alone. */
export class Endpoints {
  /** By the id of the destination. */
  private readonly destinations = new Map<string, Destination | null>();
  private readonly names = new Map<string, string | null>();

  constructor(private readonly draft: Draft) {}

  /** Reads a destination once, by its id. @throws StartupError */
  destination(value: unknown): Destination | null {
    const id = isObject(value) && typeof value["id"] === "string" ? value["id"] : JSON.stringify(value);
    const known = this.destinations.get(id);
    if (known !== undefined) return known;
    const destination = destinationOf(this.draft, value, STATE);
    this.destinations.set(id, destination);
    return destination;
  }

  /** The endpoint of a destination with some settings. Returns its name; null if it cannot exist. */
  add(destination: Destination, settings: Readonly<Record<string, unknown>>): string | null {
    const key = JSON.stringify([destination.name, settings]);
    const known = this.names.get(key);
    if (known !== undefined) return known;
    const name = this.draft.add({
      section: "endpoints",
      name: destination.name,
      subject: destination.source,
      values: { ...destination.values, ...settings },
    });
    this.names.set(key, name);
    return name;
  }
}

/** Reads a connection and adds its endpoint; null if it delivers nothing. @throws StartupError */
export function connectionOf(draft: Draft, value: unknown, endpoints: Endpoints): Connection | null {
  const source = new SourceObject(draft, "connection", value);
  const name = source.text("full_name") ?? source.text("name") ?? source.text("id") ?? "connection";
  source.label = `connection ${shown(name)}`;
  const isDisabled = source.text("disabled_at") !== null;
  const isPaused = source.text("paused_at") !== null;
  const destination = endpoints.destination(source.any("destination"));
  const rules = rulesOf(source);
  source.ignore(...STATE, "source", "name");
  source.rest();
  if (isDisabled) {
    source.noteLoss("disabled_at", "it is disabled: not carried over");
    return null;
  }
  if (destination === null) return null;
  const isHeld = destination.isHeld || rules.isHeld;
  if (isHeld)
    source.noteChange(
      "state",
      "is paused at its endpoint, which would get something else: see the notes of what is lost",
    );
  const endpoint = endpoints.add(destination, {
    retry_schedule: rules.retrySchedule,
    ...(isHeld || isPaused ? { state: "paused" } : {}),
  });
  const filter = rules.filter === null ? {} : { filter: rules.filter };
  return { target: endpoint === null ? null : { endpoint, ...filter }, forward: destination.forward };
}

function rulesOf(connection: SourceObject): Rules {
  const filters: Readonly<Record<string, unknown>>[] = [];
  let retrySchedule: readonly string[] = [];
  let isHeld = false;
  for (const value of connection.list("rules")) {
    const rule = new SourceObject(connection.draft, connection.label, value, "connection");
    const type = rule.text("type") ?? "";
    if (type === "retry") retrySchedule = retriesOf(rule);
    else if (type === "filter") {
      const conditions = new SourceObject(connection.draft, `${connection.label}: filter`, value, "filter");
      const { filter, isWhole } = bodyFilterOf(conditions, false);
      if (filter !== null) filters.push(filter);
      isHeld ||= !isWhole;
    } else if (type === "transform") {
      connection.note("transform", "not carried over: no code is run, an endpoint can have a template");
      isHeld = true;
    } else if (type === "delay")
      connection.note("delay", "not carried over: events are forwarded immediately");
    else if (type === "deduplicate")
      connection.note(
        "deduplicate",
        "not carried over: set deduplicate_hours of the bucket, which compares event ids",
      );
    else connection.note("rules", `${shown(type)} is not supported`);
  }
  const [first = null, ...others] = filters;
  return { filter: others.length === 0 ? first : { $and: filters }, retrySchedule, isHeld };
}

function retriesOf(rule: SourceObject): readonly string[] {
  if (rule.list("response_status_codes").length > 0)
    rule.note("response_status_codes", "not carried over: every status but 2xx is retried");
  return retryScheduleOf(rule, "retry", {
    isExponential: rule.text("strategy") === "exponential",
    intervalMs: rule.number("interval") ?? SECOND_MS,
    count: rule.number("count") ?? 0,
    delayMsMax: DAY_MS,
  });
}
