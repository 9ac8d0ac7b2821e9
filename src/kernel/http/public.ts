import type { Static, TObject } from "@sinclair/typebox";
import { type RenderedAnswer, renderResult } from "./answer.ts";
import { type BodyBounds, decodeBody, parseObject, readBody, SMALL_BODY } from "./body.ts";
import type { Endpoint, Exchange, HttpDeps } from "./exchange.ts";
import { InputChecks } from "./input.ts";
import type { PublicHandler, RouteSpec } from "./route.ts";

/** An endpoint that anyone may call. */
export class PublicEndpoint<P extends TObject, Q extends TObject, B extends TObject> implements Endpoint {
  private readonly deps: HttpDeps;
  private readonly checks: InputChecks<P, Q, B>;
  private readonly spec: RouteSpec<P, Q, B>;
  private readonly bounds: BodyBounds;
  private readonly handler: PublicHandler<P, Q, B>;

  constructor(deps: HttpDeps, spec: RouteSpec<P, Q, B>, handler: PublicHandler<P, Q, B>) {
    this.deps = deps;
    this.spec = spec;
    this.bounds = spec.bodyBounds ?? SMALL_BODY;
    this.handler = handler;
    this.checks = new InputChecks(spec);
  }

  async answer(exchange: Exchange, params: Record<string, string>): Promise<RenderedAnswer> {
    const { request } = exchange;
    const clientAddress = () => this.deps.clientAddress(request, exchange.socketAddress());
    // What every attempt must pass, a malformed one too, comes before the body is looked at.
    this.spec.admit?.(clientAddress());
    const result = await this.handler({
      params: (this.checks.params?.(params) ?? params) as Static<P>,
      query: (this.checks.takesQuery ? this.checks.readQuery(request.url) : {}) as Static<Q>,
      body: await this.readBody(request),
      requestId: exchange.requestId,
      receivedAt: this.deps.clock.now(),
      request,
      signal: request.signal,
      // Asked for by few, and not free.
      get clientAddress() {
        return clientAddress();
      },
      get socketAddress() {
        return exchange.socketAddress();
      },
      readBytes: () => readBody(request, this.bounds.bytesMax),
    });
    return renderResult(result, this.spec.status ?? 200);
  }

  private async readBody(request: Request): Promise<Static<B>> {
    if (this.checks.body === null) return {} as Static<B>;
    const text = decodeBody(await readBody(request, this.bounds.bytesMax));
    return this.checks.body(parseObject(text, this.bounds.levelsMax));
  }
}
