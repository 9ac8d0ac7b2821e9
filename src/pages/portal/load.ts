import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./api.ts";

/** A value that is being loaded: the last one stays until the next arrives. */
export interface Loaded<T> {
  readonly value: T | null;
  readonly problem: Problem | null;
  readonly reload: () => Promise<void>;
}

/** Loads a value, again when `name` changes. */
export function useLoaded<T>(name: string, load: () => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ name: string; value: T | null; problem: Problem | null }>({
    name,
    value: null,
    problem: null,
  });
  const reload = (): Promise<void> =>
    load().then(
      (value) => setState({ name, value, problem: null }),
      (error: unknown) => setState((before) => ({ ...before, name, problem: problemOf(error) })),
    );
  useEffect(() => void reload(), [name]);
  const isCurrent = state.name === name;
  return { value: isCurrent ? state.value : null, problem: isCurrent ? state.problem : null, reload };
}

/** An action behind a button: whether it runs, and why it failed. */
export interface Action {
  readonly isRunning: boolean;
  readonly problem: Problem | null;
  /** Runs it unless it is running. Resolves to whether it succeeded. */
  readonly run: (work: () => Promise<unknown>) => Promise<boolean>;
}

export function useAction(): Action {
  const [isRunning, setRunning] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const run = async (work: () => Promise<unknown>): Promise<boolean> => {
    if (isRunning) return false;
    setRunning(true);
    setProblem(null);
    try {
      await work();
      return true;
    } catch (error) {
      setProblem(problemOf(error));
      return false;
    } finally {
      setRunning(false);
    }
  };
  return { isRunning, problem, run };
}

/** Time between two reads of what is about to change, for a minute, and of other things. Requests are limited. */
const FAST_MS = 2_000;
const SLOW_MS = 15_000;
const FAST_READS = 30;

/** Calls `act` again and again while `isOn` and the page is visible; `isFast`: what it reads is about to change. */
export function usePolling(isOn: boolean, act: () => Promise<void>, isFast = true): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (!isOn) return undefined;
    let reads = 0;
    let timer: ReturnType<typeof setTimeout>;
    const wait = (): void => {
      timer = setTimeout(read, isFast && reads < FAST_READS ? FAST_MS : SLOW_MS);
    };
    const read = (): void => {
      reads += 1;
      if (!document.hidden) void latest.current();
      wait();
    };
    wait();
    return () => clearTimeout(timer);
  }, [isOn, isFast]);
}

function problemOf(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, String(error));
}
