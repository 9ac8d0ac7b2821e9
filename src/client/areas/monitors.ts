import type { Answers, Api, ListOf, PageQuery, QueryOf } from "../api.ts";
import type { MonitorCreateBody, MonitorUpdateBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";
import { MonitorChannels, MonitorIncidents } from "./monitor-incidents.ts";
import { MonitorMaintenance } from "./monitor-maintenance.ts";

/** Scheduled checks of URLs. Each request costs 1 credit; scheduled checks are free. */
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

  /** Makes a monitor; the first check comes within 5 seconds. */
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

  /** The checks of 30 days, newest first; each page also has the `uptime`. */
  history(
    monitorId: string,
    query: PageQuery = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.history", "checks"> {
    return this.api.list("monitors.history", "checks", { params: { monitorId }, query }, options);
  }
}
