import type { ErrorCode } from "../errors.ts";
import type { TierLimits } from "../limits/tiers.ts";
import type { FileFacts } from "./managed.ts";

/** The facts of a resource that do not depend on its types. Its operations carry them, for the tests of all resources. */
export interface ResourceFacts {
  /** Names it in the audit log and in its path parameter: `channel`, `channel_id`. */
  readonly type: string;
  /** Names it in errors. */
  readonly title: string;
  /** The first letters of its ids. */
  readonly idPrefix: string;
  /** Path of the list, such as `/v1/pulse/channels`. */
  readonly path: string;
  /** The first part of the names of its operations: `monitors.channels`. */
  readonly operations: string;
  /** The section of the API document. */
  readonly tag: string;
  /** Its scopes are `area:read` and `area:write`; each request costs `cost` credits. */
  readonly access: {
    readonly area: string;
    readonly cost?: number;
    /** The token bucket that counts its requests. */
    readonly limit?: "monitor";
  };
  readonly list: {
    /** The field of the response with the items. */
    readonly key: string;
  };
  /**
   * How it stands in a configuration file, where it differs from its list's `key` as the section and its name as the name; null
   * if a file cannot have it.
   */
  readonly file?: Partial<FileFacts> | null;
  /** The field of the bodies that names it. */
  readonly name: {
    readonly field: string;
    /** The error for a name that another row has; null if names need not be unique. */
    readonly taken: ErrorCode | null;
  };
  /** The most that can exist; null without a limit. */
  readonly limit: {
    readonly code: ErrorCode;
    /** The number, or the limit of the tiers that has it. */
    readonly most: number | keyof TierLimits;
  } | null;
}
