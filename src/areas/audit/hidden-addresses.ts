import type { Caller } from "../../kernel/callers/caller.ts";
import { isAtLeast } from "../../kernel/callers/role.ts";
import type { AuditEntry } from "./schema.ts";

/**
 * An entry as a reader sees it: of other people, admins and owners alone see the addresses, everyone else the names. Entries about
 * people themselves are of the account, which others do not read.
 */
export function withoutAddresses(entry: AuditEntry, reader: Caller | "operator"): AuditEntry {
  if (reader === "operator" || seesAddresses(reader)) return entry;
  if (entry.actor.person_id === undefined || entry.actor.person_id === reader.person?.id) return entry;
  const { email: _, ...actor } = entry.actor;
  return { ...entry, actor };
}

function seesAddresses({ person }: Caller): boolean {
  return person === undefined || (person.isOfAccount && isAtLeast(person.role, "admin"));
}
