import { isNestedDeeper } from "../../../json-text.ts";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import type { Answered, Failed } from "../../../kernel/outbound/outcome.ts";

/** Bytes of a response that are read: those of registries have 2 to 50 KiB. It is parsed in some milliseconds. */
export const RESPONSE_BYTES_MAX = 256 * 1024;
/** Levels of a response: contacts of contacts have 10. */
const LEVELS_MAX = 50;
/** Redirects that are followed: registries refer to each other. */
const REDIRECTS_MAX = 5;

/** A query of a registry. */
export interface RdapQuery {
  /** URL of the server, which ends with a slash. */
  readonly server: string;
  /** Registered name, in the letters of DNS. */
  readonly name: string;
  /** Reference of the account whose check it is. */
  readonly account: number | null;
  readonly timeoutMs: number;
}

/** Queries the registry of a name (RFC 9082, section 3.1.3). */
export function queryRegistry(
  outbound: OutboundClient,
  { server, name, account, timeoutMs }: RdapQuery,
): Promise<Answered | Failed> {
  return outbound.send({
    account,
    method: "GET",
    url: `${server}domain/${name}`,
    headers: { Accept: "application/rdap+json", "User-Agent": "Ninefold" },
    body: null,
    timeoutMs,
    bodyBytesMax: RESPONSE_BYTES_MAX,
    keepsBody: true,
    longerBody: "fail",
    redirectsMax: REDIRECTS_MAX,
    reuseConnection: false,
  });
}

/** When the registration of a name ends, epoch milliseconds, or why that cannot be read. */
export type Expiry = { readonly expiresAt: number } | { readonly problem: string };

/** Reads the expiry in a response of a registry (RFC 9083, sections 4.5 and 5.3). */
export function expiryIn(status: number, text: string, name: string): Expiry {
  if (status === 404)
    return { problem: `the registry does not know ${name}. Use the registered name, such as example.com` };
  if (status !== 200) return { problem: `the RDAP server responded with ${status}` };
  const response = objectIn(text);
  if (response?.["objectClassName"] !== "domain")
    return { problem: "the RDAP server responded with something else than a domain" };
  const { ldhName, events } = response;
  if (typeof ldhName === "string" && ldhName.toLowerCase().replace(/\.$/, "") !== name)
    return { problem: "the RDAP server responded about another name" };
  const times = (Array.isArray(events) ? events : []).flatMap((event: unknown) => {
    const { eventAction: action, eventDate: date } = (event ?? {}) as Readonly<Record<string, unknown>>;
    return action === "expiration" && typeof date === "string" ? (timeOf(date) ?? []) : [];
  });
  const [expiresAt] = times;
  return expiresAt === undefined ? { problem: "the registry publishes no expiry" } : { expiresAt };
}

/** Earlier dates stand for none, such as the year 1: the first name was registered in 1985. */
const FIRST_EXPIRY = Date.UTC(1985, 0, 1);

/** Where the seconds of a time are. */
const SECONDS_AT = "2027-01-01T00:00:".length;

/** Epoch milliseconds of a time of RFC 3339, which some registries give as a date alone. Null for what is none. */
function timeOf(date: string): number | null {
  const isTime = /^\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})?)?$/.test(
    date,
  );
  if (!isTime) return null;
  const hasZone = /[Zz]$|[+-]\d{2}:\d{2}$/.test(date.slice(10));
  // A leap second is one that the date of JavaScript does not have.
  const isLeap = date.slice(SECONDS_AT, SECONDS_AT + 2) === "60";
  const whole = isLeap ? `${date.slice(0, SECONDS_AT)}59${date.slice(SECONDS_AT + 2)}` : date;
  const written = whole.replace(" ", "T");
  const time = Date.parse(date.length === 10 || hasZone ? written : `${written}Z`);
  return time >= FIRST_EXPIRY ? time : null;
}

function objectIn(text: string): Readonly<Record<string, unknown>> | null {
  if (isNestedDeeper(text, LEVELS_MAX)) return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? (value as Readonly<Record<string, unknown>> | null) : null;
  } catch {
    return null;
  }
}
