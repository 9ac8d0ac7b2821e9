// Response bodies of the servers that rows are compared with: the same fields as Ninefold's, of the same length.

import type { Receipt } from "../src/verify/receipt.ts";

/** Comparison servers in this repository, which receive the same requests as Ninefold. */
export const RIVALS = ["bare", "ceiling"] as const;
export type Rival = (typeof RIVALS)[number];

/** Headers of every response. */
export const JSON_HEADERS = { "content-type": "application/json" };

const UUID = "01a200d9-e0b8-726c-b54a-4de8ca260c91";
const AT = 1_760_000_000_000;
const TIMESTAMP = new Date(AT).toISOString();

/** Response bodies by what was requested. */
export const RESPONSES = {
  pinged: "OK",
  flag: { enabled: true, flag_key: "flag-42" },
  evaluation,
  evaluations: (flags: number) => ({
    flags: Array.from({ length: flags }, (_, number) => evaluation(`flag-${number}`, number)),
    eventStreams: [{ type: "sse", endpoint: { requestUri: EVENTS }, inactivityDelaySec: 120 }],
  }),
  accountBalance: { balance: 1_000_000_000, user_id: "usr_00000000000000000000" },
  verified: {
    valid: true,
    key_id: UUID,
    project_id: null,
    scopes: ["orders:read"],
    roles: [],
    permissions: [],
    error: null,
    owner_id: null,
    meter_id: null,
    name: "Key 500000",
    environment: null,
    metadata: {},
    expires_at: null,
    enabled: true,
    uses_remaining: null,
    ratelimits: [],
    retry_after_seconds: null,
  },
  check: () => ({
    allowed: true,
    code: "ok",
    status: 200,
    retry_after_seconds: null,
    key_id: UUID,
    owner_id: null,
    project_id: null,
    name: "meter-000000",
    environment: null,
    scopes: ["bench:*"],
    metadata: {},
    uses_remaining: null,
    ratelimits: ["requests", "exports"].map((name) => {
      return { name, limit: 1_000_000, remaining: 999_999, reset_at: TIMESTAMP, exceeded: false };
    }),
    meter: {
      meter_id: "meter-000000",
      balance: 999_999_999,
      available: 999_999_999,
      deducted: 1,
      hold_id: null,
    },
    flags: Object.fromEntries(
      [1, 2, 3, 4, 5].map((n) => [`check-${n}`, { value: false, variant: "off", reason: "SPLIT" }]),
    ),
  }),
  released: { status: "released" },
  meter: (meter_id: string, balance: number) => ({ balance, meter_id }),
  meterState: (meter_id: string, balance: number) => ({ balance, meter_id, available: balance, held: 0 }),
  hold: (meter_id: string, hold_id: string, balance: number, captured = 0) => ({
    hold_id,
    status: captured === 0 ? "open" : "captured",
    requested: 2,
    amount: 2,
    captured,
    created_at: TIMESTAMP,
    expires_at: TIMESTAMP,
    ended_at: captured === 0 ? null : TIMESTAMP,
    meter_id,
    balance,
    available: balance,
    metadata: null,
  }),
  acquired: (key: string, token: string, fencing_token: number, expires_at: number) => ({
    status: "acquired",
    key,
    token,
    fencing_token,
    expires_at,
    reentrant: false,
  }),
  relay: (relay_id = UUID, scheduled_for = AT) => ({ relay_id, scheduled_for, status: "scheduled" }),
  event: (event_id = "evt_1k80djo6300") => ({ status: "accepted", verification: "valid", event_id }),
  receipt: (log: object, made: Partial<Receipt> = {}) => ({ ...RECEIPT, ...made, log }),
} as const;

const EVENTS = `/ofrep/v1/events?token=${"A".repeat(22)}.${"A".repeat(43)}`;

/** Out of ten flags, how many are plain switches. The others have a rule and a split. */
export const PLAIN_OF_TEN = 5;

function evaluation(key: string, number: number) {
  return number % 10 < PLAIN_OF_TEN
    ? { key, value: true, variant: "on", reason: "STATIC", metadata: {} }
    : { key, value: false, variant: "off", reason: "SPLIT", metadata: {} };
}

const RECEIPT = {
  version: 1,
  sequence_id: "1000000",
  content_hash: "0".repeat(64),
  prev_hash: "0".repeat(64),
  chain_hash: "0".repeat(64),
  signature: "0".repeat(128),
  timestamp: AT,
  public_key: { kty: "OKP", crv: "Ed25519", x: "A".repeat(43) },
};

/** The parts of a request's path: `/v1/meter/meter-000000/deduct` is `["v1", "meter", "meter-000000", "deduct"]`. */
export function partsOf(url: string): string[] {
  return url.slice(url.indexOf("/", "http://".length) + 1).split("/");
}
