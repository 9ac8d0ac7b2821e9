import type { ComponentChildren } from "preact";
import type { List } from "../core/resource.ts";
import { Loaded, More } from "./feedback.tsx";
import { Panel } from "./page.tsx";
import { type Column, Table } from "./table.tsx";

interface ListPaneProps<T> {
  readonly list: List<T>;
  /** Accessible name of the list. */
  readonly label: string;
  /** Rendered instead of an empty table. */
  readonly empty: ComponentChildren;
  readonly keyOf: (row: T) => string;
  /** Link of a row. */
  readonly href: (row: T) => string;
  readonly columns: readonly Column<T>[];
  /** Headings of the columns that stay next to the details. */
  readonly narrow: readonly string[];
  /** The selected item. */
  readonly selected: string | undefined;
  /** Details of the selected item. */
  readonly detail: (selected: string) => ComponentChildren;
}

/** A list as a table, with details of the selected item. */
export function ListPane<T>(props: ListPaneProps<T>) {
  const { list, label, empty, keyOf, href, columns, narrow, selected, detail } = props;
  const visible = selected === undefined ? columns : columns.filter(({ head }) => narrow.includes(head));
  return (
    <div class={selected === undefined ? "" : "panes"}>
      <Panel flush>
        <Loaded of={list}>
          {(rows) =>
            rows.length === 0 ? (
              empty
            ) : (
              <>
                <Table
                  label={label}
                  rows={rows}
                  keyOf={keyOf}
                  href={href}
                  selected={selected}
                  columns={visible}
                />
                <More of={list} />
              </>
            )
          }
        </Loaded>
      </Panel>
      {selected === undefined ? null : detail(selected)}
    </div>
  );
}
