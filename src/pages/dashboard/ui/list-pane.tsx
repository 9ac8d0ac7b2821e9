import type { ComponentChildren } from "preact";
import type { List } from "../core/resource.ts";
import { Loaded, More } from "./feedback.tsx";
import { Panel } from "./page.tsx";
import { type Column, Table } from "./table.tsx";

interface ListPaneProps<T> {
  readonly list: List<T>;
  /** What it lists. */
  readonly label: string;
  /** In the place of the table, where there is nothing to list. */
  readonly empty: ComponentChildren;
  readonly keyOf: (row: T) => string;
  /** Where a row leads. */
  readonly href: (row: T) => string;
  readonly columns: readonly Column<T>[];
  /** The heads of the columns that are left beside one thing. */
  readonly narrow: readonly string[];
  /** The thing that the address names. */
  readonly selected: string | undefined;
  /** What is shown of it beside the list. */
  readonly detail: (selected: string) => ComponentChildren;
}

/** A list as a table, and beside it one of what it lists. */
export function ListPane<T>(props: ListPaneProps<T>) {
  const { list, label, empty, keyOf, href, columns, narrow, selected, detail } = props;
  const shown = selected === undefined ? columns : columns.filter(({ head }) => narrow.includes(head));
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
                  columns={shown}
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
