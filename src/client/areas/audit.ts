import type { Answers, Api, ListOf, QueryOf } from "../api.ts";
import type { RequestOptions } from "../options.ts";

/** The audit log of the account, or of the key's project. */
export class Audit {
  constructor(private readonly api: Api) {}

  /** Lists entries, newest first. A page can be short or empty without being the last one. */
  list(query: QueryOf<"audit.list"> = {}, options: RequestOptions = {}): ListOf<"audit.list", "entries"> {
    return this.api.list("audit.list", "entries", { query }, options);
  }

  /** Returns an entry. */
  get(sequence: string, options?: RequestOptions): Answers<"audit.read"> {
    return this.api.call("audit.read", { params: { sequence } }, options);
  }

  /** Returns the entries of a period as text, oldest first, as JSON lines or CSV. All of it is held in memory. */
  export(query: QueryOf<"audit.export"> = {}, options?: RequestOptions): Answers<"audit.export"> {
    return this.api.call("audit.export", { query }, options);
  }
}

/** The audit log of all accounts and of the server, for the operator. */
export class AdminAudit {
  constructor(private readonly api: Api) {}

  /** Lists entries, newest first. */
  list(
    query: QueryOf<"admin.audit.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"admin.audit.list", "entries"> {
    return this.api.list("admin.audit.list", "entries", { query }, options);
  }

  /** Returns an entry. */
  get(sequence: string, options?: RequestOptions): Answers<"admin.audit.read"> {
    return this.api.call("admin.audit.read", { params: { sequence } }, options);
  }

  /** Returns the entries of a period as text, oldest first. */
  export(query: QueryOf<"admin.audit.export"> = {}, options?: RequestOptions): Answers<"admin.audit.export"> {
    return this.api.call("admin.audit.export", { query }, options);
  }
}
