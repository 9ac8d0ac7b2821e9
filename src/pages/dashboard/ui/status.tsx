/** Severity of a state. */
export type Tone = "good" | "warn" | "bad" | "idle" | "busy";

const TONES: Readonly<Record<string, Tone>> = {
  up: "good",
  on: "good",
  online: "good",
  live: "good",
  delivered: "good",
  valid: "good",
  active: "good",
  held: "busy",
  scheduled: "busy",
  delivering: "busy",
  pending: "warn",
  buffered: "warn",
  degraded: "warn",
  ending: "warn",
  slow: "warn",
  down: "bad",
  offline: "bad",
  overdue: "bad",
  failed: "bad",
  invalid: "bad",
  suspended: "bad",
};

/** A state: a word and a dot. The dot's shape differs too. */
export function Status({ state, tone }: { state: string; tone?: Tone }) {
  return <span class={`status ${tone ?? TONES[state] ?? "idle"}`}>{state}</span>;
}
