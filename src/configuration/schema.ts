import type { TSchema } from "@sinclair/typebox";
import { isSecret } from "../kernel/data/schema.ts";
import { type Json, publicSchema } from "../kernel/http/document/openapi.ts";
import { aliasesIn, fileName, isHeaders, type Kind } from "./kinds.ts";
import { isRenamable, RENAMED_FROM } from "./read.ts";

/** A reference to a secret or another text. */
const REFERENCE: Json = {
  anyOf: [
    {
      type: "object",
      properties: { env: { type: "string", description: "Name of an environment variable." } },
      required: ["env"],
      additionalProperties: false,
    },
    {
      type: "object",
      properties: { file: { type: "string", description: "Path, relative to this file." } },
      required: ["file"],
      additionalProperties: false,
    },
  ],
};

/** The JSON Schema of configuration files, for editors. */
export function fileSchema(kinds: readonly Kind[]): Json {
  const sections: Record<string, Json> = {};
  for (const kind of kinds) {
    const [outer = "", inner] = kind.section.split(".");
    const resource = resourceSchema(kind);
    sections[outer] =
      inner === undefined
        ? { type: "object", additionalProperties: resource }
        : { type: "object", properties: { [inner]: resource }, additionalProperties: false };
  }
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Ninefold configuration file",
    type: "object",
    properties: {
      ninefold: { const: 1, description: "Version of the format." },
      project: { type: "string", description: "Slug of the project, which is created if it is missing." },
      name: { type: "string", description: "Name of the project." },
      description: { type: ["string", "null"], description: "Description of the project." },
      time_zone: {
        type: "string",
        description: "Time zone of times in texts for people, an IANA name; UTC by default.",
      },
      review: {
        type: "boolean",
        description: "Whether changes of flags are proposals that somebody else must approve.",
      },
      ...sections,
    },
    required: ["ninefold"],
    additionalProperties: false,
  };
}

function resourceSchema(kind: Kind): Json {
  const fields = [...kind.fields.values()];
  const properties = Object.fromEntries(
    fields.map(({ name, schema }) => [
      name,
      isHeaders(name, schema) ? headersSchema(schema) : valueSchema(schema),
    ]),
  );
  const groups = kind.fields.get("groups");
  const aliases = [...aliasesIn(kind)].map(([name, field]) => [
    name,
    { description: `Another name of \`${field}\`.`, ...(properties[field] ?? {}) },
  ]);
  const short = groups === undefined ? {} : { monitors: { type: "array", items: { type: "string" } } };
  const renamed =
    kind.facts.isSingle === true || !isRenamable(kind)
      ? {}
      : {
          [RENAMED_FROM]: {
            type: "string",
            description:
              "Former name: the resource with this name is renamed, and keeps its history and URLs.",
          },
        };
  return {
    type: ["object", "null"],
    properties: { ...renamed, ...short, ...properties, ...Object.fromEntries(aliases) },
    additionalProperties: false,
  };
}

function headersSchema(schema: TSchema): Json {
  const { description } = publicSchema(schema);
  const value = { anyOf: [{ type: "string" }, REFERENCE] };
  return { type: ["object", "null"], additionalProperties: value, ...(description ? { description } : {}) };
}

/** The schema of a value, whose texts can be references, and whose ids are names. */
function valueSchema(schema: TSchema): Json {
  return withReferences(publicSchema(renamed(schema)));
}

function renamed(schema: TSchema): TSchema {
  const { properties, items, anyOf, required } = schema;
  const names = new Map(
    Object.entries<TSchema>(properties ?? {}).map(
      ([name, property]) => [name, fileName(name, property)] as const,
    ),
  );
  return {
    ...schema,
    ...(isSecret(schema, {}) ? { writeOnly: true } : {}),
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries<TSchema>(properties).map(([name, property]) => [
          names.get(name) ?? name,
          renamed(property),
        ]),
      ),
      ...(required && { required: (required as string[]).map((name) => names.get(name) ?? name) }),
    }),
    ...(items && { items: renamed(items) }),
    ...(anyOf && { anyOf: (anyOf as TSchema[]).map(renamed) }),
  } as TSchema;
}

function withReferences(schema: Json): Json {
  const { properties, items, anyOf, ...rest } = schema;
  const converted: Json = {
    ...rest,
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties as Record<string, Json>).map(([name, property]) => [
              name,
              withReferences(property),
            ]),
          ),
        }),
    ...(items === undefined ? {} : { items: withReferences(items as Json) }),
    ...(anyOf === undefined ? {} : { anyOf: (anyOf as Json[]).map(withReferences) }),
  };
  const types = [schema["type"]].flat();
  // A duration in the form of a text is no text that a file could hold.
  const isText = types.includes("string") && !types.includes("integer") && !types.includes("number");
  if (!isText || schema["enum"] !== undefined) return converted;
  const { description, ...text } = converted;
  const shown = description === undefined ? {} : { description };
  if (schema["writeOnly"] === true) return { ...shown, ...REFERENCE };
  return { ...shown, anyOf: [text, ...(REFERENCE["anyOf"] as Json[])] };
}
