import type { Benchmark, WrkRequest } from "./benchmark.ts";
import { PLAIN_OF_TEN } from "./responses.ts";
import type { Stage } from "./stage.ts";

/** Concurrent requests that create the flags. */
const MAKERS = 32;
const BODY = JSON.stringify({
  context: { targetingKey: "user-2", email: "ada@acme.com", plan: "pro", app: { version: "2.10.1" } },
});

/** A typical flag of a team. */
export function flagOf(number: number): object {
  const flag = { flag_key: `flag-${number}`, enabled: true };
  if (number % 10 < PLAIN_OF_TEN) return flag;
  const split = [
    { variant: "on", weight: 25 },
    { variant: "off", weight: 75 },
  ];
  const when = [
    { attribute: "plan", op: "in", values: ["pro", "scale"] },
    { attribute: "app.version", op: "semver_gte", values: ["2.3.0"] },
  ];
  return { ...flag, rules: [{ when, serve: { split } }], default: { variant: "off" } };
}

/** Keys of projects by the number of their flags. */
const keys = new Map<number, string>();

/** Creates a project with `flags` flags. */
async function prepare(stage: Stage, flags: number): Promise<void> {
  const { id } = await stage.post("/v1/projects", { name: `${flags} flags` });
  const terms = { prefix: "sm", name: "flags", scopes: ["*"] };
  const key = String((await stage.post(`/v1/projects/${id}/keys`, terms)).secret);
  keys.set(flags, key);
  let next = 0;
  const maker = async (): Promise<void> => {
    for (let number = next++; number < flags; number = next++) {
      const response = await fetch(`${stage.url}/v1/gate`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(flagOf(number)),
      });
      if (!response.ok) throw new Error(`flag ${number}: ${response.status} ${await response.text()}`);
    }
  };
  await Promise.all(Array.from({ length: MAKERS }, maker));
}

/** The requests of the rows, by the key of a project. */
export function evaluationRequest(key: string | undefined, path: string): WrkRequest {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  return { method: "POST", path: `/ofrep/v1/evaluate/flags${path}`, headers, body: BODY };
}

function bulkOf(flags: number, connections: number, atMostMs: number): Benchmark {
  return {
    name: `OFREP bulk of ${flags.toLocaleString("en")}`,
    connections: [connections],
    prepare: (stage) => prepare(stage, flags),
    // Ninefold ignores the query: it gives the bare server the number of flags.
    request: () => evaluationRequest(keys.get(flags), `?flags=${flags}`),
    requires: [
      { kind: "ratio", to: "bare", atLeast: 0, connections: [connections] },
      { kind: "p99", atMostMs, connections: [connections] },
    ],
  };
}

/** Evaluations as providers of OpenFeature request them: one flag with a rule and a split, and all flags. */
export const OFREP: readonly Benchmark[] = [
  {
    name: "OFREP evaluate",
    connections: [32],
    prepare: (stage) => prepare(stage, 10),
    request: () => evaluationRequest(keys.get(10), "/flag-7"),
    requires: [
      { kind: "ratio", to: "bare", atLeast: 0, connections: [32] },
      { kind: "p99", atMostMs: 3, connections: [32] },
    ],
  },
  bulkOf(200, 8, 25),
  bulkOf(20_000, 1, 200),
];
