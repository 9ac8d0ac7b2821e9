import { ApiError } from "../errors.ts";
import { isLoopback, isLoopbackName } from "./addresses.ts";
import { pathOf } from "./call.ts";
import type { Guard } from "./guard.ts";
import { noSuchPath } from "./not-found.ts";
import { operationOf } from "./operation.ts";

/**
 * Whom the monitoring endpoints answer besides the operator.
 *
 * - `loopback`: requests that come straight from this machine;
 * - `health`: everyone reads the health, and this machine the metrics;
 * - `operator`: nobody else;
 * - `public`: everyone.
 */
export type MonitoringAccess = "loopback" | "health" | "operator" | "public";

/** A request to a monitoring endpoint. */
export interface MonitoringRequest {
  readonly request: Request;
  /** The address at the other end of the socket. */
  readonly socketAddress: string | null;
}

/** Headers that proxies add, and the one of a page in a browser. With any of them a request is someone else's, wherever it comes from. */
const FOREIGN_HEADERS: ReadonlySet<string> = new Set([
  ...["forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "client-ip"],
  ...["x-original-forwarded-for", "x-envoy-external-address", "x-appengine-user-ip", "fly-client-ip"],
  ...["cf-connecting-ip", "cf-ray", "fastly-client-ip", "origin"],
]);
const FORWARDING_PREFIX = "x-forwarded-";

/** What the gate asks for where nothing else admits a request. */
const OPERATOR_ONLY = operationOf({
  name: "monitoring",
  access: "operator",
  summary: "Read what others may not",
});

/** Decides who may read health and metrics. Whoever may not reads what stands at any path that is not there. */
export class MonitoringGate {
  constructor(
    private readonly access: MonitoringAccess,
    private readonly guard: Guard,
  ) {}

  /** @throws ApiError `not_found` */
  assertAdmitted(operation: string, { request, socketAddress }: MonitoringRequest): void {
    if (this.access === "public") return;
    if (this.access === "health" && operation !== "metrics.read") return;
    if (this.access !== "operator" && isDirect(request, socketAddress)) return;
    if (this.isOperator(request)) return;
    throw noSuchPath(request.method, pathOf(request.url));
  }

  private isOperator(request: Request): boolean {
    try {
      this.guard.authorize(this.guard.authenticate(request), OPERATOR_ONLY);
      return true;
    } catch (error) {
      if (error instanceof ApiError) return false;
      throw error;
    }
  }
}

/**
 * Whether a request comes from this machine, and not through a proxy on it. The name that it asks for must be this
 * machine's too: a page in a browser here can make any name lead to 127.0.0.1, and most proxies pass on the name that
 * they were asked for.
 */
function isDirect(request: Request, socketAddress: string | null): boolean {
  if (socketAddress === null || !isLoopback(socketAddress)) return false;
  for (const name of request.headers.keys()) {
    if (FOREIGN_HEADERS.has(name) || name.startsWith(FORWARDING_PREFIX)) return false;
  }
  return isLoopbackName(request.headers.get("host") ?? "");
}
