import { type Static, Type } from "@sinclair/typebox";
import { AuditActor } from "../../kernel/audit/actor.ts";
import { dateTime, NextCursor, named, oneOf, orNull, uuid } from "../../kernel/data/schema.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";

/** Default number of entries per page. */
export const ENTRIES_LIMIT = 50;
/** Longest text of a filter: longer than any id. */
const FILTER_LENGTH_MAX = 255;

function filter(description: string) {
  return Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: FILTER_LENGTH_MAX,
      errorMessage: `must be a text of 1 to ${FILTER_LENGTH_MAX} characters`,
      description,
    }),
  );
}

const BETWEEN = {
  from: filter("Start of the range, inclusive (RFC 3339)."),
  to: filter("End of the range, exclusive (RFC 3339)."),
};

const UserFilter = {
  user_id: filter("Id of an account: its own changes, and changes of the account by the operator."),
};

export const EntryQuery = Type.Object({
  action: filter("Operation, such as `gate.save`, or all operations of an area: `gate.*`."),
  actor: filter(
    "Id of a key or a person, a `user_id`, or a type of actor: `key`, `person`, `session`, `cli`, `system`, `public`, `portal`, `schedule`.",
  ),
  target_type: filter("Type of the changed object, such as `flag`."),
  target_id: filter("Id of the changed object, such as `new-checkout`."),
  project_id: filter("Id of the project of the changes."),
  ...BETWEEN,
  ...pageQuery(ENTRIES_LIMIT).properties,
});
export type EntryQuery = Static<typeof EntryQuery>;

export const AdminEntryQuery = Type.Object({ ...UserFilter, ...EntryQuery.properties });
export type AdminEntryQuery = Static<typeof AdminEntryQuery>;

export const ExportQuery = Type.Object({
  format: Type.Optional(
    oneOf(["jsonl", "csv"], { errorMessage: 'must be "jsonl" or "csv"', default: "jsonl" }),
  ),
  ...BETWEEN,
});
export type ExportQuery = Static<typeof ExportQuery>;

export const AdminExportQuery = Type.Object({ ...UserFilter, ...ExportQuery.properties });
export type AdminExportQuery = Static<typeof AdminExportQuery>;

export const EntryParams = Type.Object({
  sequence: Type.String({
    pattern: "^[1-9][0-9]{0,15}$",
    errorMessage: "must be the sequence of an entry, a whole number",
    examples: ["1042"],
  }),
});

const Fields = Type.Object(
  {},
  { additionalProperties: true, examples: [{ enabled: true }], description: "Changed fields only." },
);

export const AuditEntry = named("AuditEntry", {
  sequence: Type.String({ examples: ["1042"] }),
  at: dateTime(),
  action: Type.String({ description: "Name of the operation.", examples: ["gate.save"] }),
  summary: Type.String({ examples: ["Flag new-checkout switched on"] }),
  actor: AuditActor,
  project_id: orNull(Type.String({ examples: ["proj_8sK2mX7cB4nL9pS1t3vQ"] })),
  target: named("AuditTarget", {
    type: Type.String({ examples: ["flag"] }),
    id: Type.String({ examples: ["new-checkout"] }),
  }),
  before: orNull(Fields, {
    examples: [{ enabled: false }],
    description: "Changed fields before the change. Null for a creation.",
  }),
  after: orNull(Fields, {
    examples: [{ enabled: true }],
    description: "Changed fields after the change. Null for a deletion.",
  }),
  truncated: Type.Optional(
    Type.Literal(true, {
      description:
        "True if `before` or `after` was shortened: it was too large, or the account had used its daily bytes.",
      examples: [],
    }),
  ),
  ip: orNull(Type.String({ examples: ["203.0.113.7"] })),
  user_agent: orNull(Type.String({ examples: ["curl/8.5"] })),
  request_id: orNull(uuid()),
});
export type AuditEntry = Static<typeof AuditEntry>;

export const AuditPage = named("AuditPage", { entries: Type.Array(AuditEntry), cursor: NextCursor });
export type AuditPage = Static<typeof AuditPage>;
