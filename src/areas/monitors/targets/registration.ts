import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import { invalidField } from "../../../kernel/errors.ts";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import { expiryIn, queryRegistry } from "../registry/rdap.ts";
import type { CheckedTarget, TargetKind, TargetOutcome } from "./target.ts";

export const DOMAIN: TargetKind = {
  urlOf: ({ host }) => `domain:${registeredName(host ?? "") ?? host}`,
  check: checkRegistration,
  // Its registry is checked, and not the hosts that have the name.
  probeUrlOf: () => null,
};

/** Characters of a label as registries accept them (RFC 1123); a hyphen is neither first nor last. */
const LABEL = /^[a-z0-9-]{1,63}$/;

/** A registered name in the letters of DNS, without a dot at its end; null if it is none. */
function registeredName(host: string): string | null {
  const name = domainToASCII(host.replace(/\.$/, "")).toLowerCase();
  const labels = name.split(".");
  const isName = labels.every((label) => LABEL.test(label) && !label.startsWith("-") && !label.endsWith("-"));
  return isName && labels.length > 1 && isIP(name) === 0 ? name : null;
}

/** @throws ApiError `validation_error` for what cannot be a registered name */
export function assertRegisteredName(host: string): void {
  if (registeredName(host) === null)
    throw invalidField("host", "must be a registered name such as example.com");
}

/** Asks the registry of a name when its registration ends. */
async function checkRegistration(
  outbound: OutboundClient,
  { account, settings, registries }: CheckedTarget,
  now: number,
): Promise<TargetOutcome> {
  const name = registeredName(settings.host ?? "");
  if (registries === undefined || name === null) return unknown("only the server checks registered names");
  const server = await registries.serverOf(name).catch(() => undefined);
  if (server === undefined) return unknown("the list of RDAP servers cannot be read");
  if (server === null) return unknown(`the registry of ${name} has no RDAP server`);
  const outcome = await queryRegistry(outbound, { server, name, account, timeoutMs: settings.timeout });
  if (!outcome.answered) {
    if (outcome.failure.kind === "local") return outcome;
    return unknown(`the RDAP server did not respond (${outcome.failure.kind})`, outcome);
  }
  const expiry = expiryIn(outcome.status, Buffer.from(outcome.body).toString("utf8"), name);
  if ("problem" in expiry) return unknown(expiry.problem, outcome);
  const { expiresAt } = expiry;
  const date = new Date(expiresAt).toISOString().slice(0, 10);
  const error = expiresAt <= now ? `domain: the registration expired on ${date}` : null;
  const { latencyMs, stalledMs } = outcome;
  return {
    answered: true,
    address: null,
    status: null,
    certificate: null,
    error,
    latencyMs,
    stalledMs,
    expiresAt,
  };
}

/** A check that says nothing about the registration. */
function unknown(
  problem: string,
  { latencyMs, stalledMs }: { readonly latencyMs: number; readonly stalledMs: number } = {
    latencyMs: 0,
    stalledMs: 0,
  },
): TargetOutcome {
  const nothing = { address: null, status: null, certificate: null, isUnknown: true } as const;
  return { answered: true, ...nothing, error: `domain: ${problem}`, latencyMs, stalledMs };
}
