import type { Answers, Api, ListOf, PageQuery, QueryOf } from "../api.ts";
import type { MonitorCreateBody, MonitorUpdateBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";
import { MonitorChannels, MonitorIncidents } from "./monitor-incidents.ts";
import { MonitorMaintenance } from "./monitor-maintenance.ts";

/** Scheduled checks of URLs, and heartbeats that wait for pings. Each request costs 1 credit; checks and pings are free. */
export class Monitors {
  /** What has gone wrong. */
  readonly incidents: MonitorIncidents;
  /** Through which people are told. */
  readonly channels: MonitorChannels;
  /** Planned work. */
  readonly maintenance: MonitorMaintenance;

  constructor(private readonly api: Api) {
    this.incidents = new MonitorIncidents(api);
    this.channels = new MonitorChannels(api);
    this.maintenance = new MonitorMaintenance(api);
  }

  /** Makes a monitor; the first check comes within 5 seconds. `type: "heartbeat"`: one that waits for pings. */
  create(body: MonitorCreateBody, options?: ChangeOptions): Answers<"monitors.create"> {
    return this.api.call("monitors.create", { body }, options);
  }

  /** The monitors and what they say of their targets, newest first. */
  list(
    query: QueryOf<"monitors.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.list", "monitors"> {
    return this.api.list("monitors.list", "monitors", { query }, options);
  }

  /** A monitor and what it says of its target. */
  get(monitorId: string, options?: RequestOptions): Answers<"monitors.read"> {
    return this.api.call("monitors.read", { params: { monitorId } }, options);
  }

  /** Changes a monitor; what is left out stays. */
  update(monitorId: string, body: MonitorUpdateBody, options?: ChangeOptions): Answers<"monitors.update"> {
    return this.api.call("monitors.update", { params: { monitorId }, body }, options);
  }

  /** Deletes a monitor and its history. */
  delete(monitorId: string, options?: ChangeOptions): Answers<"monitors.delete"> {
    return this.api.call("monitors.delete", { params: { monitorId } }, options);
  }

  /** Checks now, which takes as long as the target does (120 s at most unless `timeoutMs` says otherwise). */
  check(monitorId: string, options?: ChangeOptions): Answers<"monitors.check"> {
    return this.api.call("monitors.check", { params: { monitorId } }, options);
  }

  /** The last pings of a heartbeat, newest first. */
  pings(monitorId: string, options?: RequestOptions): Answers<"monitors.pings"> {
    return this.api.call("monitors.pings", { params: { monitorId } }, options);
  }

  /** Makes the project's ping key, or another in its place: the one before no longer works. */
  renewPingKey(options?: ChangeOptions): Answers<"monitors.ping_key"> {
    return this.api.call("monitors.ping_key", {}, options);
  }

  /**
   * Pings the heartbeat of a `ping_url` or `ping_slug_url`: `nf.monitors.ping(url, { says: "fail", body: log })`. It is
   * durable once the promise settles.
   */
  async ping(pingUrl: string, { says, rid, body, ...options }: PingOptions = {}): Promise<void> {
    const below = says === undefined ? "" : `/${says}`;
    const query = rid === undefined ? "" : `?rid=${encodeURIComponent(rid)}`;
    const path = pingUrl.slice(Math.max(0, pingUrl.indexOf("/ping/"))) + below + query;
    const request = {
      method: "POST",
      path,
      body,
      withKey: false,
      wantsBytes: true,
      repeatable: true,
    } as const;
    await this.api.transport.send(request, options);
  }

  /** The checks of 30 days, newest first; each page also has the `uptime`. */
  history(
    monitorId: string,
    query: PageQuery = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.history", "checks"> {
    return this.api.list("monitors.history", "checks", { params: { monitorId }, query }, options);
  }
}

/** What a ping says besides that the run succeeded. */
export interface PingOptions extends RequestOptions {
  /** `start`, `fail`, `log`, or an exit status. */
  readonly says?: "start" | "fail" | "log" | number;
  /** Pairs the start and the end of a run: a UUID. */
  readonly rid?: string;
  /** What the run said: its first 10,000 bytes are kept. */
  readonly body?: string | Uint8Array;
}
