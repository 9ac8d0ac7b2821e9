import type { MailMessage } from "../../kernel/mail/smtp.ts";

/** What a mail with a link says: nothing that a stranger could have written, since anyone can be invited. */
interface LinkFacts {
  readonly to: string;
  /** Address of the account. */
  readonly account: string;
  /** Address of the person who sends it; null for a key. */
  readonly inviter: string | null;
  readonly url: string;
}

/** The mail of an invitation. */
export function invitationMail({ to, account, inviter, url }: LinkFacts): MailMessage {
  const text = [
    `You have been invited to the Ninefold account ${account}.`,
    ...(inviter === null ? [] : [`Invited by: ${inviter}`]),
    "",
    "Open this link within 7 days to create your passkey. It works once:",
    url,
    "",
    "If you do not know the account, ignore this message.",
  ].join("\n");
  return { to, subject: "Invitation to Ninefold", text };
}

/** The mail to somebody whose link was used: whoever has it has replaced their passkeys. */
export function linkUsedMail({ to, account }: Pick<LinkFacts, "to" | "account">): MailMessage {
  const text = [
    `A login link of yours was used in the Ninefold account ${account}. Your passkeys were replaced by a new one, and you were logged out everywhere.`,
    "",
    "If that was not you, contact an owner of the account now.",
  ].join("\n");
  return { to, subject: "Your Ninefold passkeys were replaced", text };
}

/** The mail of a new link for somebody who already has an account. */
export function newLinkMail({ to, account, inviter, url }: LinkFacts): MailMessage {
  const text = [
    `A new login link was created for you in the Ninefold account ${account}.`,
    ...(inviter === null ? [] : [`Created by: ${inviter}`]),
    "",
    "Open it within 7 days to create a new passkey. It works once, removes your other passkeys, and logs you out everywhere:",
    url,
    "",
    "If you did not expect it, contact an owner of the account.",
  ].join("\n");
  return { to, subject: "New login link for Ninefold", text };
}
