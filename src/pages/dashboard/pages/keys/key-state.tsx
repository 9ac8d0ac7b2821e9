import type { KeyItem } from "../../../../client/generated/api.ts";
import { now } from "../../core/now.ts";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";

const SOON_MS = 7 * 24 * 60 * 60 * 1000;

/** Whether a key is active, and when it expires. */
export function KeyState({
  of: { revoked_at, expires_at, enabled },
}: {
  of: Pick<KeyItem, "revoked_at" | "expires_at" | "enabled">;
}) {
  if (revoked_at !== null) return <Status state="revoked" />;
  const left = expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at) - now.value;
  if (left <= 0) return <Status state="ended" />;
  if (!enabled) return <Status state="paused" tone="warn" />;
  if (expires_at === null) return <Status state="active" />;
  return (
    <>
      <Status state={left < SOON_MS ? "ending" : "active"} />{" "}
      <span class="quiet small wide">
        <Ago at={expires_at} />
      </span>
    </>
  );
}
