import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Failure } from "./api.ts";
import { onChange } from "./changes.ts";
import { messageOf, projectId } from "./session.ts";

/** Something read from the server, and read again when it changes there. */
export interface Resource<T> {
  /** Null until it has been read. */
  readonly data: T | null;
  /** Why the last reading failed. */
  readonly failure: Failure | null;
  readonly reload: () => void;
}

/** What pages showed last, so that going back is at once. Cleared with the project. */
const kept = new Map<string, unknown>();
const KEPT_MAX = 200;

/** Forgets what was shown: another project or person is next. */
export function clearKept(): void {
  kept.clear();
}

function keep(key: string, value: unknown): void {
  if (kept.size >= KEPT_MAX) kept.clear();
  kept.set(key, value);
}

/**
 * Reads something, and again whenever one of the areas changes, or `version` does. `key` says what is read: with another
 * key it is read anew, and null reads nothing.
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
      data: (full === null ? null : (kept.get(full) ?? null)) as T | null,
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
      if (data !== null) keep(full, data);
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
  /** What comes after it has not been looked at: a search ended early. */
  readonly isPartial?: boolean;
}

/** A list that is read page by page. */
export interface List<T> extends Resource<readonly T[]> {
  /** Reads the next page; null when there is none. */
  readonly more: (() => void) | null;
  /** Whether more may be found by looking further. */
  readonly isPartial: boolean;
}

const PAGE = 50;
const PAGE_MAX = 100;

/** Reads a list; a change reads it again, as far as the reader has gone, within one page's limit. */
export function useList<T>(
  key: string | null,
  areas: readonly string[],
  read: (query: { limit: number; cursor?: string }, signal: AbortSignal) => Promise<Part<T>>,
): List<T> {
  const shown = useRef(PAGE);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [added, setAdded] = useState<{ after: unknown; part: Part<T> } | null>(null);
  const first = useResource(key, areas, (signal) =>
    read({ limit: Math.min(shown.current, PAGE_MAX) }, signal),
  );
  const next = added !== null && added.after === first.data ? added.part : null;
  const cursor = next === null ? (first.data?.cursor ?? null) : next.cursor;
  const more = (): void => {
    read({ limit: PAGE, cursor: cursor ?? "" }, new AbortController().signal).then(
      (part) => {
        const items = [...(next?.items ?? []), ...part.items];
        shown.current = (first.data?.items.length ?? 0) + items.length;
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
