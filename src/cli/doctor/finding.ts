import type { Config } from "../../config.ts";

/** The result of a check. `failed` means that a server cannot run, or not safely. */
export type Status = "ok" | "warning" | "failed" | "skipped";

/** The outcome of a check. */
export interface Finding {
  readonly status: Status;
  readonly detail: string;
  /** What to do about it; set unless the status is `ok` or `skipped`. */
  readonly cure?: string;
}

/** What the checks examine. */
export interface Target {
  readonly config: Config;
  /** Absolute path of the data folder; of the system's temporary folder for an ephemeral server. */
  readonly folder: string;
  /** The folder, or its nearest ancestor that exists, in which the first start would create it. */
  readonly existing: string;
  /** Name that the DNS check looks up. */
  readonly dnsName: string;
}

/** A check. */
export interface Check {
  readonly name: string;
  /** What to do if the check itself fails. */
  readonly cure: string;
  run(target: Target): Finding | Promise<Finding>;
}

/** Nothing is wrong. */
export function ok(detail: string): Finding {
  return { status: "ok", detail };
}

/** The check does not apply. */
export function skipped(detail: string): Finding {
  return { status: "skipped", detail };
}

/** A server can run, but with a disadvantage. */
export function warning(detail: string, cure: string): Finding {
  return { status: "warning", detail, cure };
}

/** A server cannot run. */
export function failed(detail: string, cure: string): Finding {
  return { status: "failed", detail, cure };
}
