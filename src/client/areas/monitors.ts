import type { Answers, Api, ListOf, PageQuery, QueryOf } from "../api.ts";
import type { MonitorCreateBody, MonitorUpdateBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";
import { MonitorChannels, MonitorIncidents } from "./monitor-incidents.ts";
import { MonitorMaintenance } from "./monitor-maintenance.ts";
import { StatusPages } from "./monitor-pages.ts";

/**
 * Scheduled checks of URLs, and heartbeats that expect pings. Each request costs 1 credit; checks and pings are
 * free.
 */
export class Monitors {
  /** Incidents. */
  readonly incidents: MonitorIncidents;
  /** Notification channels. */
  readonly channels: MonitorChannels;
  /** Maintenance windows. */
  readonly maintenance: MonitorMaintenance;
  /** Status pages. */
  readonly pages: StatusPages;

  constructor(private readonly api: Api) {
    this.incidents = new MonitorIncidents(api);
    this.channels = new MonitorChannels(api);
    this.maintenance = new MonitorMaintenance(api);
    this.pages = new StatusPages(api);
  }

  /** Creates a monitor. Its first check is within 5 seconds. `type: "heartbeat"` creates one that expects pings. */
  create(body: MonitorCreateBody, options?: ChangeOptions): Answers<"monitors.create"> {
    return this.api.call("monitors.create", { body }, options);
  }

  /** Lists monitors with their current status, newest first. */
  list(
    query: QueryOf<"monitors.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.list", "monitors"> {
    return this.api.list("monitors.list", "monitors", { query }, options);
  }

  /** Returns a monitor with its current status. */
  get(monitorId: string, options?: RequestOptions): Answers<"monitors.read"> {
    return this.api.call("monitors.read", { params: { monitorId } }, options);
  }

  /** Updates a monitor. Omitted fields stay unchanged. */
  update(monitorId: string, body: MonitorUpdateBody, options?: ChangeOptions): Answers<"monitors.update"> {
    return this.api.call("monitors.update", { params: { monitorId }, body }, options);
  }

  /** Deletes a monitor and its history. */
  delete(monitorId: string, options?: ChangeOptions): Answers<"monitors.delete"> {
    return this.api.call("monitors.delete", { params: { monitorId } }, options);
  }

  /** Checks the target now. Takes as long as the target (at most 120 s unless `timeoutMs` differs). */
  check(monitorId: string, options?: ChangeOptions): Answers<"monitors.check"> {
    return this.api.call("monitors.check", { params: { monitorId } }, options);
  }

  /** Lists the last pings of a heartbeat, newest first. */
  pings(monitorId: string, options?: RequestOptions): Answers<"monitors.pings"> {
    return this.api.call("monitors.pings", { params: { monitorId } }, options);
  }

  /** Creates the project's ping key, or replaces it. The old one stops working. */
  renewPingKey(options?: ChangeOptions): Answers<"monitors.ping_key"> {
    return this.api.call("monitors.ping_key", {}, options);
  }

  /**
   * Pings the heartbeat of a `ping_url` or `ping_slug_url`: `nf.monitors.ping(url, { says: "fail", body: log })`.
   * The ping is stored durably when the promise resolves.
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

  /** Lists the checks of 30 days, newest first; each page contains the `uptime`. */
  history(
    monitorId: string,
    query: PageQuery = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.history", "checks"> {
    return this.api.list("monitors.history", "checks", { params: { monitorId }, query }, options);
  }
}

/** Options of a ping; by default it reports success. */
export interface PingOptions extends RequestOptions {
  /** `start`, `fail`, `log`, or an exit status. */
  readonly says?: "start" | "fail" | "log" | number;
  /** Pairs the start and the end of a run: a UUID. */
  readonly rid?: string;
  /** Output of the run: its first 10,000 bytes are stored. */
  readonly body?: string | Uint8Array;
}
