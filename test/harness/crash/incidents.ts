import type { HttpResponse } from "../processes/connection.ts";
import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  Recorded,
  type Target,
  type TargetRequest,
  type Workload,
} from "./workload.ts";

const MONITORS = 4;
const PATH = "/v1/pulse/incidents";
/** Scheduled checks are rare, and are not counted here. */
const INTERVAL_MS = 300_000;
/** Attempts to read a monitor and its incidents without a check in between. */
const READS_MAX = 10;

interface Incident {
  readonly id: string;
  readonly kind: "auto" | "manual";
  readonly acknowledged_at: string | null;
  readonly resolved_at: string | null;
  readonly updates: readonly object[];
}

/** The acknowledged state of an incident. */
interface Known {
  acknowledged: boolean;
  resolved: boolean;
}

/**
 * Monitors that go down and recover, and manual incidents. A monitor that is down has exactly one open
 * incident, others have none, and the channel is notified once of each acknowledgement.
 */
export class IncidentWorkload extends Recorded implements Workload {
  readonly name = "incidents";
  readonly weight = 1;
  private readonly known = new Map<string, Known>();
  private readonly monitors: string[] = [];
  /** Monitors whose targets respond with 500. */
  private readonly failing = new Set<string>();
  private inDoubt: TargetRequest[] = [];
  private key = "";
  private requested = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "incidents@example.com", "unlimited");
    const site = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: ({ url }) => new Response(null, { status: this.failing.has(new URL(url).pathname) ? 500 : 200 }),
    });
    site.unref();
    const base = `http://127.0.0.1:${site.port}`;
    const ask = (path: string, body: object) => target.ask({ method: "POST", path, key: this.key, body });
    await ask("/v1/pulse/channels", {
      name: "c",
      kind: "slack",
      config: { url: `${base}/channel` },
      events: ["monitor.acknowledged"],
    });
    for (let number = 0; number < MONITORS; number += 1) {
      const created = await ask("/v1/pulse", { url: `${base}/${number}`, interval: INTERVAL_MS });
      if (created.status !== 201) throw new Error(`no monitor: ${created.text}`);
      this.monitors.push(String(bodyOf(created)["id"]));
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const number = random.below(MONITORS);
    if (random.chance(0.5)) {
      const path = `/${number}`;
      if (random.chance(0.5)) this.failing.add(path);
      else this.failing.delete(path);
      const check = {
        method: "POST",
        path: `/v1/pulse/${this.monitors[number]}/check`,
        key: this.key,
      } as const;
      const response = await target.send(check);
      if (response === null) this.counts.inDoubt += 1;
      else this.counts.acknowledged += 1;
      return;
    }
    const request = this.requestOf(random);
    const response = await target.send(request);
    if (response !== null) return this.acknowledge(response);
    this.counts.inDoubt += 1;
    this.inDoubt.push(request);
  }

  async verify(target: Target): Promise<string[]> {
    // A repeat with its key is safe.
    for (const request of this.inDoubt.splice(0)) {
      const response = await target.ask(request);
      if (response.headers.get("idempotent-replayed") === "true") this.counts.happened += 1;
      this.acknowledge(response);
    }
    const problems: string[] = [];
    for (const id of this.monitors) problems.push(...(await this.problemsOfMonitor(target, id)));
    const there = await this.all<Incident>(target, PATH, "incidents");
    problems.push(...this.problemsOf(there));
    const notifications = await this.all(target, "/v1/relay?event=monitor.acknowledged", "deliveries");
    const acknowledged = there.filter(({ acknowledged_at }) => acknowledged_at !== null);
    if (notifications.length !== acknowledged.length)
      problems.push(
        `incidents: ${acknowledged.length} are acknowledged, and ${notifications.length} were received`,
      );
    return problems;
  }

  private requestOf(random: Random): TargetRequest {
    this.requested += 1;
    const about = { method: "POST", key: this.key, idempotencyKey: `incident-${this.requested}` } as const;
    const open = [...this.known].filter(([, { resolved }]) => !resolved);
    if (open.length < 10 || random.chance(0.3))
      return { ...about, path: PATH, body: { title: `${this.requested}` } };
    const [id] = random.pick(open);
    if (random.chance(0.5)) return { ...about, path: `${PATH}/${id}/acknowledge` };
    const status = random.chance(0.7) ? "resolved" : "identified";
    return { ...about, path: `${PATH}/${id}/updates`, body: { status, message: "x" } };
  }

  private acknowledge(response: HttpResponse): void {
    if (response.status !== 200 && response.status !== 201) return;
    this.counts.acknowledged += 1;
    const { id, acknowledged_at, resolved_at } = bodyOf(response) as unknown as Incident;
    const known = this.known.get(id) ?? { acknowledged: false, resolved: false };
    known.acknowledged ||= acknowledged_at !== null;
    known.resolved ||= resolved_at !== null;
    this.known.set(id, known);
  }

  private problemsOf(there: readonly Incident[]): string[] {
    const byId = new Map(there.map((incident) => [incident.id, incident]));
    return [...this.known].flatMap(([id, { acknowledged, resolved }]) => {
      const found = byId.get(id);
      if (found === undefined) return [`incidents: ${id} was made and is lost`];
      const isLost =
        (acknowledged && found.acknowledged_at === null) || (resolved && found.resolved_at === null);
      return isLost ? [`incidents: ${id} has lost what was said of it`] : [];
    });
  }

  private async problemsOfMonitor(target: Target, id: string): Promise<string[]> {
    const read = async () =>
      bodyOf(await target.ask({ method: "GET", path: `/v1/pulse/${id}`, key: this.key }));
    for (let reads = 0; reads < READS_MAX; reads += 1) {
      const { status, incident_id, last_checked_at } = await read();
      const open = await this.all<Incident>(target, `${PATH}?status=open&monitor_id=${id}`, "incidents");
      if ((await read())["last_checked_at"] !== last_checked_at) continue;
      const expected = status === "down" ? [incident_id] : [];
      const found = open.filter(({ kind }) => kind === "auto").map((incident) => incident.id);
      return Bun.deepEquals(found, expected)
        ? []
        : [`incidents: monitor ${id} is ${status}, and its open incidents are ${found.join(", ")}`];
    }
    return [`incidents: monitor ${id} is checked all the time`];
  }

  /** All items of a list. */
  private async all<Item>(target: Target, path: string, name: string): Promise<Item[]> {
    const items: Item[] = [];
    for (let cursor = ""; ; ) {
      const query = `${path.includes("?") ? "&" : "?"}limit=100${cursor}`;
      const page = bodyOf(await target.ask({ method: "GET", path: path + query, key: this.key }));
      items.push(...(page[name] as Item[]));
      if (page["cursor"] === undefined) return items;
      cursor = `&cursor=${encodeURIComponent(String(page["cursor"]))}`;
    }
  }
}
