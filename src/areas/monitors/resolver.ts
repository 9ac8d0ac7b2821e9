import { invalidField } from "../../kernel/errors.ts";
import type { HostAndPort } from "../../kernel/outbound/client.ts";
import { DNS_PORT } from "../../kernel/outbound/dns/name-servers.ts";
import type { TargetPolicy } from "../../kernel/outbound/target.ts";

/** Longest resolver: the longest name, and a port. */
export const RESOLVER_LENGTH_MAX = 260;

/** Parses `1.1.1.1`, `ns1.example.com:5353`, `2001:db8::1` or `[2001:db8::1]:53`. */
export function resolverOf(text: string): HostAndPort {
  const [, inBrackets, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  // Only IPv6 addresses without a port have further colons.
  return { host: inBrackets ?? plain ?? text, port: port === undefined ? DNS_PORT : Number(port) };
}

/** @throws ApiError `validation_error` for a resolver that is none, or where nothing may be sent */
export function assertResolver(policy: Pick<TargetPolicy, "assertHost">, text: string): void {
  const { host, port } = resolverOf(text);
  if (port < 1 || port > 65_535) throw invalidField("resolver", "must have a port from 1 to 65535");
  policy.assertHost("resolver", host);
}
