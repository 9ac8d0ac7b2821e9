import { isIP } from "node:net";
import { wallMs } from "../time/clock.ts";
import { HEADER_VALUE_LENGTH_MAX, headerError, type RequestHeaders } from "./headers.ts";

/** Cookies of one request and its redirects: more are dropped. A login needs a few. */
export const COOKIES_MAX = 20;
/** The start of a `Set-Cookie` header. */
const NAMED = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+=/;

interface Cookie {
  /** `name=value`, as it is sent. */
  readonly pair: string;
  readonly name: string;
  readonly domain: string;
  /** Whether it is of this host alone. */
  readonly isHostOnly: boolean;
  readonly path: string;
  readonly isSecure: boolean;
}

/** The cookies that responses set within one request and its redirects (RFC 6265). Nothing of them is kept afterwards. */
export class Cookies {
  private cookies: Cookie[] = [];

  /** Takes those that the response of a URL sets: the value of its `Set-Cookie` headers, joined. */
  take(header: string | undefined, url: URL): void {
    for (const text of cookiesIn(header ?? "")) this.set(text, url);
  }

  /** Headers with the cookies of a URL added; their own `Cookie` stays. */
  addTo(headers: RequestHeaders, url: URL): RequestHeaders {
    const [known] = Object.entries(headers).filter(([name]) => name.toLowerCase() === "cookie");
    let value = known?.[1] ?? "";
    for (const cookie of this.cookies) {
      const longer = value === "" ? cookie.pair : `${value}; ${cookie.pair}`;
      if (isSentTo(cookie, url) && longer.length <= HEADER_VALUE_LENGTH_MAX) value = longer;
    }
    return value === "" ? headers : { ...headers, [known?.[0] ?? "Cookie"]: value };
  }

  private set(text: string, url: URL): void {
    const [pair = "", ...parts] = text.split(";").map((part) => part.trim());
    const name = pair.slice(0, Math.max(0, pair.indexOf("=")));
    if (name === "" || headerError("Cookie", pair) !== null) return;
    const attributes = new Map(parts.map(attributeOf));
    const { hostname } = url;
    const domain = attributes.get("domain")?.toLowerCase().replace(/^\./, "") ?? "";
    if (domain !== "" && domain !== hostname && !isBelow(hostname, domain)) return;
    const scope = attributes.get("path") ?? "";
    const path = scope.startsWith("/") ? scope : url.pathname.slice(0, url.pathname.lastIndexOf("/") || 1);
    const cookie = {
      pair,
      name,
      domain: domain === "" ? hostname : domain,
      isHostOnly: domain === "" || isIP(hostname) !== 0,
      path,
      isSecure: attributes.has("secure"),
    };
    this.cookies = this.cookies.filter(
      (known) => known.name !== name || known.domain !== cookie.domain || known.path !== path,
    );
    if (!isExpired(attributes) && this.cookies.length < COOKIES_MAX) this.cookies.push(cookie);
  }
}

/** The `Set-Cookie` headers that the reader has joined by commas. The comma in a date is followed by no name. */
function cookiesIn(header: string): string[] {
  const texts: string[] = [];
  for (const part of header.split(", ")) {
    if (NAMED.test(part) || texts.length === 0) texts.push(part);
    else texts.push(`${texts.pop()}, ${part}`);
  }
  return texts;
}

function attributeOf(text: string): [name: string, value: string] {
  const at = text.indexOf("=");
  return at < 0
    ? [text.toLowerCase(), ""]
    : [text.slice(0, at).trim().toLowerCase(), text.slice(at + 1).trim()];
}

/** Whether a host belongs to a domain. Nobody may set cookies of a whole top-level domain. */
function isBelow(host: string, domain: string): boolean {
  return domain.includes(".") && host.endsWith(`.${domain}`);
}

function isExpired(attributes: ReadonlyMap<string, string>): boolean {
  const seconds = attributes.get("max-age");
  if (seconds !== undefined && /^-?\d{1,15}$/.test(seconds)) return Number(seconds) <= 0;
  return Date.parse(attributes.get("expires") ?? "") <= wallMs();
}

function isSentTo(
  { domain, isHostOnly, path, isSecure }: Cookie,
  { hostname, pathname, protocol }: URL,
): boolean {
  const isHost = hostname === domain || (!isHostOnly && isBelow(hostname, domain));
  const isPath = pathname === path || pathname.startsWith(path.endsWith("/") ? path : `${path}/`);
  return isHost && isPath && (!isSecure || protocol === "https:");
}
