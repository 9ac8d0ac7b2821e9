import type { Answers, Api, ListOf, PageQuery } from "../api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** The server's backups, for the operator. */
export class AdminBackups {
  constructor(private readonly api: Api) {}

  /**
   * Lists the stored backups, newest first. A page also contains the next scheduled time and the result of the last
   * run.
   */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"admin.backups.list", "backups"> {
    return this.api.list("admin.backups.list", "backups", { query }, options);
  }

  /**
   * Starts a backup. @throws NinefoldError `conflict` while one is running, `invalid_request` without a backup
   * folder.
   */
  create(options?: ChangeOptions): Answers<"admin.backups.create"> {
    return this.api.call("admin.backups.create", {}, options);
  }
}
