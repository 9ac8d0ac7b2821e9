import type { ComponentChildren } from "preact";

/** Width below which `wide` columns are hidden. */
const NARROW = "(max-width: 46rem)";
/** The same in a table of at least {@link CROWDED_COLUMNS} with fixed widths, which would leave nothing for the first one. */
const NARROW_WHEN_CROWDED = "(max-width: 62rem)";
const CROWDED_COLUMNS = 6;

/** A column of a table. */
export interface Column<T> {
  readonly head: string;
  /** Shown in place of `head`. */
  readonly title?: ComponentChildren;
  readonly cell: (row: T) => ComponentChildren;
  /** A second, quiet line; null for none. */
  readonly sub?: (row: T) => ComponentChildren;
  /** `wide`: hidden on narrow screens; `end`: numbers, aligned right; `fit`: short content, such as a state. */
  readonly layout?: string;
  /** Width in a list, in rem, for content such as buttons. */
  readonly width?: number;
}

interface TableProps<T> {
  /** Accessible name of the table. */
  readonly label: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly keyOf: (row: T) => string;
  /** Link of a row, in its first column; a click anywhere in the row follows it. */
  readonly href?: (row: T) => string;
  /** Whether columns have fixed widths and long values end with an ellipsis. */
  readonly fixed?: boolean;
  /** The row whose details are shown. */
  readonly selected?: string | undefined;
  /** Rows under headings, in place of one list of rows. */
  readonly sections?: readonly Section<T>[] | undefined;
}

/** Rows of a table under a heading; null without one. */
export interface Section<T> {
  readonly key: string;
  readonly head: ComponentChildren | null;
  readonly rows: readonly T[];
}

/** A table. */
export function Table<T>(props: TableProps<T>) {
  const { label, rows, columns, keyOf, href, selected, fixed = false } = props;
  const { sections = [{ key: "", head: null, rows }] } = props;
  return (
    <div class="table">
      <table class={`${fixed ? "fixed" : ""} ${isCrowded(columns, fixed) ? "crowded" : ""}`}>
        <caption class="unseen">{label}</caption>
        <thead>
          <tr>
            {columns.map(({ head, title, layout, width }) => (
              <th
                key={head}
                scope="col"
                class={layout}
                {...(fixed && width !== undefined ? { style: { width: `${width}rem` } } : {})}
              >
                {title ?? head}
              </th>
            ))}
          </tr>
        </thead>
        {sections.map((section) => (
          <tbody key={section.key}>
            {section.head === null ? null : (
              <tr class="section">
                <th scope="rowgroup" colSpan={shownColumns(columns, fixed)}>
                  {section.head}
                </th>
              </tr>
            )}
            {section.rows.map((row) => (
              <tr
                key={keyOf(row)}
                class={href === undefined ? "" : "linked"}
                aria-current={keyOf(row) === selected ? "true" : undefined}
              >
                {columns.map((column, at) => (
                  <td key={column.head} class={column.layout}>
                    {at === leadColumn(columns) && href !== undefined ? (
                      <a class="row" data-row href={href(row)}>
                        <Cell of={column} row={row} />
                      </a>
                    ) : (
                      <Cell of={column} row={row} />
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </div>
  );
}

function isCrowded<T>(columns: readonly Column<T>[], fixed: boolean): boolean {
  return fixed && columns.length >= CROWDED_COLUMNS;
}

/** A heading must not span hidden columns: it would make them again. */
function shownColumns<T>(columns: readonly Column<T>[], fixed: boolean): number {
  if (!matchMedia(isCrowded(columns, fixed) ? NARROW_WHEN_CROWDED : NARROW).matches) return columns.length;
  return columns.filter(({ layout = "" }) => !layout.includes("wide")).length;
}

function Cell<T>({ of: { cell, sub }, row }: { of: Column<T>; row: T }) {
  const second = sub?.(row) ?? null;
  return (
    <>
      {cell(row)}
      {second === null ? null : <span class="sub">{second}</span>}
    </>
  );
}

/** The first column that is not a checkbox. */
function leadColumn<T>(columns: readonly Column<T>[]): number {
  return columns.findIndex(({ layout }) => layout !== "tick");
}
