import type { Caller } from "../../kernel/callers/caller.ts";
import type { IncidentDeps } from "./ports.ts";

/** Who a caller is for other people of the account, who do not see addresses: a name, or what stands before the @. */
export function authorOf(
  { account, session, credential, person }: Caller,
  { keyName }: Pick<IncidentDeps, "keyName">,
): string {
  if (person !== undefined) return person.name ?? person.email.slice(0, person.email.indexOf("@"));
  return keyName(session?.credential ?? credential) ?? account.userId;
}
