import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, orNull, uuid } from "../data/schema.ts";

/**
 * Who can have caused an entry. `cli`: a command on the folder of a stopped server; `public`: nobody known; `portal`: a
 * customer of the account, by a portal link; `person`: a person of the account; `schedule`: a change that somebody has
 * scheduled.
 */
const ACTOR_TYPES = ["key", "session", "cli", "system", "public", "portal", "person", "schedule"] as const;
/** One of {@link ACTOR_TYPES}. */
export type ActorType = (typeof ACTOR_TYPES)[number];

const ACTOR = {
  type: oneOf(ACTOR_TYPES),
  key_id: orNull(uuid(), {
    description: "Id of the managed key. Null for a platform key.",
  }),
  key_name: orNull(Type.String({ examples: ["CI"] })),
  user_id: orNull(Type.String({ examples: ["usr_3vQ8Zk2mX7cB4nL9pS1t"] })),
  owner_id: orNull(Type.String(), {
    description: "Id of your customer, for a change through a portal link. Null for others.",
    examples: [null],
  }),
  person_id: Type.Optional(
    Type.String({
      description: "Id of the person. Only for `person`.",
      examples: ["psn_3vQ8Zk2mX7cB4nL9pS1t"],
    }),
  ),
  email: Type.Optional(
    Type.String({ description: "E-mail address of the person at that time.", examples: ["ann@example.com"] }),
  ),
  name: Type.Optional(
    orNull(Type.String({ examples: ["Ann"] }), { description: "Name of the person at that time." }),
  ),
  session_id: Type.Optional(Type.Integer({ description: "Number of the person's session.", examples: [7] })),
};

/** Who has done something, as people see it: a key, a person or the command line. */
export const Actor = named("Actor", ACTOR, { description: "A key, a person or the command line." });
export type Actor = Static<typeof Actor>;

/** Who caused an entry of the audit log. */
export const AuditActor = named("AuditActor", {
  ...ACTOR,
  id: Type.Optional(
    Type.String({
      description: "Id of the scheduled change. Only for `schedule`.",
      examples: ["chg_3vQ8Zk2mX7cB4nL9pS1t"],
    }),
  ),
  by: Type.Optional(Actor),
});
export type AuditActor = Static<typeof AuditActor>;
