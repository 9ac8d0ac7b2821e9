import type { KeyItem } from "../../../../client/generated/api.ts";
import { SECOND_MS } from "../../core/format.ts";
import type { RowOf } from "../../ui/data-form.tsx";
import { type Kind, LINES, TEXT_LINES, wordsOf } from "../../ui/kinds.ts";

/** Prefix of keys that are credentials of this API. */
export const BEARER_PREFIX = "sm";

type RateLimit = KeyItem["ratelimits"][number];

const REFILLS = [
  ["", "never"],
  ["day", "daily"],
  ["month", "monthly"],
] as const;

const RATE_LIMITS: Kind = {
  ...LINES,
  show: (value) => ((value ?? []) as readonly RateLimit[]).map(lineOf).join("\n"),
  read: (text) =>
    text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map(limitIn),
  mono: true,
};

/** The fields for a key's owner, uses and allowed addresses. */
export function limitFields(isBearer: boolean): readonly (RowOf<"keys.create"> & RowOf<"keys.patch">)[] {
  const places = [
    { name: "owner_id", label: "Owner", mono: true, placeholder: "acme", hint: "" },
    {
      name: "allowed_ips",
      label: "Allowed IP addresses",
      mono: true,
      placeholder: "any address",
      hint: "IP addresses and ranges, such as 203.0.113.0/24.",
    },
  ] as const;
  if (isBearer) return [places];
  return [
    places,
    [
      {
        name: "permissions",
        kind: TEXT_LINES,
        rows: 2,
        mono: true,
        placeholder: "documents.read",
        hint: "One per line, beside the scopes.",
      },
      { name: "roles", mono: true, placeholder: "editor", hint: "Names of roles, separated by commas." },
    ],
    {
      name: "ratelimits",
      label: "Rate limits",
      kind: RATE_LIMITS,
      placeholder: "requests 100 60",
      hint: "One per line: name, number of requests, duration in seconds or with a unit, such as 30d. Add “named” for a limit that counts only where a request names it, “owner” for one that all keys of the owner share.",
    },
    [
      { name: "uses.remaining", label: "Uses left", placeholder: "unlimited", required: false, hint: "" },
      { name: "uses.refill.every", label: "Refill interval", options: REFILLS, hint: "" },
      { name: "uses.refill.amount", label: "Refill amount", placeholder: "10000", required: false, hint: "" },
      { name: "meter_id", label: "Meter", mono: true, hint: "" },
    ],
  ];
}

interface Uses {
  readonly remaining?: number;
  readonly refill?: { readonly every?: string; readonly amount?: number };
}

/** The body with uses that are complete: none without a number, and a refill of as many as are left. */
export function withUses(body: Record<string, unknown>): object {
  if (!("uses" in body)) return body;
  const { remaining, refill } = body["uses"] as Uses;
  const { every, amount = remaining } = refill ?? {};
  const uses = { remaining, ...(every ? { refill: { every, amount } } : {}) };
  return { ...body, uses: remaining === undefined ? null : uses };
}

/** A rate limit as the server reads it: a duration is a number, or a text with a unit. */
type WrittenLimit = Omit<RateLimit, "duration_ms"> & { readonly duration_ms: number | string };

/** A rate limit from its line; the server validates it. */
function limitIn(line: string): WrittenLimit {
  const [name = "", limit, duration = "", ...marks] = wordsOf(line);
  const seconds = Number(duration);
  return {
    name,
    limit: Number(limit),
    duration_ms: Number.isNaN(seconds) ? duration : seconds * SECOND_MS,
    auto: !marks.includes("named"),
    shared: marks.includes("owner") ? "owner" : "key",
  };
}

/** A rate limit as a line. */
function lineOf({ name, limit, duration_ms, auto, shared }: RateLimit): string {
  const marks = [...(auto ? [] : ["named"]), ...(shared === "owner" ? ["owner"] : [])];
  return [name, limit, duration_ms / SECOND_MS, ...marks].join(" ");
}
