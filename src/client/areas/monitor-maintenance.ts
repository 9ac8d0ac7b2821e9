import type { Answers, Api, ListOf, QueryOf } from "../api.ts";
import type { MaintenanceCreateBody, MaintenanceUpdateBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Planned work, during which failures of its monitors tell nobody. */
export class MonitorMaintenance {
  constructor(private readonly api: Api) {}

  /** Plans work: once, by `starts_at` and `ends_at`, or again and again, by `schedule` and `duration_ms`. */
  create(body: MaintenanceCreateBody, options?: ChangeOptions): Answers<"monitors.maintenance.create"> {
    return this.api.call("monitors.maintenance.create", { body }, options);
  }

  /** Planned work, newest first. */
  list(
    query: QueryOf<"monitors.maintenance.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.maintenance.list", "maintenance"> {
    return this.api.list("monitors.maintenance.list", "maintenance", { query }, options);
  }

  /** Planned work, of one id. */
  get(maintenanceId: string, options?: RequestOptions): Answers<"monitors.maintenance.read"> {
    return this.api.call("monitors.maintenance.read", { params: { maintenance_id: maintenanceId } }, options);
  }

  /** Changes it; what is left out stays. */
  update(
    maintenanceId: string,
    body: MaintenanceUpdateBody,
    options?: ChangeOptions,
  ): Answers<"monitors.maintenance.update"> {
    const params = { maintenance_id: maintenanceId };
    return this.api.call("monitors.maintenance.update", { params, body }, options);
  }

  /** Deletes it; work that is under way ends. */
  delete(maintenanceId: string, options?: ChangeOptions): Answers<"monitors.maintenance.delete"> {
    return this.api.call("monitors.maintenance.delete", { params: { maintenance_id: maintenanceId } }, options);
  }
}
