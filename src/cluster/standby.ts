import { readFileSync } from "node:fs";
import { StartupError } from "../kernel/errors.ts";
import type { ListenOptions } from "../kernel/http/http.ts";
import { admits, type MonitoringAccess } from "../kernel/http/system-routes.ts";
import { EXPOSITION_CONTENT_TYPE, Metrics, renderMetrics } from "../kernel/metrics/metrics.ts";
import type { EngineErrors } from "./commit-log.ts";
import type { Follower } from "./follower.ts";
import { declareNodeMetrics } from "./node-metrics.ts";

/** The HTTP side of a node that does not lead: it says so, and does nothing. */
export class StandbyServer {
  private readonly server;
  private readonly metrics = new Metrics();

  /** @throws StartupError if the port is in use. */
  constructor(
    { host, port, tls }: ListenOptions,
    private readonly follower: Pick<Follower, "leader" | "lag" | "position" | "elections">,
    private readonly access: MonitoringAccess,
    errors: EngineErrors,
  ) {
    declareNodeMetrics(this.metrics, {
      errors,
      elections: () => follower.elections,
      place: () => ({
        role: follower.position === null ? "empty" : "follower",
        epoch: follower.leader?.epoch ?? null,
        seq: follower.position?.seq ?? 0,
        lag: follower.lag,
      }),
    });
    try {
      this.server = Bun.serve({
        hostname: host,
        port,
        development: false,
        fetch: (request, server) => this.respond(request, server.requestIP(request)?.address ?? null),
        ...(tls === null
          ? {}
          : { tls: { cert: readFileSync(tls.certPath), key: readFileSync(tls.keyPath) } }),
      });
    } catch {
      throw new StartupError(`Cannot listen on ${host} port ${port}: another program uses it.`);
    }
  }

  get port(): number {
    return this.server.port ?? 0;
  }

  /** Frees the port. */
  async stop(): Promise<void> {
    await this.server.stop(true);
  }

  private respond(request: Request, socketAddress: string | null): Response {
    const path = new URL(request.url).pathname;
    const { leader, lag, position } = this.follower;
    const headers: Record<string, string> = { "cache-control": "no-store", "retry-after": "1" };
    if (leader?.advertise) headers["ninefold-leader"] = leader.advertise;
    if (path === "/healthz") return Response.json({ status: "ok" });
    // Without the database a follower knows no keys: for `operator` its metrics are closed.
    if (path === "/metrics" && admits(this.access, true, request, socketAddress))
      return new Response(renderMetrics(this.metrics.families), {
        headers: { "content-type": EXPOSITION_CONTENT_TYPE },
      });
    const advertised = leader?.advertise ?? null;
    if (path === "/readyz") {
      const state = position === null ? "empty" : "following";
      const details = { role: "follower", state, leader: advertised, lag, seq: position?.seq ?? 0 };
      // For `operator` nobody is: without the database a follower knows no keys.
      const isAdmitted = admits(this.access, false, request, socketAddress);
      return Response.json(
        { status: "unavailable", ...(isAdmitted ? details : {}) },
        { status: 503, headers },
      );
    }
    const message =
      advertised === null
        ? "This node follows, and no node leads at the moment. Nothing was changed. Retry in a second."
        : `This node follows. The leader is ${advertised}. Nothing was changed.`;
    return Response.json(
      { error: { code: "not_leader", message }, code: "not_leader", leader: advertised, outcome: "none" },
      { status: 503, headers },
    );
  }
}
