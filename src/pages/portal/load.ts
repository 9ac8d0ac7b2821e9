import { useEffect, useState } from "preact/hooks";
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

/** Calls `act` every two seconds while `isOn`, at most for a minute: requests are limited. */
export function usePolling(isOn: boolean, act: () => Promise<void>): void {
  useEffect(() => {
    if (!isOn) return undefined;
    let left = 30;
    const timer = setInterval(() => {
      left -= 1;
      if (left === 0) clearInterval(timer);
      void act();
    }, 2_000);
    return () => clearInterval(timer);
  }, [isOn]);
}

function problemOf(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, String(error));
}
