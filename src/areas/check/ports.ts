import type { TSchema } from "@sinclair/typebox";
import type { Caller } from "../../kernel/http/access/caller.ts";
import type { BodyBounds } from "../../kernel/http/requests/body.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Denial } from "./domain.ts";

/** A schema of values of one type. */
export type SchemaOf<Value> = TSchema & { readonly static: Value };

type SchemasOf<Values> = { readonly [Name in keyof Values]-?: SchemaOf<Values[Name]> };

/** What a request can ask of the key that it comes with, besides its secret. */
export interface KeyTerms {
  readonly meta?: { readonly ip?: string | null; readonly user_agent?: string | null } | null;
  readonly require?: string[] | null;
  readonly cost?: number | null;
  readonly ratelimits?: { readonly name: string; readonly cost?: number | null }[] | null;
}

/** A rate limit of a key, as a judgement found or left it. */
export interface LimitState {
  readonly name: string;
  readonly limit: number;
  readonly remaining: number;
  readonly reset_at: string;
  readonly exceeded: boolean;
}

/** What is left of a key's uses and limits. */
interface KeyFigures {
  readonly uses_remaining: number | null;
  readonly ratelimits: LimitState[] | null;
  readonly retry_after_seconds: number | null;
}

/** What is told of a key; all null for one that is unknown. */
export interface KeyFacts extends KeyFigures {
  readonly key_id: string | null;
  readonly owner_id: string | null;
  readonly project_id: string | null;
  readonly name: string | null;
  readonly environment: string | null;
  readonly scopes: string[] | null;
  readonly metadata: Record<string, string> | null;
}

/** The judgement on a key. */
export interface KeyVerdict extends KeyFacts {
  readonly meter_id: string | null;
  readonly error: Exclude<Denial, "no_meter" | "insufficient_balance"> | null;
}

/** A key that was looked at, and from which nothing has been taken yet. */
export interface ExaminedKey {
  /** Why it is refused; null for one that is let in. */
  readonly error: KeyVerdict["error"];
  /** What is told of it whatever it is asked for: nothing of its figures. */
  readonly facts: Omit<KeyVerdict, "error" | keyof KeyFigures>;
  /** All that is told, as things stand. */
  readonly verdict: KeyVerdict;
  /** Takes tokens and uses, and returns what is left. */
  take(tx: Tx): KeyVerdict;
  /** Notes that the key's request was refused: for its verdict's error, or for another reason. */
  refuse(tx: Tx, reason?: "no_meter" | "insufficient_balance"): void;
}

/** The keys that requests come with. `Asked`: what is asked of one, made ready. */
export interface KeyPort<Asked> {
  readonly fields: SchemasOf<KeyTerms>;
  readonly facts: SchemasOf<KeyFacts>;
  askedOf(question: KeyTerms & { readonly secret: string }): Asked;
  /** Whether a key that is let in loses uses, which is written. */
  takesUses(caller: Caller, asked: Asked): boolean;
  /**
   * Judges a key of the caller's project, or one of its account that is of no project.
   * @throws ApiError `validation_error` for limits that the key does not have.
   */
  examine(tx: Tx, caller: Caller, asked: Asked): ExaminedKey;
}

/** What is taken from a meter. */
export interface HoldTerms {
  readonly meter_id: string;
  readonly amount: number;
  readonly ttl_seconds?: number;
  readonly hold_id?: string;
}

/** A hold as far as an answer shows it. */
export interface Hold {
  readonly hold_id: string;
  readonly balance: number;
  readonly available: number;
}

/** A meter's figures. */
export interface MeterFigures {
  readonly balance: number;
  readonly available: number;
}

/** Meters, within the unit of work of a check. */
export interface MeterPort {
  readonly fields: SchemasOf<Required<HoldTerms>>;
  /** Null for a meter that does not exist. */
  available(tx: Tx, projectRef: number, meterId: string): MeterFigures | null;
  deduct(tx: Tx, projectRef: number, meterId: string, amount: number, requestId: string): MeterFigures;
  /** The open hold of the same terms. @throws ApiError `conflict` */
  knownHold(tx: Tx, projectRef: number, terms: HoldTerms): Hold | null;
  /** @throws ApiError `forbidden` past the bound of open holds. */
  hold(tx: Tx, projectRef: number, terms: HoldTerms, requestId: string): { readonly hold: Hold };
}

/** What a flag is for somebody. */
export interface FlagOutcome {
  readonly value?: unknown;
  readonly variant?: string;
  readonly reason: string;
}

/** Flags of a project. */
export interface FlagPort {
  readonly key: SchemaOf<string>;
  readonly context: SchemaOf<Readonly<Record<string, unknown>> | null>;
  /** The limits of a body with a context. */
  readonly contextBody: BodyBounds;
  /**
   * What flags are for a context, in the order of their keys; undefined for one that is not there.
   * @throws ApiError `validation_error` for a context that takes too long.
   */
  outcomesOf(
    projectRef: number,
    flagKeys: readonly string[],
    context: Readonly<Record<string, unknown>>,
    now: number,
  ): (FlagOutcome | undefined)[];
}

/** What a check is made of. */
export interface CheckPorts<Asked> {
  readonly keys: KeyPort<Asked>;
  readonly meters: MeterPort;
  readonly flags: FlagPort;
}
