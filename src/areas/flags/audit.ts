import type { AuditChange } from "../../kernel/storage/tx.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { withDefaults } from "./definitions/definition.ts";
import type { Settings } from "./definitions/settings.ts";
import type { ScheduledChange } from "./scheduled/scheduled.ts";

/** All that a save of a flag changes. */
export interface FlagSettings extends Settings {
  /** In the order of their times. */
  readonly scheduled: readonly ScheduledChange[];
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
    before: before && {
      ...fieldsOf(before, { showsDefinition, showsOffVariant: hasOffVariant(after) }),
      ...scheduledField(before, after),
    },
    after: {
      ...fieldsOf(after, { showsDefinition, showsOffVariant: before !== null && hasOffVariant(before) }),
      ...scheduledField(after, before),
    },
    isDefinition: showsDefinition,
  };
}

/** Returns the audit entry of a deletion. */
export function auditOfDeletion(flagKey: string, before: FlagSettings): AuditChange {
  const showsDefinition = isMoreThanSwitch(before);
  return {
    summary: `Flag ${flagKey} deleted`,
    target: targetOf(flagKey),
    before: { ...fieldsOf(before, { showsDefinition }), ...scheduledField(before, null) },
    after: null,
    isDefinition: showsDefinition,
  };
}

function targetOf(id: string) {
  return { type: "flag", id };
}

function isMoreThanSwitch({ archived, definition, scheduled }: FlagSettings): boolean {
  return archived || definition !== null || scheduled.length > 0;
}

/** The scheduled changes, where one of two sides has any. */
function scheduledField({ scheduled }: FlagSettings, other: FlagSettings | null) {
  if (scheduled.length === 0 && (other?.scheduled ?? []).length === 0) return {};
  return { scheduled: scheduled.map(({ at, set }) => ({ at: isoTime(at), set })) };
}

function hasOffVariant({ definition }: FlagSettings): boolean {
  return definition?.off_variant !== undefined;
}

/**
 * Returns the fields in the form of a save, so that saving an entry's `before` undoes its change. For most fields null is
 * the default. For `off_variant` it is a value, so its default is written out where it is compared.
 */
function fieldsOf(
  { definition, archived, scheduled: _, ...setting }: FlagSettings,
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
  if (Bun.deepEquals(before.definition, after.definition))
    return before.description === after.description
      ? describeScheduled(before, after)
      : "description changed";
  const [was = [], is = []] = [before.definition?.rules, after.definition?.rules];
  const length = Math.max(was.length, is.length);
  const rules = Array.from({ length }, (_, at) => Bun.deepEquals(was[at], is[at])).filter(
    (same) => !same,
  ).length;
  return rules === 0 ? "definition changed" : `${rules} ${rules === 1 ? "rule" : "rules"} changed`;
}

function describeScheduled({ scheduled: before }: FlagSettings, { scheduled: after }: FlagSettings): string {
  const added = after.filter((change) => !before.includes(change)).length;
  const [count, verb] = added > 0 ? [added, "scheduled"] : [before.length - after.length, "cancelled"];
  return `${count} ${count === 1 ? "change" : "changes"} ${verb}`;
}
