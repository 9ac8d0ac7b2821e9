import type { IncidentStatus } from "../../kernel/data/incident-words.ts";
import { invalidField } from "../../kernel/errors.ts";
import { timestampOf } from "../../kernel/time/date-time.ts";
import type { IncidentCreateBody } from "./schema.ts";
import type { IncidentUpdate } from "./store.ts";

/** When an incident began and was resolved, and what was posted about it until now. */
export interface Course {
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** Epoch milliseconds; null: it is open. */
  readonly resolvedAt: number | null;
  readonly status: IncidentStatus;
  /** Oldest first. */
  readonly updates: readonly Omit<IncidentUpdate, "author">[];
  /** Whether it is carried over from the past, so that nobody is notified. */
  readonly isPast: boolean;
}

type GivenCourse = Pick<IncidentCreateBody, "message" | "started_at" | "resolved_at" | "updates">;

/** The course of a new incident: it begins now, or as the request says. @throws ApiError `validation_error` */
export function courseOf({ message, started_at, resolved_at, updates }: GivenCourse, now: number): Course {
  const isPast = started_at !== undefined || resolved_at !== undefined || updates !== undefined;
  if (!isPast) {
    const status = "investigating" as const;
    const posted = message === undefined || message === "" ? [] : [{ at: now, status, message }];
    return { startedAt: now, resolvedAt: null, status, updates: posted, isPast };
  }
  if (message !== undefined && updates !== undefined)
    throw invalidField("message", "cannot be combined with updates. Make it the first update");
  const startedAt = timeOf("started_at", started_at, now) ?? now;
  const posted =
    updates === undefined
      ? [{ at: startedAt, status: "investigating" as const, message: message ?? "" }].filter(
          ({ message }) => message !== "",
        )
      : updates.map((update, index) => ({
          at: timeOf(`updates.${index}.at`, update.at, now) ?? now,
          status: update.status,
          message: update.message ?? "",
        }));
  assertOrder(posted, startedAt);
  const resolvedAt =
    timeOf("resolved_at", resolved_at, now) ?? posted.find(({ status }) => status === "resolved")?.at ?? null;
  if (resolvedAt !== null && resolvedAt < startedAt)
    throw invalidField("resolved_at", "must not be before started_at");
  const status = resolvedAt === null ? (posted.at(-1)?.status ?? "investigating") : "resolved";
  return { startedAt, resolvedAt, status, updates: posted, isPast };
}

function assertOrder(updates: Course["updates"], startedAt: number): void {
  for (const [index, { at, status }] of updates.entries()) {
    const previous = updates[index - 1];
    if (at < (previous?.at ?? startedAt))
      throw invalidField(
        `updates.${index}.at`,
        "must not be before started_at, or before the update above it",
      );
    if (previous?.status === "resolved" && status !== "resolved")
      throw invalidField(`updates.${index}.status`, "must be resolved after an update that is");
  }
}

/** Null for an omitted time. @throws ApiError `validation_error` for a time that is yet to come */
function timeOf(field: string, text: string | undefined, now: number): number | null {
  const time = text === undefined ? null : timestampOf(field, text);
  if (time !== null && time > now) throw invalidField(field, "must not be in the future");
  return time;
}
