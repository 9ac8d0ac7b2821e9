import type { ComponentChildren, VNode } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { OperationName } from "../../../client/api.ts";
import type { Request } from "../core/api.ts";
import { HOUR_MS } from "../core/format.ts";
import type { List } from "../core/lists.ts";
import { serverNow } from "../core/now.ts";
import { href as hrefOf, place, setQuery } from "../core/route.ts";
import { Button } from "./button.tsx";
import { Empty, Loaded, Pager } from "./feedback.tsx";
import { Choice, SearchField } from "./field.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { InlineSelect } from "./inline.tsx";
import { localTime, rfcTime } from "./kinds.ts";
import { Page, Panel } from "./page.tsx";
import { type Column, Table } from "./table.tsx";

interface ListViewProps<T> {
  readonly list: List<T>;
  /** Accessible name of the list, and name of a row. */
  readonly label: string;
  readonly columns: readonly Column<T>[];
  /** Rendered instead of an empty table. */
  readonly empty?: ComponentChildren;
  /** Link of a row. */
  readonly href?: (row: T) => string;
  /** The selected item, and its details. */
  readonly selected?: string | undefined;
  readonly detail?: (selected: string) => ComponentChildren;
}

/** Width below which details replace the list. */
const ONE_PANE = "(max-width: 62rem)";

/** Rows of the first frame: more than a screen shows. The others follow in the next frame. */
const FIRST_ROWS = 40;

/** A list as a table, with details of the selected item. */
export function ListView<T>(props: ListViewProps<T>) {
  const { list, label, columns, empty, href, selected, detail } = props;
  const left = useRef(0);
  const opened = useRef<string | undefined>(undefined);
  useLayoutEffect(() => {
    if (matchMedia(ONE_PANE).matches && detail !== undefined)
      scrollTo(0, selected === undefined ? left.current : 0);
    // Closed details return the focus to their row.
    const closed = list.data?.find((row) => selected === undefined && list.keyOf(row) === opened.current);
    if (closed !== undefined && href !== undefined)
      document
        .querySelector<HTMLElement>(`a.row[href="${CSS.escape(href(closed))}"]`)
        ?.focus({ preventScroll: true });
    opened.current = selected;
  }, [selected]);
  const [drawn, draw] = useState(FIRST_ROWS);
  const isRead = list.data !== null;
  useEffect(() => {
    if (isRead) draw(Number.POSITIVE_INFINITY);
  }, [isRead]);
  const isOpen = selected !== undefined && detail !== undefined;
  const rows = (
    <Loaded of={list} missing={empty}>
      {(all) =>
        all.length === 0 ? (
          <>
            {empty}
            <Pager of={list} />
          </>
        ) : (
          <>
            {list.held === 0 ? null : (
              <div class="more held">
                <Button icon="new" onClick={list.showHeld}>{`${list.held} new`}</Button>
              </div>
            )}
            <Table
              fixed
              label={label}
              rows={all.slice(0, drawn)}
              keyOf={list.keyOf}
              {...(href === undefined ? {} : { href })}
              selected={selected}
              columns={isOpen ? columns.filter(({ layout = "" }) => !layout.includes("wide")) : columns}
            />
            <Pager of={list} />
          </>
        )
      }
    </Loaded>
  );
  if (detail === undefined) return rows;
  const { page, rest, query } = place.value;
  return (
    <div class={isOpen ? "panes" : ""}>
      {/* Read when a row is opened, since the list may then be hidden. */}
      <div
        class="list"
        onClickCapture={() => {
          left.current = scrollY;
        }}
      >
        <Panel flush>{rows}</Panel>
      </div>
      {isOpen ? (
        <div class="opened">
          <a class="up" href={hrefOf([page, ...rest.slice(0, -1)], Object.fromEntries(query))}>
            <Icon name="back" />
            {label}
          </a>
          {detail(selected)}
        </div>
      ) : null}
    </div>
  );
}

/** A filter of a list, stored in the address: a choice, or without options a search field or a time. */
export interface Filter {
  readonly name: string;
  readonly label: string;
  readonly isTime?: boolean;
  readonly options?: readonly (readonly [value: string, label: string])[];
  /** For options that may be many. */
  readonly asSelect?: boolean;
}

/** The filter of a list by the time of its items, and its start in epoch milliseconds; undefined for any time. */
export function useRange(label: string): readonly [Filter, number | undefined] {
  const filter: Filter = {
    name: "range",
    label,
    asSelect: true,
    options: [
      ["", "Any time"],
      ["1", "Last hour"],
      ["24", "Last 24 hours"],
      ["168", "Last 7 days"],
    ],
  };
  const hours = filterValue(filter);
  // Once, so that a list does not begin again each minute.
  const since = useMemo(() => (hours === "" ? undefined : serverNow() - Number(hours) * HOUR_MS), [hours]);
  return [filter, since];
}

/** The value of a filter in the address; that of a choice is one of its options. */
export function filterValue({ name, options }: Filter): string {
  const value = place.value.query.get(name) ?? "";
  if (options === undefined || options.some(([option]) => option === value)) return value;
  return options[0]?.[0] ?? "";
}

/** More filters than these stand in a grid. */
const LINE_MAX = 5;

/** Filters above a list. */
export function Filters({ of: filters, children }: { of: readonly Filter[]; children?: ComponentChildren }) {
  return (
    <div class="toolbar">
      <div class={`actions ${filters.length > LINE_MAX ? "filters" : ""}`}>
        {filters.map((filter) => {
          const { name, label, options, asSelect, isTime } = filter;
          const set = (value: string): void => setQuery({ [name]: value });
          const value = filterValue(filter);
          if (isTime === true)
            return (
              <label key={name}>
                {label}
                <input
                  type="datetime-local"
                  value={localTime(value)}
                  onChange={(event) => set(rfcTime(event.currentTarget.value))}
                />
              </label>
            );
          if (options === undefined)
            return <SearchField key={name} label={label} value={value} onInput={set} />;
          if (asSelect === true)
            return <InlineSelect key={name} label={label} value={value} options={options} onInput={set} />;
          return <Choice key={name} label={label} options={options} value={value} onChange={set} />;
        })}
      </div>
      {children}
    </div>
  );
}

interface ListPageProps<T> extends ListViewProps<T> {
  readonly title: string;
  readonly lead?: ComponentChildren;
  /** The request that returns the list. */
  readonly request: Request;
  /** Above the list. */
  readonly views?: VNode;
  readonly filters?: readonly Filter[];
  /** Next to the filters. */
  readonly tools?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** Label and operation of the button that opens the form of a new item. */
  readonly create?: readonly [label: string, operation: OperationName];
  /** The form of a new item. */
  readonly form?: (close: () => void) => ComponentChildren;
  /** Icon, title, example and text of the empty list. */
  readonly none: {
    readonly icon: IconName;
    readonly title: string;
    readonly request: Request;
    readonly text: ComponentChildren;
  };
  /** Dialogs. */
  readonly children?: ComponentChildren;
}

/** A page that shows a list. */
export function ListPage<T>(props: ListPageProps<T>) {
  const {
    title,
    lead,
    request,
    views,
    filters = [],
    tools,
    actions,
    create,
    form,
    none,
    children,
    ...view
  } = props;
  const empty = (
    <Empty icon={none.icon} title={none.title} request={none.request}>
      {none.text}
    </Empty>
  );
  return (
    <Page
      title={title}
      {...(lead === undefined ? {} : { lead })}
      request={request}
      actions={
        <>
          {actions}
          {create === undefined ? null : (
            <Button kind="primary" icon="new" operation={create[1]} onClick={() => setQuery({ new: "1" })}>
              {create[0]}
            </Button>
          )}
        </>
      }
    >
      {views}
      {filters.length === 0 && tools === undefined ? null : <Filters of={filters}>{tools}</Filters>}
      {view.detail === undefined ? (
        <Panel flush>
          <ListView empty={empty} {...view} />
        </Panel>
      ) : (
        <ListView empty={empty} {...view} />
      )}
      {form !== undefined && place.value.query.has("new") ? form(() => setQuery({ new: undefined })) : null}
      {children}
    </Page>
  );
}
