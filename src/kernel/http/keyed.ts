import type { Static, TObject } from "@sinclair/typebox";
import { ApiError } from "../errors.ts";
import type { Tx } from "../storage/tx.ts";
import { type RenderedAnswer, ReplayedAnswer, renderResult } from "./answer.ts";
import { type BodyBounds, decodeBody, parseObject, readBody, SMALL_BODY } from "./body.ts";
import { assertMayChangeKeys, type Caller } from "./caller.ts";
import { type Endpoint, type Exchange, type HttpDeps, targetOf } from "./exchange.ts";
import { rateLimitExceeded, rateLimitHeaders } from "./guard.ts";
import { fingerprintOf, type IdempotentRequest, readIdempotencyKey } from "./idempotency.ts";
import { InputChecks } from "./input.ts";
import { type Operation, operationNamed } from "./operations.ts";
import { cursorsOf, type SealedCursors } from "./pagination.ts";
import type { AcrossNetwork, Performer, Performing } from "./perform.ts";
import type { Call, Handler, Method, RouteSpec } from "./route.ts";

/** What keyed endpoints need beyond the rest of the HTTP side. */
export interface KeyedDeps extends HttpDeps {
  /** Lets a request wait longer than the server's idle time-out. */
  readonly liftIdleTimeout: (request: Request) => void;
}

const NO_BYTES = new Uint8Array(0);
const NOTHING: Readonly<Record<string, unknown>> = {};

/** An endpoint that requires a key. Its gates stand in the order of decisions, section 4: 401, 403, 429, 400, then the work. */
export class KeyedEndpoint<P extends TObject, Q extends TObject, B extends TObject> implements Endpoint {
  private readonly deps: KeyedDeps;
  private readonly operation: Operation;
  private readonly honoursIdempotencyKey: boolean;
  private readonly spec: RouteSpec<P, Q, B>;
  private readonly bounds: BodyBounds;
  private readonly handler: Handler<P, Q, B>;
  private readonly checks: InputChecks<P, Q, B>;
  private readonly cursors: SealedCursors | null;

  constructor(deps: KeyedDeps, method: Method, spec: RouteSpec<P, Q, B>, handler: Handler<P, Q, B>) {
    this.deps = deps;
    this.spec = spec;
    this.bounds = spec.bodyBounds ?? SMALL_BODY;
    this.handler = handler;
    this.operation = operationNamed(spec.operation);
    this.honoursIdempotencyKey = this.operation.idempotent && method !== "GET";
    this.checks = new InputChecks(spec);
    this.cursors = cursorsOf(spec, deps.vault);
  }

  answer(exchange: Exchange, params: Record<string, string>): RenderedAnswer | Promise<RenderedAnswer> {
    const { request } = exchange;
    const caller = this.deps.guard.authenticate(request);
    if (this.honoursIdempotencyKey && request.headers.get("idempotency-key") !== null) {
      return this.answerOnce(exchange, params, caller);
    }
    this.deps.guard.authorize(caller, this.operation);
    assertMayChangeKeys(caller, this.operation);
    this.takeToken(exchange, caller);
    const performer = this.performer(exchange, caller, null);
    if (this.checks.body === null) return this.work(request, params, performer, "");
    return this.workOnBody(request, params, performer);
  }

  private async workOnBody(
    request: Request,
    params: Record<string, string>,
    performer: OnePerformer,
  ): Promise<RenderedAnswer> {
    const startedAt = this.deps.clock.now();
    const bytes = await readBody(request, this.bounds.bytesMax);
    this.lookAgain(request, startedAt);
    return this.work(request, params, performer, decodeBody(bytes));
  }

  /** The same under an `Idempotency-Key`: refusals are stored as well, so that a repeat reads what the first one read. */
  private async answerOnce(
    exchange: Exchange,
    params: Record<string, string>,
    caller: Caller,
  ): Promise<RenderedAnswer> {
    const forbidden = this.forbidden(caller);
    this.takeTokenUnless(forbidden, exchange, caller);
    const { request } = exchange;
    const key = readIdempotencyKey(request);
    const startedAt = this.deps.clock.now();
    const bytes = request.body === null ? NO_BYTES : await readBody(request, this.bounds.bytesMax);
    if (forbidden === null) this.lookAgain(request, startedAt);
    const fingerprint = fingerprintOf(request.method, targetOf(request.url), bytes);
    const idempotency = key === null ? null : { key, fingerprint, secret: this.operation.secret };
    const performer = this.performer(exchange, caller, idempotency);
    try {
      if (forbidden !== null) throw forbidden;
      const answer = await this.work(request, params, performer, decodeBody(bytes));
      // An endpoint that changes nothing has no unit of work of its own to store its answer in.
      if (!performer.started) await this.deps.performing.storeAnswer(performer, answer);
      return answer;
    } catch (error) {
      if (error instanceof ApiError && !performer.started) await this.storeRefusal(performer, error);
      throw error;
    }
  }

  /** A 403 stands before what is kept under the key: of that it gives out nothing but the same 403. */
  private async storeRefusal(performer: OnePerformer, refusal: ApiError): Promise<void> {
    try {
      await this.deps.performing.storeRefusal(performer, refusal);
    } catch (found) {
      const isSame = found instanceof ReplayedAnswer && found.answer.status === refusal.status;
      if (refusal.status === 403 && !isSame && (found instanceof ReplayedAnswer || found instanceof ApiError))
        return;
      throw found;
    }
  }

  /** A body may take a minute: the key may have ended, or its account been suspended, meanwhile. */
  private lookAgain(request: Request, startedAt: number): void {
    if (this.deps.clock.now() === startedAt) return;
    this.deps.guard.authorize(this.deps.guard.authenticate(request), this.operation);
  }

  private forbidden(caller: Caller): ApiError | null {
    try {
      this.deps.guard.authorize(caller, this.operation);
      return null;
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
  }

  /** Storing a refusal costs a commit, so it takes a token too; without one the refusal goes out unstored. */
  private takeTokenUnless(forbidden: ApiError | null, exchange: Exchange, caller: Caller): void {
    if (forbidden === null) {
      this.takeToken(exchange, caller);
      return;
    }
    if (this.deps.guard.takeToken(caller, this.operation)?.allowed === false) throw forbidden;
  }

  private takeToken(exchange: Exchange, caller: Caller): void {
    const verdict = this.deps.guard.takeToken(caller, this.operation);
    if (verdict === null) return;
    if (!verdict.allowed) throw rateLimitExceeded(verdict);
    if (this.operation.limit === "monitor")
      exchange.headers = { ...exchange.headers, ...rateLimitHeaders(verdict) };
  }

  private performer(exchange: Exchange, caller: Caller, idempotency: IdempotentRequest | null): OnePerformer {
    const { requestId } = exchange;
    const status = this.spec.status ?? 200;
    return { operation: this.spec.operation, caller, requestId, status, idempotency, started: false };
  }

  private work(
    request: Request,
    params: Record<string, string>,
    performer: OnePerformer,
    bodyText: string,
  ): RenderedAnswer | Promise<RenderedAnswer> {
    const { checks } = this;
    const call = new KeyedCall<Static<P>, Static<Q>, Static<B>>(
      this.deps,
      performer,
      request,
      (checks.params === null ? params : checks.params(params)) as Static<P>,
      this.queryOf(request, performer.caller) as Static<Q>,
      (checks.body === null
        ? NOTHING
        : checks.body(parseObject(bodyText, this.bounds.levelsMax))) as Static<B>,
      bodyText,
    );
    const result = this.handler(call);
    if (!(result instanceof Promise)) return this.render(result, performer);
    return result.then((body) => this.render(body, performer));
  }

  private queryOf({ url }: Request, caller: Caller): Record<string, unknown> {
    if (!this.checks.takesQuery) return NOTHING;
    const query = this.checks.readQuery(url);
    return this.cursors === null ? query : this.cursors.open(query, caller);
  }

  private render(result: object, { caller, status }: OnePerformer): RenderedAnswer {
    return renderResult(this.cursors === null ? result : this.cursors.seal(result, caller), status);
  }
}

/** A performer that knows whether its unit of work has been handed in: from there on that unit stores the answer. */
interface OnePerformer extends Performer {
  started: boolean;
}

class KeyedCall<P, Q, B> implements Call<P, Q, B> {
  readonly caller: Caller;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly bodyText: string;
  readonly requestId: string;
  readonly request: Request;
  private readonly deps: KeyedDeps;
  private readonly performer: OnePerformer;

  constructor(
    deps: KeyedDeps,
    performer: OnePerformer,
    request: Request,
    params: P,
    query: Q,
    body: B,
    text: string,
  ) {
    this.deps = deps;
    this.performer = performer;
    this.caller = performer.caller;
    this.requestId = performer.requestId;
    this.request = request;
    this.params = params;
    this.query = query;
    this.body = body;
    this.bodyText = text;
  }

  get receivedAt(): number {
    return this.deps.clock.now();
  }

  get signal(): AbortSignal {
    return this.request.signal;
  }

  liftIdleTimeout(): void {
    this.deps.liftIdleTimeout(this.request);
  }

  perform<T extends object>(work: (tx: Tx) => T): Promise<T> {
    this.performer.started = true;
    return this.performing.perform(this.performer, work);
  }

  performAcross<C, R, T extends object>(phases: AcrossNetwork<C, R, T>): Promise<T> {
    this.performer.started = true;
    return this.performing.performAcross(this.performer, phases);
  }

  private get performing(): Performing {
    return this.deps.performing;
  }
}
