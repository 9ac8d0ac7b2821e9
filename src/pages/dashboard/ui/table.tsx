import type { ComponentChildren } from "preact";

/** A column of a table. */
export interface Column<T> {
  readonly head: string;
  readonly cell: (row: T) => ComponentChildren;
  /** `wide`: hidden on narrow screens; `end`: numbers, aligned right; `fit`: as narrow as its content. */
  readonly layout?: string;
}

interface TableProps<T> {
  /** Accessible name of the table. */
  readonly label: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly keyOf: (row: T) => string;
  /** Link of a row, in its first column; a click anywhere in the row follows it. */
  readonly href?: (row: T) => string;
  /** The row whose details are shown. */
  readonly selected?: string | undefined;
}

/** A table. */
export function Table<T>({ label, rows, columns, keyOf, href, selected }: TableProps<T>) {
  return (
    <div class="table">
      <table>
        <caption class="unseen">{label}</caption>
        <thead>
          <tr>
            {columns.map(({ head, layout }) => (
              <th key={head} scope="col" class={layout}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={keyOf(row)}
              class={href === undefined ? "" : "linked"}
              aria-current={keyOf(row) === selected ? "true" : undefined}
            >
              {columns.map((column, at) => (
                <td key={column.head} class={column.layout}>
                  {at === leadColumn(columns) && href !== undefined ? (
                    <a class="row" data-row href={href(row)}>
                      {column.cell(row)}
                    </a>
                  ) : (
                    column.cell(row)
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The first column that is not a checkbox. */
function leadColumn<T>(columns: readonly Column<T>[]): number {
  return columns.findIndex(({ layout }) => layout !== "tick");
}
