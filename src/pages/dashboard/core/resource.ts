import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Failure } from "./api.ts";
import { onChange } from "./changes.ts";
import { messageOf, projectId } from "./session.ts";

/** Data read from the server, read again when it changes there. */
export interface Resource<T> {
  /** Null until the first read is complete. */
  readonly data: T | null;
  /** Error of the last read. */
  readonly failure: Failure | null;
  readonly reload: () => void;
}

/** Last data of each page, so that going back shows it immediately. Cleared when the project changes. */
const cached = new Map<string, unknown>();
const CACHED_MAX = 200;

/** Clears the cached data, for another project or user. */
export function clearKept(): void {
  cached.clear();
}

function addToCache(key: string, value: unknown): void {
  if (cached.size >= CACHED_MAX) cached.clear();
  cached.set(key, value);
}

/**
 * Reads data, and reads it again whenever one of the areas or `version` changes. `key` identifies the data; null
 * reads nothing.
 */
export function useResource<T>(
  key: string | null,
  areas: readonly string[],
  read: (signal: AbortSignal) => Promise<T>,
  version?: unknown,
): Resource<T> {
  const full = key === null ? null : `${projectId.value ?? ""} ${key}`;
  const [, redraw] = useState(0);
  const state = useRef<{ key: string | null; data: T | null; failure: Failure | null }>({
    key: null,
    data: null,
    failure: null,
  });
  if (state.current.key !== full) {
    state.current = {
      key: full,
      data: (full === null ? null : (cached.get(full) ?? null)) as T | null,
      failure: null,
    };
  }
  const reading = useRef(read);
  reading.current = read;
  const running = useRef<AbortController | null>(null);
  const reload = useCallback(() => {
    if (full === null) return;
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    const settle = (data: T | null, failure: Failure | null): void => {
      if (abort.signal.aborted) return;
      state.current = {
        key: full,
        data: data ?? (failure?.status === 404 ? null : state.current.data),
        failure,
      };
      if (data !== null) addToCache(full, data);
      redraw((count) => count + 1);
    };
    reading.current(abort.signal).then(
      (data) => settle(data, null),
      (error: unknown) => settle(null, asFailure(error)),
    );
  }, [full]);
  useEffect(() => {
    reload();
    const stop = onChange(areas, reload);
    return () => {
      stop();
      running.current?.abort();
    };
  }, [reload, version]);
  return { data: state.current.data, failure: state.current.failure, reload };
}

/** A page of a list. */
export interface Part<T> {
  readonly items: readonly T[];
  readonly cursor: string | null;
  /** The search ended before the end of the list: later rows may match. */
  readonly isPartial?: boolean;
}

/** A list that is read page by page. */
export interface List<T> extends Resource<readonly T[]> {
  /** Reads the next page; null on the last page. */
  readonly more: (() => void) | null;
  /** Whether searching further may find more. */
  readonly isPartial: boolean;
}

const PAGE = 50;
const PAGE_MAX = 100;

/** Reads a list. A change reads all pages that are shown again, up to the maximum of one request. */
export function useList<T>(
  key: string | null,
  areas: readonly string[],
  read: (query: { limit: number; cursor?: string }, signal: AbortSignal) => Promise<Part<T>>,
): List<T> {
  const loadedCount = useRef(PAGE);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [added, setAdded] = useState<{ after: unknown; part: Part<T> } | null>(null);
  const first = useResource(key, areas, (signal) =>
    read({ limit: Math.min(loadedCount.current, PAGE_MAX) }, signal),
  );
  const next = added !== null && added.after === first.data ? added.part : null;
  const cursor = next === null ? (first.data?.cursor ?? null) : next.cursor;
  const more = (): void => {
    read({ limit: PAGE, cursor: cursor ?? "" }, new AbortController().signal).then(
      (part) => {
        const items = [...(next?.items ?? []), ...part.items];
        loadedCount.current = (first.data?.items.length ?? 0) + items.length;
        setAdded({ after: first.data, part: { ...part, items } });
      },
      (error: unknown) => setFailure(asFailure(error)),
    );
  };
  return {
    data: first.data === null ? null : [...first.data.items, ...(next?.items ?? [])],
    failure: first.failure ?? failure,
    reload: first.reload,
    more: cursor === null ? null : more,
    isPartial: (next ?? first.data)?.isPartial === true,
  };
}

function asFailure(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure(0, "error", messageOf(error), null);
}
