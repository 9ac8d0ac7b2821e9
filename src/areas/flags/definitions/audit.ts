import type { AuditChange } from "../../../kernel/audit/change.ts";
import { resolved } from "./definition.ts";
import type { StoredDefinition } from "./schema.ts";

/** What is set of a flag. */
export interface FlagSetting {
  readonly enabled: boolean;
  readonly description: string | null;
  readonly archived: boolean;
  readonly definition: StoredDefinition | null;
}

/** A save as the audit log has it; null when it changes nothing of what is stored. */
export function savedFlag(
  flagKey: string,
  before: FlagSetting | null,
  after: FlagSetting,
): AuditChange | null {
  if (before !== null && Bun.deepEquals(before, after)) return null;
  const showsDefinition = isMoreThanSwitch(after) || (before !== null && isMoreThanSwitch(before));
  return {
    summary: `Flag ${flagKey} ${whatWasDone(before, after)}`,
    target: targetOf(flagKey),
    before: before && fieldsOf(before, showsDefinition, hasOffVariant(after)),
    after: fieldsOf(after, showsDefinition, before !== null && hasOffVariant(before)),
    isDefinition: showsDefinition,
  };
}

/** What a deletion is to the audit log. */
export function deletedFlag(flagKey: string, before: FlagSetting): AuditChange {
  const showsDefinition = isMoreThanSwitch(before);
  return {
    summary: `Flag ${flagKey} deleted`,
    target: targetOf(flagKey),
    before: fieldsOf(before, showsDefinition),
    after: null,
    isDefinition: showsDefinition,
  };
}

function targetOf(id: string) {
  return { type: "flag", id };
}

function isMoreThanSwitch({ archived, definition }: FlagSetting): boolean {
  return archived || definition !== null;
}

function hasOffVariant({ definition }: FlagSetting): boolean {
  return definition?.off_variant !== undefined;
}

/**
 * As a save sends them: sending the fields of an entry's `before` restores what its change replaced. For most fields null
 * is the default; for `off_variant` it is a value, so its default is spelled out where it is compared.
 */
function fieldsOf(
  { definition, archived, ...setting }: FlagSetting,
  showsDefinition: boolean,
  showsOffVariant = false,
) {
  if (!showsDefinition) return setting;
  const { off_variant } = resolved(definition ?? {});
  return { ...setting, archived, ...definition, ...(showsOffVariant ? { off_variant } : {}) };
}

function whatWasDone(before: FlagSetting | null, after: FlagSetting): string {
  const state = after.enabled ? "on" : "off";
  if (before === null) return `created, ${state}`;
  if (before.archived !== after.archived) return after.archived ? "archived" : "taken out of the archive";
  if (before.enabled !== after.enabled) return `switched ${state}`;
  return Bun.deepEquals(before.definition, after.definition) ? "described anew" : "defined anew";
}
