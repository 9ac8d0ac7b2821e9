import { type Static, Type } from "@sinclair/typebox";
import { Actor } from "../../../kernel/audit/actor.ts";
import { dateTime, givenDateTime, listOf, named, oneOf, orNull } from "../../../kernel/data/schema.ts";
import { FlagChange, uncheckedOrNull } from "../definitions/change.ts";
import { DEFINITION } from "../definitions/schema.ts";

/** Scheduled changes per flag. */
export const SCHEDULED_MAX = 20;

const At = { description: "Time at which the change applies, in the future." };
/** A change in a request. */
const ScheduledFlagBody = named(
  "ScheduledFlagBody",
  { at: givenDateTime(At), set: FlagChange },
  { errorMessage: "must be an object with at and set" },
);

/** The changes of a request, as they are checked. */
export const ScheduledList = listOf(ScheduledFlagBody, {
  max: SCHEDULED_MAX,
  of: "changes",
  description: `Changes that apply later, at most ${SCHEDULED_MAX}, which replace those of before. Archiving a flag drops them.`,
  examples: [[{ at: "2030-01-01T00:00:00Z", set: { enabled: true } }]],
});

/** Members of a save with numbers that are stored. */
export const CHECKED = [...Object.keys(DEFINITION), "scheduled"];

/** The field of a save. */
export const SCHEDULED = { scheduled: uncheckedOrNull(ScheduledList) };

/** A scheduled change of a flag. */
export const ScheduledFlagChange = named("ScheduledFlagChange", {
  id: Type.String({ examples: ["chg_018f3c5e7a4b7cc09d3e5f6a7b8c9d0e"] }),
  at: dateTime(At),
  set: FlagChange,
  status: oneOf(["pending", "failed"], {
    description: "`failed` if the flag had changed so that the change no longer fits.",
  }),
  error: orNull(Type.String(), { description: "Why it failed; null while it is pending.", examples: [null] }),
  by: Actor,
});
export type ScheduledFlagChange = Static<typeof ScheduledFlagChange>;
