import type { ArchiveDeps } from "../../../src/archive/archive.ts";

/** An archive in which seconds are what days are otherwise: objects expire within a round. */
export const RETENTION = {
  keepMs: 3_000,
  baseIntervalMs: 1_000,
  baseRetryMs: 200,
  expiryRetryMs: 200,
} as const satisfies ArchiveDeps;
