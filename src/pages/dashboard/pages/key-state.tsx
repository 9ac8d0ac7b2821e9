import type { KeyItem } from "../../../client/generated/api.ts";
import { now } from "../core/now.ts";
import { Status } from "../ui/status.tsx";
import { Ago } from "../ui/time.tsx";

const SOON_MS = 7 * 24 * 60 * 60 * 1000;

/** Whether a key works, and how long. */
export function KeyState({
  of: { revoked_at, expires_at },
}: {
  of: Pick<KeyItem, "revoked_at" | "expires_at">;
}) {
  if (revoked_at !== null) return <Status state="revoked" />;
  if (expires_at === null) return <Status state="active" />;
  const left = Date.parse(expires_at) - now.value;
  if (left <= 0) return <Status state="ended" />;
  return (
    <>
      <Status state={left < SOON_MS ? "ending" : "active"} />{" "}
      <span class="quiet small wide">
        <Ago at={expires_at} />
      </span>
    </>
  );
}
