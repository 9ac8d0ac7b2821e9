import type { AnswerOf, Api, PageQuery, QueryOf } from "../api.ts";
import type {
  MonitorCheck,
  MonitorCreateBody,
  MonitorStatus,
  MonitorUpdateBody,
} from "../generated/types.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";
import type { Pages } from "../pages.ts";

/** Scheduled checks of URLs. Each request costs 1 credit; scheduled checks are free. */
export class Monitors {
  constructor(private readonly api: Api) {}

  /** Makes a monitor; the first check comes within 5 seconds. */
  create(body: MonitorCreateBody, options?: ChangeOptions): Promise<AnswerOf<"monitors.create">> {
    return this.api.call("monitors.create", { body }, options);
  }

  /** What the monitors say of their targets, newest first. */
  list(
    query: QueryOf<"monitors.list"> = {},
    options: RequestOptions = {},
  ): Pages<MonitorStatus, AnswerOf<"monitors.list">> {
    return this.api.list("monitors.list", { query }, options, {
      items: ({ monitors }) => monitors,
      cursor: ({ cursor }) => cursor,
    });
  }

  /** What a monitor says of its target. */
  get(monitorId: string, options?: RequestOptions): Promise<AnswerOf<"monitors.read">> {
    return this.api.call("monitors.read", { params: { monitorId } }, options);
  }

  /** Changes a monitor; what is left out stays. */
  update(
    monitorId: string,
    body: MonitorUpdateBody,
    options?: ChangeOptions,
  ): Promise<AnswerOf<"monitors.update">> {
    return this.api.call("monitors.update", { params: { monitorId }, body }, options);
  }

  /** Deletes a monitor and its history. */
  delete(monitorId: string, options?: ChangeOptions): Promise<AnswerOf<"monitors.delete">> {
    return this.api.call("monitors.delete", { params: { monitorId } }, options);
  }

  /** Checks now, which takes as long as the target does (120 s at most unless `timeoutMs` says otherwise). */
  check(monitorId: string, options?: ChangeOptions): Promise<AnswerOf<"monitors.check">> {
    return this.api.call("monitors.check", { params: { monitorId } }, options);
  }

  /** The checks of 30 days, newest first; each page also has the `uptime`. */
  history(
    monitorId: string,
    query: PageQuery = {},
    options: RequestOptions = {},
  ): Pages<MonitorCheck, AnswerOf<"monitors.history">> {
    return this.api.list("monitors.history", { params: { monitorId }, query }, options, {
      items: ({ checks }) => checks,
      cursor: ({ cursor }) => cursor,
    });
  }
}
