import type { AuditChange } from "../../../kernel/storage/tx.ts";
import { withDefaults } from "./definition.ts";
import type { StoredDefinition } from "./schema.ts";

/** The stored settings of a flag. */
export interface FlagSettings {
  readonly enabled: boolean;
  readonly description: string | null;
  readonly archived: boolean;
  readonly definition: StoredDefinition | null;
}

/** Returns the audit entry of a save; null if the save changes nothing. */
export function auditOfSave(
  flagKey: string,
  before: FlagSettings | null,
  after: FlagSettings,
): AuditChange | null {
  if (before !== null && Bun.deepEquals(before, after)) return null;
  const showsDefinition = isMoreThanSwitch(after) || (before !== null && isMoreThanSwitch(before));
  return {
    summary: `Flag ${flagKey} ${describeChange(before, after)}`,
    target: targetOf(flagKey),
    before: before && fieldsOf(before, { showsDefinition, showsOffVariant: hasOffVariant(after) }),
    after: fieldsOf(after, { showsDefinition, showsOffVariant: before !== null && hasOffVariant(before) }),
    isDefinition: showsDefinition,
  };
}

/** Returns the audit entry of a deletion. */
export function auditOfDeletion(flagKey: string, before: FlagSettings): AuditChange {
  const showsDefinition = isMoreThanSwitch(before);
  return {
    summary: `Flag ${flagKey} deleted`,
    target: targetOf(flagKey),
    before: fieldsOf(before, { showsDefinition }),
    after: null,
    isDefinition: showsDefinition,
  };
}

function targetOf(id: string) {
  return { type: "flag", id };
}

function isMoreThanSwitch({ archived, definition }: FlagSettings): boolean {
  return archived || definition !== null;
}

function hasOffVariant({ definition }: FlagSettings): boolean {
  return definition?.off_variant !== undefined;
}

/**
 * Returns the fields in the form of a save, so that saving an entry's `before` undoes its change. For most fields null is
 * the default. For `off_variant` it is a value, so its default is written out where it is compared.
 */
function fieldsOf(
  { definition, archived, ...setting }: FlagSettings,
  { showsDefinition, showsOffVariant = false }: { showsDefinition: boolean; showsOffVariant?: boolean },
) {
  if (!showsDefinition) return setting;
  const { off_variant } = withDefaults(definition ?? {});
  return { ...setting, archived, ...definition, ...(showsOffVariant ? { off_variant } : {}) };
}

function describeChange(before: FlagSettings | null, after: FlagSettings): string {
  const state = after.enabled ? "on" : "off";
  if (before === null) return `created, ${state}`;
  if (before.archived !== after.archived) return after.archived ? "archived" : "unarchived";
  if (before.enabled !== after.enabled) return `switched ${state}`;
  if (Bun.deepEquals(before.definition, after.definition)) return "description changed";
  const [was = [], is = []] = [before.definition?.rules, after.definition?.rules];
  const length = Math.max(was.length, is.length);
  const rules = Array.from({ length }, (_, at) => Bun.deepEquals(was[at], is[at])).filter(
    (same) => !same,
  ).length;
  return rules === 0 ? "definition changed" : `${rules} ${rules === 1 ? "rule" : "rules"} changed`;
}
