import type { RequestOrigin } from "../../audit/trail.ts";
import { slices } from "../../background/time-slices.ts";
import { assertStillValid, type Caller } from "../../callers/caller.ts";
import { networkOf } from "../../data/addresses.ts";
import { ApiError, errorText, rejectionBy } from "../../errors.ts";
import { type Affected, ANYONE, NOBODY, type Tx } from "../../storage/tx.ts";
import { type Cancel, monotonicMs, realTimeout } from "../../time/clock.ts";
import { keyDigestOf, rateLimitExceeded, rateLimitHeaders } from "../access/guard.ts";
import { type Arrival, UNKNOWN_ADDRESS } from "../access/peers.ts";
import { assertMayChangeKeys, type Operation, SMALL_BODY_BYTES_MAX } from "../operation.ts";
import { assertIdempotencyKey, fingerprintOf, type IdempotentRequest } from "../operations/idempotency.ts";
import type { AcrossNetwork, Performer } from "../operations/perform.ts";
import { compressed } from "../responses/compression.ts";
import { taggedResponse } from "../responses/etag.ts";
import { shownTo } from "../responses/hidden-urls.ts";
import { heldBy, LARGE_RESPONSE_BYTES, type OutgoingBody } from "../responses/outgoing-bodies.ts";
import {
  ClientRejection,
  completeHeaders,
  internalError,
  isStored,
  KEYED_HEADERS,
  type RenderedResponse,
  ReplayedResponse,
  renderError,
  renderForwardedError,
  renderResult,
  USUAL_HEADERS,
  withWarnings,
} from "../responses/response.ts";
import { pieceStream, piecesOf } from "../responses/text-stream.ts";
import type { LargeBodySlot } from "./bodies-in-progress.ts";
import { assertWithinLimits, decodeBody, type LargerBody, parseObject, readBody } from "./body.ts";
import type { Endpoint, HttpDeps } from "./endpoint.ts";
import { type LargeBody, PIECE_BYTES } from "./large-body.ts";
import { isRepeated, repeatedHeader, targetOf } from "./request-target.ts";
import { assertNoTrailers, assertNoTrailersAnnounced, isChunked } from "./trailers.ts";
import { unknownParameterWarnings, WARNINGS_MAX } from "./unknown-names.ts";
import { type InputChecks, queryOf, type Warnings } from "./validate.ts";

/** The input of a request: its query and its body once they have been read. */
export interface CallInput {
  readonly call: OpenCall;
  readonly params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, unknown>>;
  body: Readonly<Record<string, unknown>>;
}

/** Methods that change nothing. */
const READS: ReadonlySet<string> = new Set(["GET", "HEAD"]);
const NOT_NOW = "This cannot be done now. Contact the provider of this page.";
const NOTHING: Readonly<Record<string, never>> = {};

/** A request from its id to its response, as handlers see it. */
export class OpenCall implements Warnings {
  readonly requestId: string;
  /** Headers of the response, whatever its status. */
  headers: Record<string, string> | null = null;
  /** The exact text of the body. */
  bodyText = "";
  /** Whose data the response may show. It leaves as soon as no change of that data is unconfirmed. */
  shows: Affected;
  /** Undefined until it is needed. */
  private knownAddress: string | null | undefined;
  private readonly startedAt = monotonicMs();
  /** About names in the request that the endpoint does not declare; null without any. */
  private warnings: readonly string[] | null = null;
  /** The bytes in memory for its response; null for a small one. */
  private outgoing: OutgoingBody | null = null;

  constructor(
    protected readonly endpoint: Endpoint,
    readonly request: Request,
  ) {
    this.requestId = endpoint.deps.ids.uuidV7();
    this.shows = endpoint.operation.showsNothing ? NOBODY : ANYONE;
  }

  /** What the response must wait for, as it would be now; null: nothing. */
  get confirmation(): Promise<void> | null {
    return this.shows === NOBODY ? null : this.deps.confirmationFor(this.shows);
  }

  /** Arrival time of the request, in epoch milliseconds. */
  get receivedAt(): number {
    return this.deps.clock.now();
  }

  /** The address at the other end of the socket. */
  get socketAddress(): string | null {
    return this.deps.peers.socketAddress(this.request, this.deps.server());
  }

  /** The client's address; behind trusted proxies the one that they report. */
  get clientAddress(): string {
    return this.knownClientAddress ?? UNKNOWN_ADDRESS;
  }

  /** The client's address; null for a request that came over no socket. */
  get knownClientAddress(): string | null {
    // The server looks a socket's address up each time, which takes microseconds.
    if (this.knownAddress === undefined)
      this.knownAddress = this.deps.peers.clientAddress(this.request, this.deps.server());
    return this.knownAddress;
  }

  /** Whether the request comes from a trusted proxy. */
  get isFromProxy(): boolean {
    return this.deps.peers.isFromProxy(this.request, this.deps.server());
  }

  /** The origin of this server's own pages, as the client reaches it. */
  get origin(): string {
    return this.deps.peers.origin(this.request, this.deps.server());
  }

  /** What URLs in responses begin with, such as `https://example.com/ninefold`. */
  get baseUrl(): string {
    return this.deps.peers.baseUrl(this.request, this.deps.server());
  }

  /** What links begin with that people open in a browser. */
  get linkUrl(): string {
    return this.deps.peers.linkUrl(this.request, this.deps.server());
  }

  /** Starts of this server's URLs: see {@link Peers.ownUrls}. */
  get ownUrls(): readonly string[] {
    return this.deps.peers.ownUrls(this.request, this.deps.server());
  }

  /** The origin of the request, for logs and sessions. */
  get requestOrigin(): RequestOrigin {
    const isOffline = this.deps.server() === null;
    const ip = isOffline ? null : this.knownClientAddress;
    return { ip, userAgent: this.request.headers.get("user-agent"), isOffline };
  }

  get deps(): HttpDeps {
    return this.endpoint.deps;
  }

  get operation(): Operation {
    return this.endpoint.operation;
  }

  /** Sets how many seconds this request may wait without traffic; 0: without limit. */
  setIdleTimeout(seconds: number): void {
    this.deps.server()?.timeout(this.request, seconds);
  }

  /**
   * The exact bytes of the body, for endpoints that take any. Once.
   * @throws ApiError `request_too_large`, `timeout`, `service_unavailable`: see {@link readBody}.
   */
  readBytes(): Promise<Uint8Array> {
    return this.receive((bytes) => bytes);
  }

  /**
   * The same for endpoints that also take larger bodies, up to `bytesMax`: what `take` returns for a body that is read piece by piece.
   * @throws ApiError as {@link readBytes}; what `take` throws.
   */
  readBytesOr<T>(bytesMax: number, take: (body: LargeBody) => Promise<T>): Promise<Uint8Array | T> {
    const begin = (): LargeBodySlot =>
      this.deps.server() === null
        ? this.deps.bodies.completeSlot()
        : this.deps.bodies.beginLarge(this.sender, PIECE_BYTES);
    return this.receive<Uint8Array | T>((bytes) => bytes, { bytesMax, begin, take });
  }

  /** Reads the body, and returns the result of `take` for its exact bytes, or of `larger` for a larger one. Once. */
  protected receive<T>(
    take: (bytes: Uint8Array) => T | Promise<T>,
    larger: LargerBody<T> | null = null,
  ): Promise<T> {
    const { request, deps } = this;
    const declared = request.headers.get("content-length");
    // Its size would be unknown, and with it whether it is too large.
    if (isRepeated(declared)) throw repeatedHeader("Content-Length");
    const inChunks = isChunked(request);
    if (inChunks) assertNoTrailersAnnounced(request);
    // A request without a socket is complete already.
    const arrives = (inChunks || Number(declared) > 0) && deps.server() !== null;
    const progress = arrives ? deps.bodies.begin(this.sender) : null;
    const { bytesMax } = this.operation.bodyLimits;
    return readBody(request, { declared, bytesMax, progress }, take, larger);
  }

  /** The sender that bodies in progress are counted by: the account, or the network without a key. */
  protected get sender(): number | string {
    return networkOf(this.clientAddress);
  }

  /**
   * Counts bytes of a large response while it is made, before they are all there. What it holds in the end is counted anyway.
   * @throws ApiError `service_unavailable` when the responses of this caller, or all together, hold too much.
   */
  holdForResponse(bytes: number): void {
    // A request without a socket has no reader that could keep it waiting.
    if (this.deps.server() === null) return;
    this.outgoing ??= this.deps.outgoing.begin(this.sender);
    this.outgoing.grow(bytes);
  }

  /** Runs `onIdle` if its reader takes nothing for some time from now on. The result cancels that. */
  awaitReader(onIdle: () => void): Cancel {
    return realTimeout(this.deps.outgoing.readerIdleSeconds * 1_000, onIdle);
  }

  /** Counts the bytes of its response no longer. */
  releaseResponse(): void {
    this.outgoing?.end();
    this.outgoing = null;
  }

  /**
   * Passes the gates, checks the request, and sets its input; returns a promise only if a body has to be read.
   * @throws ApiError
   */
  enter(input: CallInput): void | Promise<void> {
    // Checked for every request, malformed ones included, before the body is read.
    this.operation.admit?.(this.clientAddress);
    if (this.endpoint.checks.body === null) return this.enterWithoutBody(input);
    return this.receive((bytes) => this.takeBody(input, bytes));
  }

  /** Of an endpoint that takes no body, or reads it itself. A request can have one anyway. */
  protected enterWithoutBody(input: CallInput): void | Promise<void> {
    const { request } = this;
    if (!isChunked(request)) return this.takeInput(input);
    assertNoTrailersAnnounced(request);
    return assertNoTrailers(request).then(() => this.takeInput(input));
  }

  /** Adds warnings to the response, if it is a successful JSON object. */
  addWarnings(warnings: readonly string[]): void {
    if (warnings.length > 0 && !this.operation.exactResponse)
      this.warnings = [...(this.warnings ?? []), ...warnings].slice(0, WARNINGS_MAX);
  }

  /** Renders and sends the result of a handler. */
  respond(result: unknown): Response | Promise<Response> {
    return this.send(renderResult(result));
  }

  /** Renders and sends an error. */
  reject(error: unknown): Response | Promise<Response> {
    return this.send(this.renderFailure(error));
  }

  /** Parses a body; returns a promise for a large one, whose steps take a few milliseconds each. */
  protected takeBody(input: CallInput, bytes: Uint8Array): void | Promise<void> {
    this.bodyText = decodeBody(bytes);
    this.takeInput(input);
    const { body } = this.endpoint.checks;
    if (body === null) return;
    if (bytes.length > SMALL_BODY_BYTES_MAX) return this.takeLargeBody(input, body);
    assertWithinLimits(this.bodyText, this.operation.bodyLimits);
    input.body = body(parseObject(this.bodyText), this);
  }

  private async takeLargeBody(input: CallInput, check: NonNullable<InputChecks["body"]>): Promise<void> {
    assertWithinLimits(this.bodyText, this.operation.bodyLimits);
    // Parsing cannot be divided, and takes up to four slices by itself: it begins one.
    await slices.next();
    const parsed = parseObject(this.bodyText);
    if (slices.isOver) await slices.next();
    input.body = check(parsed, this);
    if (slices.isOver) await slices.next();
  }

  /** Checks the path parameters, and parses the query. */
  protected takeInput(input: CallInput): void {
    const { checks } = this.endpoint;
    checks.params?.(input.params);
    input.query = checks.query?.(this.request.url, this) ?? NOTHING;
    input.body = NOTHING;
  }

  /** Sends a response once it shows nothing that is unconfirmed. Until then, its bytes are counted as well. */
  send(response: RenderedResponse): Response | Promise<Response> {
    const complete = this.warnings === null ? response : withWarnings(response, this.warnings);
    const excess = isLarge(complete) ? this.holdAll(bodyOf(complete)) : null;
    const counted = excess === null ? complete : renderError(excess, this.requestId);
    const { confirmation } = this;
    return confirmation === null ? this.sendNow(counted) : confirmation.then(() => this.sendNow(counted));
  }

  /** Compressed where that is worth it, with the headers that every response has. */
  private sendNow(response: RenderedResponse): Response | Promise<Response> {
    const sent = this.operation.secret ? response : compressed(response, this.request);
    return sent instanceof Promise ? sent.then((result) => this.responseOf(result)) : this.responseOf(sent);
  }

  /** Counts a response that is complete. Returns the error in its place, if it would hold too much. */
  private holdAll(body: string | Uint8Array): ApiError | null {
    const { deps, request } = this;
    // Nobody reads a body of HEAD.
    if (deps.server() === null || request.method === "HEAD") return null;
    this.outgoing ??= deps.outgoing.begin(this.sender);
    const { outgoing } = this;
    return rejectionBy(() => outgoing.resize(heldBy(body)));
  }

  /** A small body as it is; a large one as a stream, as fast as it is read. */
  private sentBody(
    response: RenderedResponse,
  ): string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> {
    const { bytes, text } = response;
    if (bytes instanceof ReadableStream) return bytes;
    const { outgoing } = this;
    if (outgoing !== null && isLarge(response)) {
      // Less where it has been compressed.
      outgoing.shrink(heldBy(bytes ?? text));
      return pieceStream(this, piecesOf(bytes ?? text));
    }
    if (outgoing !== null) this.releaseResponse();
    return bytes ?? text;
  }

  private responseOf(response: RenderedResponse): Response {
    const { status } = response;
    this.endpoint.requests.answered(status, monotonicMs() - this.startedAt);
    const hasBody = status !== 204 && status !== 304;
    if (this.deps.log.isDebug === true) this.logRequest(response);
    const headers = this.headersOf(response.headers, hasBody);
    if (!hasBody && this.outgoing !== null) this.releaseResponse();
    return new Response(hasBody ? this.sentBody(response) : null, { status, headers });
  }

  /** Never the path itself: some contain a secret, such as a ping key. */
  private logRequest({ status, bytes, text }: RenderedResponse): void {
    this.deps.log.debug("request", {
      request_id: this.requestId,
      method: this.request.method,
      route: this.endpoint.route,
      operation: this.operation.name,
      status,
      ms: Math.round((monotonicMs() - this.startedAt) * 1_000) / 1_000,
      key: this.credential,
      // A stream has no length yet.
      bytes: bytes instanceof ReadableStream ? null : (bytes?.length ?? Buffer.byteLength(text)),
    });
  }

  /** The name of the caller's credential; undefined before the request is authenticated. */
  protected get credential(): string | undefined {
    return undefined;
  }

  protected get usualHeaders(): Headers {
    return USUAL_HEADERS;
  }

  private headersOf(responseHeaders: RenderedResponse["headers"], hasBody: boolean): Headers {
    const { cors, stopping } = this.deps;
    const { usualHeaders } = this;
    const { secret } = this.operation;
    usualHeaders.set("x-request-id", this.requestId);
    if (hasBody && this.headers === null && !secret && !cors.isOn && !stopping.aborted) {
      if (responseHeaders === null) return usualHeaders;
      const complete = usualHeaders === USUAL_HEADERS ? completeHeaders(responseHeaders) : undefined;
      complete?.set("x-request-id", this.requestId);
      if (complete !== undefined) return complete;
    }
    const headers = new Headers(usualHeaders);
    if (secret) headers.set("cache-control", "no-store");
    // A browser may store a tagged response and revalidate it each time: it is the caller's own copy.
    else if (responseHeaders?.["etag"] !== undefined && headers.has("cache-control"))
      headers.set("cache-control", "private, no-cache");
    // The connection closes with the process: the client must not send another request on it.
    if (stopping.aborted) headers.set("connection", "close");
    setAll(headers, responseHeaders);
    setAll(headers, this.headers);
    cors.decorate(this.request, headers);
    if (!hasBody) headers.delete("content-type");
    return headers;
  }

  protected renderFailure(error: unknown): RenderedResponse {
    if (error instanceof ReplayedResponse) {
      this.headers = { ...this.headers, "idempotent-replayed": "true" };
      return error.response;
    }
    const known = error instanceof ApiError;
    const defect = known ? error.details.cause : error;
    if (!known || defect !== undefined) {
      this.deps.log.error("a request failed", {
        request_id: this.requestId,
        method: this.request.method,
        error: errorText(defect),
        stack: defect instanceof Error ? defect.stack : undefined,
      });
    }
    const shown = known ? error : internalError();
    return renderError(shown, this.requestId, this.operation.rejectionFields?.(shown, this));
  }
}

function bodyOf({ bytes, text }: RenderedResponse): string | Uint8Array {
  return bytes instanceof Uint8Array ? bytes : text;
}

/** Whether a response is counted, and sent piece by piece. Streams are already sent so. */
function isLarge(response: RenderedResponse): boolean {
  const body = bodyOf(response);
  // A UTF-16 unit takes at most three bytes: most texts need not be measured.
  if (typeof body === "string" && body.length * 3 <= LARGE_RESPONSE_BYTES) return false;
  return Buffer.byteLength(body) > LARGE_RESPONSE_BYTES;
}

function setAll(headers: Headers, fields: Readonly<Record<string, string>> | null | undefined): void {
  for (const name in fields) headers.set(name, fields[name] ?? "");
}

/**
 * A request with a key. The order of its gates is 401, 403, 429, 400; then the work is charged and done in one unit
 * ({@link perform}).
 */
export class Call extends OpenCall implements Performer {
  idempotency: IdempotentRequest | null = null;
  private authenticated: Caller | null = null;
  /** The operation as it applies to this caller, if it differs. */
  private callerOperation: Operation | null = null;
  /** Whether the unit of work has been queued: from then on that unit stores the response. */
  private performing = false;

  /** @throws Error before the call was authenticated, which no handler can observe. */
  get caller(): Caller {
    if (this.authenticated === null) throw new Error("this call has not been authenticated");
    return this.authenticated;
  }

  override get operation(): Operation {
    return this.callerOperation ?? this.endpoint.operation;
  }

  protected override get usualHeaders(): Headers {
    return KEYED_HEADERS;
  }

  protected override get sender(): number | string {
    return this.authenticated?.account.ref ?? super.sender;
  }

  protected override get credential(): string | undefined {
    return this.authenticated?.credential;
  }

  /** SHA-256 (hex) of the caller's key, or of its session's key; null for a person. */
  get keyDigest(): string | null {
    const { session } = this.caller;
    return session === undefined ? keyDigestOf(this.request) : session.digest;
  }

  /** Charges the operation and runs the synchronous work in one unit of work: see `Performing.perform`. */
  perform<T extends object>(work: (tx: Tx, waiveCharge: () => void) => T): Promise<T> {
    this.performing = true;
    return this.deps.performing.perform(this, work);
  }

  /** Charges the operation and runs work that changes nothing, without waiting for the disk: see `Performing.read`. */
  read<T extends object>(work: (tx: Tx) => T): T | Promise<T> {
    this.performing = true;
    return this.deps.performing.read(this, work);
  }

  /** The same as {@link perform} with the network in between: see `Performing.performAcross`. */
  performAcross<C, R, T extends object>(phases: AcrossNetwork<C, R, T>): Promise<T> {
    this.performing = true;
    return this.deps.performing.performAcross(this, phases);
  }

  override enter(input: CallInput): void | Promise<void> {
    const { operation, checks } = this.endpoint;
    const honoursKey = operation.idempotent && !READS.has(this.request.method);
    const key = honoursKey ? this.request.headers.get("idempotency-key") : null;
    if (key !== null) return this.enterOnce(input, key);
    this.pass();
    if (checks.body === null) return this.enterWithoutBody(input);
    const startedAt = this.deps.clock.now();
    return this.receive((bytes) => {
      this.reauthorize(startedAt);
      return this.takeBody(input, bytes);
    });
  }

  protected override takeInput(input: CallInput): void {
    super.takeInput(input);
    const { cursors, checks } = this.endpoint;
    if (checks.query === null) this.warnOfParameters();
    if (cursors !== null) input.query = cursors.open(input.query, this.caller);
  }

  override respond(result: unknown): Response | Promise<Response> {
    const { cursors } = this.endpoint;
    const shown = shownTo(this.caller, result);
    const rendered = renderResult(cursors === null ? shown : cursors.seal(shown as object, this.caller));
    const response = this.operation.tagged === true ? taggedResponse(rendered, this.request) : rendered;
    if (this.idempotency === null || this.performing || !isStored(result)) return this.send(response);
    // An endpoint without a unit of work: its response is stored separately.
    const stored = this.deps.performing.storeResponse(this, response).then(() => response);
    return stored.catch((error) => this.renderFailure(error)).then((kept) => this.send(kept));
  }

  protected override renderFailure(error: unknown): RenderedResponse {
    if (error instanceof ClientRejection) return error.response;
    // A customer must not see the balance of the account.
    if (this.operation.byPortal && error instanceof ApiError && error.code === "insufficient_balance")
      return super.renderFailure(new ApiError("service_unavailable", NOT_NOW));
    const response = super.renderFailure(error);
    if (!this.operation.forProxies) return response;
    const code = error instanceof ApiError ? error.code : "internal_error";
    this.deps.proxyErrors.note(code, { request_id: this.requestId, reason: errorText(error) });
    const hidden = new ApiError(
      "service_unavailable",
      "This request cannot be checked now. The reason is in the log of the Ninefold server.",
    );
    return renderForwardedError(hidden, this.requestId);
  }

  override reject(error: unknown): Response | Promise<Response> {
    const storable = error instanceof ApiError && this.idempotency !== null && !this.performing;
    if (!storable) return super.reject(error);
    return this.storedRejection(error).then((stored) => super.reject(stored));
  }

  /** The same with an `Idempotency-Key`: rejections are stored as well, so that a repeat gets the same response. */
  private async enterOnce(input: CallInput, key: string): Promise<void> {
    const { guard, clock } = this.deps;
    const { request, operation } = this;
    const caller = this.identify();
    const forbidden = rejectionBy(() => guard.authorize(caller, operation));
    // After the login the same request, with the same key, is carried out.
    if (forbidden?.code === "login_required") throw forbidden;
    // Storing a rejection takes a commit, so it takes a token as well; without one the rejection is not stored.
    if (forbidden === null) this.takeToken();
    else if (guard.takeToken(caller, operation)?.allowed === false) throw forbidden;
    assertIdempotencyKey(key);
    const startedAt = clock.now();
    const bytes = await this.readBytes();
    if (forbidden === null) this.reauthorize(startedAt);
    const { method, url } = request;
    const fingerprint = fingerprintOf({ method, target: targetOf(url), person: caller.person?.id }, bytes);
    this.idempotency = { key, fingerprint, secret: operation.secret };
    if (forbidden !== null) throw forbidden;
    await this.takeBody(input, bytes);
  }

  /** For an endpoint without query parameters. */
  private warnOfParameters(): void {
    const query = queryOf(this.request.url);
    if (query !== "") this.addWarnings(unknownParameterWarnings(query, []));
  }

  private pass(): void {
    const { guard } = this.deps;
    const caller = this.identify();
    guard.authorize(caller, this.operation);
    assertMayChangeKeys(caller, this.operation);
    this.takeToken();
  }

  private identify(): Caller {
    const caller = this.authenticate();
    this.authenticated = caller;
    if (this.endpoint.operation.access !== "operator") this.shows = caller.account.ref;
    // A page polls: reads of a session are free of charge.
    if (caller.session !== undefined && READS.has(this.request.method) && this.operation.cost > 0)
      this.callerOperation = { ...this.operation, cost: 0 };
    return caller;
  }

  private get arrival(): Arrival {
    const { byPortal, forProxies } = this.operation;
    if (!byPortal && !forProxies) return this;
    const { request, origin } = this;
    if (byPortal) return { request, origin, clientAddress: this.clientAddress, byPortal };
    return { request, origin, clientAddress: this.socketAddress ?? "", byProxy: true };
  }

  private authenticate(): Caller {
    return this.deps.guard.authenticate(this.arrival, this.operation.takesApiKeyHeader);
  }

  private takeToken(): void {
    const verdict = this.deps.guard.takeToken(this.caller, this.operation);
    if (verdict === null) return;
    if (!verdict.allowed) throw rateLimitExceeded(verdict);
    if (this.operation.limit === "monitor") this.headers = { ...this.headers, ...rateLimitHeaders(verdict) };
  }

  /**
   * Checks again whether the caller is authorized: a body may take a minute, a stream hours, and the key may have expired
   * or its account been suspended meanwhile. `since`: time of the last check.
   *
   * @throws ApiError `unauthorized`, `forbidden`
   */
  reauthorize(since: number | null = null): void {
    const { clock, guard } = this.deps;
    if (clock.now() === since) return;
    guard.authorize(this.authenticate(), this.operation);
    // A person's role may be another one than at the start of the request.
    if (this.caller.person !== undefined) assertStillValid(this.caller);
  }

  /**
   * Stores a rejection, and returns the error to send: a response that is stored already, or the reason why nothing can
   * be stored, comes first. A 403 comes before both: it only ever yields the same 403.
   */
  private async storedRejection(refusal: ApiError): Promise<unknown> {
    try {
      await this.deps.performing.storeResponse(this, renderError(refusal, this.requestId));
      return refusal;
    } catch (found) {
      const isReplay = found instanceof ReplayedResponse;
      if (refusal.status !== 403 || (isReplay && found.response.status === 403)) return found;
      return isReplay || found instanceof ApiError ? refusal : found;
    }
  }
}
