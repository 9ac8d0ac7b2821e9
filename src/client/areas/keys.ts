import type { Answers, Api, ListOf, QueryOf } from "../api.ts";
import type { KeyCreateBody, KeyPatchBody, KeyRotateBody, KeyVerifyBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Client of the request that showed the key: stored as `last_used_ip` and `last_used_ua`. */
export interface KeyClient {
  readonly ip?: string | null | undefined;
  readonly userAgent?: string | null | undefined;
}

/** Requirements of the request that the key came with. */
export interface KeyAsk extends KeyClient, Pick<KeyVerifyBody, "require" | "cost" | "ratelimits"> {}

/** Managed keys, for parts of your system or for your customers. Each request costs 1 credit. */
export class Keys {
  constructor(private readonly api: Api) {}

  /** Creates a key. Its secret is shown in this response only. */
  create(body: KeyCreateBody, options?: ChangeOptions): Answers<"keys.create"> {
    return this.api.call("keys.create", { body }, options);
  }

  /** Lists keys, newest first: all, or those of an owner or environment. */
  list(query: QueryOf<"keys.list"> = {}, options: RequestOptions = {}): ListOf<"keys.list", "keys"> {
    return this.api.list("keys.list", "keys", { query }, options);
  }

  /** Returns a key without its secret. */
  get(id: string, options?: RequestOptions): Answers<"keys.get"> {
    return this.api.call("keys.get", { params: { id } }, options);
  }

  /** Updates a key. Omitted fields stay unchanged; null clears a field. */
  patch(id: string, body: KeyPatchBody, options?: ChangeOptions): Answers<"keys.patch"> {
    return this.api.call("keys.patch", { params: { id }, body }, options);
  }

  /** Returns the usage of a key by hour or day, by default of the last 24 hours. */
  usage(id: string, query: QueryOf<"keys.usage"> = {}, options?: RequestOptions): Answers<"keys.usage"> {
    return this.api.call("keys.usage", { params: { id }, query }, options);
  }

  /** Creates a replacement key. The old one works for another `grace_hours`, by default 24. */
  rotate(id: string, body: KeyRotateBody = {}, options?: ChangeOptions): Answers<"keys.rotate"> {
    return this.api.call("keys.rotate", { params: { id }, body }, options);
  }

  /** Revokes a key immediately. */
  revoke(id: string, options?: ChangeOptions): Answers<"keys.revoke"> {
    return this.api.call("keys.revoke", { params: { id } }, options);
  }

  /** Revokes up to 1,000 keys of an owner. While the response contains `more: true`, call it again. */
  revokeOwned(ownerId: string, options?: ChangeOptions): Answers<"keys.revoke_owned"> {
    return this.api.call("keys.revoke_owned", { body: { owner_id: ownerId } }, options);
  }

  /**
   * Verifies a secret and what its key may do. Never rejects for an invalid secret; check `valid`. Pass an
   * `idempotencyKey` if a lost response must not cost the key a second use.
   */
  verify(secret: string, asked: KeyAsk = {}, options?: ChangeOptions): Answers<"keys.verify"> {
    const { ip, userAgent, ...rest } = asked;
    const meta = ip === undefined && userAgent === undefined ? {} : { meta: { ip, user_agent: userAgent } };
    return this.api.call("keys.verify", { body: { secret, ...meta, ...rest } }, options);
  }
}
