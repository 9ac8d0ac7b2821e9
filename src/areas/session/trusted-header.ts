import type { Role } from "../../kernel/callers/role.ts";
import type { PageRequest } from "../../kernel/http/access/peers.ts";
import { isEmail } from "../../kernel/mail/address.ts";
import type { Metrics } from "../../kernel/metrics/metrics.ts";
import { decodedHeader, nameIn } from "./header-text.ts";

/** The headers in which a trusted proxy says who its client is. */
export interface HeaderSettings {
  /** Header with the address; null: the address is that of the token. */
  readonly email: string | null;
  readonly name: string | null;
  readonly groups: string | null;
  readonly separator: string;
  /** Roles by group; empty: groups change no role. */
  readonly roles: ReadonlyMap<string, Role>;
  /** The only account whose people log in, by id or address; null: any. */
  readonly account: string | null;
  /** The header with a signed token in place of that with the address. */
  readonly token: TokenSettings | null;
}

/** A signed token, and what it must be signed for. */
export interface TokenSettings {
  readonly header: string;
  readonly issuer: string;
  readonly audience: string;
}

/** Reads the address of signed tokens. */
export interface TokenReader {
  /** The address of a valid token; null for any other, and while the keys of its issuer are not known. */
  read(token: string): string | null;
  /** The same, once the keys of the issuer are there. */
  readOnceKnown(token: string): Promise<string | null>;
}

/** Who a trusted proxy says its client is. */
export interface ProxyIdentity {
  readonly email: string;
  readonly name: string | null;
  /** Null without the header, or if none is configured. */
  readonly groups: readonly string[] | null;
}

/** Longest value of a header that is read. */
const VALUE_LENGTH_MAX = 8_192;
/**
 * Between the values of a header that occurs more than once. A proxy that adds its header to one of the client's instead of
 * replacing it would let everyone choose their groups.
 */
const REPEATED = ", ";

/** The headers of a trusted proxy. Those of anyone else are ignored, and counted. */
export class TrustedHeader {
  private ignored = 0;

  constructor(
    private readonly settings: HeaderSettings | null,
    private readonly tokens: TokenReader | null,
    metrics: Pick<Metrics, "number">,
  ) {
    metrics.number(
      "ninefold_login_header_ignored_total",
      "Requests with the header that logs people in, from addresses that trust_proxy does not list.",
      () => this.ignored,
    );
  }

  /** Whether a header logs people in. */
  get isOn(): boolean {
    return this.settings !== null;
  }

  /** The address in a request's header; null without one, or if it is not valid. */
  addressOf(from: PageRequest): string | null {
    const value = this.valueOf(from);
    if (value === null) return null;
    return this.tokens === null ? addressIn(value) : this.tokens.read(value);
  }

  /** Who logs in; null if the header is missing, or is not valid. */
  async identityOf(from: PageRequest): Promise<ProxyIdentity | null> {
    const { settings, tokens } = this;
    const value = this.valueOf(from);
    if (value === null || settings === null) return null;
    const email = tokens === null ? addressIn(value) : await tokens.readOnceKnown(value);
    if (email === null) return null;
    const read = (header: string | null) => (header === null ? null : from.request.headers.get(header));
    const groups = read(settings.groups);
    if (groups !== null && (groups.includes(REPEATED) || groups.length > VALUE_LENGTH_MAX)) return null;
    return {
      email,
      name: nameIn(read(settings.name)),
      groups: groups === null ? null : groupsIn(groups, settings),
    };
  }

  /** The header with the address or the token, of a trusted proxy alone. */
  private valueOf({ request, isFromProxy = false }: PageRequest): string | null {
    const { settings } = this;
    if (settings === null) return null;
    const value = request.headers.get(settings.token?.header ?? settings.email ?? "");
    if (value === null) return null;
    if (isFromProxy) return value.length > VALUE_LENGTH_MAX ? null : value;
    this.ignored += 1;
    return null;
  }
}

/** A header that occurs twice has a comma in its value. */
function addressIn(value: string): string | null {
  const address = value.trim();
  return isEmail(address) ? address : null;
}

function groupsIn(text: string, { separator }: HeaderSettings): readonly string[] {
  const groups = decodedHeader(text)?.split(separator) ?? [];
  return groups.map((group) => group.trim()).filter((group) => group !== "");
}
