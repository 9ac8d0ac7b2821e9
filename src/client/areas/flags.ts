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
    const { timeoutMs = FALLBACK_AFTER_MS, retries = 0 } = more;
    try {
      return (await this.evaluate(flagKey, { ...more, timeoutMs, retries })).enabled;
    } catch (error) {
      if (error instanceof NinefoldError && !more.signal?.aborted) return fallback;
      throw error;
    }
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
