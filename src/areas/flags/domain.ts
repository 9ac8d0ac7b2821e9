import {
  ApiError,
  type ErrorMeaning,
  type FieldMessages,
  invalidField,
  registerErrors,
} from "../../kernel/errors.ts";
import { DAY_MS } from "../../kernel/time/units.ts";

/** Maximum characters of a flag's key. */
export const FLAG_KEY_LENGTH_MAX = 64;
/** Maximum characters of a description. */
export const DESCRIPTION_LENGTH_MAX = 256;
/** Flags per project. Lists have no pages: the server sends them in slices of a few milliseconds. */
export const FLAGS_PER_PROJECT_MAX = 20_000;
/**
 * Bytes of all definitions of a project, as JSON, because bulk evaluations keep all of them in memory. This is 400 bytes for
 * each of 20,000 flags, about two rules.
 */
export const DEFINITIONS_BYTES_MAX = 8 * 1024 * 1024;
/** Open proposals per project. */
export const OPEN_PROPOSALS_MAX = 100;
/** Bytes of their texts: a change of a flag outdates all of its open ones, and writes them again, in one unit of work. */
export const OPEN_PROPOSALS_BYTES_MAX = 2 * 1024 * 1024;
/** Proposals stored per project, open ones included: after that each new one replaces the oldest decided one. */
export const PROPOSALS_PER_PROJECT_MAX = 1_000;
/** How long proposals are stored, open ones included. */
export const PROPOSALS_RETENTION_MS = 365 * DAY_MS;
/** Maximum characters of a comment on a proposal. */
export const COMMENT_LENGTH_MAX = 1_000;
/** Contexts of a preview. All of them together have the comparisons of one evaluation. */
export const PREVIEWED_CONTEXTS_MAX = 100;
/** Changed bytes of a save that are free of charge. Each started multiple above them costs a credit. */
export const SAVE_BYTES_PER_CREDIT = 4 * 1024;
/** Reserved key, because its path returns the configuration. */
export const RESERVED_KEY = "config";
/** How long evaluations are counted by hour. */
export const EVALUATIONS_RETENTION_MS = 30 * DAY_MS;
/** Variants counted per flag and day: twice what a flag can have. Evaluations with further ones are not counted. */
export const COUNTED_VARIANTS_MAX = 100;
/** Stands for the variant of an evaluation without a value. */
export const NO_VALUE = "";
/** Stands for the variant of a read of the switch, if the variant depends on a context. */
export const SWITCH = "/switch";
/** Time without changes and evaluations after which a flag is stale, in milliseconds. */
export const STALE_AFTER_MS = 30 * DAY_MS;

const codes = registerErrors({
  "gate.rule_invalid": [
    400,
    "A field of the flag is not valid. See `fields`.",
    "Correct each field that `fields` names ([flags](api/flags.md)).",
  ],
  "gate.feature_not_found": [
    404,
    "The project has no flag with this key.",
    "Check the key of the flag and the project of the API key.",
  ],
  flag_not_found: [
    404,
    "The project has no flag with this key.",
    "Check the key of the flag and the project of the API key.",
  ],
  review_required: [
    403,
    "The project reviews changes of flags.",
    "Propose the change with `POST /v1/gate/{flagKey}/proposals`, and let somebody else approve it ([flags](api/flags.md#review)).",
  ],
  own_proposal: [
    403,
    "A proposal cannot be approved by whoever has made it.",
    "Let another person approve it, or use a key that somebody else has created.",
  ],
  proposal_limit_exceeded: [
    403,
    "The project has the maximum of open proposals.",
    "Approve, reject or withdraw some of them.",
  ],
  "gate.evaluation_failed": [
    500,
    "The flag could not be evaluated. Nothing was charged.",
    "Retry. If it happens again, give the `request_id` to the operator.",
  ],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** Returns the credits that a save costs, by its changed bytes of JSON. Toggling a switch is free of charge. */
export function creditsOfSave(changedBytes: number): number {
  return Math.max(0, Math.ceil(changedBytes / SAVE_BYTES_PER_CREDIT) - 1);
}

/** @throws ApiError `validation_error` */
export function assertKeyAllowed(flagKey: string): void {
  if (flagKey !== RESERVED_KEY) return;
  throw invalidField(
    "flag_key",
    `must not be "${RESERVED_KEY}", which is the path of the configuration of all flags`,
  );
}

/** Creates the error for invalid fields of a flag. */
export function invalidRuleError(fields: FieldMessages): ApiError {
  const [[name, messages] = ["the definition", ["is not valid"]]] = Object.entries(fields);
  return new ApiError("gate.rule_invalid", `${name} ${messages.join(", ")}`, { fields });
}

/** @throws ApiError `gate.rule_invalid` */
export function assertBoolean(enabled: unknown): asserts enabled is boolean {
  if (typeof enabled === "boolean") return;
  throw invalidRuleError({ enabled: ["must be true or false"] });
}

/** Creates the error for a missing flag, in an evaluation or a deletion. */
export function flagNotFoundError(
  code: "gate.feature_not_found" | "flag_not_found",
  flagKey: string,
): ApiError {
  return new ApiError(code, `This project has no flag "${flagKey}".`);
}

/** Bytes of a stored text; 0 for none. */
export function byteLength(text: string | null): number {
  return text === null ? 0 : Buffer.byteLength(text);
}
