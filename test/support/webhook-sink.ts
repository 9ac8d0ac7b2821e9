import { createHmac } from "node:crypto";

/** A request that a sink received. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  /** The exact bytes, as text. */
  readonly body: string;
}

/** What a sink answers: a status, or everything about it. */
export type SinkAnswer = number | Response | Promise<Response>;

/** A receiver of webhooks on a real socket. It answers 200, or what a test says. */
export class WebhookSink {
  readonly received: Received[] = [];
  private readonly server;
  private respond: (request: Received, number: number) => SinkAnswer = () => 200;

  constructor() {
    this.server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 30,
      fetch: async (request) => {
        const { pathname, search } = new URL(request.url);
        const received: Received = {
          method: request.method,
          path: pathname + search,
          headers: request.headers,
          body: await request.text(),
        };
        this.received.push(received);
        const answer = await this.respond(received, this.received.length);
        return typeof answer === "number" ? new Response(null, { status: answer }) : answer;
      },
    });
  }

  get port(): number {
    return this.server.port ?? 0;
  }

  /** A URL that leads here. */
  url(path = "/"): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  /** Answers in turn; the last answer holds for the rest. */
  answers(...answers: readonly SinkAnswer[]): void {
    const first = this.received.length;
    this.respond = (_, number) => {
      const answer = answers[Math.min(number - first, answers.length) - 1] ?? 200;
      return answer instanceof Response ? (answer.clone() as Response) : answer;
    };
  }

  /** Answers as a function says. */
  answersBy(respond: (request: Received) => SinkAnswer): void {
    this.respond = respond;
  }

  /** The requests received since the last call. */
  take(): Received[] {
    return this.received.splice(0);
  }

  stop(): void {
    this.server.stop(true);
  }
}

/** Checks a scheduled delivery as a receiver does: over the timestamp and the exact body. */
export function isSigned({ headers, body }: Received, key: string): boolean {
  const timestamp = headers.get("x-svc-timestamp") ?? "";
  const expected = createHmac("sha256", key)
    .update(timestamp + body)
    .digest("hex");
  return headers.get("x-svc-signature") === `sha256=${expected}`;
}

/** Checks a monitor's notification as a receiver does: over the exact body. */
export function isSignedNotification({ headers, body }: Received, key: string): boolean {
  const expected = createHmac("sha256", key).update(body).digest("hex");
  return headers.get("x-svc-signature") === `sha256=${expected}`;
}
