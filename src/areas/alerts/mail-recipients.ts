import { isUnlimited } from "../../kernel/limits/tiers.ts";
import type { MailAudience } from "../../kernel/mail/outbox.ts";
import type { AlertDeps } from "./ports.ts";

type Deps = Pick<AlertDeps, "owners" | "people">;

/** Whose e-mails go to some addresses. */
interface MailOwner {
  readonly accountRef: number;
  readonly projectRef: number;
}

/**
 * Those of some addresses that may receive alerts of a project now: the account's, those of people who can log in and have a
 * role in the project, and in the operator's projects any that is not of a person who lost that. Each once, as it is given.
 */
export function allowedRecipients(
  { owners, people }: Deps,
  { accountRef, projectRef }: MailOwner,
  addresses: readonly string[],
): string[] {
  const { email, tier } = owners.account(accountRef);
  const accountEmail = email.toLowerCase();
  const allowed = new Map<string, string>();
  for (const address of addresses) {
    const folded = address.toLowerCase();
    const isAllowed =
      folded === accountEmail || (people.mayRead(accountRef, projectRef, address) ?? isUnlimited(tier));
    if (isAllowed && !allowed.has(folded)) allowed.set(folded, address);
  }
  return [...allowed.values()];
}

/**
 * Who gets an e-mail now that was queued for one of some recipients, who may have left since then: if all of them have, the
 * account gets that of the first. Null: nobody.
 */
export function recipientNow(deps: Deps, { addresses, ...owner }: MailAudience, to: string): string | null {
  const allowed = allowedRecipients(deps, owner, addresses);
  if (allowed.includes(to)) return to;
  const isForAccount = allowed.length === 0 && to === addresses[0];
  return isForAccount ? deps.owners.account(owner.accountRef).email : null;
}

/** The recipients of a channel's e-mails. If none of them is allowed any more, the account is notified instead. */
export function mailRecipients(deps: Deps, owner: MailOwner, addresses: readonly string[]): string[] {
  const allowed = allowedRecipients(deps, owner, addresses);
  return allowed.length > 0 ? allowed : [deps.owners.account(owner.accountRef).email];
}
