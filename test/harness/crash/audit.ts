import type { HttpResponse } from "../processes/connection.ts";
import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  Recorded,
  type Target,
  type TargetRequest,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const EMAIL = "audit@example.com";
/** Few flags, so that their changes follow each other fast. */
const PROJECTS = "/v1/projects";
const DEFAULT_PROJECT = "Default";
const FLAGS = ["audit-a", "audit-b", "audit-c"];
/** Acknowledged changes with an Idempotency-Key that are repeated after a restart: they must not write a second entry. */
const REPLAYS_PER_VERIFICATION = 3;

/** An administrative change. Its number is part of the change, so that entry and change identify it. */
interface Change {
  readonly number: string;
  readonly request: TargetRequest;
  state: "in doubt" | "acknowledged" | "unavailable";
  /** From the response that was not a replay. */
  requestId: string | null;
  entries: number;
}

/** The compared fields of an audit entry. */
interface Entry {
  readonly sequence: string;
  readonly action: string;
  readonly target: { readonly id: string };
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown> | null;
  readonly request_id: string | null;
}

/**
 * Changes in the audit log: saved flags and created projects. Every acknowledged one has exactly one entry, every entry
 * has its change, and the entries of a flag connect its states.
 */
export class AuditWorkload extends Recorded implements Workload {
  readonly name = "audit";
  readonly weight = 2;
  private key = "";
  private made = 0;
  private changes = new Map<string, Change>();
  private readonly flags = new Map<string, unknown>();
  private seen = 0;
  private seenProject: string | null = null;

  async prepare(target: Target): Promise<void> {
    // A tier without a limit of projects.
    this.key = await createAccount(target, EMAIL, "unlimited");
  }

  async act(target: Target, random: Random): Promise<void> {
    this.made += 1;
    const number = `change-${this.made}`;
    const keyed = random.chance(0.3) ? { idempotencyKey: number } : {};
    const flag = { flag_key: random.pick(FLAGS), enabled: random.chance(0.5), description: number };
    const [path, body] = random.chance(0.8) ? ["/v1/gate", flag] : [PROJECTS, { name: number }];
    const request: TargetRequest = { method: "POST", path, key: this.key, body, ...keyed };
    const change: Change = { number, request, state: "in doubt", requestId: null, entries: 0 };
    this.changes.set(number, change);
    this.take(change, await target.send(request));
    if (change.state === "in doubt") this.counts.inDoubt += 1;
    else if (change.state === "acknowledged") this.counts.acknowledged += 1;
  }

  async verify(target: Target): Promise<string[]> {
    await this.retry(target);
    const entries = await this.entriesSince(target);
    for (const entry of entries) this.match(entry);
    await this.compareFlags(target);
    await this.compareProjects(target);
    for (const change of this.changes.values()) this.judge(change);
    this.seen = Number(entries.at(-1)?.sequence ?? this.seen);
    // From now on another entry with one of these numbers is an error.
    this.changes = new Map();
    return this.problems.splice(0).map((problem) => `audit: ${problem}`);
  }

  private take(change: Change, response: HttpResponse | null): void {
    if (response === null) return;
    if (response.status === UNAVAILABLE) change.state = "unavailable";
    else if (response.status >= 300)
      this.problems.push(`${change.number}: ${response.status} ${response.text}`);
    else {
      change.state = "acknowledged";
      const isReplay = response.headers.get("idempotent-replayed") === "true";
      if (!isReplay) change.requestId = response.headers.get("x-request-id") ?? "none";
    }
  }

  /** Repeats changes in doubt with an Idempotency-Key, and some acknowledged ones. */
  private async retry(target: Target): Promise<void> {
    const keyed = [...this.changes.values()].filter(({ request }) => request.idempotencyKey !== undefined);
    for (const change of keyed.filter(({ state }) => state === "in doubt")) {
      this.take(change, await target.ask(change.request));
    }
    const acknowledged = keyed.filter(({ state }) => state === "acknowledged");
    for (const { number, request } of acknowledged.slice(-REPLAYS_PER_VERIFICATION)) {
      const response = await target.ask(request);
      if (response.headers.get("idempotent-replayed") !== "true")
        this.problems.push(`${number}: was carried out again instead of being replayed`);
    }
  }

  private match({ action, target, before, after, request_id }: Entry): void {
    const isFlag = action === "gate.save";
    const number = String(after?.[isFlag ? "description" : "name"]);
    const change = this.changes.get(number);
    if (change === undefined) {
      this.problems.push(`an entry ${action} of ${number} has no change of its own`);
      return;
    }
    change.entries += 1;
    if (change.requestId !== null && change.requestId !== request_id)
      this.problems.push(`${number}: was request ${change.requestId}, its entry says ${request_id}`);
    if (!isFlag) return;
    const was = before?.["description"];
    if (was !== this.flags.get(target.id))
      this.problems.push(`${number}: changed ${target.id} from ${was}, it was ${this.flags.get(target.id)}`);
    this.flags.set(target.id, number);
  }

  private judge({ number, state, entries }: Change): void {
    if (state === "acknowledged" && entries === 0) this.problems.push(`${number}: has no entry`);
    if (state === "unavailable" && entries > 0) this.problems.push(`${number}: got 503, and has an entry`);
    if (state === "in doubt" && entries > 0) this.counts.happened += 1;
    if (entries > 1) this.problems.push(`${number}: has ${entries} entries`);
  }

  /** Each flag matches its newest entry. */
  private async compareFlags(target: Target): Promise<void> {
    const response = await target.ask({ method: "GET", path: "/v1/gate/config", key: this.key });
    const { flags } = bodyOf(response) as { flags: { flag_key: string; description: string | null }[] };
    for (const flag of FLAGS) {
      const is = flags.find(({ flag_key }) => flag_key === flag)?.description;
      if (is !== this.flags.get(flag))
        this.problems.push(`${flag} is at ${is}, its newest entry says ${this.flags.get(flag)}`);
    }
  }

  /** New projects are exactly those with an entry. */
  private async compareProjects(target: Target): Promise<void> {
    const fresh = await this.projectsSince(target);
    for (const { number, request, entries } of this.changes.values()) {
      if (request.path !== PROJECTS || fresh.delete(number) === entries > 0) continue;
      this.problems.push(`${number}: has ${entries} entries, and ${entries > 0 ? "no" : "a"} project`);
    }
    for (const name of fresh) this.problems.push(`a project ${name} is there and was not requested`);
  }

  private async projectsSince(target: Target): Promise<Set<string>> {
    const names: string[] = [];
    for (let cursor = ""; ; ) {
      const path = `${PROJECTS}?limit=100${cursor}`;
      const response = await target.ask({ method: "GET", path, key: this.key });
      const page = bodyOf(response) as { projects: { name: string }[]; cursor?: string };
      for (const { name } of page.projects) {
        // Every account starts with one.
        if (name === this.seenProject || name === DEFAULT_PROJECT) return this.newest(names);
        names.push(name);
      }
      if (page.cursor === undefined) return this.newest(names);
      cursor = `&cursor=${encodeURIComponent(page.cursor)}`;
    }
  }

  private newest(names: readonly string[]): Set<string> {
    this.seenProject = names[0] ?? this.seenProject;
    return new Set(names);
  }

  /** The entries since the last verification, oldest first. */
  private async entriesSince(target: Target): Promise<Entry[]> {
    const found: Entry[] = [];
    for (let cursor = ""; ; ) {
      const path = `/v1/audit?limit=100${cursor}`;
      const page = bodyOf(await target.ask({ method: "GET", path, key: this.key })) as {
        entries: Entry[];
        cursor?: string;
      };
      const fresh = page.entries.filter(({ sequence }) => Number(sequence) > this.seen);
      found.push(...fresh);
      if (fresh.length < page.entries.length || page.cursor === undefined) return found.reverse();
      cursor = `&cursor=${encodeURIComponent(page.cursor)}`;
    }
  }
}
