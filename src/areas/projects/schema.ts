import { type Static, Type } from "@sinclair/typebox";
import { named, orNull, text } from "../../kernel/data/schema.ts";
import { NextCursor } from "../../kernel/http/requests/pagination.ts";
import { DESCRIPTION_LENGTH_MAX, NAME_LENGTH_MAX } from "./domain.ts";

/** Longest id that is looked up: ours are far shorter. */
const ID_LENGTH_MAX = 64;
const PROJECT_ID = "proj_8Zk2vQ1mX7cB4nL9pS3t";

const Name = text({ min: 1, max: NAME_LENGTH_MAX, examples: ["Shop"] });
const Description = orNull(text({ min: 0, max: DESCRIPTION_LENGTH_MAX }), {
  errorMessage: `must be a text of at most ${DESCRIPTION_LENGTH_MAX} characters, or null`,
});
const DateTime = Type.String({ format: "date-time" });

/** Path of a project. */
export const ProjectParams = Type.Object({
  id: Type.String({
    maxLength: ID_LENGTH_MAX,
    errorMessage: "must be a project id, such as proj_…",
    examples: [PROJECT_ID],
  }),
});

/** Body of a project's creation. */
export const ProjectCreateBody = named("ProjectCreateBody", {
  name: Name,
  description: Type.Optional(Description),
});
export type ProjectCreateBody = Static<typeof ProjectCreateBody>;

/** Body of a project's change. The slug is there to be refused: silently ignored, it would look changed. */
export const ProjectUpdateBody = named("ProjectUpdateBody", {
  name: Type.Optional(Name),
  description: Type.Optional(Description),
  slug: Type.Optional(
    Type.Never({ errorMessage: "cannot be changed: leave it out", description: "Never accepted." }),
  ),
});
export type ProjectUpdateBody = Static<typeof ProjectUpdateBody>;

const ITEM = {
  id: Type.String({ description: "`proj_` and 20 letters and digits.", examples: [PROJECT_ID] }),
  name: Type.String({ examples: ["Web shop"] }),
  slug: Type.String({
    description: "URL-safe, derived from the name; it never changes.",
    examples: ["web-shop"],
  }),
  description: orNull(Type.String({ examples: ["Orders of the web shop"] })),
  created_at: DateTime,
};

/** A project. */
export const Project = named("Project", { ...ITEM, updated_at: DateTime });
export type Project = Static<typeof Project>;

/** A project in a list. */
const ProjectItem = named("ProjectItem", ITEM);
export type ProjectItem = Static<typeof ProjectItem>;

/** A page of projects, newest first. */
export const ProjectPage = named("ProjectPage", {
  projects: Type.Array(ProjectItem),
  cursor: NextCursor,
});
export type ProjectPage = Static<typeof ProjectPage>;

/** Answer to a deletion. */
export const ProjectDeleted = named("ProjectDeleted", { success: Type.Literal(true), deleted_at: DateTime });
export type ProjectDeleted = Static<typeof ProjectDeleted>;

/** What is in a project: how many of each kind of resource. */
export function overviewSchema(kinds: readonly string[]) {
  return named("ProjectOverview", {
    project_id: Type.String({ examples: [PROJECT_ID] }),
    project_name: Type.String({ examples: ["Web shop"] }),
    resources: Type.Object(Object.fromEntries(kinds.map((kind) => [kind, Type.Integer()])), {
      description:
        "Keys that are not revoked, relays still to be delivered, locks held, and all of the others.",
    }),
    usage: Type.Object({
      meter_balance: Type.Integer({ description: "The account's credit balance.", examples: [9_990] }),
      last_activity: orNull(DateTime, { description: "The last change in the project." }),
    }),
  });
}
export type ProjectOverview = Static<ReturnType<typeof overviewSchema>>;
