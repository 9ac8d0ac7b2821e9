import { parseNearly } from "../../json-text.ts";
import { bytesToUuid } from "../data/uuid.ts";
import type { Database, SqlValue } from "../storage/database.ts";
import { isoTime } from "../time/date-time.ts";
import { HOUR_MS } from "../time/units.ts";

/** A row as it is stored. */
export type ExportRow = Readonly<Record<string, SqlValue>>;

/** Ids of the resources that a record belongs to, by field: `project_id`, `monitor_id`. */
export type ExportContext = Readonly<Record<string, unknown>>;

/** How a column is exported; nulls stay. */
export type Shown = (value: Exclude<SqlValue, null>, row: ExportRow, context: ExportContext) => unknown;

/**
 * A table in the export of an account. Every column is exported under its name unless `show` says otherwise: columns that
 * end with `_at` as times, and no references (`…_ref`), since ids stand for them.
 */
export interface ExportedTable {
  /** The `type` of its records, such as `monitor`. */
  readonly type: string;
  readonly table: string;
  /** Its columns that refer to the owner, each with the column of the owner's row. */
  readonly of: Readonly<Record<string, string>>;
  /** One or two columns that identify a row among those of its owner: with `of`, the start of an index. */
  readonly key: readonly [string] | readonly [string, string];
  /** Columns that are exported differently; null: not at all. */
  readonly show?: Readonly<Record<string, Shown | null>>;
  /** Fields that are computed. */
  readonly more?: (row: ExportRow, context: ExportContext) => object;
  /** A condition for its rows. */
  readonly where?: string;
  /** The column of its public id, which the records below it have as `<type>_id`. */
  readonly id?: string;
  /** Whether a row can be large: then they are read one by one. */
  readonly isLarge?: boolean;
  /** Reads its rows, where no index has the owner; they are in memory. */
  readonly read?: (owner: ExportRow) => Iterable<ExportRow>;
  /** Rows that are a chain by their column `previous`: the key of the newest, from the owner's row. */
  readonly newest?: (owner: ExportRow) => number;
  readonly contains?: readonly ExportedTable[];
}

/** What an area exports of an account, and of each of its projects. */
export interface AreaExport {
  readonly ofAccount?: readonly ExportedTable[];
  readonly ofProject?: readonly ExportedTable[];
}

/** A record of an export. */
export type ExportRecord = Readonly<Record<string, unknown>> & { readonly type: string };

/** Rows that are read together. */
const ROWS_PER_READ = 100;

export const asUuid: Shown = (value) => (value instanceof Uint8Array ? bytesToUuid(value) : value);
export const asFlag: Shown = (value) => value !== 0;
export const asJson: Shown = (value) => parseNearly(String(value));
export const asBase64: Shown = (value) =>
  value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
export const asText: Shown = (value) => (value instanceof Uint8Array ? Buffer.from(value).toString() : value);
export const asTime: Shown = (value) => isoTime(Number(value));
/** Start of an hour that is counted from 1970. */
export const asHour: Shown = (value) => isoTime(Number(value) * HOUR_MS);

/** A number that stands for one of these names. `first`: the number of the first one. */
export function asName(names: readonly string[], first: number): Shown {
  return (value) => names[Number(value) - first] ?? value;
}

type Read = (owner: readonly SqlValue[], after: readonly SqlValue[] | null) => ExportRow[];

/** Reads tables as records: every row once, in the order of the keys, with a bounded number of rows in memory. */
export class AccountExporter {
  private readonly reads = new Map<ExportedTable, Read>();

  constructor(private readonly db: Database) {}

  /** The records of a table's rows with this owner, each followed by those that it contains. */
  *records(
    table: ExportedTable,
    owner: ExportRow,
    context: ExportContext = {},
  ): Generator<ExportRecord, void, undefined> {
    for (const row of this.rows(table, owner)) {
      yield { type: table.type, ...context, ...this.fieldsOf(table, row, context) };
      const { id, contains = [] } = table;
      const below =
        id === undefined ? context : { ...context, [`${table.type}_id`]: shownId(table, row, context) };
      for (const child of contains) yield* this.records(child, row, below);
    }
  }

  private *rows(table: ExportedTable, owner: ExportRow): Generator<ExportRow, void, undefined> {
    if (table.read !== undefined) return yield* table.read(owner);
    const values = Object.values(table.of).map((column) => owner[column] ?? null);
    const read = this.readOf(table);
    if (table.newest !== undefined) {
      for (let next = table.newest(owner); next !== 0; ) {
        const [row] = read(values, [next]);
        // Older ones have expired.
        if (row === undefined) return;
        yield row;
        next = Number(row["previous"]);
      }
      return;
    }
    const rowsMax = table.isLarge === true ? 1 : ROWS_PER_READ;
    for (let after: SqlValue[] | null = null; ; ) {
      const rows: ExportRow[] = read(values, after);
      yield* rows;
      const last = rows.at(-1);
      if (last === undefined || rows.length < rowsMax) return;
      after = table.key.map((column) => last[column] ?? null);
    }
  }

  private readOf(table: ExportedTable): Read {
    const known = this.reads.get(table);
    if (known !== undefined) return known;
    const owner = [
      ...Object.keys(table.of).map((column) => `${column} = ?`),
      ...[table.where ?? []].flat(),
    ].join(" AND ");
    const [first, second] = table.key;
    const select = `SELECT * FROM ${table.table} WHERE ${owner}`;
    const all = (condition: string, limit: string) =>
      this.db.all<ExportRow, SqlValue[]>(`${select}${condition} ORDER BY ${table.key.join(", ")} ${limit}`);
    const rowsMax = table.isLarge === true ? 1 : ROWS_PER_READ;
    const beginning = all("", `LIMIT ${rowsMax}`);
    const greater = all(` AND ${first} > ?`, "LIMIT ?");
    let read: Read;
    if (table.newest !== undefined) {
      const single = all(` AND ${first} = ?`, "");
      read = (values, at) => single(...values, ...(at ?? []));
    } else if (second === undefined) {
      read = (values, after) =>
        after === null ? beginning(...values) : greater(...values, ...after, rowsMax);
    } else {
      // As one comparison, (first, second) would begin at the first row of the same first column each time.
      const same = all(` AND ${first} = ? AND ${second} > ?`, "LIMIT ?");
      read = (values, after) => {
        if (after === null) return beginning(...values);
        const rows = same(...values, ...after, rowsMax);
        const left = rowsMax - rows.length;
        return left === 0 ? rows : [...rows, ...greater(...values, after[0] ?? null, left)];
      };
    }
    this.reads.set(table, read);
    return read;
  }

  private fieldsOf(table: ExportedTable, row: ExportRow, context: ExportContext): object {
    const fields: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(row)) {
      const shown = shownOf(table, name);
      if (shown !== null) fields[name] = value === null ? null : shown(value, row, context);
    }
    return { ...fields, ...table.more?.(row, context) };
  }
}

/** How a column is exported; null: not at all. */
function shownOf({ show, of }: ExportedTable, name: string): Shown | null {
  const declared = show?.[name];
  if (declared !== undefined) return declared;
  if (name === "ref" || name === "previous" || name.endsWith("_ref") || name in of) return null;
  return name === "at" || name.endsWith("_at") ? asTime : asStored;
}

const asStored: Shown = (value) => {
  if (value instanceof Uint8Array) throw new Error("a column with bytes does not say how it is exported");
  return value;
};

function shownId(table: ExportedTable, row: ExportRow, context: ExportContext): unknown {
  const value = row[table.id ?? ""] ?? null;
  const shown = shownOf(table, table.id ?? "") ?? asStored;
  return value === null ? null : shown(value, row, context);
}

/** Finds the public id of a row by its reference; null when it is gone. */
export function idLookup(
  db: Database,
  table: string,
  id: string,
  shown: Shown = asStored,
): (ref: SqlValue | undefined) => unknown {
  const find = db.one<{ id: Exclude<SqlValue, null> }, [SqlValue]>(
    `SELECT ${id} AS id FROM ${table} WHERE ref = ?`,
  );
  return (ref) => {
    const row = ref === null || ref === undefined ? null : find(ref);
    return row === null ? null : shown(row.id, {}, {});
  };
}

/** All tables of a declaration, with those that it contains. */
export function tablesIn(tables: readonly ExportedTable[]): readonly ExportedTable[] {
  return tables.flatMap((table) => [table, ...tablesIn(table.contains ?? [])]);
}
