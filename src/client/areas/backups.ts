import type { Answers, Api, ListOf, PageQuery } from "../api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** The server's backups, for the operator. */
export class AdminBackups {
  constructor(private readonly api: Api) {}

  /** Those that are there, newest first. A page says as well when the next is due, and how the last one went. */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"admin.backups.list", "backups"> {
    return this.api.list("admin.backups.list", "backups", { query }, options);
  }

  /** Has one made now. @throws NinefoldError `conflict` while one is being made, `invalid_request` without a folder. */
  create(options?: ChangeOptions): Answers<"admin.backups.create"> {
    return this.api.call("admin.backups.create", {}, options);
  }
}
