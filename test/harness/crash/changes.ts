import type { HttpResponse } from "../processes/connection.ts";
import { bodyOf, Recorded, type Target, type TargetRequest, UNAVAILABLE } from "./workload.ts";

/** Kind of a change. */
export type ChangeKind = "deduct" | "refill" | "reset";

/**
 * A change of a balance. Its number is unique in its ledger and part of the request (as the amount, or
 * as the balance of a reset), so that every ledger entry identifies its request, acknowledged or not.
 */
export interface Change {
  readonly kind: ChangeKind;
  readonly number: number;
  readonly request: TargetRequest;
}

/** A ledger entry, as the API returns it. */
export interface Entry {
  readonly sequence: number;
  readonly kind: string;
  readonly amount: number;
  readonly balance_after: number;
  readonly request_id: string | null;
  readonly operation?: string;
  readonly count?: number;
}

type Outcome =
  | { readonly state: "acknowledged"; readonly balance: number; readonly requestId: string | null }
  | { readonly state: "rejected" }
  | { readonly state: "unavailable" }
  | { readonly state: "in doubt" };

interface Tracked {
  readonly change: Change;
  outcome: Outcome;
  entries: number;
}

/** Acknowledged changes under an Idempotency-Key that are sent again after a restart, per ledger. */
const REPLAYS_PER_VERIFICATION = 3;

/** The record of one ledger: every requested change, and which were acknowledged. */
export class ChangeLog extends Recorded {
  private readonly name: string;
  private tracked = new Map<string, Tracked>();

  constructor(name: string) {
    super();
    this.name = name;
  }

  /** Sends a change, twice concurrently with `twice` (which is safe only with an Idempotency-Key). */
  async make(target: Target, change: Change, twice = false): Promise<void> {
    const tracked: Tracked = { change, outcome: { state: "in doubt" }, entries: 0 };
    this.tracked.set(identityOf(change.kind, change.number), tracked);
    const sends = twice ? [change.request, change.request] : [change.request];
    const responses = await Promise.all(sends.map((request) => target.send(request)));
    for (const response of responses) {
      if (response !== null) tracked.outcome = this.merge(change, tracked.outcome, this.outcomeOf(response));
    }
    const { state } = tracked.outcome;
    if (state === "in doubt") this.counts.inDoubt += 1;
    else if (state !== "unavailable") this.counts.acknowledged += 1;
  }

  /**
   * Before {@link compare}: repeats changes in doubt with an Idempotency-Key, and some acknowledged ones.
   * Neither may happen twice, and the latter must get the same response.
   */
  async retry(target: Target): Promise<void> {
    const keyed = [...this.tracked.values()].filter(
      ({ change }) => change.request.idempotencyKey !== undefined,
    );
    for (const tracked of keyed.filter(({ outcome }) => outcome.state === "in doubt")) {
      const response = await target.ask(tracked.change.request);
      tracked.outcome = this.outcomeOf(response);
      if (response.headers.get("idempotent-replayed") === "true") this.counts.happened += 1;
    }
    const completed = keyed.filter(
      ({ outcome: { state } }) => state === "acknowledged" || state === "rejected",
    );
    for (const tracked of completed.slice(-REPLAYS_PER_VERIFICATION)) {
      const response = await target.ask(tracked.change.request);
      if (response.headers.get("idempotent-replayed") !== "true") {
        this.problem(tracked.change, "was carried out again instead of being replayed");
      }
      this.merge(tracked.change, tracked.outcome, this.outcomeOf(response));
    }
  }

  /** Compares the entries written since the last comparison with the record. Returns what differs. */
  compare(entries: readonly Entry[]): string[] {
    for (const entry of entries) this.match(entry);
    for (const { change, outcome, entries: count } of this.tracked.values()) {
      if (outcome.state === "acknowledged" && count === 0)
        this.problem(change, "was acknowledged and is lost");
      if (outcome.state === "rejected" && count > 0) this.problem(change, "was rejected and has happened");
      if (outcome.state === "unavailable" && count > 0) this.problem(change, "got 503 and has happened");
      if (outcome.state === "in doubt" && count > 0) this.counts.happened += 1;
      if (count > 1) this.problem(change, `has happened ${count} times`);
    }
    // From now on another entry with one of these numbers is an error.
    this.tracked = new Map();
    return this.problems.splice(0);
  }

  private match(entry: Entry): void {
    const number = entry.kind === "reset" ? entry.balance_after : Math.abs(entry.amount);
    const tracked = this.tracked.get(identityOf(entry.kind, number));
    if (tracked === undefined) {
      this.problems.push(
        `${this.name}: entry ${entry.sequence} (${entry.kind} ${number}) has no request of its own`,
      );
      return;
    }
    tracked.entries += 1;
    const { outcome, change } = tracked;
    if (outcome.state !== "acknowledged") return;
    if (outcome.balance !== entry.balance_after) {
      this.problem(change, `got the balance ${outcome.balance}, its entry says ${entry.balance_after}`);
    }
    if (outcome.requestId !== null && outcome.requestId !== entry.request_id) {
      this.problem(change, `was request ${outcome.requestId}, its entry says ${entry.request_id}`);
    }
  }

  private outcomeOf(response: HttpResponse): Outcome {
    if (response.status === 402) return { state: "rejected" };
    if (response.status === UNAVAILABLE) return { state: "unavailable" };
    if (response.status === 200) {
      const replayed = response.headers.get("idempotent-replayed") === "true";
      const requestId = replayed ? null : (response.headers.get("x-request-id") ?? "none");
      return { state: "acknowledged", balance: Number(bodyOf(response)["balance"]), requestId };
    }
    this.problems.push(`${this.name}: unexpected response ${response.status} ${response.text}`);
    return { state: "in doubt" };
  }

  /** Two responses to the same change must agree. */
  private merge(change: Change, known: Outcome, further: Outcome): Outcome {
    // One of two can be rejected and the other carried out.
    if (known.state === "in doubt" || known.state === "unavailable") return further;
    if (further.state === "in doubt" || further.state === "unavailable") return known;
    const agree =
      known.state === "acknowledged" && further.state === "acknowledged"
        ? known.balance === further.balance
        : known.state === further.state;
    if (!agree) {
      this.problem(change, `got ${JSON.stringify(known)}, then ${JSON.stringify(further)}`);
    }
    return known.state === "acknowledged" && known.requestId === null ? further : known;
  }

  private problem(change: Change, what: string): void {
    const under =
      change.request.idempotencyKey === undefined ? "" : ` under key ${change.request.idempotencyKey}`;
    this.problems.push(`${this.name}: ${change.kind} ${change.number}${under} ${what}`);
  }
}

function identityOf(kind: string, number: number): string {
  return `${kind} ${number}`;
}

/** The entries of a ledger after a sequence, newest first. */
export async function entriesSince(
  target: Target,
  path: string,
  key: string,
  sequence: number,
): Promise<Entry[]> {
  const found: Entry[] = [];
  let cursor = "";
  let oldest = Number.POSITIVE_INFINITY;
  for (;;) {
    const response = await target.ask({ method: "GET", path: `${path}?limit=100${cursor}`, key });
    if (response.status !== 200) throw new Error(`GET ${path}: ${response.status} ${response.text}`);
    const page = bodyOf(response) as { entries: Entry[]; cursor?: string };
    for (const entry of page.entries) {
      // A cycle of cursors must end this loop.
      if (entry.sequence >= oldest)
        throw new Error(`GET ${path}: entry ${entry.sequence} comes after ${oldest}`);
      oldest = entry.sequence;
    }
    const fresh = page.entries.filter((entry) => entry.sequence > sequence);
    found.push(...fresh);
    if (fresh.length < page.entries.length || page.cursor === undefined) return found;
    cursor = `&cursor=${encodeURIComponent(page.cursor)}`;
  }
}
