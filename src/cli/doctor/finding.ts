import type { Config } from "../../config.ts";

/** What a check has found. Only `failed` means that a server cannot run, or not safely. */
export type Status = "ok" | "warning" | "failed" | "skipped";

/** The outcome of a check. */
export interface Finding {
  readonly status: Status;
  readonly detail: string;
  /** What to do about it. Always there where something is wrong. */
  readonly cure?: string;
}

/** What checks look at. */
export interface Target {
  readonly config: Config;
  /** Absolute path of the data folder; of the system's temporary folder for an ephemeral server. */
  readonly folder: string;
  /** The folder, or the nearest one above it that exists: where the first start would make it. */
  readonly existing: string;
  /** A name that is looked up to see whether names can be. */
  readonly dnsName: string;
}

/** One check. */
export interface Check {
  readonly name: string;
  /** What to do when it cannot be made: what keeps it from looking keeps a server from working. */
  readonly cure: string;
  run(target: Target): Finding | Promise<Finding>;
}

/** All is well. */
export function ok(detail: string): Finding {
  return { status: "ok", detail };
}

/** There is nothing to look at. */
export function skipped(detail: string): Finding {
  return { status: "skipped", detail };
}

/** It works, but not as it should. */
export function warning(detail: string, cure: string): Finding {
  return { status: "warning", detail, cure };
}

/** A server cannot run like this. */
export function failed(detail: string, cure: string): Finding {
  return { status: "failed", detail, cure };
}
