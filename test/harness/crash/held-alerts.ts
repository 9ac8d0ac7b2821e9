import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  RecordedOfAccount,
  settled,
  type Target,
  type TargetRequest,
  type Workload,
} from "./workload.ts";

/** A closed port: what arrives is verified elsewhere. */
const NOBODY = "http://127.0.0.1:9/alerts";
const DAY_MS = 86_400_000;
/** So short that groups end before a kill, and after it. */
const GROUP_MS = 100;
/** The shortest that there is. */
const STEP_MS = 60_000;
/** All hours but the last minute of a day, in which alerts are sent immediately: they count the same. */
const QUIET = { from: "00:00", to: "23:59", time_zone: "UTC" };
/** Outages between two verifications: each is read and most are deleted after it. */
const OUTAGES_MAX = 40;
/** Outages that continue over rounds, so that their escalation continues. */
const KEPT_MAX = 6;
/** How long a restarted server may take for alerts that are due. */
const SENT_WITHIN_MS = 20_000;

interface Outage {
  readonly monitorId: string;
  readonly pingPath: string;
  /** Whether the failure was acknowledged. */
  isReported: boolean;
}

interface Alert {
  readonly event: string;
  readonly channels: readonly string[];
}

interface Incident {
  readonly id: string;
  readonly started_at: string;
  readonly resolved_at: string | null;
  readonly alerts?: readonly Alert[];
}

/**
 * Outages of heartbeats, whose alerts one channel collects, another one holds in quiet hours, and a third gets as the step of an
 * escalation. Each channel gets each alert once, whenever the server is killed, by the timelines of the incidents.
 */
export class HeldAlertWorkload extends RecordedOfAccount implements Workload {
  readonly name = "held alerts";
  readonly weight = 1;
  private outages: Outage[] = [];
  /** Outages that are being created. */
  private pending = 0;
  private sent = 0;
  private nightId = "";

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "held-alerts@example.com", "unlimited");
    const steps = await this.channel(target, "steps", { default: false });
    const escalate = [{ after_ms: STEP_MS, channel_ids: [steps] }];
    await this.channel(target, "group", { group_ms: GROUP_MS, escalate });
    this.nightId = await this.channel(target, "night", { quiet_hours: QUIET });
  }

  async act(target: Target, random: Random): Promise<void> {
    // Drawn before the first response, so that a replay draws the same.
    const recovers = random.chance(0.5);
    const ends = random.chance(0.1);
    if (this.outages.length + this.pending >= OUTAGES_MAX) return this.endQuietHours(target);
    this.pending += 1;
    this.sent += 1;
    const outage = await this.created(target, `job ${this.sent}`);
    this.pending -= 1;
    if (outage === null) return;
    this.outages.push(outage);
    outage.isReported = await this.ping(target, `${outage.pingPath}/fail`);
    if (recovers) await this.ping(target, outage.pingPath);
    if (ends) await this.endQuietHours(target);
  }

  async verify(target: Target): Promise<string[]> {
    await this.ask(target, "PATCH", `/v1/pulse/channels/${this.nightId}`, { quiet_hours: null });
    for (const outage of this.outages) await this.verifyOutage(target, outage);
    await this.ask(target, "PATCH", `/v1/pulse/channels/${this.nightId}`, { quiet_hours: QUIET });
    const kept: Outage[] = [];
    for (const outage of this.outages) {
      const { status } = await this.ask(target, "GET", `/v1/pulse/${outage.monitorId}`);
      if (status === "down" && kept.length < KEPT_MAX) kept.push(outage);
      else await this.ask(target, "DELETE", `/v1/pulse/${outage.monitorId}`);
    }
    this.outages = kept;
    return this.problems.splice(0);
  }

  /** What is held is sent, and the hours begin again. */
  private async endQuietHours(target: Target): Promise<void> {
    for (const quiet_hours of [null, QUIET]) {
      const path = `/v1/pulse/channels/${this.nightId}`;
      await this.count(target, { method: "PATCH", path, key: this.key, body: { quiet_hours } });
    }
  }

  private async verifyOutage(target: Target, outage: Outage): Promise<void> {
    const found = await settled(
      SENT_WITHIN_MS,
      () => this.incidentsOf(target, outage),
      (incidents) => incidents.every((incident) => problemsOf(incident).length === 0),
    );
    const about = `outage of ${outage.monitorId}`;
    if (found.length > 1) this.problems.push(`held alerts: ${about}: has ${found.length} incidents`);
    if (found.length === 0 && outage.isReported)
      this.problems.push(`held alerts: ${about}: was acknowledged and is lost`);
    for (const incident of found)
      this.problems.push(...problemsOf(incident).map((problem) => `held alerts: ${about}: ${problem}`));
  }

  private async incidentsOf(target: Target, { monitorId }: Outage): Promise<Incident[]> {
    const list = await this.ask(target, "GET", `/v1/pulse/incidents?monitor_id=${monitorId}`);
    const incidents: Incident[] = [];
    for (const { id } of list["incidents"] as Incident[])
      incidents.push((await this.ask(target, "GET", `/v1/pulse/incidents/${id}`)) as unknown as Incident);
    return incidents;
  }

  private async channel(target: Target, name: string, more: object): Promise<string> {
    const body = { name, kind: "webhook", config: { url: NOBODY }, ...more };
    return String((await this.ask(target, "POST", "/v1/pulse/channels", body))["id"]);
  }

  private async created(target: Target, name: string): Promise<Outage | null> {
    const body = { type: "heartbeat", name, period_ms: DAY_MS };
    const response = await this.count(target, { method: "POST", path: "/v1/pulse", key: this.key, body });
    if (response?.status !== 201) return null;
    const { id, ping_url } = bodyOf(response);
    return { monitorId: String(id), pingPath: new URL(String(ping_url)).pathname, isReported: false };
  }

  private async ping(target: Target, path: string): Promise<boolean> {
    return (await this.count(target, { method: "POST", path, key: null }))?.status === 200;
  }

  private async count(target: Target, request: TargetRequest) {
    const response = await target.send(request);
    if (response === null) this.counts.inDoubt += 1;
    else if (response.status < 300) this.counts.acknowledged += 1;
    return response;
  }
}

/** Alerts of an incident that a channel did not get, or got twice. */
function problemsOf({ started_at, resolved_at, alerts = [] }: Incident): string[] {
  const counts = (event: string, channel: string) =>
    alerts.filter((alert) => alert.event === event && alert.channels.includes(channel)).length;
  const isOver = resolved_at !== null;
  const lasted = (isOver ? Date.parse(resolved_at) : Date.now()) - Date.parse(started_at);
  const steps = counts("monitor.down", "steps");
  const expected = ["group", "night"].flatMap((channel) => [
    { event: "monitor.down", channel, n: 1 },
    { event: "monitor.up", channel, n: isOver ? 1 : 0 },
  ]);
  return [
    ...expected
      .filter(({ event, channel, n }) => counts(event, channel) !== n)
      .map(({ event, channel, n }) => `${channel} got ${event} ${counts(event, channel)} times, not ${n}`),
    ...(steps > 1 ? [`the step notified ${steps} times`] : []),
    ...(steps === 0 && !isOver && lasted > STEP_MS + SENT_WITHIN_MS ? ["the step is lost"] : []),
  ];
}
