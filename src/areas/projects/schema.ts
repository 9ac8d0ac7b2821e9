import { type Static, Type } from "@sinclair/typebox";
import { dateTime, flag, NextCursor, named, orNull, text, timeZone } from "../../kernel/data/schema.ts";
import { COUNTED_MAX } from "../../kernel/projects/overview-card.ts";
import { DESCRIPTION_LENGTH_MAX, NAME_LENGTH_MAX } from "./domain.ts";

/** Longest id in a path: a longer one is rejected before a lookup. */
const ID_LENGTH_MAX = 64;
const PROJECT_ID = "proj_8Zk2vQ1mX7cB4nL9pS3t";

const Name = text({ min: 1, max: NAME_LENGTH_MAX, examples: ["Shop"] });
const Description = orNull(text({ min: 0, max: DESCRIPTION_LENGTH_MAX }), {
  errorMessage: `must be a text of at most ${DESCRIPTION_LENGTH_MAX} characters, or null`,
});

const Zone = timeZone({
  description:
    "Time zone of times in texts for people: alerts, e-mails and status pages. An IANA name; `UTC` by default. JSON, stored errors and bars stay in UTC.",
  examples: ["Europe/Berlin"],
});

export const ProjectParams = Type.Object({
  id: Type.String({
    maxLength: ID_LENGTH_MAX,
    errorMessage: "must be a project id, such as proj_…",
    examples: [PROJECT_ID],
  }),
});

export const ProjectCreateBody = named("ProjectCreateBody", {
  name: Name,
  description: Type.Optional(Description),
  time_zone: Type.Optional(Zone),
});
export type ProjectCreateBody = Static<typeof ProjectCreateBody>;

/** Body of an update. The slug is declared so that it is rejected instead of silently ignored. */
export const ProjectUpdateBody = named("ProjectUpdateBody", {
  name: Type.Optional(Name),
  description: Type.Optional(Description),
  time_zone: Type.Optional(Zone),
  review: Type.Optional(
    flag({
      description:
        "Whether changes of flags are proposals that somebody else must approve. Switching it off requires the scope `*`.",
    }),
  ),
  slug: Type.Optional(
    Type.Never({
      errorMessage: "cannot be changed: omit it",
      description: "Rejected: the slug never changes.",
    }),
  ),
});
export type ProjectUpdateBody = Static<typeof ProjectUpdateBody>;

const ITEM = {
  id: Type.String({
    description: "Id of the project: `proj_` and 20 letters and digits.",
    examples: [PROJECT_ID],
  }),
  name: Type.String({ examples: ["Web shop"] }),
  slug: Type.String({
    description: "URL-safe name, derived from `name`. It never changes.",
    examples: ["web-shop"],
  }),
  description: orNull(Type.String({ examples: ["Orders of the web shop"] })),
  time_zone: Type.String({ description: "Time zone of times in texts for people.", examples: ["UTC"] }),
  review: Type.Boolean({
    description: "Whether changes of flags are proposals that somebody else must approve.",
    examples: [false],
  }),
  created_at: dateTime(),
};

export const Project = named("Project", { ...ITEM, updated_at: dateTime() });
export type Project = Static<typeof Project>;

const ProjectItem = named("ProjectItem", ITEM);
export type ProjectItem = Static<typeof ProjectItem>;

export const ProjectPage = named("ProjectPage", {
  projects: Type.Array(ProjectItem),
  cursor: NextCursor,
});
export type ProjectPage = Static<typeof ProjectPage>;

export const ProjectDeleted = named("ProjectDeleted", {
  success: Type.Literal(true),
  deleted_at: dateTime(),
});
export type ProjectDeleted = Static<typeof ProjectDeleted>;

/** The schema of an overview with these kinds of resources. */
export function overviewSchema(kinds: readonly string[]) {
  return named("ProjectOverview", {
    project_id: Type.String({ examples: [PROJECT_ID] }),
    project_name: Type.String({ examples: ["Web shop"] }),
    resources: Type.Object(Object.fromEntries(kinds.map((kind) => [kind, Type.Integer()])), {
      description: `Number of resources by kind, each counted up to ${COUNTED_MAX}: keys that are not revoked, pending relays, held locks, and all of the other kinds.`,
    }),
    usage: Type.Object({
      meter_balance: Type.Integer({ description: "The account's credit balance.", examples: [9_990] }),
      last_activity: orNull(dateTime(), {
        description: "Time of the last change in the project. Null if there was none.",
      }),
    }),
  });
}
export type ProjectOverview = Static<ReturnType<typeof overviewSchema>>;
