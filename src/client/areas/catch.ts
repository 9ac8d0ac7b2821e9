import type { AnswerOf, Answers, Api, ListOf, QueryOf } from "../api.ts";
import type {
  BucketCreateBody,
  BucketUpdateBody,
  CatchReplayBody,
  CaughtEvent,
  EventAckBody,
} from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Longer than the longest wait for events. */
const STREAM_TIMEOUT_MS = 90_000;

/** Buckets that receive webhooks. */
export class Catch {
  readonly buckets: Buckets;
  readonly events: Events;
  readonly replays: Replays;

  constructor(private readonly api: Api) {
    this.buckets = new Buckets(api);
    this.events = new Events(api);
    this.replays = new Replays(api);
  }

  /**
   * Sends a webhook to a bucket as a provider does, with the body unchanged. Never rejects for a status; `status`
   * says whether it was accepted. Retried only when it was certainly not stored.
   */
  async send(
    bucketId: string,
    body: string | Uint8Array,
    options: SendOptions = {},
  ): Answers<"catch.ingest"> {
    const request = this.api.request("catch.ingest", { params: { bucket_id: bucketId }, body }, options);
    const answer = await this.api.transport.send({ ...request, headers: options.headers ?? {} }, options);
    return answer.body as AnswerOf<"catch.ingest">;
  }

  /** The same through `/v1/in`, which accepts a path after the bucket's and a query: `/orders?shop=1`. */
  async sendIn(
    bucketId: string,
    body: string | Uint8Array,
    { below = "", ...options }: SendOptions & { readonly below?: string } = {},
  ): Answers<"catch.in"> {
    const request = this.api.request("catch.in", { params: { bucket_id: bucketId }, body }, options);
    const wire = { ...request, path: request.path + below, headers: options.headers ?? {} };
    return (await this.api.transport.send(wire, options)).body as AnswerOf<"catch.in">;
  }
}

/** Options for sending a webhook. */
type SendOptions = RequestOptions & { readonly headers?: Readonly<Record<string, string>> };

/** The buckets of a project. */
export class Buckets {
  constructor(private readonly api: Api) {}

  /** Creates a bucket. It is paused at first. */
  create(body: BucketCreateBody, options?: ChangeOptions): Answers<"catch.buckets.create"> {
    return this.api.call("catch.buckets.create", { body }, options);
  }

  /** Lists buckets, newest first, or returns only the one with a `name`. */
  list({
    name,
    ...options
  }: RequestOptions & QueryOf<"catch.buckets.list"> = {}): ListOf<"catch.buckets.list", "buckets"> {
    return this.api.list("catch.buckets.list", "buckets", { query: { name } }, options);
  }

  /** Returns a bucket. */
  get(bucketId: string, options?: RequestOptions): Answers<"catch.buckets.get"> {
    return this.api.call("catch.buckets.get", { params: { bucket_id: bucketId } }, options);
  }

  /** Updates state, name, target, secret or settings. Omitted fields stay unchanged. */
  update(bucketId: string, body: BucketUpdateBody, options?: ChangeOptions): Answers<"catch.buckets.update"> {
    return this.api.call("catch.buckets.update", { params: { bucket_id: bucketId }, body }, options);
  }

  /** Deletes a bucket and its events. */
  async delete(bucketId: string, options?: ChangeOptions): Promise<void> {
    await this.api.call("catch.buckets.delete", { params: { bucket_id: bucketId } }, options);
  }
}

/** The events of buckets. */
export class Events {
  constructor(private readonly api: Api) {}

  /** Lists a bucket's events, newest first. Each request costs 1 credit. */
  list(
    bucketId: string,
    query: QueryOf<"catch.events.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"catch.events.list", "events"> {
    return this.api.list("catch.events.list", "events", { params: { bucket_id: bucketId }, query }, options);
  }

  /** Returns an event with its payload and headers. */
  get(bucketId: string, eventId: string, options?: RequestOptions): Answers<"catch.events.get"> {
    return this.api.call("catch.events.get", { params: { bucket_id: bucketId, event_id: eventId } }, options);
  }

  /**
   * Pulls events after `after` (an id, `beginning` or `now`), oldest first; waits for new ones when there are none.
   * Continue with the response's `cursor`. Costs 1 credit if it returns events.
   */
  stream(
    bucketId: string,
    query: QueryOf<"catch.stream">,
    options: RequestOptions = {},
  ): Answers<"catch.stream"> {
    const patient = { ...options, timeoutMs: options.timeoutMs ?? STREAM_TIMEOUT_MS };
    return this.api.call("catch.stream", { params: { bucket_id: bucketId }, query }, patient);
  }

  /** Acknowledges an event of a bucket with the delivery `pull`. Repeating it changes nothing. */
  acknowledge(
    bucketId: string,
    eventId: string,
    body: EventAckBody,
    options?: ChangeOptions,
  ): Answers<"catch.events.ack"> {
    const params = { bucket_id: bucketId, event_id: eventId };
    return this.api.call("catch.events.ack", { params, body }, options);
  }

  /** Returns the exact bytes of an event's body. */
  async raw(bucketId: string, eventId: string, options: RequestOptions = {}): Promise<Uint8Array> {
    const params = { bucket_id: bucketId, event_id: eventId };
    const request = this.api.request("catch.events.raw", { params }, options);
    return (await this.api.transport.send({ ...request, wantsBytes: true }, options)).body as Uint8Array;
  }

  /**
   * Iterates over all events of a bucket or of a period, complete and oldest first. Pages of up to 8 MiB are
   * requested as needed; each costs 1 credit.
   */
  async *export(
    bucketId: string,
    { cursor: first, ...query }: QueryOf<"catch.events.export"> = {},
    options: RequestOptions = {},
  ): AsyncGenerator<CaughtEvent, void, undefined> {
    const params = { bucket_id: bucketId };
    for (let cursor = first ?? null; ; ) {
      const page = cursor === null ? query : { ...query, cursor };
      const request = this.api.request("catch.events.export", { params, query: page }, options);
      const { body, headers } = await this.api.transport.send(request, options);
      for (const line of String(body).split("\n")) if (line !== "") yield JSON.parse(line) as CaughtEvent;
      cursor = headers.get("x-next-cursor");
      if (cursor === null) return;
    }
  }

  /** Sends an event to the bucket's target again. */
  replay(bucketId: string, eventId: string, options?: ChangeOptions): Answers<"catch.events.replay"> {
    return this.api.call(
      "catch.events.replay",
      { params: { bucket_id: bucketId, event_id: eventId } },
      options,
    );
  }

  /** Deletes the events received before a time. */
  async deleteBefore(
    bucketId: string,
    before: Date | string,
    options?: ChangeOptions,
  ): Answers<"catch.events.delete"> {
    if (before instanceof Date && Number.isNaN(before.getTime()))
      throw new TypeError("before must be a valid time, not an invalid Date");
    const query = { before: typeof before === "string" ? before : before.toISOString() };
    return this.api.call("catch.events.delete", { params: { bucket_id: bucketId }, query }, options);
  }
}

/** Replays of many events. */
export class Replays {
  constructor(private readonly api: Api) {}

  /** Sends many events to the bucket's target again. With `dry_run` it only returns how many match. */
  start(bucketId: string, body: CatchReplayBody, options?: ChangeOptions): Answers<"catch.replays.start"> {
    return this.api.call("catch.replays.start", { params: { bucket_id: bucketId }, body }, options);
  }

  /** Returns the progress of a replay. */
  get(bucketId: string, replayId: string, options?: RequestOptions): Answers<"catch.replays.get"> {
    const params = { bucket_id: bucketId, replay_id: replayId };
    return this.api.call("catch.replays.get", { params }, options);
  }

  /** Cancels a replay. Deliveries that have started are completed. */
  stop(bucketId: string, replayId: string, options?: ChangeOptions): Answers<"catch.replays.stop"> {
    const params = { bucket_id: bucketId, replay_id: replayId };
    return this.api.call("catch.replays.stop", { params }, options);
  }
}
