import type { Answers } from "../api.ts";
import type { ChangeOptions } from "../options.ts";
import { AccountMethods } from "./methods.ts";

/** The key's account: its credits and its platform key. */
export class Account extends AccountMethods {
  /**
   * Rotates the platform key. Older keys work for the grace period (`graceHours`, or as the server is configured),
   * but can no longer change keys. @throws NinefoldError 429 within the same hour.
   */
  rotateKey(
    options: ChangeOptions & { readonly graceHours?: number | undefined } = {},
  ): Answers<"keys.platform.rotate"> {
    const { graceHours, ...rest } = options;
    const body = graceHours === undefined ? {} : { grace_hours: graceHours };
    return this.api.call("keys.platform.rotate", { body }, rest);
  }
}
