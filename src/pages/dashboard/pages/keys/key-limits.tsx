import type { KeyItem, KeyPatchBody } from "../../../../client/generated/api.ts";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";

/** Prefix of keys that are credentials of this API. */
export const BEARER_PREFIX = "sm";

/** The fields of a key that these inputs edit. */
type Limits = Pick<KeyPatchBody, "owner_id" | "meter_id" | "ratelimits" | "uses" | "allowed_ips">;
type Shown = Pick<KeyItem, "owner_id" | "meter_id" | "ratelimits" | "uses" | "allowed_ips">;

const SECOND_MS = 1_000;
const REFILLS = [
  ["", "never"],
  ["day", "daily"],
  ["month", "monthly"],
] as const;

/** A key's owner, uses and allowed addresses. `of`: the current values. */
export function LimitFields({ of: key, isBearer }: { of?: Shown; isBearer: boolean }) {
  const refill = key?.uses?.refill;
  return (
    <>
      <div class="two">
        <TextField name="owner_id" label="Owner" mono value={key?.owner_id ?? ""} placeholder="acme" />
        <TextField
          name="allowed_ips"
          label="Allowed IP addresses"
          mono
          value={key?.allowed_ips.join(", ") ?? ""}
          placeholder="any address"
          hint="IP addresses and ranges, such as 203.0.113.0/24."
        />
      </div>
      {isBearer ? null : (
        <>
          <TextField
            name="ratelimits"
            label="Rate limits"
            mono
            rows={2}
            value={key?.ratelimits.map(lineOf).join("\n") ?? ""}
            placeholder="requests 100 60"
            hint="One per line: name, number of requests, seconds. Add “named” for a limit that counts only where a request names it, “owner” for one that all keys of the owner share."
          />
          <div class="two">
            <TextField
              name="remaining"
              label="Uses left"
              type="number"
              min={0}
              value={key?.uses?.remaining.toString() ?? ""}
              placeholder="unlimited"
            />
            <SelectField name="every" label="Refill interval" value={refill?.every ?? ""} options={REFILLS} />
            <TextField
              name="amount"
              label="Refill amount"
              type="number"
              min={1}
              value={refill?.amount.toString() ?? ""}
              placeholder="10000"
            />
            <TextField name="meter_id" label="Meter" mono value={key?.meter_id ?? ""} />
          </div>
        </>
      )}
    </>
  );
}

/** The values entered. An empty field clears its setting. */
export function limitsOf(data: FormData, isBearer: boolean): Limits {
  const owner_id = textOf(data, "owner_id") ?? null;
  const allowed_ips = wordsOf(textOf(data, "allowed_ips") ?? "");
  if (isBearer) return { owner_id, allowed_ips };
  const lines = (textOf(data, "ratelimits") ?? "").split("\n").map((line) => line.trim());
  const ratelimits = lines.filter((line) => line !== "").map(limitIn);
  return {
    owner_id,
    allowed_ips,
    ratelimits,
    uses: usesOf(data),
    meter_id: textOf(data, "meter_id") ?? null,
  };
}

function usesOf(data: FormData): NonNullable<Limits["uses"]> | null {
  const remaining = textOf(data, "remaining");
  if (remaining === undefined) return null;
  const every = textOf(data, "every");
  if (every === undefined) return { remaining: Number(remaining) };
  const amount = Number(textOf(data, "amount") ?? remaining);
  return { remaining: Number(remaining), refill: { every: every === "day" ? "day" : "month", amount } };
}

/** A rate limit from its line; the server validates it. */
function limitIn(line: string): NonNullable<Limits["ratelimits"]>[number] {
  const [name = "", limit, seconds, ...marks] = wordsOf(line);
  return {
    name,
    limit: Number(limit),
    duration_ms: Number(seconds) * SECOND_MS,
    auto: !marks.includes("named"),
    shared: marks.includes("owner") ? "owner" : "key",
  };
}

/** A rate limit as a line. */
function lineOf({ name, limit, duration_ms, auto, shared }: KeyItem["ratelimits"][number]): string {
  const marks = [...(auto ? [] : ["named"]), ...(shared === "owner" ? ["owner"] : [])];
  return [name, limit, duration_ms / SECOND_MS, ...marks].join(" ");
}

/** Words separated by spaces or commas. */
export function wordsOf(text: string): string[] {
  return text.split(/[\s,]/).filter((word) => word !== "");
}
