import type { ErrorCode } from "../errors.ts";
import type { TierLimits } from "../limits/tiers.ts";

/** How the resources of a path stand in a configuration file. The operation that creates one declares it. */
export interface FileFacts {
  /** The section of the file. */
  readonly section: string;
  /** The field that names a resource: unique in its project. */
  readonly name: string;
  /** Fields of a request that a file does not have. */
  readonly omitted?: readonly string[];
  /** Path of the list, where it is not the path of the creation. */
  readonly listPath?: string;
  /** Whether the operation of the creation also changes it. */
  readonly isSave?: boolean;
  /**
   * Whether the operation of the creation is a `PUT` with the name at the end of its path, which also replaces the resource as a
   * whole. The fields that a file omits keep their values.
   */
  readonly isPut?: boolean;
  /**
   * The field that says whether a resource is archived, where the `DELETE` of its path archives it and the `PUT` brings it back.
   * The list shows the archived ones with this field as its query. A file that omits it means false.
   */
  readonly archivedField?: string;
  /** Whether it is created when it is missing, and not compared afterwards. */
  readonly createOnly?: boolean;
  /** Whether it is a record of what happened, which an export of settings leaves out. */
  readonly isRecord?: boolean;
  /** Field of the response to a creation with a secret that is shown once: `apply` must know where to store it. */
  readonly onceShown?: string;
  /** Whether a project has one, without a name. */
  readonly isSingle?: boolean;
  /** Values of omitted fields, which an export leaves out. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /**
   * Fields that a change accepts, but cannot change, with the value that an omitted one stands for; undefined where the omitted
   * one keeps its value.
   */
  readonly fixed?: Readonly<Record<string, unknown>>;
  /** Fields of a creation that later files may keep: they are neither compared nor exported. */
  readonly onCreation?: readonly string[];
  /** Fields of the response to a creation with URLs that `apply` prints. */
  readonly urls?: readonly {
    readonly field: string;
    /** Whether anyone who knows it can use it, so that it belongs to the secrets. */
    readonly isSecret: boolean;
  }[];
  /** Fields of which a resource has one: a file that sets one must clear the other. */
  readonly alternatives?: readonly [string, string];
  /** A field whose values are unique in the project. */
  readonly unique?: string;
  /** An object whose fields stand beside the others in the file. */
  readonly flattened?: string;
  /** Fields with values that pass: what of a value of a file or a response still counts at a time, in epoch milliseconds. */
  readonly current?: Readonly<Record<string, (value: unknown, now: number) => unknown>>;
  /** Path that proposes a change where the server requires the approval of somebody else; `:name` stands for the name. */
  readonly proposals?: string;
  /** Fields of a response that a file cannot have, given the others. */
  readonly computed?: (shown: Readonly<Record<string, unknown>>) => readonly string[];
  /** Fields of a response whose null is a value of its own, given the others: an export has it. */
  readonly meaningfulNulls?: (shown: Readonly<Record<string, unknown>>) => readonly string[];
  /** Checks a creation that its schema accepts, as far as no server is needed. @throws ApiError `validation_error` */
  readonly check?: (body: never) => void;
}

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
    /** Whether a change cannot have another name; false by default. */
    readonly isFixed?: boolean;
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
