import type { MailMessage } from "../../kernel/mail/smtp.ts";

/** The mail with a login link. It contains nothing that whoever requested it could have written. */
export function loginMail({
  to,
  account,
  url,
}: {
  readonly to: string;
  /** Address of the account. */
  readonly account: string;
  readonly url: string;
}): MailMessage {
  const text = [
    `Log in to the Ninefold account ${account}.`,
    "",
    "Open this link within 15 minutes, in the browser in which you requested it. It works once:",
    url,
    "",
    "If you did not request it, ignore this message: the link works in no other browser.",
  ].join("\n");
  return { to, subject: "Log in to Ninefold", text };
}
