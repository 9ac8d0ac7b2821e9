import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { OperationName } from "../../../client/api.ts";
import { count, formatNumber } from "../core/format.ts";
import { useResource } from "../core/resource.ts";
import { place, setQuery } from "../core/route.ts";
import { Button } from "./button.tsx";
import { InlineSelect } from "./inline.tsx";
import type { Column } from "./table.tsx";

/** Most items that a request names by their ids. */
const IDS_MAX = 200;
/** Rates of a run, as options of a field. */
export const RATES = ["1", "10", "50", "100"].map((rate) => [rate, `${rate}/s`] as const);
const POLL_MS = 1_000;

/** Selected rows. `all`: everything that matches the filters, beyond the rows of the page. */
export interface Selection {
  readonly ids: ReadonlySet<string>;
  readonly all: boolean;
}

export const NOTHING: Selection = { ids: new Set(), all: false };

/** A column of checkboxes, with one in its head for all rows of the page. */
export function tickColumn<T>(
  rows: readonly T[],
  keyOf: (row: T) => string,
  may: (row: T) => boolean,
  [selected, select]: readonly [Selection, (next: Selection) => void],
  nameOf: (row: T) => string = keyOf,
): Column<T> {
  const open = rows.filter(may).slice(0, IDS_MAX).map(keyOf);
  const isTicked = (id: string): boolean => selected.all || selected.ids.has(id);
  return {
    head: "Select",
    title: (
      <input
        type="checkbox"
        aria-label="Select all on this page"
        disabled={open.length === 0}
        checked={open.length > 0 && open.every(isTicked)}
        onChange={(event) => select({ ids: new Set(event.currentTarget.checked ? open : []), all: false })}
      />
    ),
    layout: "tick",
    cell: (row) => (
      <input
        type="checkbox"
        aria-label={`Select ${nameOf(row)}`}
        disabled={!may(row) || (selected.ids.size >= IDS_MAX && !isTicked(keyOf(row)))}
        checked={may(row) && isTicked(keyOf(row))}
        onChange={({ currentTarget: { checked } }) => {
          const ids = new Set(selected.all ? open : selected.ids);
          ids[checked ? "add" : "delete"](keyOf(row));
          select({ ids, all: false });
        }}
      />
    ),
  };
}

/** The progress of a run, as the API returns it. */
interface Progress {
  readonly status: "running" | "done" | "cancelled";
  readonly matched: number;
  /** Number sent so far. */
  readonly sent: number;
  /** Further numbers, such as `2 failed`. */
  readonly outcome?: string;
  readonly error: string | null;
}

interface RunProps {
  /** `Resend` or `Replay`. */
  readonly verb: string;
  readonly operation: OperationName;
  readonly read: (id: string, signal: AbortSignal) => Promise<Progress>;
  readonly stop: (id: string) => Promise<unknown>;
  /** Called after each look at the run. */
  readonly onDone: () => void;
}

interface BulkProps extends RunProps {
  readonly singular: string;
  readonly plural?: string;
  readonly selection: readonly [Selection, (next: Selection) => void];
  /** Number of items that match the filters; null if they cannot be selected. */
  readonly matching: { readonly matched: number; readonly more?: boolean } | null;
  /** What the reader should know before the start. */
  readonly note?: string;
  /** A further choice before the start. */
  readonly choice?: ComponentChildren;
  readonly start: (selection: Selection, per_second: number) => Promise<string>;
}

/** The selection with its action, and the progress of the run that it started. */
export function BulkRun(props: BulkProps) {
  const { verb, singular, plural, operation, selection, matching, note, choice, start } = props;
  const [selected, select] = selection;
  const [rate, setRate] = useState("10");
  const run = place.value.query.get("run");
  const size = selected.all ? (matching?.matched ?? 0) : selected.ids.size;
  return (
    <>
      {run === null ? null : <Running key={run} id={run} {...props} />}
      {size === 0 ? null : (
        <section class="bulk" aria-label="Selection">
          <strong>
            {formatNumber(size)}
            {selected.all && matching?.more ? "+" : ""} selected
          </strong>
          {matching === null || selected.all || matching.matched <= size ? null : (
            <button type="button" class="link" onClick={() => select({ ...selected, all: true })}>
              Select all {formatNumber(matching.matched)}
              {matching.more ? "+" : ""} that match
            </button>
          )}
          <span class="actions">
            {choice} at <InlineSelect label="Rate" value={rate} options={RATES} onInput={setRate} />
            <Button
              kind="primary"
              operation={operation}
              onClick={async () => {
                const id = await start(selected, Number(rate));
                select(NOTHING);
                setQuery({ run: id });
              }}
            >
              {verb} {count(size, singular, plural)}
            </Button>
            <Button onClick={() => select(NOTHING)}>Cancel</Button>
          </span>
          {note === undefined ? null : <p class="quiet small">{note}</p>}
        </section>
      )}
    </>
  );
}

/** The progress of a run, which can be stopped. */
export function Running({ id, verb, operation, read, stop, onDone }: RunProps & { id: string }) {
  const run = useResource(`run ${id}`, [], (signal) => read(id, signal));
  const { data, failure } = run;
  const isRunning = data?.status === "running";
  useEffect(() => {
    if (data !== null) onDone();
    if (!isRunning && (data !== null || failure !== null)) return;
    const timer = setTimeout(run.reload, POLL_MS);
    return () => clearTimeout(timer);
  }, [data, failure]);
  if (data === null && failure === null) return null;
  return (
    <section class="note bulk" role="status">
      {data === null ? (
        <span>{failure?.message}</span>
      ) : (
        <span>
          {verb} {WORDS[data.status]}:{" "}
          <strong>
            {formatNumber(data.sent)} of {formatNumber(data.matched)}
          </strong>{" "}
          sent{data.outcome}
          {data.error === null ? "" : ` · ${data.error}`}
        </span>
      )}
      <span class="actions">
        {isRunning ? (
          <Button
            operation={operation}
            onClick={async () => {
              await stop(id);
              run.reload();
            }}
          >
            Stop
          </Button>
        ) : (
          <Button
            icon="close"
            kind="quiet"
            label="Close progress"
            onClick={() => setQuery({ run: undefined })}
          />
        )}
      </span>
    </section>
  );
}

const WORDS = { running: "running", done: "finished", cancelled: "stopped" } as const;
