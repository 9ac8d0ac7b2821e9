import type { Change, Database, SqlParams, SqlValue } from "../storage/database.ts";
import type { Tx } from "../storage/tx.ts";
import type { ManagedBy } from "./managed.ts";

/** Who writes a column: the row's inserts and updates, its insert only, or statements of its own. */
type Written = "with the row" | "once" | "elsewhere";

/** A column of a resource's table. `Value`: its type in rows. */
export interface Column<Value> {
  /** Null: the name of the field in snake case. */
  readonly name: string | null;
  readonly written: Written;
  /** Without it, the value is stored as it is. */
  encode?(value: Value): SqlValue;
  decode?(stored: SqlValue): Value;
}

/** A value that SQLite stores as it is. */
export function column<Value extends SqlValue>(name: string | null = null): Column<Value> {
  return { name, written: "with the row" };
}

/** A boolean, stored as 1 or 0. */
export function flag(name: string | null = null): Column<boolean> {
  return {
    name,
    written: "with the row",
    encode: (value) => (value ? 1 : 0),
    decode: (stored) => stored !== 0,
  };
}

/** Any other value, stored as JSON. */
export function json<Value>(name: string | null = null): Column<Value> {
  return {
    name,
    written: "with the row",
    encode: JSON.stringify,
    decode: (stored) => JSON.parse(`${stored}`),
  };
}

/** A column that never changes. */
export function once<Value>(of: Column<Value>): Column<Value> {
  return { ...of, written: "once" };
}

/** A column that inserts and updates of the row leave alone: its store has statements for it. */
export function elsewhere<Value>(of: Column<Value>): Column<Value> {
  return { ...of, written: "elsewhere" };
}

type Columns = Readonly<Record<string, Column<unknown>>>;

/** The fields that every resource's row has. */
export interface ResourceRow {
  /** The row's number, ascending; never shown. */
  readonly ref: number;
  readonly id: string;
  readonly projectRef: number;
  readonly managedBy: ManagedBy;
}

/** The row of a table with these columns. */
export type RowOf<Table extends { readonly columns: Columns }> = ResourceRow & {
  readonly [Name in keyof Table["columns"]]: Table["columns"][Name] extends Column<infer Value>
    ? Value
    : never;
};

/** Where the rows of a resource are, and their columns besides those of {@link ResourceRow}. */
export interface ResourceTable<Shape extends Columns> {
  readonly name: string;
  /** The column with the id. */
  readonly id: string;
  readonly columns: Shape;
}

/** The statements that every resource needs, typed by its columns. Rows of a project are listed newest first. */
export function resourceTable<Shape extends Columns>(db: Database, table: ResourceTable<Shape>) {
  type Row = RowOf<ResourceTable<Shape>>;
  const { name, id } = table;
  const columns: [field: string, sql: string, Column<unknown>][] = Object.entries<Column<unknown>>({
    ref: once(column<number>()),
    id: once(column<string>(id)),
    projectRef: once(column<number>()),
    managedBy: once(column<string | null>()),
    ...table.columns,
  }).map(([field, declared]) => [field, declared.name ?? snakeCase(field), declared]);
  const decoded = columns.filter(([, , { decode }]) => decode !== undefined);
  const inserted = columns.filter(([, , { written }]) => written !== "elsewhere");
  const updated = columns.filter(([, , { written }]) => written === "with the row");
  /** `instead`: expressions in place of columns, by field. */
  const select = (instead: Readonly<Record<string, string>>) => {
    const selected = columns.map(([field, sql]) => `${instead[field] ?? `${name}.${sql}`} AS ${field}`);
    return `SELECT ${selected.join(", ")} FROM ${name}`;
  };
  type Stored = Record<string, SqlValue>;

  function rowOf(stored: Stored): Row {
    const row: Record<string, unknown> = decoded.length === 0 ? stored : { ...stored };
    for (const [field, , declared] of decoded) row[field] = declared.decode?.(stored[field] ?? null);
    return row as Row;
  }
  function storedOf(row: Row): Stored {
    const encoded = inserted.map(([field, , declared]): [string, SqlValue] => {
      const value = row[field as keyof Row];
      return [field, declared.encode === undefined ? (value as SqlValue) : declared.encode(value)];
    });
    return Object.fromEntries(encoded);
  }
  /** A query for the first row; `rest` follows the FROM clause. `instead`: expressions in place of columns, by field. */
  function one<Params extends SqlParams>(rest: string, instead = {}): (...params: Params) => Row | null {
    const find = db.one<Stored, Params>(`${select(instead)} ${rest}`);
    return (...params) => {
      const stored = find(...params);
      return stored && rowOf(stored);
    };
  }
  /** The same for all rows. */
  function all<Params extends SqlParams>(rest: string, instead = {}): (...params: Params) => Row[] {
    const find = db.all<Stored, Params>(`${select(instead)} ${rest}`);
    return (...params) => find(...params).map(rowOf);
  }
  const values = inserted.map(([field]) => `$${field}`).join(", ");
  const insert: Change<[Stored]> = db.change(
    `INSERT INTO ${name} (${inserted.map(([, sql]) => sql).join(", ")}) VALUES (${values})`,
  );
  const update: Change<[Stored]> = db.change(
    `UPDATE ${name} SET ${updated.map(([field, sql]) => `${sql} = $${field}`).join(", ")} WHERE ref = $ref`,
  );
  return {
    one,
    all,
    /** The largest number of a row so far; 0 for none. */
    highestRef: db.number(`SELECT seq AS n FROM sqlite_sequence WHERE name = '${name}'`),
    find: one<[id: string]>(`WHERE ${id} = ?`),
    withRef: one<[ref: number]>("WHERE ref = ?"),
    page: all<[projectRef: number, before: number, rowsMax: number]>(
      "WHERE project_ref = ? AND ref < ? ORDER BY ref DESC LIMIT ?",
    ),
    /** Rows of a project, counted up to `countedMax`. */
    count: db.number<[projectRef: number, countedMax: number]>(
      `SELECT count(*) AS n FROM (SELECT 1 FROM ${name} WHERE project_ref = ? LIMIT ?)`,
    ),
    insert: (tx: Tx, row: Row) => insert(tx, storedOf(row)),
    update: (tx: Tx, row: Row) => update(tx, storedOf(row)),
    remove: db.change<[ref: number]>(`DELETE FROM ${name} WHERE ref = ?`),
    removeOfProject: db.change<[projectRef: number, rowsMax: number]>(
      `DELETE FROM ${name} WHERE ref IN (SELECT ref FROM ${name} WHERE project_ref = ? LIMIT ?)`,
    ),
  };
}

/** `accountRef` as `account_ref`. */
function snakeCase(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
