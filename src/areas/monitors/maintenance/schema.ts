import { type Static, Type } from "@sinclair/typebox";
import {
  dateTime,
  duration,
  flag,
  givenDateTime,
  listOf,
  NAME_LENGTH_MAX,
  name,
  named,
  oneOf,
  orNull,
  patchOf,
  refersTo,
  text,
  timeZone,
  uuid,
} from "../../../kernel/data/schema.ts";

/** Maintenance entries of a project, past and future. */
export const MAINTENANCE_MAX = 100;
/** Longest message. */
export const MESSAGE_LENGTH_MAX = 5_000;
/** Monitors of one maintenance entry. */
export const MONITORS_MAX = 100;
/** Shortest and longest recurring window: a minute, a week. */
export const DURATION_MS_MIN = 60_000;
/** See {@link DURATION_MS_MIN}. */
export const DURATION_MS_MAX = 604_800_000;
/** The default time zone. */
export const TIME_ZONE = "UTC";

const STATES = ["scheduled", "active", "ended"] as const;
const Title = name({ description: "Title of the maintenance." });
const Message = text({
  min: 0,
  max: MESSAGE_LENGTH_MAX,
  description: "Details, as plain text.",
  examples: ["The shop moves to a larger machine."],
});
const MonitorId = Type.String({
  maxLength: 64,
  errorMessage: "must be the id of a monitor",
  ...refersTo("monitors"),
});
const MonitorIds = listOf(MonitorId, {
  max: MONITORS_MAX,
  of: "ids of monitors",
  description: "Ids of the monitors that cause no alerts during the window; empty for an announcement.",
  examples: [[]],
});
const Cron = text({
  min: 1,
  max: 256,
  examples: [],
  description: "Cron expression for the start of each window, instead of `starts_at` and `ends_at`.",
});
const TimeZone = timeZone({ description: "Time zone of `schedule`; `UTC` by default.", examples: [] });
const Duration = duration({
  unit: "ms",
  min: DURATION_MS_MIN,
  max: DURATION_MS_MAX,
  description: "Duration of each window of `schedule`, in milliseconds.",
  examples: [],
});
const Public = flag({
  description: "Whether status pages show the maintenance.",
});

const TIMES = {
  starts_at: givenDateTime({
    description: "Start of the window, RFC 3339.",
    examples: ["2030-01-31T22:00:00Z"],
  }),
  ends_at: givenDateTime({ description: "End of the window, RFC 3339.", examples: ["2030-01-31T23:00:00Z"] }),
  schedule: Cron,
  tz: TimeZone,
  duration_ms: Duration,
};
const { properties: OPTIONAL } = Type.Partial(
  Type.Object({ message: Message, monitor_ids: MonitorIds, public: Public, ...TIMES }),
);

/** Body of new maintenance. */
export const MaintenanceCreateBody = named("MaintenanceCreateBody", { title: Title, ...OPTIONAL });

/** Body of a change. */
export const MaintenanceUpdateBody = patchOf("MaintenanceUpdateBody", MaintenanceCreateBody);
export type MaintenanceUpdateBody = Static<typeof MaintenanceUpdateBody>;

/** Filter of a list of maintenance. */
export const MaintenanceStatus = Type.Optional(oneOf(STATES));

export const Maintenance = named("Maintenance", {
  id: Type.String({ examples: ["mnt_01a1fc2c30c071d9bf080e3cb4a7b202"] }),
  title: Type.String({ maxLength: NAME_LENGTH_MAX, examples: ["Move to a larger machine"] }),
  message: Type.String({ examples: [""] }),
  monitor_ids: Type.Array(uuid()),
  status: oneOf(STATES, {}),
  starts_at: dateTime({
    description:
      "Start of the window. With `schedule`: of the current or next window, or of the last one if no other follows.",
  }),
  ends_at: dateTime(),
  schedule: orNull(Type.String(), { examples: [null] }),
  tz: orNull(Type.String(), { examples: [null] }),
  duration_ms: orNull(Type.Integer(), { examples: [null] }),
  public: Type.Boolean(),
  created_at: dateTime(),
  updated_at: dateTime(),
});
export type Maintenance = Static<typeof Maintenance>;
