import { assertBoolean, invalidRuleError } from "../domain.ts";
import type { FlagChange } from "./change.ts";
import { updateDefinition } from "./definition.ts";
import type { StoredDefinition } from "./schema.ts";

/** What a flag is now. */
export interface Settings {
  readonly enabled: boolean;
  readonly description: string | null;
  readonly archived: boolean;
  readonly definition: StoredDefinition | null;
}

/** Applies a change; a new flag is on. @throws ApiError `gate.rule_invalid` */
export function changedSettings(before: Settings | null, change: FlagChange): Settings {
  const { enabled = before?.enabled ?? true, description, archived } = change;
  assertBoolean(enabled);
  if (typeof (archived ?? false) !== "boolean")
    throw invalidRuleError({ archived: ["must be true or false"] });
  return {
    enabled,
    description: description === undefined ? (before?.description ?? null) : description,
    archived: archived === undefined ? (before?.archived ?? false) : archived === true,
    definition: updateDefinition(before?.definition ?? null, change),
  };
}
