import type { Answers, ListOf } from "../api.ts";
import { NinefoldError } from "../errors.ts";
import type { Flag, FlagConfig, FlagDefinition } from "../generated/api.ts";
import type { RequestOptions } from "../options.ts";
import { FlagsMethods } from "./methods.ts";

/** Options of {@link Flags.isEnabled}. */
export interface IsEnabledOptions extends RequestOptions {
  /**
   * Value to return when the request fails for any reason. With a fallback there is one attempt with a timeout of
   * 2,000 ms unless the options differ.
   */
  readonly fallback?: boolean | undefined;
}

/** Options of {@link Flags.config}. */
export interface FlagConfigOptions extends RequestOptions {
  /** Returns complete definitions. */
  readonly full?: boolean | undefined;
  /** Returns only flags with this tag. */
  readonly tag?: string | undefined;
  /** Includes archived flags. */
  readonly archived?: boolean | undefined;
  /** Returns only stale flags. */
  readonly stale?: boolean | undefined;
}

/** Options of {@link Flags.list}. */
export interface FlagListOptions extends RequestOptions {
  /** Returns only stale flags. */
  readonly stale?: boolean | undefined;
}

/** Timeout of a request with a fallback, in milliseconds. */
const FALLBACK_AFTER_MS = 2_000;

/** The evaluation context: any JSON object. */
export interface EvaluationContext {
  /** Attribute that splits use unless a rule names another one. */
  readonly targetingKey?: string | undefined;
  readonly [name: string]: unknown;
}

/** Feature flags. */
export class Flags extends FlagsMethods {
  /**
   * Returns whether a flag is switched on, regardless of its rules. Costs 1 credit.
   * @throws NinefoldError `gate.feature_not_found` and any other error; nothing with a `fallback`.
   */
  async isEnabled(flagKey: string, options: IsEnabledOptions = {}): Promise<boolean> {
    const { fallback, ...more } = options;
    if (fallback === undefined) return (await this.evaluate(flagKey, more)).enabled;
    return orFallback(fallback, more, async (once) => (await this.evaluate(flagKey, once)).enabled);
  }

  /**
   * Evaluates a boolean flag. Returns the fallback for a flag without a value, of another type, or when the request
   * fails: one attempt of 2,000 ms unless the options differ. Costs 1 credit.
   */
  boolean(key: string, context: EvaluationContext, fallback: boolean, options?: RequestOptions) {
    return this.evaluateAs(key, context, fallback, options, (value) => typeof value === "boolean");
  }

  /** Evaluates a string flag, like {@link Flags.boolean}. */
  string(key: string, context: EvaluationContext, fallback: string, options?: RequestOptions) {
    return this.evaluateAs(key, context, fallback, options, (value) => typeof value === "string");
  }

  /** Evaluates a number flag, like {@link Flags.boolean}. */
  number(key: string, context: EvaluationContext, fallback: number, options?: RequestOptions) {
    return this.evaluateAs(key, context, fallback, options, (value) => typeof value === "number");
  }

  /** Evaluates an object flag, like {@link Flags.boolean}. The members of the object are not checked. */
  object<T extends object>(key: string, context: EvaluationContext, fallback: T, options?: RequestOptions) {
    return this.evaluateAs(key, context, fallback, options, (value) => {
      return typeof value === "object" && value !== null && Array.isArray(value) === Array.isArray(fallback);
    });
  }

  private evaluateAs<T>(
    flagKey: string,
    context: EvaluationContext,
    fallback: T,
    options: RequestOptions = {},
    isOfType: (value: unknown) => boolean,
  ): Promise<T> {
    return orFallback(fallback, options, async (once) => {
      const { value } = await this.resolve(flagKey, context, once);
      return isOfType(value) ? (value as T) : fallback;
    });
  }

  /** Returns the keys of all flags, newest first. */
  list({ stale, ...options }: FlagListOptions = {}): ListOf<"gate.list", "flags"> {
    return this.api.list("gate.list", "flags", { query: { stale } }, options);
  }

  /** Lists all flags, newest first. Costs 1 credit. */
  config(options: FlagConfigOptions & { readonly full: true }): Promise<{ flags: FlagDefinition[] }>;
  config(options?: FlagConfigOptions & { readonly full?: false | undefined }): Promise<{ flags: Flag[] }>;
  config(options?: FlagConfigOptions): Answers<"gate.config">;
  config({ full, tag, archived, stale, ...options }: FlagConfigOptions = {}): Promise<FlagConfig> {
    return this.api.call("gate.config", { query: { full, tag, archived, stale } }, options);
  }
}

/** One attempt, with a fallback for errors. An aborted request still rejects. */
async function orFallback<T>(
  fallback: T,
  options: RequestOptions,
  ask: (once: RequestOptions) => Promise<T>,
): Promise<T> {
  const { timeoutMs = FALLBACK_AFTER_MS, retries = 0 } = options;
  try {
    return await ask({ ...options, timeoutMs, retries });
  } catch (error) {
    if (error instanceof NinefoldError && !options.signal?.aborted) return fallback;
    throw error;
  }
}
