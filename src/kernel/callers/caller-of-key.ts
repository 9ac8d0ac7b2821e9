import type { Caller } from "./caller.ts";

/** What a caller has from the key that it acts with. */
export abstract class CallerOfKey {
  constructor(protected readonly key: Caller) {}

  get account() {
    return this.key.account;
  }

  get scopes() {
    return this.key.scopes;
  }

  get revoked() {
    return this.key.revoked;
  }

  get endsAt() {
    return this.key.endsAt;
  }

  get superseded() {
    return this.key.superseded;
  }

  get allowedIps() {
    return this.key.allowedIps ?? null;
  }
}
