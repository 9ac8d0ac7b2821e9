import type { Actor } from "../../../kernel/audit/actor.ts";
import { rejectionBy, withFieldPrefix } from "../../../kernel/errors.ts";
import { compiledCheck } from "../../../kernel/http/requests/compiled-check.ts";
import { fieldMessages } from "../../../kernel/http/requests/validate.ts";
import { isoTime, parseDateTime } from "../../../kernel/time/date-time.ts";
import { FlagChange } from "../definitions/change.ts";
import { fieldPath } from "../definitions/definition.ts";
import { changedSettings, type Settings } from "../definitions/settings.ts";
import { invalidRuleError } from "../domain.ts";
import { type ScheduledFlagChange, ScheduledList } from "./schema.ts";

/** A change that applies later. */
export interface ScheduledChange {
  readonly id: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly set: FlagChange;
  /** Why it did not apply; null while it is pending. */
  readonly error: string | null;
  readonly by: Actor;
  /** The account whose change it is. */
  readonly accountRef: number;
}

/** How a save schedules changes. */
export interface Scheduling extends Pick<ScheduledChange, "by" | "accountRef"> {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly newId: () => string;
}

/**
 * The scheduled changes of a flag after a save, in the order of their times. `given` is the field of the save. Those that are
 * equal to one of before stay as they are, even if their time has passed; others are new. Each is checked on the flag as it
 * will be by then.
 * @throws ApiError `gate.rule_invalid`
 */
export function scheduledAfter(
  before: readonly ScheduledChange[],
  requested: unknown,
  settings: Settings,
  scheduling: Scheduling | null,
): readonly ScheduledChange[] {
  if (requested === undefined) return settings.archived && before.length > 0 ? [] : before;
  const unused = new Set(before);
  const all = itemsIn(requested).map(({ at, set, place }) => {
    const known = unused.values().find((stored) => stored.at === at && Bun.deepEquals(stored.set, set));
    if (known === undefined)
      return { place, isNew: true, change: newChange({ at, set, place }, settings, scheduling) };
    unused.delete(known);
    return { place, isNew: false, change: known };
  });
  if (settings.archived) return [];
  const sorted = all.toSorted((earlier, later) => earlier.change.at - later.change.at);
  let then = settings;
  for (const { place, isNew, change } of sorted) {
    if (change.error !== null) continue;
    const apply = () => {
      then = changedSettings(then, change.set);
    };
    // One of before that no longer fits fails at its time.
    if (isNew) withFieldPrefix(`${place}.set.`, apply);
    else rejectionBy(apply);
  }
  const after = sorted.map(({ change }) => change);
  return isSameList(before, after) ? before : after;
}

/** Checks the scheduled changes of a file, whose times may have passed. @throws ApiError `gate.rule_invalid` */
export function assertSchedulable(requested: unknown, settings: Settings): void {
  if (requested === undefined) return;
  let then = settings;
  for (const { set, place } of itemsIn(requested))
    withFieldPrefix(`${place}.set.`, () => {
      then = changedSettings(then, set);
    });
}

interface Item extends Pick<ScheduledChange, "at" | "set"> {
  /** Its path in the request. */
  readonly place: string;
}

function itemsIn(requested: unknown): readonly Item[] {
  const list = requested ?? [];
  if (!compiledCheck(ScheduledList).Check(list))
    throw invalidRuleError(
      Object.fromEntries(
        Object.entries(fieldMessages(ScheduledList, list, (path) => fieldPath(`scheduled/${path}`))).map(
          ([name, messages]) => [name === "body" ? "scheduled" : name, messages],
        ),
      ),
    );
  return list.map(({ at, set }, index) => {
    const place = `scheduled[${index}]`;
    const other = Object.keys(set).find((name) => !Object.hasOwn(FlagChange.properties, name));
    if (other !== undefined)
      throw invalidRuleError({ [`${place}.set`]: [`must not have ${JSON.stringify(other.slice(0, 64))}`] });
    if (Object.keys(set).length === 0)
      throw invalidRuleError({ [`${place}.set`]: ["must have at least one field of a save"] });
    return { at: parseDateTime(at) ?? 0, set, place };
  });
}

function newChange(
  { at, set, place }: Item,
  { archived }: Settings,
  scheduling: Scheduling | null,
): ScheduledChange {
  if (archived) throw invalidRuleError({ scheduled: ["must be omitted for an archived flag"] });
  if (scheduling === null) throw new Error("nobody schedules this change");
  const { now, newId, by, accountRef } = scheduling;
  if (at <= now) throw invalidRuleError({ [`${place}.at`]: ["must be in the future"] });
  return { id: newId(), at, set, error: null, by, accountRef };
}

function isSameList(left: readonly ScheduledChange[], right: readonly ScheduledChange[]): boolean {
  return left.length === right.length && left.every((change, index) => change === right[index]);
}

/** Bytes that scheduled changes add to the definitions of a project. */
export function scheduledBytes(changes: readonly ScheduledChange[]): number {
  return changes.reduce((bytes, { set }) => bytes + Buffer.byteLength(JSON.stringify(set)), 0);
}

/** A scheduled change in a response. */
export function scheduledView({ id, at, set, error, by }: ScheduledChange): ScheduledFlagChange {
  return { id, at: isoTime(at), set, status: error === null ? "pending" : "failed", error, by };
}

/** The scheduled changes of a file or a response that are pending at a time, in the order of their times. */
export function pendingAt(value: unknown, now: number): unknown {
  if (!Array.isArray(value)) return value;
  const timed = value.map((change: unknown) => ({ change, at: timeOf(change) }));
  return timed
    .filter(({ at }) => at > now)
    .toSorted((earlier, later) => earlier.at - later.at)
    .map(({ change }) => change);
}

/** When a change applies; one that failed never does again. A text that is no time is left to the checks. */
function timeOf(change: unknown): number {
  const { at, status } = Object(change) as { readonly at?: unknown; readonly status?: unknown };
  if (status === "failed") return Number.NEGATIVE_INFINITY;
  return (typeof at === "string" ? parseDateTime(at) : null) ?? Number.POSITIVE_INFINITY;
}
