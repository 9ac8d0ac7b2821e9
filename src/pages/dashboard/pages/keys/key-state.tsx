import type { KeyItem } from "../../../../client/generated/api.ts";
import { DAY_MS } from "../../core/format.ts";
import { now } from "../../core/now.ts";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";

const SOON_MS = 7 * DAY_MS;

type KeyDates = Pick<KeyItem, "revoked_at" | "expires_at" | "enabled">;

/** Whether a key is active, paused, expired or revoked. */
export function stateOf({ revoked_at, expires_at, enabled }: KeyDates): string {
  if (revoked_at !== null) return "revoked";
  if (expires_at !== null && Date.parse(expires_at) <= now.value) return "expired";
  return enabled ? "active" : "paused";
}

/** `shop_live_…0a9f`: what a secret is recognized by. Of an imported key, the prefix is all that is known. */
export function maskedSecret({ prefix, last4 }: Pick<KeyItem, "prefix" | "last4">): string {
  return prefix === null ? "…" : `${prefix}_…${last4}`;
}

/** The state of a key, and when it expires. */
export function KeyState({ of: key }: { of: KeyDates }) {
  const state = stateOf(key);
  if (state === "paused") return <Status state={state} tone="warn" />;
  if (state !== "active" || key.expires_at === null) return <Status state={state} />;
  return (
    <>
      <Status state={Date.parse(key.expires_at) - now.value < SOON_MS ? "ending" : "active"} />{" "}
      <span class="quiet small wide">
        <Ago at={key.expires_at} />
      </span>
    </>
  );
}
