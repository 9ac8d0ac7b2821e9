import { type ErrorMeaning, registerErrors } from "../../../kernel/errors.ts";
import { MINUTE_MS } from "../../../kernel/time/units.ts";

const codes = registerErrors({
  probe_name_taken: [409, "Another probe of the project has this name.", "Use that probe, or another name."],
  probe_in_use: [
    409,
    "The probe is the only one that checks a monitor.",
    "Give the monitor in the message another probe first, or delete it.",
  ],
  probe_limit_exceeded: [
    403,
    "The account has the maximum number of probes of its tier.",
    "Delete probes that are not used, or request another tier from the operator.",
  ],
  probe_offline: [
    503,
    "No probe of the monitor is online, and the server does not check it.",
    "Start a probe of the monitor, or add `local` to its probes.",
  ],
  probe_version_unsupported: [
    409,
    "The probe is more than one minor version older or newer than the server.",
    "Update the probe with `ninefold upgrade`, or the server first if it is the older one.",
  ],
});

declare module "../../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** Time without a request after which a probe is offline. */
export const OFFLINE_MS = 2 * MINUTE_MS;

/** Whether a server and a probe understand each other: they are at most one minor version apart. */
export function isCompatible(server: string, probe: string): boolean {
  const [serverVersion, probeVersion] = [server, probe].map((version) =>
    /^(\d{1,6})\.(\d{1,6})\./.exec(version),
  );
  if (!serverVersion || !probeVersion) return false;
  return (
    serverVersion[1] === probeVersion[1] && Math.abs(Number(serverVersion[2]) - Number(probeVersion[2])) <= 1
  );
}
