import type { Answers } from "../api.ts";
import type { KeyVerifyBody } from "../generated/api.ts";
import type { ChangeOptions } from "../options.ts";
import { KeysMethods } from "./methods.ts";

/** Client of the request that showed the key: stored as `last_used_ip` and `last_used_ua`. */
export interface KeyClient {
  readonly ip?: string | null | undefined;
  readonly userAgent?: string | null | undefined;
}

/** Requirements of the request that the key came with. */
export interface KeyAsk extends KeyClient, Pick<KeyVerifyBody, "require" | "cost" | "ratelimits"> {}

/** Managed keys, for parts of your system or for your customers. Each request costs 1 credit. */
export class Keys extends KeysMethods {
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
