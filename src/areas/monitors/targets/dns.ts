import ipaddr from "ipaddr.js";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import type { RecordType } from "../../../kernel/outbound/dns/message.ts";
import { resolverOf } from "../resolver.ts";
import type { CheckedTarget, TargetKind, TargetOutcome, TargetSettings } from "./target.ts";

export const DNS: TargetKind = {
  // RFC 4501.
  urlOf: ({ host, record_type }) => `dns:${host}?type=${record_type}`,
  check: checkRecords,
  // A name server that responds may be in the same network, and a name is no host that can be probed.
  probeUrlOf: () => null,
};

/** Looks up the records of a name, and compares them with the expected values. */
async function checkRecords(
  outbound: OutboundClient,
  { account, settings }: CheckedTarget,
): Promise<TargetOutcome> {
  const { host, record_type, resolver, timeout: timeoutMs } = settings;
  const type = record_type ?? "A";
  const server = resolver === null ? null : resolverOf(resolver);
  const outcome = await outbound.lookUp({ account, host: host ?? "", type, resolver: server, timeoutMs });
  if (!outcome.answered) return outcome;
  const { values, ...measured } = outcome;
  // A name server responded, and not the target.
  const error = mismatch(type, values, settings);
  return { ...measured, address: null, status: null, certificate: null, error };
}

/** Why records are not the expected ones: without the values that were found, since name servers can serve internal zones, too. */
function mismatch(
  type: RecordType,
  found: readonly string[],
  { match, record_value: expected, record_values }: TargetSettings,
): string | null {
  if (match === "set") {
    const wanted = new Set((record_values ?? []).map((value) => comparable(type, value)));
    const values = new Set(found.map((value) => comparable(type, value)));
    const missing = wanted.difference(values).size;
    const others = values.difference(wanted).size;
    if (missing === 0 && others === 0) return null;
    return `record_values: ${missing} of ${wanted.size} ${type} records missing, ${others} others found`;
  }
  if (expected === null) return null;
  const isFound =
    match === "contains"
      ? found.some((value) => contains(type, value, expected))
      : found.some((value) => comparable(type, value) === comparable(type, expected));
  return isFound ? null : `record_value: none of ${found.length} ${type} records has it`;
}

/** Whether a value has a text in it. Only texts have a case. */
function contains(type: RecordType, value: string, expected: string): boolean {
  if (type === "TXT") return value.includes(expected);
  return value.toLowerCase().includes(expected.toLowerCase());
}

/**
 * The form in which equal values are equal texts: names without case and final dot, addresses as RFC 5952 has them, texts without
 * quotes.
 */
function comparable(type: RecordType, value: string): string {
  if (type === "TXT") return unquoted(value);
  if (type === "CAA") return authorization(value);
  const [first = "", ...others] = value.trim().split(/\s+/).map(withoutFinalDot);
  const name = [first, ...others].join(" ").trim().toLowerCase();
  if (type !== "AAAA") return name;
  return ipaddr.isValid(name) ? ipaddr.parse(name).toString() : name;
}

function withoutFinalDot(name: string): string {
  return name.endsWith(".") ? name.slice(0, -1) : name;
}

/** A text in quotes, or several with blanks between, as zone files have them (RFC 1035, section 5.1), without the quotes. */
function unquoted(text: string): string {
  if (!text.startsWith('"')) return text;
  let result = "";
  let isInside = false;
  let isEscaped = false;
  for (const character of text) {
    if (isEscaped || (isInside && character !== '"' && character !== "\\")) result += character;
    else if (character === '"') isInside = !isInside;
    else if (!isInside && character.trim() !== "") return text;
    isEscaped = isInside && !isEscaped && character === "\\";
  }
  return isInside ? text : result;
}

/** Flags, tag without case, and value (RFC 8659, section 4.1). */
function authorization(value: string): string {
  const [flags, afterFlags] = firstWord(value);
  const [tag, afterTag] = firstWord(afterFlags);
  return `${flags} ${tag.toLowerCase()} ${unquoted(afterTag)}`;
}

/** The text up to the first blank, and what follows. */
function firstWord(text: string): readonly [word: string, others: string] {
  const trimmed = text.trim();
  const end = trimmed.indexOf(" ");
  return end < 0 ? [trimmed, ""] : [trimmed.slice(0, end), trimmed.slice(end).trim()];
}
