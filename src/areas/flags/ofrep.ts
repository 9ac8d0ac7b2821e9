import type { Clock } from "../../kernel/clock.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Caller } from "../../kernel/http/caller.ts";
import type { EvaluationContext } from "./evaluation.ts";
import { INACTIVITY_SECONDS } from "./ofrep-domain.ts";
import type { Evaluation, Evaluations } from "./ofrep-schema.ts";
import { type OfrepStreams, seesServerOnly } from "./ofrep-streams.ts";
import type { FlagService } from "./service.ts";

/** What evaluations by OFREP are built on. */
export interface OfrepDeps {
  readonly clock: Clock;
  readonly flags: Pick<FlagService, "outcomeOf" | "outcomes">;
  readonly streams: Pick<OfrepStreams, "tokenFor">;
  /** Where clients reach this server; null: where they have asked. */
  readonly publicUrl: string | null;
}

/** Where the stream is. */
const EVENTS_PATH = "/ofrep/v1/events";

const NO_SUCH_FLAG = "There is no flag with this key in this project that could be evaluated.";

/** Flags as OpenFeature's providers ask for them. */
export class Ofrep {
  constructor(private readonly deps: OfrepDeps) {}

  /** @throws ApiError `gate.feature_not_found`, `gate.evaluation_failed` */
  evaluate(caller: Caller, key: string, context: EvaluationContext | null = null): Evaluation {
    const { flags } = this.deps;
    const outcome = flags.outcomeOf(caller.project.ref, key, context ?? {}, this.termsOf(caller));
    // The key may be any text, and is said beside the message.
    if (outcome === undefined) throw new ApiError("gate.feature_not_found", NO_SUCH_FLAG);
    return outcome;
  }

  /** @throws ApiError `gate.evaluation_failed` */
  evaluateAll(caller: Caller, context: EvaluationContext | null = null): Evaluations {
    const { flags } = this.deps;
    const all = flags.outcomes(caller.project.ref, context ?? {}, this.termsOf(caller));
    const token = this.deps.streams.tokenFor(caller);
    return token === null ? { flags: all } : { flags: all, eventStreams: [this.streamOf(token)] };
  }

  private termsOf(caller: Caller) {
    return { now: this.deps.clock.now(), seesServerOnly: seesServerOnly(caller) };
  }

  private streamOf(token: string) {
    const { publicUrl } = this.deps;
    const path = `${EVENTS_PATH}?token=${token}`;
    const place = publicUrl === null ? { endpoint: { requestUri: path } } : { url: publicUrl + path };
    return { type: "sse" as const, ...place, inactivityDelaySec: INACTIVITY_SECONDS };
  }
}
