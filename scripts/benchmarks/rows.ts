import type { Benchmark, WrkRequest } from "./benchmark.ts";
import { KEYS_AND_FLAGS } from "./keys-and-flags.ts";
import { lockCycle } from "./locks.ts";
import { scheduleRequest } from "./schedule.ts";
import { METERS, type Stage } from "./stage.ts";
import { WEBHOOK_IN } from "./webhooks.ts";

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

/** A read of the own balance. */
export function ownBalanceRequest(stage: Stage): WrkRequest {
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

/** A log of 1 KB, each another one. */
export function logRequest(key: string): WrkRequest {
  return {
    method: "POST",
    path: "/v1/witness/log",
    headers: { Authorization: `Bearer ${key}` },
    body: JSON.stringify(logBody("in_{unique}")),
  };
}

/** Every row. The baselines (`bare GET`, `bare POST` and so on) are measured at the connections that rows ask for. */
export const BENCHMARKS: readonly Benchmark[] = [
  {
    name: "tenant deduct",
    connections: [32, 128],
    request: deductRequest,
    requires: [
      { kind: "ratio", to: "bare POST", atLeast: 0.6, connections: [32, 128] },
      { kind: "p99", atMostMs: 10, connections: [32] },
      { kind: "ratio", to: "PostgreSQL deduct", atLeast: 1.3, connections: [32] },
      { kind: "ratio", to: "Redis deduct", atLeast: 0, connections: [32] },
    ],
  },
  {
    name: "own balance read",
    connections: [32],
    request: ownBalanceRequest,
    requires: [{ kind: "ratio", to: "bare GET", atLeast: 0.6, connections: [32] }],
  },
  {
    name: "lock acquire, release",
    connections: [32],
    request: lockCycle,
    requires: [
      { kind: "ratio", to: "bare POST", atLeast: 0.55, connections: [32] },
      { kind: "ratio", to: "etcd lock", atLeast: 3, connections: [32] },
    ],
  },
  {
    name: "schedule a relay",
    connections: [32],
    request: scheduleRequest,
    requires: [
      { kind: "ratio", to: "bare POST", atLeast: 0.45, connections: [32] },
      { kind: "ratio", to: "pg-boss delayed send", atLeast: 2, connections: [32] },
      { kind: "ratio", to: "BullMQ delayed add", atLeast: 0, connections: [32] },
    ],
  },
  {
    name: "notary log of 1 KB",
    connections: [32],
    prepare: async (stage) => {
      await stage.post("/v1/witness/sys/init", {});
    },
    request: (stage) => logRequest(stage.key),
    requires: [
      { kind: "ratio", to: "bare POST of 1 KB", atLeast: 0.35, connections: [32] },
      { kind: "p99", atMostMs: 15, connections: [32] },
    ],
  },
  WEBHOOK_IN,
  ...KEYS_AND_FLAGS,
];
