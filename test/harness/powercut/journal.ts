import type { Target, TargetRequest } from "../crash/workload.ts";
import type { HttpResponse } from "../processes/connection.ts";

/** A request, in the order of sending. */
export interface Sent {
  readonly request: TargetRequest;
}

/** A response, in the order of delivery to the clients. Null: none. */
export interface Delivery {
  readonly sent: number;
  readonly answer: HttpResponse | null;
}

/** All requests of the clients and the responses that were delivered to them. */
export interface Journal {
  readonly sent: readonly Sent[];
  readonly deliveries: readonly Delivery[];
}

/**
 * Records requests to a server and its responses. Responses are delivered one at a time, each in its own turn of the
 * event loop: what the clients do next then depends only on their order, and {@link ReplayTarget} can repeat it.
 */
export class JournalTarget implements Target {
  readonly sent: Sent[] = [];
  readonly deliveries: Delivery[] = [];
  /** Whether a client has noticed that the server is gone. */
  gone = false;
  readonly isOver = false;
  private readonly inner: Target;
  private readonly waiting: {
    readonly delivery: Delivery;
    readonly hand: (response: HttpResponse | null) => void;
  }[] = [];
  private handing = false;

  constructor(inner: Target) {
    this.inner = inner;
  }

  get operatorKey(): string {
    return this.inner.operatorKey;
  }

  get folder(): string {
    return this.inner.folder;
  }

  send(request: TargetRequest): Promise<HttpResponse | null> {
    const sent = this.sent.length;
    this.sent.push({ request });
    return new Promise((resolve, reject) => {
      this.inner.send(request).then((response) => {
        this.waiting.push({ delivery: { sent, answer: response }, hand: resolve });
        void this.handOut();
      }, reject);
    });
  }

  async ask(request: TargetRequest): Promise<HttpResponse> {
    const response = await this.send(request);
    if (response === null) throw new Error(`no response to ${request.method} ${request.path}`);
    return response;
  }

  private async handOut(): Promise<void> {
    if (this.handing) return;
    this.handing = true;
    for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
      this.deliveries.push(next.delivery);
      if (next.delivery.answer === null) this.gone = true;
      next.hand(next.delivery.answer);
      await nextTurn();
    }
    this.handing = false;
  }
}

/** Repeats the beginning of a journal for new clients, so that their records are as they were then. */
export class ReplayTarget implements Target {
  readonly operatorKey: string;
  readonly folder = "";
  gone = false;
  /** Whether the replay has ended, regardless of the clients' progress. */
  isOver = false;
  private readonly journal: Journal;
  private readonly waiting = new Map<number, (response: HttpResponse | null) => void>();
  private sentSoFar = 0;
  private handed = 0;

  constructor(journal: Journal, operatorKey: string) {
    this.journal = journal;
    this.operatorKey = operatorKey;
  }

  /** After the end, nothing is sent: a step of several requests stops where it is, without a response. */
  send(request: TargetRequest): Promise<HttpResponse | null> {
    if (this.isOver) return Promise.resolve(null);
    const number = this.sentSoFar;
    this.sentSoFar += 1;
    const recorded = this.journal.sent[number]?.request;
    if (JSON.stringify(recorded) !== JSON.stringify(request))
      throw new Error(`request ${number} of the replay is another one than that of the run`);
    return new Promise((resolve) => this.waiting.set(number, resolve));
  }

  async ask(request: TargetRequest): Promise<HttpResponse> {
    const response = await this.send(request);
    if (response === null) throw new Error("a request of the preparation has no response");
    return response;
  }

  /** Delivers responses up to a number of them. */
  async playTo(deliveries: number): Promise<void> {
    for (; this.handed < deliveries; this.handed += 1) {
      const delivery = this.journal.deliveries[this.handed];
      if (delivery === undefined) throw new Error("the journal is shorter than its replay");
      this.hand(delivery.sent, delivery.answer);
      await nextTurn();
    }
  }

  /** The sent requests, in order. */
  get sent(): TargetRequest[] {
    return this.journal.sent.slice(0, this.sentSoFar).map(({ request }) => request);
  }

  /** Numbers of the sent requests without a response. */
  get open(): number[] {
    return [...this.waiting.keys()];
  }

  /** Ends the replay: each request without a response gets the one in `late`, or none. */
  async end(late: ReadonlyMap<number, HttpResponse>): Promise<void> {
    this.gone = true;
    this.isOver = true;
    for (const number of this.open) this.hand(number, late.get(number) ?? null);
    await nextTurn();
  }

  private hand(number: number, response: HttpResponse | null): void {
    const resolve = this.waiting.get(number);
    if (resolve === undefined)
      throw new Error(`request ${number} has a response before the replay has sent it`);
    this.waiting.delete(number);
    if (response === null) this.gone = true;
    resolve(response);
  }
}

/** Waits until all pending work has reached its next wait. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
