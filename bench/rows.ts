import type { Benchmark, WrkRequest } from "./benchmark.ts";
import { CHECKS } from "./checks.ts";
import { holdCycle } from "./holds.ts";
import { FLAG_EVALUATE, KEY_VERIFY, LIMITED_KEY_VERIFY } from "./keys-and-flags.ts";
import { lockCycle } from "./locks.ts";
import { OFREP } from "./ofrep.ts";
import { PINGS } from "./pings.ts";
import { messageRequest, prepareEndpoints, scheduleRequest } from "./schedule.ts";
import { METERS, type Stage } from "./stage.ts";
import { WEBHOOK_IN, WEBHOOK_STREAM } from "./webhooks.ts";

/** Bytes of a log request's body. */
const LOG_BYTES = 1_024;

/** A deduct of one unit from a random meter. */
export function deductRequest(stage: Pick<Stage, "key">): WrkRequest {
  return {
    method: "POST",
    path: "/v1/meter/meter-{random}/deduct",
    below: METERS,
    headers: { Authorization: `Bearer ${stage.key}` },
    body: '{"amount":1}',
  };
}

export function accountBalanceRequest(stage: Stage): WrkRequest {
  return {
    method: "GET",
    path: "/v1/meter/balance",
    headers: { Authorization: `Bearer ${stage.key}` },
  };
}

/** The body of a log of 1 KB. */
export function logBody(invoice: string): { log: Record<string, unknown> } {
  const log = {
    event: "invoice.paid",
    invoice,
    items: Array.from({ length: 10 }, (_, index) => ({
      sku: `sku-${index}`,
      quantity: index + 1,
      price: index * 1.25,
    })),
  };
  const note = "n".repeat(Math.max(0, LOG_BYTES - JSON.stringify({ log: { ...log, note: "" } }).length));
  return { log: { ...log, note } };
}

/** A log of 1 KB, different in each request. */
export function logRequest(key: string): WrkRequest {
  return {
    method: "POST",
    path: "/v1/witness/log",
    headers: { Authorization: `Bearer ${key}` },
    body: JSON.stringify(logBody("in_{unique}")),
  };
}

/** A read of a random meter. */
function meterBalanceRequest(stage: Stage): WrkRequest {
  const { headers = {} } = accountBalanceRequest(stage);
  return { method: "GET", path: "/v1/meter/meter-{random}/balance", below: METERS, headers };
}

/** Requirements of reads, which do not wait for the disk. */
const READ_REQUIRES: Benchmark["requires"] = [
  { kind: "ratio", to: "bare", atLeast: 0.7, connections: [32] },
  { kind: "p99", atMostMs: 1.5, connections: [32] },
];

/** Requirements of changes that write more than one row, or sign: `atLeast` of their ceiling. */
function changeRequires(atLeast: number): Benchmark["requires"] {
  return [
    { kind: "ratio", to: "bare", atLeast: 0, connections: [32] },
    { kind: "ratio", to: "ceiling", atLeast, connections: [32] },
  ];
}

/** Every row. The requirements for `bare` and `ceiling` apply to the connections given there. */
export const BENCHMARKS: readonly Benchmark[] = [
  {
    name: "tenant deduct",
    connections: [32, 128],
    request: deductRequest,
    requires: [
      { kind: "ratio", to: "bare", atLeast: 0.6, connections: [32] },
      { kind: "ratio", to: "bare", atLeast: 0.72, connections: [128] },
      { kind: "ratio", to: "ceiling", atLeast: 0.8, connections: [32, 128] },
      { kind: "p99", atMostMs: 6, connections: [32, 128] },
      { kind: "ratio", to: "PostgreSQL deduct", atLeast: 1.3, connections: [32] },
      { kind: "ratio", to: "Redis deduct", atLeast: 0, connections: [32] },
    ],
  },
  { name: "meter hold, capture", connections: [32], request: holdCycle, requires: changeRequires(0.75) },
  {
    name: "account balance read",
    connections: [32],
    request: accountBalanceRequest,
    requires: READ_REQUIRES,
  },
  { name: "meter balance read", connections: [32], request: meterBalanceRequest, requires: READ_REQUIRES },
  {
    name: "lock acquire, release",
    connections: [32],
    request: lockCycle,
    requires: [...changeRequires(0.75), { kind: "ratio", to: "etcd lock", atLeast: 3, connections: [32] }],
  },
  {
    name: "schedule a relay",
    connections: [32],
    request: scheduleRequest,
    requires: [
      ...changeRequires(0.8),
      { kind: "ratio", to: "BullMQ delayed add", atLeast: 2, connections: [32] },
      { kind: "ratio", to: "pg-boss delayed send", atLeast: 2, connections: [32] },
    ],
  },
  {
    name: "message to 10 endpoints",
    connections: [32],
    prepare: prepareEndpoints,
    request: messageRequest,
    // Eleven rows and ten jobs in each: the ratio to a bare server's single response is only shown. It has no ceiling.
    requires: [{ kind: "ratio", to: "bare", atLeast: 0, connections: [32] }],
  },
  {
    name: "notary log of 1 KB",
    connections: [32],
    prepare: async (stage) => {
      await stage.post("/v1/witness/sys/init", {});
    },
    request: (stage) => logRequest(stage.key),
    requires: [...changeRequires(0.8), { kind: "p99", atMostMs: 15, connections: [32] }],
  },
  { ...WEBHOOK_IN, requires: changeRequires(0.75) },
  // Twenty events in one response: the ratio to a bare server's single one is only shown.
  { ...WEBHOOK_STREAM, requires: [{ kind: "ratio", to: "bare", atLeast: 0, connections: [32] }] },
  { ...FLAG_EVALUATE, requires: READ_REQUIRES },
  ...OFREP,
  KEY_VERIFY,
  LIMITED_KEY_VERIFY,
  ...CHECKS,
  PINGS,
];
