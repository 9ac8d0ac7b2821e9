import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { AnswerOf, OperationName } from "../../../client/api.ts";
import { call, Failure, type InputOf } from "./api.ts";
import { onChange } from "./changes.ts";
import { messageOf, projectId } from "./session.ts";

/** Data read from the server, read again when it changes there. */
export interface Resource<T> {
  /** Null until the first read is complete. */
  readonly data: T | null;
  /** Error of the last read. */
  readonly failure: Failure | null;
  /** False while `data` is from an earlier visit: a form must not start from it. */
  readonly fresh: boolean;
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
 * reads nothing. Changes within `restMs` of a read are followed by one further read.
 */
export function useResource<T>(
  key: string | null,
  areas: readonly string[],
  read: (signal: AbortSignal) => Promise<T>,
  version?: unknown,
  restMs = 0,
): Resource<T> {
  const full = key === null ? null : `${projectId.value ?? ""} ${key}`;
  const [, redraw] = useState(0);
  const state = useRef<{ key: string | null; data: T | null; failure: Failure | null; fresh: boolean }>({
    key: null,
    data: null,
    failure: null,
    fresh: false,
  });
  if (state.current.key !== full) {
    state.current = {
      key: full,
      data: (full === null ? null : (cached.get(full) ?? null)) as T | null,
      failure: null,
      fresh: false,
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
        fresh: true,
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
    let readAt = Date.now();
    let waiting: ReturnType<typeof setTimeout> | undefined;
    const read = (): void => {
      waiting = undefined;
      readAt = Date.now();
      reload();
    };
    const stop = onChange(areas, () => {
      const restedMs = Date.now() - readAt;
      if (restedMs >= restMs) read();
      else waiting ??= setTimeout(read, restMs - restedMs);
    });
    return () => {
      stop();
      clearTimeout(waiting);
      running.current?.abort();
    };
  }, [reload, version]);
  const { data, failure, fresh } = state.current;
  return { data, failure, fresh, reload };
}

/** Reads the response of an operation as a resource; null as the input reads nothing. */
export function useCall<N extends OperationName>(
  name: N,
  input: InputOf<N> | null,
  areas: readonly string[] = [],
  version?: unknown,
): Resource<AnswerOf<N>> {
  const key = input === null ? null : `${name} ${JSON.stringify(input)}`;
  return useResource(key, areas, (signal) => call(name, input as InputOf<N>, signal), version);
}

function asFailure(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure(0, "error", messageOf(error), null);
}
