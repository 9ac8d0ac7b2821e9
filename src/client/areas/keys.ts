import type { Answers, Api, ListOf, PageQuery } from "../api.ts";
import type { KeyCreateBody, KeyRotateBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Who showed a key: kept as `last_used_ip` and `last_used_ua`. */
export interface KeyClient {
  readonly ip?: string | null | undefined;
  readonly userAgent?: string | null | undefined;
}

/** Managed keys: for the parts of your own system, or for your customers. Each request costs 1 credit. */
export class Keys {
  constructor(private readonly api: Api) {}

  /** Makes a key. Its secret is in this answer and never again. */
  create(body: KeyCreateBody, options?: ChangeOptions): Answers<"keys.create"> {
    return this.api.call("keys.create", { body }, options);
  }

  /** Keys, newest first. */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"keys.list", "keys"> {
    return this.api.list("keys.list", "keys", { query }, options);
  }

  /** One key, without its secret. */
  get(id: string, options?: RequestOptions): Answers<"keys.get"> {
    return this.api.call("keys.get", { params: { id } }, options);
  }

  /** Makes a key like this one; the old one works for `grace_hours` more, 24 unless given. */
  rotate(id: string, body: KeyRotateBody = {}, options?: ChangeOptions): Answers<"keys.rotate"> {
    return this.api.call("keys.rotate", { params: { id }, body }, options);
  }

  /** Ends a key, for the very next request. */
  revoke(id: string, options?: ChangeOptions): Answers<"keys.revoke"> {
    return this.api.call("keys.revoke", { params: { id } }, options);
  }

  /** Whether a secret is that of a valid key of yours. Answers for every text; look at `valid`. */
  verify(secret: string, client: KeyClient = {}, options?: ChangeOptions): Answers<"keys.verify"> {
    const { ip, userAgent } = client;
    const meta = ip === undefined && userAgent === undefined ? {} : { meta: { ip, user_agent: userAgent } };
    return this.api.call("keys.verify", { body: { secret, ...meta } }, options);
  }
}
