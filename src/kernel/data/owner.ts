import { Type } from "@sinclair/typebox";
import { invalidField } from "../errors.ts";
import { orNull } from "./schema.ts";

/** Longest id of an owner, in characters: fits customer ids and e-mail addresses. */
export const OWNER_ID_LENGTH_MAX = 255;
/** Longest metadata, in characters of JSON: enough for tags and ids. Every page of a list reads it. */
export const METADATA_LENGTH_MAX = 16_384;

/** Id of a customer of the account, chosen by the account. */
export const OwnerId = Type.String({
  pattern: `^[A-Za-z0-9_.:@-]{1,${OWNER_ID_LENGTH_MAX}}$`,
  errorMessage: `must be 1 to ${OWNER_ID_LENGTH_MAX} letters, digits or characters of _.:@-`,
  examples: ["acme"],
});

/** Texts by name, as responses have them. */
export const Metadata = Type.Record(Type.String(), Type.String());

/** Optional metadata of a body; check it with {@link serializeMetadata}. */
export const GivenMetadata = Type.Optional(
  orNull(Metadata, {
    errorMessage: "must be an object of texts",
    description: `Your own data: strings by name, at most ${METADATA_LENGTH_MAX} characters as JSON.`,
    examples: [{ customer: "42" }],
  }),
);

/** Metadata as it is stored. @throws ApiError `validation_error` */
export function serializeMetadata(metadata: Readonly<Record<string, string>>): string {
  // The schema's pattern for names does not match a name with a line break, so it does not check that value.
  if (!Object.values(metadata).every((value) => typeof value === "string"))
    throw invalidField("metadata", "must be an object of texts");
  const text = JSON.stringify(metadata);
  if (text.length <= METADATA_LENGTH_MAX) return text;
  throw invalidField("metadata", `must have at most ${METADATA_LENGTH_MAX} characters as JSON`);
}
