import type { Answers, Api, ListOf, QueryOf } from "../api.ts";
import type { MaintenanceCreateBody, MaintenanceUpdateBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Maintenance windows, in which alerts of their monitors are suppressed. */
export class MonitorMaintenance {
  constructor(private readonly api: Api) {}

  /** Creates a window: once, with `starts_at` and `ends_at`, or recurring, with `schedule` and `duration_ms`. */
  create(body: MaintenanceCreateBody, options?: ChangeOptions): Answers<"monitors.maintenance.create"> {
    return this.api.call("monitors.maintenance.create", { body }, options);
  }

  /** Lists maintenance windows, newest first. */
  list(
    query: QueryOf<"monitors.maintenance.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.maintenance.list", "maintenance"> {
    return this.api.list("monitors.maintenance.list", "maintenance", { query }, options);
  }

  /** Returns a maintenance window. */
  get(maintenanceId: string, options?: RequestOptions): Answers<"monitors.maintenance.read"> {
    return this.api.call("monitors.maintenance.read", { params: { maintenance_id: maintenanceId } }, options);
  }

  /** Updates a window. Omitted fields stay unchanged. */
  update(
    maintenanceId: string,
    body: MaintenanceUpdateBody,
    options?: ChangeOptions,
  ): Answers<"monitors.maintenance.update"> {
    const params = { maintenance_id: maintenanceId };
    return this.api.call("monitors.maintenance.update", { params, body }, options);
  }

  /** Deletes a window; if it is in progress, it ends. */
  delete(maintenanceId: string, options?: ChangeOptions): Answers<"monitors.maintenance.delete"> {
    return this.api.call(
      "monitors.maintenance.delete",
      { params: { maintenance_id: maintenanceId } },
      options,
    );
  }
}
