import { ApiError, invalidField } from "../../kernel/errors.ts";

/** Longest key of a flag. */
export const FLAG_KEY_LENGTH_MAX = 64;
/** Longest description, in characters. */
export const DESCRIPTION_LENGTH_MAX = 256;
/** Flags in one project. Lists come whole, without pages: this many take about 20 ms. */
export const FLAGS_PER_PROJECT_MAX = 20_000;
/** The key that no flag can have: its path is that of the configuration. */
export const RESERVED_KEY = "config";

/** @throws ApiError `validation_error` */
export function assertKeyAllowed(flagKey: string): void {
  if (flagKey !== RESERVED_KEY) return;
  throw invalidField(
    "flag_key",
    `must not be "${RESERVED_KEY}": that path reads the configuration of all flags`,
  );
}

/** @throws ApiError `gate.rule_invalid` */
export function assertBoolean(enabled: unknown): asserts enabled is boolean {
  if (typeof enabled === "boolean") return;
  throw new ApiError("gate.rule_invalid", "enabled must be true or false: flags have no other values.");
}

/** The refusal of one flag too many. */
export function tooManyFlags(): ApiError {
  return new ApiError(
    "forbidden",
    `A project can have ${FLAGS_PER_PROJECT_MAX} flags, and this one has. Delete some first.`,
  );
}

/** The answer to the evaluation of a flag that does not exist. */
export function noSuchFeature(flagKey: string): ApiError {
  return new ApiError("gate.feature_not_found", `There is no flag "${flagKey}" in this project.`);
}

/** The answer to the deletion of a flag that does not exist. */
export function noSuchFlag(flagKey: string): ApiError {
  return new ApiError("flag_not_found", `There is no flag "${flagKey}" in this project.`);
}
