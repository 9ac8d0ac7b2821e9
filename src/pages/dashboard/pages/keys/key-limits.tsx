import type { KeyItem, KeyPatchBody } from "../../../../client/generated/api.ts";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";

/** What makes a key a credential of this API. */
export const BEARER_PREFIX = "sm";

/** What these fields say of a key. */
type Limits = Pick<KeyPatchBody, "owner_id" | "meter_id" | "ratelimits" | "uses" | "allowed_ips">;
type Shown = Pick<KeyItem, "owner_id" | "meter_id" | "ratelimits" | "uses" | "allowed_ips">;

const SECOND_MS = 1_000;
const REFILLS = [
  ["", "never"],
  ["day", "every day"],
  ["month", "every month"],
] as const;

/** Whose a key is, how often it is used, and from where. `of`: what it says now. */
export function LimitFields({ of: key, isBearer }: { of?: Shown; isBearer: boolean }) {
  const refill = key?.uses?.refill;
  return (
    <>
      <div class="two">
        <TextField name="owner_id" label="Owner" mono value={key?.owner_id ?? ""} placeholder="acme" />
        <TextField
          name="allowed_ips"
          label="Works from"
          mono
          value={key?.allowed_ips.join(", ") ?? ""}
          placeholder="any address"
          hint="Addresses and ranges, such as 203.0.113.0/24."
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
            hint="One to a line: name, tokens, seconds in which they come back. Then “named” for one that counts only where it is named, “owner” for one that the owner’s keys share."
          />
          <div class="two">
            <TextField
              name="remaining"
              label="Uses left"
              type="number"
              min={0}
              value={key?.uses?.remaining.toString() ?? ""}
              placeholder="any number"
            />
            <SelectField name="every" label="Refilled" value={refill?.every ?? ""} options={REFILLS} />
            <TextField
              name="amount"
              label="Up to"
              type="number"
              min={1}
              value={refill?.amount.toString() ?? ""}
              placeholder="10000"
            />
            <TextField name="meter_id" label="Paid from meter" mono value={key?.meter_id ?? ""} />
          </div>
        </>
      )}
    </>
  );
}

/** What was entered. An empty field clears what it stands for. */
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

/** A limit as its line says it; what is wrong with it is the server's to say. */
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

/** The line of a limit. */
function lineOf({ name, limit, duration_ms, auto, shared }: KeyItem["ratelimits"][number]): string {
  const marks = [...(auto ? [] : ["named"]), ...(shared === "owner" ? ["owner"] : [])];
  return [name, limit, duration_ms / SECOND_MS, ...marks].join(" ");
}

/** Words that blanks or commas part. */
export function wordsOf(text: string): string[] {
  return text.split(/[\s,]/).filter((word) => word !== "");
}
