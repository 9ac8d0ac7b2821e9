import { type Static, Type } from "@sinclair/typebox";
import { flag, NextCursor, named, orNull, text } from "../../../kernel/data/schema.ts";
import { pageQuery } from "../../../kernel/http/requests/pagination.ts";
import { MANAGED } from "../../../kernel/resources/managed.ts";
import { LIST_LIMIT } from "../deliveries/schema.ts";
import { MessageType } from "../endpoints/schema.ts";

/** Longest `description`. */
export const TYPE_DESCRIPTION_LENGTH_MAX = 1_000;
/** Longest `example`, as JSON, in bytes: as long as a schema. */
export const EXAMPLE_BYTES_MAX = 64 * 1024;

const anyObject = (errorMessage: string, description: string, examples: unknown[]) =>
  orNull(Type.Object({}, { additionalProperties: true, errorMessage, examples }), { description });

const SETTINGS = {
  description: orNull(
    text({ min: 0, max: TYPE_DESCRIPTION_LENGTH_MAX, examples: ["An invoice was paid in full."] }),
    { description: "Description for your customers; null for none." },
  ),
  schema: anyObject(
    "must be a JSON Schema, or null",
    "JSON Schema (2020-12) of the payloads; null for none. `format` is a note; `pattern`, `patternProperties`, `$dynamicRef`, `$id` and references to other documents are rejected.",
    [{ type: "object", required: ["amount"], properties: { amount: { type: "number" } } }],
  ),
  example: anyObject(
    "must be an object that the schema accepts, or null",
    "Payload for documentation and test events; null for none.",
    [{ amount: 120 }],
  ),
  enforce: flag({
    description:
      "Whether messages that do not fit the schema are rejected; otherwise they are reported. Default: false.",
    examples: [true],
  }),
};

/** Body of a save. */
export const RelayEventTypeBody = named("RelayEventTypeBody", {
  description: Type.Optional(SETTINGS.description),
  schema: Type.Optional(SETTINGS.schema),
  example: Type.Optional(SETTINGS.example),
  enforce: Type.Optional(SETTINGS.enforce),
  ...MANAGED,
});
export type RelayEventTypeBody = Static<typeof RelayEventTypeBody>;

const TYPE_NAME = { ...MessageType, description: "Name of the type: that of its messages." };

export const RelayEventType = named("RelayEventType", {
  name: TYPE_NAME,
  ...SETTINGS,
  archived: Type.Boolean({
    description: "Whether the type is archived: its messages are not checked.",
    examples: [false],
  }),
  invalid_24h: Type.Integer({
    description:
      "Number of messages in the last 24 hours that did not fit the schema and were sent, by full hours.",
    examples: [0],
  }),
  created_at: Type.Integer({ description: "Time of creation, in epoch milliseconds." }),
  updated_at: Type.Integer({ description: "Time of the last update, in epoch milliseconds." }),
  ...MANAGED,
});
export type RelayEventType = Static<typeof RelayEventType>;

/** Body of an import. */
export const RelayEventTypesImportBody = named("RelayEventTypesImportBody", {
  openapi: Type.Object(
    {},
    {
      additionalProperties: true,
      errorMessage: "must be an OpenAPI document as a JSON object",
      description: "OpenAPI document (3.1) whose `webhooks` are imported.",
      examples: [{ openapi: "3.1.0", webhooks: {} }],
    },
  ),
  dry_run: Type.Optional(
    flag({
      description: "Whether to return what would happen, and change nothing. Default: false.",
      examples: [true],
    }),
  ),
});
export type RelayEventTypesImportBody = Static<typeof RelayEventTypesImportBody>;

const Names = (description: string, examples: string[]) =>
  Type.Array(Type.String(), { description, examples: [examples] });

export const RelayEventTypesImported = named("RelayEventTypesImported", {
  created: Names("Names of the types that were created.", ["invoice.paid"]),
  updated: Names("Names of the types that were changed.", []),
  unchanged: Names("Names of the types that were the same.", []),
  skipped: Type.Array(Type.Object({ name: Type.String(), reason: Type.String() }), {
    description: "Webhooks that were not imported, and why.",
    examples: [[]],
  }),
});
export type RelayEventTypesImported = Static<typeof RelayEventTypesImported>;

/** Path of an event type. */
export const RelayEventTypeParams = Type.Object({ name: TYPE_NAME });

/** Query of a list of event types. */
export const RelayEventTypeQuery = named("RelayEventTypeQuery", {
  archived: Type.Optional(
    flag({ description: "Whether to list the archived types, in place of the others.", examples: [true] }),
  ),
  ...pageQuery(LIST_LIMIT).properties,
});
export type RelayEventTypeQuery = Static<typeof RelayEventTypeQuery>;

/** A page of event types, newest first. */
export const RelayEventTypePage = named("RelayEventTypePage", {
  event_types: Type.Array(RelayEventType),
  cursor: NextCursor,
});
export type RelayEventTypePage = Static<typeof RelayEventTypePage>;

/** An event type as a customer sees it. */
const PortalEventType = named("PortalEventType", {
  name: TYPE_NAME,
  description: SETTINGS.description,
  schema: SETTINGS.schema,
  example: SETTINGS.example,
});

export const PortalEventTypeQuery = named("PortalEventTypeQuery", pageQuery(LIST_LIMIT).properties);
export type PortalEventTypeQuery = Static<typeof PortalEventTypeQuery>;

/** A page of the event types that a link offers, newest first. */
export const PortalEventTypePage = named("PortalEventTypePage", {
  event_types: Type.Array(PortalEventType),
  cursor: NextCursor,
});
export type PortalEventTypePage = Static<typeof PortalEventTypePage>;
