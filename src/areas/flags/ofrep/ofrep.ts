import type { Caller, CallerAccount } from "../../../kernel/callers/caller.ts";
import { ApiError } from "../../../kernel/errors.ts";
import type { Call } from "../../../kernel/http/requests/call.ts";
import { tagOf } from "../../../kernel/http/responses/etag.ts";
import { type Reply, reply } from "../../../kernel/http/responses/response.ts";
import { listReply } from "../../../kernel/http/responses/sliced-list.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import type { EvaluationContext } from "../evaluation/evaluation.ts";
import type { FlagService } from "../service.ts";
import { INACTIVITY_SECONDS } from "./domain.ts";
import type { Evaluation, Evaluations } from "./schema.ts";
import { type OfrepStreams, seesServerOnly } from "./streams.ts";

export interface OfrepDeps {
  readonly clock: Clock;
  readonly flags: Pick<FlagService, "outcomeOf" | "outcomes">;
  readonly streams: Pick<OfrepStreams, "tokenFor">;
  /** Refunds a bulk evaluation. */
  readonly refund: (account: CallerAccount, operation: typeof BULK) => Promise<void>;
  /** Public URL of this server; null: clients use the URL of their request. */
  readonly publicUrl: () => string | null;
}

/** Operation and cost of a bulk evaluation. */
export const BULK = { name: "ofrep.bulk", cost: 1 } as const;
const EVENTS_PATH = "/ofrep/v1/events";

const NO_SUCH_FLAG = "This project has no active flag with this key.";

/** Evaluations for OpenFeature's providers. */
export class Ofrep {
  constructor(private readonly deps: OfrepDeps) {}

  /** @throws ApiError `gate.feature_not_found`, `gate.evaluation_failed` */
  evaluate(caller: Caller, key: string, context: EvaluationContext | null = null): Evaluation {
    const { flags } = this.deps;
    const outcome = flags.outcomeOf(caller.project.ref, key, context ?? {}, this.optionsOf(caller));
    // The key can be any text and is in a separate field.
    if (outcome === undefined) throw new ApiError("gate.feature_not_found", NO_SUCH_FLAG);
    return outcome;
  }

  /**
   * Runs a bulk evaluation that is already charged, and refunds it if it fails.
   * @throws ApiError `validation_error` for a context that is too expensive, `gate.evaluation_failed`
   */
  async evaluateAll(
    call: Pick<Call, "caller" | "holdForResponse">,
    context: EvaluationContext | null = null,
  ): Promise<Reply<200, Evaluations>> {
    const { caller } = call;
    const { flags, streams, refund } = this.deps;
    const outcomes = flags.outcomes(caller.project.ref, context ?? {}, this.optionsOf(caller));
    const token = streams.tokenFor(caller);
    const more = token === null ? {} : { eventStreams: [this.streamOf(token)] };
    const hash = new Bun.CryptoHasher("sha256");
    const all = await listReply(call, "flags", outcomes, { more, hash }).catch(async (error: unknown) => {
      await refund(caller.account, BULK);
      throw error;
    });
    const headers = { etag: tagOf(hash.digest("base64url")), "cache-control": "no-store" };
    return reply(200, all.response as Evaluations, headers);
  }

  private optionsOf(caller: Caller) {
    return { now: this.deps.clock.now(), seesServerOnly: seesServerOnly(caller) };
  }

  private streamOf(token: string) {
    const publicUrl = this.deps.publicUrl();
    const path = `${EVENTS_PATH}?token=${token}`;
    const location = publicUrl === null ? { endpoint: { requestUri: path } } : { url: publicUrl + path };
    return { type: "sse" as const, ...location, inactivityDelaySec: INACTIVITY_SECONDS };
  }
}
