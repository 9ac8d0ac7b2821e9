import { useRef, useState } from "preact/hooks";
import type { AnswerOf, OperationName, QueryOf } from "../../../client/api.ts";
import { call, type InputOf } from "./api.ts";
import { mergedRows } from "./merge.ts";
import { type Resource, useResource } from "./resource.ts";

/** A list of which one page is shown. */
export interface List<T> extends Resource<readonly T[]> {
  readonly keyOf: (row: T) => string;
  /** Position of the first row. */
  readonly from: number;
  /** Null on the last and on the first page. */
  readonly next: (() => void) | null;
  readonly previous: (() => void) | null;
  /** The search ended before the end of the list: the next page may have more. */
  readonly isPartial: boolean;
  /** Number of new rows that are held back while the reader has scrolled down. */
  readonly held: number;
  readonly showHeld: () => void;
}

/** Rows of a page: enough to read on, few enough to draw. */
const PAGE = 200;
/** Most rows of one request. */
const REQUEST_MAX = 100;
/** Most rows that a filter of the console reads at a time. */
const SCANNED_MAX = 2_000;
/** A reader who has scrolled further is reading: new rows do not move what they see. */
const TOP_PX = 60;

interface Part<T> {
  readonly items: readonly T[];
  readonly cursor: string | null;
  readonly isPartial: boolean;
}

/** Starts of the pages up to the current one; another key starts again. */
function usePages<At>(key: string, first: At) {
  const [pages, setPages] = useState<{ key: string; starts: readonly At[] }>({ key, starts: [first] });
  const starts = pages.key === key ? pages.starts : [first];
  const turn = (to: readonly At[]) => (): void => {
    setPages({ key, starts: to });
    scrollTo(0, 0);
  };
  return {
    at: starts.at(-1) ?? first,
    number: starts.length,
    previous: starts.length > 1 ? turn(starts.slice(0, -1)) : null,
    nextAt: (start: At) => turn([...starts, start]),
  };
}

type ItemOf<N extends OperationName, I extends keyof AnswerOf<N>> = Extract<
  AnswerOf<N>[I],
  readonly unknown[]
>[number];

interface Paged {
  readonly cursor?: string | null;
  readonly next_cursor?: string | null;
  readonly has_more?: boolean;
}

interface ListOptions<N extends OperationName, T> {
  readonly keyOf: (row: T) => string;
  readonly params?: Readonly<Record<string, string>>;
  /** Filters of the operation; empty ones are omitted. */
  readonly query?: QueryOf<N> | object;
  /** A filter that the operation does not have, with the key of what it lets through. */
  readonly filter?: { readonly key: string; readonly matches: (row: T) => boolean } | undefined;
}

/** Least time between two reads of a whole list because of changes: each check of a monitor is one. */
const WHOLE_REST_MS = 3_000;

/** Reads all rows of a list, of up to {@link SCANNED_MAX}, for pages that sort, search and count them. */
export function useWhole<N extends OperationName, I extends keyof AnswerOf<N> & string>(
  operation: N,
  items: I,
  areas: readonly string[],
  query: QueryOf<N> | object,
): Resource<readonly ItemOf<N, I>[]> {
  const read = async (signal: AbortSignal): Promise<readonly ItemOf<N, I>[]> => {
    const found: ItemOf<N, I>[] = [];
    for (let cursor: string | undefined; ; ) {
      const part = { ...query, limit: REQUEST_MAX, ...(cursor === undefined ? {} : { cursor }) };
      const answer = (await call(operation, { query: part } as unknown as InputOf<N>, signal)) as object &
        Paged;
      found.push(...(Reflect.get(answer, items) as readonly ItemOf<N, I>[]));
      cursor = answer.cursor ?? undefined;
      if (cursor === undefined || found.length >= SCANNED_MAX) return found;
    }
  };
  return useResource(`whole ${operation} ${JSON.stringify(query)}`, areas, read, undefined, WHOLE_REST_MS);
}

/**
 * Reads a list page by page, the current page again when one of the areas changes. `items` is the member of a response
 * that holds the rows.
 */
export function useList<N extends OperationName, I extends keyof AnswerOf<N> & string>(
  operation: N,
  items: I,
  areas: readonly string[],
  options: ListOptions<N, ItemOf<N, I>>,
): List<ItemOf<N, I>> {
  type T = ItemOf<N, I>;
  const { keyOf, params, query = {}, filter } = options;
  const key = `${operation} ${JSON.stringify([params, query, filter?.key])}`;
  const pages = usePages<string | null>(key, null);
  const readPage = async (signal: AbortSignal): Promise<Part<T>> => {
    const found: T[] = [];
    let cursor = pages.at;
    for (let scanned = 0; ; ) {
      const part = { ...query, limit: REQUEST_MAX, ...(cursor === null ? {} : { cursor }) };
      const input = { ...(params && { params }), query: part } as unknown as InputOf<N>;
      const answer = (await call(operation, input, signal)) as object & Paged;
      const rows = Reflect.get(answer, items) as readonly T[];
      found.push(...(filter === undefined ? rows : rows.filter(filter.matches)));
      scanned += rows.length;
      cursor = answer.cursor ?? (answer.has_more === true ? (answer.next_cursor ?? null) : null);
      const isFull = found.length > PAGE - REQUEST_MAX;
      const isPartial = !isFull && cursor !== null;
      if (cursor === null || isFull || rows.length < REQUEST_MAX || scanned >= SCANNED_MAX)
        return { items: found, cursor, isPartial };
    }
  };
  const page = useResource(`${key} ${pages.at}`, areas, readPage);
  const held = useHeld(`${key} ${pages.at}`, page, keyOf);
  const { cursor = null, isPartial = false } = held.part ?? {};
  return {
    ...page,
    keyOf,
    data: held.part?.items ?? null,
    reload: held.reload,
    from: (pages.number - 1) * PAGE,
    next: cursor === null ? null : pages.nextAt(cursor),
    previous: pages.previous,
    isPartial,
    held: held.count,
    showHeld: held.show,
  };
}

/** Holds new rows back while the reader has scrolled down. */
function useHeld<T>(key: string, page: Resource<Part<T>>, keyOf: (row: T) => string) {
  const [, redraw] = useState(0);
  const shown = useRef<{ key: string; source: Part<T> | null; part: Part<T> | null; count: number }>({
    key,
    source: null,
    part: null,
    count: 0,
  });
  /** Set by changes of the reader, who expects to see them. */
  const showsAll = useRef(false);
  const before = shown.current;
  const fresh = page.data;
  if (before.key !== key || fresh === null) shown.current = { key, source: fresh, part: fresh, count: 0 };
  else if (fresh !== before.source) {
    const isReading = before.part !== null && !showsAll.current && scrollY > TOP_PX;
    showsAll.current = false;
    shown.current = { key, source: fresh, part: fresh, count: 0 };
    if (isReading) {
      const hasMore = fresh.cursor !== null;
      const { rows, held } = mergedRows(before.part?.items ?? [], fresh.items, hasMore, keyOf);
      if (held > 0) {
        const part = { items: rows, cursor: before.part?.cursor ?? null, isPartial: fresh.isPartial };
        shown.current = { key, source: fresh, part, count: held };
      }
    }
  }
  return {
    part: shown.current.part,
    count: shown.current.count,
    show: (): void => {
      shown.current = { key, source: fresh, part: fresh, count: 0 };
      scrollTo(0, 0);
      redraw((count) => count + 1);
    },
    reload: (): void => {
      showsAll.current = true;
      page.reload();
    },
  };
}

/** Pages of rows that the server returns at once. */
export function usePagesOf<T>(
  whole: Resource<readonly T[]>,
  key: string,
  keyOf: (row: T) => string,
): List<T> {
  const pages = usePages(key, 0);
  const end = pages.at + PAGE;
  return {
    ...whole,
    keyOf,
    data: whole.data?.slice(pages.at, end) ?? null,
    from: pages.at,
    next: (whole.data?.length ?? 0) > end ? pages.nextAt(end) : null,
    previous: pages.previous,
    isPartial: false,
    held: 0,
    showHeld: () => undefined,
  };
}
