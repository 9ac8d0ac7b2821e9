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

const CREDITS = 1_000_000;
const PATH = "/v1/pulse/maintenance";
/** Below the limit of a project, including windows in doubt. */
const WORKS_MAX = 30;
const PAGE = 100;
const DAY_MS = 86_400_000;

/** The state of a maintenance window after the last acknowledged change. */
interface Known {
  readonly title: string;
  readonly isOpen: boolean;
}

/**
 * Maintenance windows are created, renamed, opened, closed and deleted. Every acknowledged one exists once, as last set; its monitor is
 * under maintenance exactly while a window is open.
 */
export class MaintenanceWorkload extends Recorded implements Workload {
  readonly name = "maintenance";
  readonly weight = 1;
  private readonly works = new Map<string, Known>();
  /** Ids with a change in progress: with two concurrent changes of one, the last state would be unknown. */
  private readonly busy = new Set<string>();
  private inDoubt: TargetRequest[] = [];
  private key = "";
  private monitorId = "";
  private requested = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "maintenance@example.com", CREDITS);
    const body = { url: "http://127.0.0.1:9/", interval: 300_000 };
    const response = await target.ask({ method: "POST", path: "/v1/pulse", key: this.key, body });
    this.monitorId = String(bodyOf(response)["id"]);
  }

  async act(target: Target, random: Random): Promise<void> {
    this.requested += 1;
    const about = { key: this.key, idempotencyKey: `work-${this.requested}` } as const;
    const free = [...this.works.keys()].filter((id) => !this.busy.has(id));
    const body = this.bodyOf(random.chance(0.5));
    if (free.length === 0 || (this.works.size < WORKS_MAX && random.chance(0.3))) {
      if (this.works.size + this.busy.size >= WORKS_MAX) return;
      const slot = `new ${this.requested}`;
      this.busy.add(slot);
      await this.send(target, { ...about, method: "POST", path: PATH, body });
      this.busy.delete(slot);
      return;
    }
    const id = random.pick(free);
    this.busy.add(id);
    const path = `${PATH}/${id}`;
    const request: TargetRequest = random.chance(0.7)
      ? { ...about, method: "PATCH", path, body }
      : { ...about, method: "DELETE", path };
    if (await this.send(target, request)) this.busy.delete(id);
  }

  async verify(target: Target): Promise<string[]> {
    // A repeat with its key is safe.
    for (const request of this.inDoubt.splice(0)) {
      const response = await target.ask(request);
      if (response.headers.get("idempotent-replayed") === "true") this.counts.happened += 1;
      this.acknowledge(request, response);
    }
    this.busy.clear();
    const list = await target.ask({ method: "GET", path: `${PATH}?limit=${PAGE}`, key: this.key });
    const found = bodyOf(list)["maintenance"] as { id: string; title: string; status: string }[];
    const shown = new Map(found.map(({ id, title, status }) => [id, { title, isOpen: status === "active" }]));
    const problems = [...this.works].flatMap(([id, known]) =>
      Bun.deepEquals(shown.get(id), known) ? [] : [`maintenance: ${id} is not as it was acknowledged`],
    );
    for (const { id } of found)
      if (!this.works.has(id)) problems.push(`maintenance: ${id} must not be there`);
    const path = `/v1/pulse/${this.monitorId}`;
    const monitor = bodyOf(await target.ask({ method: "GET", path, key: this.key }));
    const isOpen = [...this.works.values()].some((known) => known.isOpen);
    if (monitor["maintenance"] !== isOpen)
      problems.push(`maintenance: its monitor says ${String(monitor["maintenance"])}`);
    return problems;
  }

  /** Days around now, or in the future: no window begins or ends by itself during the run. */
  private bodyOf(isOpen: boolean): object {
    const from = Date.now() + (isOpen ? -DAY_MS : DAY_MS);
    return {
      title: `${isOpen ? "open" : "closed"} ${this.requested}`,
      starts_at: new Date(from).toISOString(),
      ends_at: new Date(from + 2 * DAY_MS).toISOString(),
      monitor_ids: [this.monitorId],
    };
  }

  /** Returns whether it was acknowledged. */
  private async send(target: Target, request: TargetRequest): Promise<boolean> {
    const response = await target.send(request);
    if (response !== null) {
      this.acknowledge(request, response);
      return true;
    }
    this.counts.inDoubt += 1;
    this.inDoubt.push(request);
    return false;
  }

  private acknowledge({ method, path }: TargetRequest, response: HttpResponse): void {
    if (response.status !== 200 && response.status !== 201) return;
    this.counts.acknowledged += 1;
    const { id, title, status } = bodyOf(response);
    if (method === "DELETE") this.works.delete(path.slice(PATH.length + 1));
    else this.works.set(String(id), { title: String(title), isOpen: status === "active" });
  }
}
