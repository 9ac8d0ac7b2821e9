import type { Answers, Api, ListOf, QueryOf } from "../api.ts";
import type { KeyCreateBody, KeyPatchBody, KeyRotateBody, KeyVerifyBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Who showed a key: kept as `last_used_ip` and `last_used_ua`. */
export interface KeyClient {
  readonly ip?: string | null | undefined;
  readonly userAgent?: string | null | undefined;
}

/** What a request asks of the key that it comes with. */
export interface KeyAsk extends KeyClient, Pick<KeyVerifyBody, "require" | "cost" | "ratelimits"> {}

/** Managed keys: for the parts of your own system, or for your customers. Each request costs 1 credit. */
export class Keys {
  constructor(private readonly api: Api) {}

  /** Makes a key. Its secret is in this answer and never again. */
  create(body: KeyCreateBody, options?: ChangeOptions): Answers<"keys.create"> {
    return this.api.call("keys.create", { body }, options);
  }

  /** Keys, newest first: all, or those of an owner or an environment. */
  list(query: QueryOf<"keys.list"> = {}, options: RequestOptions = {}): ListOf<"keys.list", "keys"> {
    return this.api.list("keys.list", "keys", { query }, options);
  }

  /** One key, without its secret. */
  get(id: string, options?: RequestOptions): Answers<"keys.get"> {
    return this.api.call("keys.get", { params: { id } }, options);
  }

  /** Changes a key: what is left out stays as it is, null clears it. */
  patch(id: string, body: KeyPatchBody, options?: ChangeOptions): Answers<"keys.patch"> {
    return this.api.call("keys.patch", { params: { id }, body }, options);
  }

  /** How often a key was used, by the hour or day: the last 24 hours unless asked otherwise. */
  usage(id: string, query: QueryOf<"keys.usage"> = {}, options?: RequestOptions): Answers<"keys.usage"> {
    return this.api.call("keys.usage", { params: { id }, query }, options);
  }

  /** Makes a key like this one; the old one works for `grace_hours` more, 24 unless given. */
  rotate(id: string, body: KeyRotateBody = {}, options?: ChangeOptions): Answers<"keys.rotate"> {
    return this.api.call("keys.rotate", { params: { id }, body }, options);
  }

  /** Ends a key, for the very next request. */
  revoke(id: string, options?: ChangeOptions): Answers<"keys.revoke"> {
    return this.api.call("keys.revoke", { params: { id } }, options);
  }

  /** Ends all keys of an owner, 1,000 at most: while the answer says `more`, call again. */
  revokeOwned(ownerId: string, options?: ChangeOptions): Answers<"keys.revoke_owned"> {
    return this.api.call("keys.revoke_owned", { body: { owner_id: ownerId } }, options);
  }

  /**
   * Whether a secret is that of a valid key of yours, which may do what is asked. Answers for every text; look at `valid`.
   * Where a lost answer must not cost the key a second use, give an `idempotencyKey`.
   */
  verify(secret: string, asked: KeyAsk = {}, options?: ChangeOptions): Answers<"keys.verify"> {
    const { ip, userAgent, ...rest } = asked;
    const meta = ip === undefined && userAgent === undefined ? {} : { meta: { ip, user_agent: userAgent } };
    return this.api.call("keys.verify", { body: { secret, ...meta, ...rest } }, options);
  }
}
