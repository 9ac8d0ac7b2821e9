import type { Stage } from "./stage.ts";

/** The result of one measurement. */
export interface Measurement {
  readonly perSecond: number;
  /** Null if the tool does not report it. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

/** The request that wrk sends repeatedly. */
export interface WrkRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /**
   * Path, body and headers may contain `{random}`, a number of six digits below `below`, and `{unique}`, a number that
   * no other request of the same measurement has.
   */
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly below?: number;
}

/** Lua for wrk, for what {@link WrkRequest} cannot express; `thread_index` and `threads` are set before its `init`. */
export interface WrkScript {
  readonly lua: string;
}

/** A limit for the result of a row. */
export type Requirement =
  | {
      readonly kind: "ratio";
      /**
       * `bare`: a server that sends the same responses and stores nothing. `ceiling`: one that verifies the key,
       * creates an id and writes the same rows, with one commit per batch. Or the name of a competitor.
       */
      readonly to: string;
      /** 0: the ratio is shown, but not required. */
      readonly atLeast: number;
      readonly connections: readonly number[];
    }
  | { readonly kind: "p99"; readonly atMostMs: number; readonly connections: readonly number[] };

/** One row of the benchmark: a request, and the results that it requires. To add one, add an entry to rows.ts. */
export interface Benchmark {
  readonly name: string;
  readonly connections: readonly number[];
  /** Creates what the request works on. Called once, before the rounds. */
  prepare?(stage: Stage): Promise<void>;
  /** Called at the beginning of every measurement. */
  request(stage: Stage): WrkRequest | WrkScript;
  /** Whether responses with other statuses than 2xx and 3xx are expected. If not, such a response fails the run. */
  readonly otherStatusesExpected?: boolean;
  readonly requires: readonly Requirement[];
}

/** Another program that does comparable work. */
export interface Competitor {
  readonly name: string;
  /** Why it cannot run here and how to install it; null when it can. */
  missing(): string | null;
  prepare(stage: Stage): Promise<void>;
  measure(seconds: number): Promise<Measurement>;
}

/** One line of the results. */
export interface Finding {
  readonly what: string;
  readonly measured: string;
  readonly required: string;
  /** Null: nothing is required, or it could not be measured. */
  readonly ok: boolean | null;
}
