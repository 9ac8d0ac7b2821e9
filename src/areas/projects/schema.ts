import { Type } from "@sinclair/typebox";
import { text } from "../../kernel/schema.ts";
import { DESCRIPTION_LENGTH_MAX, NAME_LENGTH_MAX } from "./domain.ts";
import { RESOURCE_NAMES } from "./overview.ts";

/** Longest id that is looked up: ours are far shorter. */
const ID_LENGTH_MAX = 64;

const Name = text({ min: 1, max: NAME_LENGTH_MAX, examples: ["Shop"] });
const Description = Type.Union([text({ min: 0, max: DESCRIPTION_LENGTH_MAX }), Type.Null()], {
  errorMessage: `must be a text of at most ${DESCRIPTION_LENGTH_MAX} characters, or null`,
});
const DateTime = Type.String({ format: "date-time" });

/** Path of a project. */
export const ProjectParams = Type.Object({
  id: Type.String({ maxLength: ID_LENGTH_MAX, errorMessage: "must be a project id, such as proj_…" }),
});

/** Body of a project's creation. */
export const ProjectCreateBody = Type.Object({ name: Name, description: Type.Optional(Description) });

/** Body of a project's change. The slug is there to be refused: silently ignored, it would look changed. */
export const ProjectUpdateBody = Type.Object({
  name: Type.Optional(Name),
  description: Type.Optional(Description),
  slug: Type.Optional(
    Type.Never({ errorMessage: "cannot be changed: leave it out", description: "Never accepted." }),
  ),
});

const item = {
  id: Type.String({ description: "`proj_` and 20 letters and digits." }),
  name: Type.String(),
  slug: Type.String({ description: "URL-safe, derived from the name; it never changes." }),
  description: Type.Union([Type.String(), Type.Null()]),
  created_at: DateTime,
};

/** A project. */
export const Project = Type.Object({ ...item, updated_at: DateTime });

/** A page of projects, newest first. */
export const ProjectPage = Type.Object({
  projects: Type.Array(Type.Object(item)),
  cursor: Type.Optional(
    Type.String({ description: "Hand it in to get the next page. Absent on the last one." }),
  ),
});

/** Answer to a deletion. */
export const ProjectDeleted = Type.Object({ success: Type.Literal(true), deleted_at: DateTime });

/** What is in a project. */
export const ProjectOverview = Type.Object({
  project_id: Type.String(),
  project_name: Type.String(),
  resources: Type.Object(Object.fromEntries(RESOURCE_NAMES.map((name) => [name, Type.Integer()])), {
    description:
      "Keys that are not revoked, relays still to be delivered, locks held, and all of the others.",
  }),
  usage: Type.Object({
    meter_balance: Type.Integer({ description: "The account's credit balance." }),
    last_activity: Type.Union([DateTime, Type.Null()], { description: "The last change in the project." }),
  }),
});
