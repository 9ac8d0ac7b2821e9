import type { Answers, Api, ListOf, QueryOf } from "../api.ts";
import type { RequestOptions } from "../options.ts";

/** Who changed what in the account, or with a key of one project in that. */
export class Audit {
  constructor(private readonly api: Api) {}

  /** Entries, newest first. A page may be short, or empty, and not be the last. */
  list(query: QueryOf<"audit.list"> = {}, options: RequestOptions = {}): ListOf<"audit.list", "entries"> {
    return this.api.list("audit.list", "entries", { query }, options);
  }

  /** One entry. */
  get(sequence: string, options?: RequestOptions): Answers<"audit.read"> {
    return this.api.call("audit.read", { params: { sequence } }, options);
  }

  /** The entries of a time as text, oldest first: JSON lines, or CSV. All of it is kept in memory. */
  export(query: QueryOf<"audit.export"> = {}, options?: RequestOptions): Answers<"audit.export"> {
    return this.api.call("audit.export", { query }, options);
  }
}

/** The same of all accounts, and what the server did by itself. For the operator. */
export class AdminAudit {
  constructor(private readonly api: Api) {}

  /** Entries, newest first. */
  list(
    query: QueryOf<"admin.audit.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"admin.audit.list", "entries"> {
    return this.api.list("admin.audit.list", "entries", { query }, options);
  }

  /** One entry. */
  get(sequence: string, options?: RequestOptions): Answers<"admin.audit.read"> {
    return this.api.call("admin.audit.read", { params: { sequence } }, options);
  }

  /** The entries of a time as text, oldest first. */
  export(query: QueryOf<"admin.audit.export"> = {}, options?: RequestOptions): Answers<"admin.audit.export"> {
    return this.api.call("admin.audit.export", { query }, options);
  }
}
