import ipaddr from "ipaddr.js";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import type { RecordType } from "../../../kernel/outbound/dns/message.ts";
import type { CheckedTarget, TargetKind, TargetOutcome } from "./target.ts";

export const DNS: TargetKind = {
  // RFC 4501.
  urlOf: ({ host, record_type }) => `dns:${host}?type=${record_type}`,
  check: checkRecords,
  // A name server that responds may be in the same network, and a name is no host that can be probed.
  probeUrlOf: () => null,
};

/** Looks up the records of a name, and compares them with the expected value. */
async function checkRecords(
  outbound: OutboundClient,
  { account, settings }: CheckedTarget,
): Promise<TargetOutcome> {
  const { host, record_type, record_value: expected, timeout: timeoutMs } = settings;
  const type = record_type ?? "A";
  const outcome = await outbound.lookUp({ account, host: host ?? "", type, timeoutMs });
  if (!outcome.answered) return outcome;
  const { values, ...measured } = outcome;
  const isFound = expected === null || hasValue(type, values, expected);
  // Without the values that were found: name servers can serve internal zones, too.
  const error = isFound ? null : `record_value: none of ${values.length} ${type} records has it`;
  // A name server responded, and not the target.
  return { ...measured, address: null, status: null, certificate: null, error };
}

function hasValue(type: RecordType, values: readonly string[], expected: string): boolean {
  if (type === "TXT") return hasText(values, expected);
  const wanted = comparable(type, expected);
  return values.some((value) => comparable(type, value) === wanted);
}

/** Whether one text, or several in a row, are the expected one: the parts of a long text are separate values. */
function hasText(deps: readonly string[], expected: string): boolean {
  const ends = new Set<number>();
  let whole = "";
  for (const part of deps) {
    whole += part;
    ends.add(whole.length);
  }
  return [0, ...ends].some((start) => ends.has(start + expected.length) && whole.startsWith(expected, start));
}

/** The form in which equal values are equal texts: names without case and final dot, addresses as RFC 5952 has them. */
function comparable(type: RecordType, value: string): string {
  const name = value.toLowerCase().replace(/\.$/, "");
  if (type !== "AAAA") return name;
  return ipaddr.isValid(name) ? ipaddr.parse(name).toString() : name;
}
