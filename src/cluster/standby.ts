import { readFileSync } from "node:fs";
import { StartupError } from "../kernel/errors.ts";
import type { ListenOptions } from "../kernel/http/http.ts";
import type { Follower } from "./follower.ts";

/** The HTTP side of a node that does not lead: it says so, and does nothing. */
export class StandbyServer {
  private readonly server;

  /** @throws StartupError if the port is in use. */
  constructor(
    { host, port, tls }: ListenOptions,
    private readonly follower: Pick<Follower, "leader" | "lag" | "position">,
  ) {
    try {
      this.server = Bun.serve({
        hostname: host,
        port,
        development: false,
        fetch: (request) => this.respond(new URL(request.url).pathname),
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

  private respond(path: string): Response {
    const { leader, lag, position } = this.follower;
    const headers: Record<string, string> = { "cache-control": "no-store", "retry-after": "1" };
    if (leader?.advertise) headers["ninefold-leader"] = leader.advertise;
    if (path === "/healthz") return Response.json({ status: "ok" });
    if (path === "/metrics") return new Response(metricsText(lag, position?.seq ?? 0));
    const advertised = leader?.advertise ?? null;
    if (path === "/readyz")
      return Response.json(
        { status: "unavailable", role: "follower", leader: advertised, lag, seq: position?.seq ?? 0 },
        { status: 503, headers },
      );
    const message =
      advertised === null
        ? "This node follows, and no node leads now. Nothing was changed; try again in a moment."
        : `This node follows. The leader is ${advertised}. Nothing was changed.`;
    return Response.json(
      { error: { code: "service_unavailable", message }, code: "service_unavailable" },
      { status: 503, headers },
    );
  }
}

function metricsText(lag: number, seq: number): string {
  return [
    "# HELP ninefold_cluster_leader Whether this node leads: 1, or 0 while it cannot confirm it.",
    "# TYPE ninefold_cluster_leader gauge",
    "ninefold_cluster_leader 0",
    "# HELP ninefold_cluster_lag_entries Entries of the commit log that this node has not applied; of a leader: that no other node has on its disk.",
    "# TYPE ninefold_cluster_lag_entries gauge",
    `ninefold_cluster_lag_entries ${lag}`,
    "# HELP ninefold_cluster_position Last entry of the commit log on this node.",
    "# TYPE ninefold_cluster_position gauge",
    `ninefold_cluster_position ${seq}`,
    "",
  ].join("\n");
}
