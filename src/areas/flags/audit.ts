import { type AuditChange, changed } from "../../kernel/audit/change.ts";
import type { StoredDefinition } from "./definition-schema.ts";

/** What is set of a flag. */
export interface FlagSetting {
  readonly enabled: boolean;
  readonly description: string | null;
  readonly archived: boolean;
  readonly definition: StoredDefinition | null;
}

/** What a save is to the audit log; null when it changes nothing. */
export function savedFlag(
  flagKey: string,
  before: FlagSetting | null,
  after: FlagSetting,
): AuditChange | null {
  const isWhole = isMoreThanSwitch(after) || (before !== null && isMoreThanSwitch(before));
  return changed({
    summary: `Flag ${flagKey} ${whatWasDone(before, after)}`,
    target: targetOf(flagKey),
    before: before && fieldsOf(before, isWhole),
    after: fieldsOf(after, isWhole),
    isWhole,
  });
}

/** What a deletion is to the audit log. */
export function deletedFlag(flagKey: string, before: FlagSetting): AuditChange {
  const isWhole = isMoreThanSwitch(before);
  return {
    summary: `Flag ${flagKey} deleted`,
    target: targetOf(flagKey),
    before: fieldsOf(before, isWhole),
    after: null,
    isWhole,
  };
}

function targetOf(id: string) {
  return { type: "flag", id };
}

function isMoreThanSwitch({ archived, definition }: FlagSetting): boolean {
  return archived || definition !== null;
}

/** As a save would send them: whoever wants the flag back as it was sends what stands in the log. */
function fieldsOf({ definition, archived, ...setting }: FlagSetting, isWhole: boolean) {
  return isWhole ? { ...setting, archived, ...definition } : setting;
}

function whatWasDone(before: FlagSetting | null, after: FlagSetting): string {
  const state = after.enabled ? "on" : "off";
  if (before === null) return `created, ${state}`;
  if (before.archived !== after.archived) return after.archived ? "archived" : "taken out of the archive";
  if (before.enabled !== after.enabled) return `switched ${state}`;
  return Bun.deepEquals(before.definition, after.definition) ? "described anew" : "defined anew";
}
