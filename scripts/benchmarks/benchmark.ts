import type { Stage } from "./stage.ts";

/** What one measurement came to. */
export interface Measurement {
  readonly perSecond: number;
  /** Null where the tool does not tell. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

/** The request that wrk sends over and over. */
export interface WrkRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /**
   * Path, body and headers may hold `{random}`, a number of six digits below `below`, and `{unique}`, a number that
   * no other request of the same measurement has.
   */
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly below?: number;
}

/** Lua for wrk, for what {@link WrkRequest} cannot say; `thread_index` and `threads` are set before its `init`. */
export interface WrkScript {
  readonly lua: string;
}

/** A figure that has to be reached. */
export type Requirement =
  | {
      readonly kind: "ratio";
      /**
       * `bare`: a server that answers the row's requests and keeps nothing. `ceiling`: one that judges the key, makes an id
       * and writes the same rows, with one commit per batch. Or the name of a competitor.
       */
      readonly to: string;
      /** 0: shown, and not required. */
      readonly atLeast: number;
      readonly connections: readonly number[];
    }
  | { readonly kind: "p99"; readonly atMostMs: number; readonly connections: readonly number[] };

/** One row of the benchmark: a request, and what it must reach. To add one, add an entry to rows.ts. */
export interface Benchmark {
  readonly name: string;
  readonly connections: readonly number[];
  /** Makes what the request works on; once, before the rounds. */
  prepare?(stage: Stage): Promise<void>;
  /** Asked for at the beginning of every measurement. */
  request(stage: Stage): WrkRequest | WrkScript;
  /** Whether answers of other statuses than 2xx and 3xx belong to it; otherwise one of them fails the run. */
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

/** A line of the verdict. */
export interface Finding {
  readonly what: string;
  readonly measured: string;
  readonly required: string;
  /** Null: nothing is required, or it could not be measured. */
  readonly ok: boolean | null;
}
