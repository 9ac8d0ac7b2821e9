import {
  ApiError,
  type ErrorMeaning,
  type FieldMessages,
  invalidField,
  registerErrors,
} from "../../kernel/errors.ts";

/** Longest key of a flag. */
export const FLAG_KEY_LENGTH_MAX = 64;
/** Longest description, in characters. */
export const DESCRIPTION_LENGTH_MAX = 256;
/** Flags in one project. Lists are not divided into pages: this many are sent in slices of some milliseconds. */
export const FLAGS_PER_PROJECT_MAX = 20_000;
/**
 * Bytes of all definitions of one project, as JSON: all of them are kept ready while they are evaluated together. 20,000 flags
 * have 400 bytes each, which is two rules.
 */
export const DEFINITIONS_BYTES_MAX = 8 * 1024 * 1024;
/** Bytes of what a save changes that are free of charge; each started multiple beyond them costs a credit. */
export const SAVE_BYTES_PER_CREDIT = 4 * 1024;
/** No flag can have this key: its path is that of the configuration. */
export const RESERVED_KEY = "config";
/** An evaluation is noted to the hour: a flag in use costs one small write an hour. */
export const USE_RESOLUTION_MS = 3_600_000;
/** A flag that nobody has changed or needed for so long is stale. */
export const STALE_AFTER_MS = 30 * 86_400_000;

const codes = registerErrors({
  "gate.rule_invalid": [400, "A field of the flag is not valid; see `fields`."],
  "gate.feature_not_found": [404, "There is no flag with this key."],
  flag_not_found: [404, "There is no flag with this key."],
  "gate.evaluation_failed": [500, "The flag could not be evaluated. Nothing was charged."],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** Credits that a save costs, by the bytes of JSON that it changes: a switch can be flipped without any. */
export function creditsOfSave(changedBytes: number): number {
  return Math.max(0, Math.ceil(changedBytes / SAVE_BYTES_PER_CREDIT) - 1);
}

/** @throws ApiError `validation_error` */
export function assertKeyAllowed(flagKey: string): void {
  if (flagKey !== RESERVED_KEY) return;
  throw invalidField(
    "flag_key",
    `must not be "${RESERVED_KEY}": that path reads the configuration of all flags`,
  );
}

/** What is wrong with the fields of a flag. */
export function ruleInvalid(fields: FieldMessages): ApiError {
  const [[name, messages] = ["the definition", ["is not valid"]]] = Object.entries(fields);
  return new ApiError("gate.rule_invalid", `${name} ${messages.join(", ")}`, { fields });
}

/** @throws ApiError `gate.rule_invalid` */
export function assertBoolean(enabled: unknown): asserts enabled is boolean {
  if (typeof enabled === "boolean") return;
  throw ruleInvalid({ enabled: ["must be true or false: it is the flag's switch"] });
}

/** No flag with this key: to an evaluation, or to a deletion. */
export function noSuchFlag(code: "gate.feature_not_found" | "flag_not_found", flagKey: string): ApiError {
  return new ApiError(code, `There is no flag "${flagKey}" in this project.`);
}
