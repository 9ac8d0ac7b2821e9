/** RFC 5321's limit for an e-mail address. */
export const EMAIL_LENGTH_MAX = 254;

/** What browsers accept in an e-mail field (HTML standard), with a dot in the domain not required. */
const EMAIL =
  /^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;

/** The same, for a schema. */
export const EMAIL_PATTERN = EMAIL.source.replaceAll("\\/", "/");

/** Whether a text is an e-mail address. */
export function isEmail(text: string): boolean {
  return text.length <= EMAIL_LENGTH_MAX && EMAIL.test(text);
}
