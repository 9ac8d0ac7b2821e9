import type { Static, TObject, TProperties } from "@sinclair/typebox";
import type { Caller } from "../callers/caller.ts";
import type { ErrorCode } from "../errors.ts";
import type { OperationSpec } from "../http/operation.ts";
import type { Call } from "../http/requests/call.ts";
import type { ResourceFacts } from "../http/resource-facts.ts";
import type { SecretDigests, SecretValue } from "../secrets/secret-digest.ts";
import type { Fields, Tx } from "../storage/tx.ts";
import type { ResourceLimit } from "./limit.ts";
import type { ResourceRow } from "./table.ts";

/** The request that a hook runs for. Hooks of reads do not write. */
export interface ResourceContext {
  readonly tx: Tx;
  readonly caller: Caller;
  readonly call: Pick<Call, "baseUrl">;
}

/** What identifies a new row. */
export interface Identity extends ResourceRow {
  readonly accountRef: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** The statements that a resource needs of its store, as `resourceTable` makes them. */
export interface ResourceStore<Row> {
  highestRef(): number;
  find(id: string): Row | null;
  /** Rows of a project below a number, newest first. */
  page(projectRef: number, before: number, rowsMax: number): readonly Row[];
  insert(tx: Tx, row: Row): void;
  update(tx: Tx, row: Row): void;
  remove(tx: Tx, ref: number): void;
}

/** The position and the size of a page. */
interface PageStart {
  /** The page begins below this number. */
  readonly before: number;
  /** One more than the page has. */
  readonly rowsMax: number;
}

/** The part of a verb's operation that no other property of the resource implies. */
export type VerbSpec = Pick<
  OperationSpec,
  "summary" | "description" | "example" | "errors" | "bodyLimits" | "role" | "secret"
>;

/** The field that names a row. */
type NameOf<Row> =
  | { readonly field: string; readonly taken: null }
  | {
      readonly field: string;
      readonly isFixed?: boolean;
      /** The error for a name that another row has. */
      readonly taken: ErrorCode;
      /** The row that has the name of a row, which may be the row itself. */
      readonly holder: (row: Row) => Row | null;
      readonly message: (holder: Row) => string;
      /** Fields that the error adds. */
      readonly extras?: (holder: Row) => Readonly<Record<string, string>>;
    };

/** What happened to a row, as the audit log says it. */
export type Done = "created" | "changed" | "deleted";

/**
 * A resource: a named thing of a project that is listed, read, created, changed and deleted. Its routes, checks, errors and
 * audit entries follow from this declaration. Types are inferred from the store and the schemas.
 */
export interface ResourceDeclaration<
  Row extends ResourceRow,
  ListRow extends ResourceRow,
  View extends TObject,
  Item extends TObject,
  Filters extends TProperties,
  Body extends TObject,
  Patch extends TObject,
  Creation,
  Change,
  Raw extends string,
> extends ResourceFacts {
  readonly name: NameOf<Row>;
  readonly limit: ResourceLimit | null;
  readonly store: ResourceStore<Row>;
  readonly schema: View;
  /** The response for a row. */
  readonly view: (row: Row, context: ResourceContext) => Omit<Static<View>, Raw>;
  /** A field of the response that is stored as JSON and sent as it is: its numbers keep their digits. */
  readonly raw?: { readonly field: Raw; readonly json: (row: Row) => string };
  /** The secrets of a row by field, for `secret_digest`. */
  readonly secrets?: {
    readonly digests: SecretDigests;
    readonly of: (row: Row) => Readonly<Record<string, SecretValue>>;
  };
  /** One line for the audit log: `Channel Team chat changed`. */
  readonly summary: (row: Row, done: Done) => string;
  /** The fields in an entry of the audit log; by default those of the response without id and times. */
  readonly audited?: (shown: Omit<Static<View>, Raw>, row: Row, done: Done) => Fields;
  readonly list: VerbSpec & {
    /** The field of the response with the items. */
    readonly key: string;
    /** The name of the response's schema. */
    readonly schema: string;
    /** Items of a page by default. */
    readonly limit: number;
    /** Query parameters besides `limit` and `cursor`. */
    readonly filters?: Filters;
    /** The rows of a page, where {@link ResourceStore.page} does not select them. */
    readonly rows?: (
      context: ResourceContext,
      page: PageStart,
      query: Static<TObject<Filters>>,
    ) => readonly ListRow[];
    /** The schema of an item, where it is not that of the resource. */
    readonly item?: Item;
    readonly view?: (row: ListRow, context: ResourceContext) => Static<Item>;
  };
  readonly read: VerbSpec & {
    /** The response, where it has more than those of the changes. */
    readonly view?: (row: Row, context: ResourceContext) => Omit<Static<View>, Raw>;
  };
  readonly create: VerbSpec & {
    readonly body: Body;
    /** Work before the unit of work. Without it, hooks get the body. */
    readonly prepare?: (
      body: Static<Body>,
      call: Pick<Call, "bodyText" | "addWarnings">,
    ) => Creation | Promise<Creation>;
    /** The new row. @throws ApiError for settings that the schema cannot reject. */
    readonly row: (context: ResourceContext, fields: Creation, identity: Identity) => Row;
    /** Called when the row is stored. */
    readonly created?: (context: ResourceContext, row: Row, fields: Creation) => void;
  };
  readonly change: VerbSpec & {
    /** The last part of the operation's name. */
    readonly verb: "change" | "update";
    readonly body: Patch;
    /** Work before the unit of work. Without it, hooks get the body. */
    readonly prepare?: (
      body: Static<Patch>,
      call: Pick<Call, "bodyText" | "addWarnings">,
    ) => Change | Promise<Change>;
    /** The row after the change. @throws ApiError for settings that the schema cannot reject. */
    readonly row: (context: ResourceContext, before: Row, fields: Change) => Row;
    /** Called when the row is stored. */
    readonly changed?: (context: ResourceContext, row: Row, fields: Change, before: Row) => void;
    /** Whether a change is audited even if no audited field differs: a new secret does not show. */
    readonly isHidden?: (fields: Change) => boolean;
  };
  /** Null if it cannot be deleted. */
  readonly delete:
    | (VerbSpec & {
        /** The response; null for 204. */
        readonly schema: TObject | null;
        /** Removes the row, where it is more than its row in the table. */
        readonly remove?: (context: ResourceContext, row: Row) => void;
      })
    | null;
}
