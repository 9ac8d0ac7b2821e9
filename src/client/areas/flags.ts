import type { Answers, Api, ListOf } from "../api.ts";
import { NinefoldError } from "../errors.ts";
import type { Flag, FlagBody, FlagConfig, FlagDefinition } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Options of {@link Flags.isEnabled}. */
export interface IsEnabledOptions extends RequestOptions {
  /**
   * The answer when there is none: no such flag, no connection, no credits, or whatever else. Unless said otherwise,
   * with a fallback there is one attempt, of 2,000 ms: whoever has one need not wait.
   */
  readonly fallback?: boolean | undefined;
}

/** Options of {@link Flags.config}. */
export interface FlagConfigOptions extends RequestOptions {
  /** Whole definitions. */
  readonly full?: boolean | undefined;
  /** Flags with this tag alone. */
  readonly tag?: string | undefined;
  /** Archived flags too. */
  readonly archived?: boolean | undefined;
}

/** How long an answer is waited for where there is a fallback. */
const FALLBACK_AFTER_MS = 2_000;

/** Whom a flag is evaluated for: any JSON. */
export interface EvaluationContext {
  /** Who falls where in a split, unless that says otherwise. */
  readonly targetingKey?: string | undefined;
  readonly [name: string]: unknown;
}

/** Feature flags. */
export class Flags {
  constructor(private readonly api: Api) {}

  /**
   * Makes or changes a flag. What is left out stays, null is the default. With `if_version` it is refused (`conflict`) when
   * somebody else has changed the flag meanwhile.
   */
  save(body: FlagBody, options?: ChangeOptions): Answers<"gate.save"> {
    return this.api.call("gate.save", { body }, options);
  }

  /**
   * Whether a flag is switched on, whatever its rules say. Costs 1 credit.
   *
   * @throws NinefoldError `gate.feature_not_found` and everything else, but nothing with a `fallback`.
   */
  async isEnabled(flagKey: string, options: IsEnabledOptions = {}): Promise<boolean> {
    const { fallback, ...more } = options;
    if (fallback === undefined) return (await this.evaluate(flagKey, more)).enabled;
    return orFallback(fallback, more, async (once) => (await this.evaluate(flagKey, once)).enabled);
  }

  /**
   * What a flag is for a context, as true or false. The fallback where it has no value, or one of another type, and where
   * there is no answer: one attempt, of 2,000 ms, unless said otherwise. Costs 1 credit.
   */
  boolean(key: string, context: EvaluationContext, fallback: boolean, options?: RequestOptions) {
    return this.valueOf(key, context, fallback, options, (value) => typeof value === "boolean");
  }

  /** The same as a text. */
  string(key: string, context: EvaluationContext, fallback: string, options?: RequestOptions) {
    return this.valueOf(key, context, fallback, options, (value) => typeof value === "string");
  }

  /** The same as a number. */
  number(key: string, context: EvaluationContext, fallback: number, options?: RequestOptions) {
    return this.valueOf(key, context, fallback, options, (value) => typeof value === "number");
  }

  /** The same as an object or a list; what is in it is not looked at. */
  object<T extends object>(key: string, context: EvaluationContext, fallback: T, options?: RequestOptions) {
    return this.valueOf(key, context, fallback, options, (value) => {
      return typeof value === "object" && value !== null && Array.isArray(value) === Array.isArray(fallback);
    });
  }

  /** The same as the API answers it. */
  evaluate(flagKey: string, options?: RequestOptions): Answers<"gate.evaluate"> {
    return this.api.call("gate.evaluate", { params: { flagKey } }, options);
  }

  /**
   * What a flag is for a context: without `value` in the answer, your own default counts. Costs 1 credit.
   *
   * @throws NinefoldError `gate.feature_not_found` and everything else.
   */
  resolve(flagKey: string, context: EvaluationContext, options?: RequestOptions): Answers<"ofrep.evaluate"> {
    return this.api.call("ofrep.evaluate", { params: { key: flagKey }, body: { context } }, options);
  }

  /** What all flags are for a context. Costs 1 credit. */
  resolveAll(context: EvaluationContext, options?: RequestOptions): Answers<"ofrep.bulk"> {
    return this.api.call("ofrep.bulk", { body: { context } }, options);
  }

  private valueOf<T>(
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

  /** The keys of all flags, newest first. */
  list(options: RequestOptions = {}): ListOf<"gate.list", "flags"> {
    return this.api.list("gate.list", "flags", {}, options);
  }

  /** All that is known of a flag: its variants, its rules, when it was changed and evaluated. */
  definition(flagKey: string, options?: RequestOptions): Answers<"gate.definition"> {
    return this.api.call("gate.definition", { params: { flagKey } }, options);
  }

  /** All flags, newest first. Costs 1 credit. */
  config(options: FlagConfigOptions & { readonly full: true }): Promise<{ flags: FlagDefinition[] }>;
  config(options?: FlagConfigOptions & { readonly full?: false | undefined }): Promise<{ flags: Flag[] }>;
  config(options?: FlagConfigOptions): Answers<"gate.config">;
  config({ full, tag, archived, ...options }: FlagConfigOptions = {}): Promise<FlagConfig> {
    return this.api.call("gate.config", { query: { full, tag, archived } }, options);
  }

  /** Deletes a flag. */
  delete(flagKey: string, options?: ChangeOptions): Answers<"gate.delete"> {
    return this.api.call("gate.delete", { params: { flagKey } }, options);
  }
}

/** One attempt, and what counts when it fails. What is aborted fails all the same. */
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
