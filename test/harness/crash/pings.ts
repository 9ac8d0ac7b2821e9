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

/** Monitors with odd numbers are pinged once and become missed two minutes later. */
const HEARTBEATS = 12;
/** Number of acknowledged pings of each that are verified: more than the hundred that are stored can follow. */
const LOOKED_FOR = 40;
const SHORTEST_MS = 60_000;
/** Successes are twice as frequent, so that most are up. */
const SIGNALS = ["", "", "/start", "/fail", "/log", "/0", "/7"] as const;

interface Heartbeat {
  readonly id: string;
  readonly path: string;
  /** Bodies of its last acknowledged pings. */
  readonly acknowledged: string[];
}

interface Ping {
  readonly at: string;
  readonly kind: string;
  readonly body: string | null;
}

interface Check {
  readonly checked_at: number;
  readonly error: string | null;
}

/**
 * Pings of all kinds. Every acknowledged one exists, no rejected one does, its check is in the history, and no deadline
 * is missed twice.
 */
export class PingWorkload extends Recorded implements Workload {
  readonly name = "pings";
  readonly weight = 1;
  private heartbeats: Heartbeat[] = [];
  private readonly rejected = new Set<string>();
  private readonly inDoubt = new Set<string>();
  private key = "";
  private sent = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "pings@example.com", "unlimited");
    const body = { type: "heartbeat", period_ms: SHORTEST_MS, grace_ms: SHORTEST_MS };
    for (let count = 0; count < HEARTBEATS; count += 1) {
      const response = bodyOf(await target.ask({ method: "POST", path: "/v1/pulse", key: this.key, body }));
      const { pathname } = new URL(String(response["ping_url"]));
      this.heartbeats.push({ id: String(response["id"]), path: pathname, acknowledged: [] });
    }
    for (const heartbeat of this.heartbeats) await this.ping(target, heartbeat, "");
  }

  async act(target: Target, random: Random): Promise<void> {
    const pinged = this.heartbeats.filter((_, number) => number % 2 === 0);
    await this.ping(target, random.pick(pinged), random.pick(SIGNALS));
  }

  async verify(target: Target): Promise<string[]> {
    const problems: string[] = [];
    for (const heartbeat of this.heartbeats) problems.push(...(await this.problemsOf(target, heartbeat)));
    this.inDoubt.clear();
    return problems;
  }

  private async ping(target: Target, { path, acknowledged }: Heartbeat, signal: string): Promise<void> {
    this.sent += 1;
    const body = { ping: this.sent };
    const response = await target.send({ method: "POST", path: path + signal, key: null, body });
    const text = JSON.stringify(body);
    if (response === null) {
      this.counts.inDoubt += 1;
      this.inDoubt.add(text);
    } else if (response.status === 200) {
      this.counts.acknowledged += 1;
      acknowledged.push(text);
      if (acknowledged.length > LOOKED_FOR) acknowledged.shift();
    } else if (response.status === UNAVAILABLE) this.rejected.add(text);
  }

  private async problemsOf(target: Target, { id, acknowledged }: Heartbeat): Promise<string[]> {
    const pings = (await this.read(target, `${id}/pings`))["pings"] as readonly Ping[];
    const checks = (await this.read(target, `${id}/history?limit=100`))["checks"] as readonly Check[];
    const kept = new Set(pings.map(({ body }) => body ?? ""));
    for (const text of this.inDoubt) if (kept.has(text)) this.counts.happened += 1;
    const [end] = pings.filter(({ kind }) => kind === "success" || kind === "fail");
    const [heard] = checks.filter((check) => !isLate(check));
    const endedAt = end === undefined ? undefined : Math.floor(Date.parse(end.at) / 1_000);
    // One with an odd number may have been missed since, and its last pings may all have been ends.
    const agree = end === undefined || heard?.checked_at === endedAt;
    const twice = checks.some((check, at) => isMissed(check) && isMissed(checks[at + 1]));
    return [
      ...acknowledged
        .filter((text) => !kept.has(text))
        .map((text) => `pings: ${text} of ${id} was acknowledged and is lost`),
      ...[...kept]
        .filter((text) => this.rejected.has(text))
        .map((text) => `pings: ${text} of ${id} was rejected and is there`),
      ...(agree
        ? []
        : [`pings: the last end of ${id} came at ${endedAt}, its check at ${heard?.checked_at}`]),
      ...(twice ? [`pings: one deadline of ${id} passed twice`] : []),
    ];
  }

  private async read(target: Target, what: string): Promise<Record<string, unknown>> {
    const request: TargetRequest = { method: "GET", path: `/v1/pulse/${what}`, key: this.key };
    return bodyOf(await target.ask(request));
  }
}

function isMissed(check: Check | undefined): boolean {
  return check?.error?.startsWith("No ping for ") === true;
}

function isLate(check: Check): boolean {
  return isMissed(check) || check.error?.startsWith("The run that started ") === true;
}
