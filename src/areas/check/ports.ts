import type { TSchema } from "@sinclair/typebox";
import type { Caller, Charger } from "../../kernel/callers/caller.ts";
import type { BodyLimits } from "../../kernel/http/operation.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Denial } from "./domain.ts";

/** A schema whose values have the type `Value`. */
export type SchemaOf<Value> = TSchema & { readonly static: Value };

type SchemasOf<Values> = { readonly [Name in keyof Values]-?: SchemaOf<Values[Name]> };

/** Texts that a key must all hold, or a combination of texts with `and` and `or`. */
export type KeyRequirement = string[] | { readonly and?: unknown[]; readonly or?: unknown[] };

/** Requirements of a request on its key. */
export interface KeyTerms {
  readonly meta?: { readonly ip?: string | null; readonly user_agent?: string | null } | null;
  readonly require?: KeyRequirement | null;
  readonly cost?: number | null;
  readonly ratelimits?: { readonly name: string; readonly cost?: number | null }[] | null;
}

/** State of a rate limit after an evaluation. */
export interface LimitState {
  readonly name: string;
  readonly limit: number;
  readonly remaining: number;
  readonly reset_at: string;
  readonly exceeded: boolean;
}

/** Remaining uses and limits of a key. */
export interface KeyUsage {
  readonly uses_remaining: number | null;
  readonly ratelimits: LimitState[] | null;
  readonly retry_after_seconds: number | null;
}

/** Details of a key in responses; all null for an unknown key. */
export interface KeyFacts extends KeyUsage {
  readonly key_id: string | null;
  readonly owner_id: string | null;
  readonly project_id: string | null;
  readonly name: string | null;
  readonly environment: string | null;
  readonly scopes: string[] | null;
  readonly metadata: Record<string, string> | null;
}

/** Result of a key's evaluation. */
export interface KeyVerdict extends KeyFacts {
  readonly meter_id: string | null;
  readonly error: Exclude<Denial, "no_meter" | "insufficient_balance"> | null;
}

/** An evaluated key, before tokens and uses are taken. */
export interface KeyEvaluation {
  /** Reason for a rejection; null if the key is valid. */
  readonly error: KeyVerdict["error"];
  /** Details that are independent of the request, without remaining uses and limits. */
  readonly facts: Omit<KeyVerdict, "error" | keyof KeyUsage>;
  /** Complete result before anything is taken. */
  readonly verdict: KeyVerdict;
  /** Takes tokens and uses. Returns what remains. */
  take(tx: Tx): KeyUsage;
  /** Records a rejection, by default with the verdict's error. */
  reject(tx: Tx, reason?: "no_meter" | "insufficient_balance"): void;
}

/** The keys of requests. `KeyRequest` is the type of a prepared evaluation. */
export interface KeyPort<KeyRequest> {
  readonly fields: SchemasOf<KeyTerms>;
  readonly facts: SchemasOf<KeyFacts>;
  requestOf(terms: KeyTerms & { readonly secret: string }): KeyRequest;
  /** Whether the evaluation of a valid key consumes uses, which is a database write. */
  consumesUses(caller: Caller, asked: KeyRequest): boolean;
  /**
   * Evaluates a key of the caller's project, or a key of the account without a project.
   * @throws ApiError `validation_error` for limits that the key does not have.
   */
  examine(tx: Tx, caller: Caller, asked: KeyRequest): KeyEvaluation;
}

/** Terms of a hold. */
export interface HoldTerms {
  readonly meter_id: string;
  readonly amount: number;
  readonly ttl_seconds?: number;
  readonly hold_id?: string;
}

/** The fields of a hold that responses contain. */
export interface Hold {
  readonly hold_id: string;
  readonly balance: number;
  readonly available: number;
}

export interface MeterBalances {
  readonly balance: number;
  readonly available: number;
}

/** Operations of meters within the unit of work of a check. */
export interface MeterPort {
  readonly fields: SchemasOf<Required<HoldTerms>>;
  /** Returns null for a meter that does not exist. */
  available(tx: Tx, projectRef: number, meterId: string): MeterBalances | null;
  /** Returns the new balance. */
  deduct(tx: Tx, projectRef: number, meterId: string, amount: number, requestId: string): number;
  /** Returns the open hold with the same terms, or null. @throws ApiError `conflict` */
  findOpenHold(tx: Tx, projectRef: number, terms: HoldTerms): Hold | null;
  /** @throws ApiError `forbidden` at the limit of open holds. */
  hold(tx: Tx, projectRef: number, terms: HoldTerms, requestId: string): { readonly hold: Hold };
}

/** Evaluation of a flag. */
export interface FlagOutcome {
  readonly value?: unknown;
  readonly variant?: string;
  readonly reason: string;
}

export interface FlagPort {
  readonly key: SchemaOf<string>;
  readonly context: SchemaOf<Readonly<Record<string, unknown>> | null>;
  /** The limits of a body with a context. */
  readonly contextBody: BodyLimits;
  /**
   * An evaluator of flags. What all its evaluations together may cost is limited, since they run in one unit of work.
   */
  evaluator(): EvaluateFlags;
}

/**
 * Evaluates flags for a context, in the order of their keys. Returns undefined for flags that do not exist.
 * @throws ApiError `validation_error` for contexts that are too expensive to evaluate.
 */
export type EvaluateFlags = (
  projectRef: number,
  flagKeys: readonly string[],
  context: Readonly<Record<string, unknown>>,
  now: number,
) => (FlagOutcome | undefined)[];

/** Services that a check uses. */
export interface CheckDeps<KeyRequest> {
  readonly keys: KeyPort<KeyRequest>;
  readonly meters: MeterPort;
  readonly flags: FlagPort;
  readonly charger: Charger;
}
