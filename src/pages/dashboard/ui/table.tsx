import type { ComponentChildren } from "preact";

/** A column of a table. */
export interface Column<T> {
  readonly head: string;
  readonly cell: (row: T) => ComponentChildren;
  /** `wide`: left out on narrow screens; `end`: figures, to the right; `fit`: as narrow as can be. */
  readonly look?: string;
}

interface TableProps<T> {
  /** What it lists. */
  readonly label: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly keyOf: (row: T) => string;
  /** Where a row leads: its first column is the link, the whole row takes the click. */
  readonly href?: (row: T) => string;
  /** The row that is shown beside the table. */
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
            {columns.map(({ head, look }) => (
              <th key={head} scope="col" class={look}>
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
                <td key={column.head} class={column.look}>
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

/** The first column with a heading that is no box to tick. */
function leadColumn<T>(columns: readonly Column<T>[]): number {
  return columns.findIndex(({ look }) => look !== "tick");
}
