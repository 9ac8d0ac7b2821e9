import type { AnswerOf, Answers, ListOf, QueryOf } from "../api.ts";
import type { CaughtEvent } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";
import { BucketsMethods, CatchMethods, EventsMethods } from "./methods.ts";

/** Buckets that receive webhooks. */
export class Catch extends CatchMethods {
  readonly buckets = new Buckets(this.api);
  readonly events = new Events(this.api);

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
export class Buckets extends BucketsMethods {
  /** Lists buckets, newest first, or returns only the one with a `name`. */
  list({
    name,
    ...options
  }: RequestOptions & QueryOf<"catch.buckets.list"> = {}): ListOf<"catch.buckets.list", "buckets"> {
    return this.api.list("catch.buckets.list", "buckets", { query: { name } }, options);
  }
}

/** The events of buckets. */
export class Events extends EventsMethods {
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
