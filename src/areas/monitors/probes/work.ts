import { ApiError, invalidField } from "../../../kernel/errors.ts";
import {
  type BucketRate,
  TokenBuckets,
  takeTokens,
  waitForTokens,
} from "../../../kernel/http/access/token-buckets.ts";
import type { OpenCall } from "../../../kernel/http/requests/call.ts";
import type { Ids } from "../../../kernel/ids.ts";
import { onOneLine } from "../../../kernel/one-line.ts";
import { keyDigest, keyPrefix } from "../../../kernel/secrets/key-format.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { monotonicMs, receivingSince } from "../../../kernel/time/clock.ts";
import { DAY_MS } from "../../../kernel/time/units.ts";
import { LOCAL, RETRY_MS_MIN } from "../options.ts";
import type { AreaDeps } from "../ports.ts";
import type { CompletedCheck, MonitorRow } from "../store.ts";
import { MONITOR_CLIENT_KEY, MONITOR_HEADERS } from "../targets/http.ts";
import type { VoteStore } from "../votes/store.ts";
import { isCompatible, OFFLINE_MS } from "./domain.ts";
import { Presence, type PresenceOwner } from "./presence.ts";
import {
  type ProbeMonitor,
  type ProbeResult,
  type ProbeResultsAccepted,
  type ProbeResultsBody,
  type ProbeWork,
  type ProbeWorkQuery,
  RESULT_AGE_MS_MAX,
  WAIT_MS,
} from "./schema.ts";
import type { ProbeRow, ProbeStore } from "./store.ts";

/** The prefix of the tokens of probes. */
export const TOKEN_PREFIX = "probe";
/** Monitors in one response. */
const MONITORS_PER_PAGE = 100;
/** Characters of monitors after which a response ends. */
const PAGE_LENGTH_MAX = 256 * 1024;
/** Results that one unit of work records: some milliseconds. */
const RESULTS_PER_UNIT = 25;
/** Results of a probe: twice what it keeps while it cannot send, and then one of each monitor in the shortest time between checks. */
const RESULT_RATE = { capacity: 20_000, parts: RETRY_MS_MIN };
/** Monitors beyond which results are not accepted faster: 400 a second. */
const RATED_MONITORS_MAX = 2_000;
/** Requests for work of a probe: one a second, and some more after lists have changed. */
const REQUEST_RATE = { capacity: 120, parts: 1_000, gainPerMs: 4 };
/** Probes whose rates are remembered. */
const BUCKETS_MAX = 10_000;
/** Time that a requested check has beyond its timeout: three attempts may be made, and the result travels. */
const REQUESTED_MS = { manual: 10_000, due: 1_000 };
/** The job that notices that a probe is silent; its key is the probe's reference. */
const OFFLINE_JOB = "monitors.probe-offline";
const CONCURRENCY = 16;
/** How long ids of results are remembered. */
const RESULT_ID_MS = DAY_MS;

/** How old the stored time of a probe's last request may be: the exact one is in memory. */
const SEEN_MS = 10_000;

/** Records what probes have seen. */
interface Recorder {
  recordNow(tx: Tx, monitor: MonitorRow, checks: readonly CompletedCheck[]): MonitorRow;
}

type Deps = Pick<
  AreaDeps,
  "alerting" | "changes" | "clock" | "monitors" | "owners" | "scheduler" | "stopped" | "vault" | "writer"
> & {
  readonly ids: Ids;
  readonly probes: ProbeStore;
  readonly votes: VoteStore;
  readonly checks: Recorder;
  /** Version of the server. */
  readonly version: string;
  readonly isTestClock: boolean;
};

/** What a request of a probe takes of its limit. */
interface Use {
  readonly probe: Pick<ProbeRow, "ref">;
  readonly rate: BucketRate;
  readonly count: number;
}

/** Gives probes their work, and records their results. */
export class ProbeWorkplace {
  /** Of probes that have called, by reference. */
  private readonly presences = new Map<number, Presence>();
  private readonly results = new TokenBuckets<number>(BUCKETS_MAX);
  private readonly requests = new TokenBuckets<number>(BUCKETS_MAX);
  private readonly ended = new AbortController();
  private readonly run: string;
  /** Monotonic time: nobody could call before. */
  private readonly startedAt: number;

  constructor(private readonly deps: Deps) {
    this.run = deps.ids.base62(8);
    this.startedAt = deps.clock.monotonic();
    deps.scheduler.suspended.onSuspended((tx, accountRef) =>
      tx.afterCommit(() => {
        for (const presence of this.presences.values())
          if (presence.owner.accountRef === accountRef) presence.close();
      }),
    );
    deps.scheduler.register(OFFLINE_JOB, {
      concurrency: CONCURRENCY,
      run: async ({ key }) => this.lookAt(Number(key)),
    });
  }

  /** Ends all requests that wait, because the server stops. */
  stop(): void {
    this.ended.abort();
    for (const presence of this.presences.values()) presence.close();
  }

  /**
   * The work of a probe: the monitors after a position, or the next change.
   * @throws ApiError `unauthorized`, `forbidden`, `probe_version_unsupported`, `validation_error`, `rate_limit_exceeded`,
   *   `service_unavailable`
   */
  async poll(call: OpenCall, query: ProbeWorkQuery): Promise<ProbeWork> {
    const { after, wait_ms = WAIT_MS, version = null } = query;
    const probe = this.authenticate(call);
    this.takeTokens(
      this.requests,
      { probe, rate: REQUEST_RATE, count: 1 },
      "The probe polls too often. Two processes with the same token end each other's requests: create a probe for each.",
    );
    if (version !== null && !isCompatible(this.deps.version, version)) {
      const message = `The server has version ${this.deps.version}, and the probe ${version.slice(0, 20)}. Update the older one.`;
      throw new ApiError("probe_version_unsupported", message);
    }
    const presence = this.presenceOf(probe.ref, probe);
    await this.deps.writer.submit((tx) => this.seen(tx, this.authenticate(call), query));
    presence.seen(this.deps.clock.now(), { isCut: false, waits: wait_ms > 0 });
    // A request that is fast shows how slow others are.
    presence.transit.delayOf(query, monotonicMs());
    const position = positionOf(after);
    const end = monotonicMs() + wait_ms;
    call.setIdleTimeout(0);
    const wake = (): void => presence.end();
    call.request.signal.addEventListener("abort", wake, { once: true });
    try {
      for (;;) {
        const leftMs = end - monotonicMs();
        const isNew = position.list !== presence.list || !position.isComplete || presence.hasDue;
        // Nobody reads this response: checks that are due stay for the next request.
        if (call.request.signal.aborted)
          throw new ApiError("service_unavailable", "The probe has closed the connection.");
        if (isNew || leftMs <= 0 || this.ended.signal.aborted) break;
        await presence.wait(leftMs);
        // It may have been removed or suspended meanwhile; another request may wait in place of this one.
        this.authenticate(call);
        if (presence.isWaiting) break;
      }
    } finally {
      call.request.signal.removeEventListener("abort", wake);
      presence.seen(this.deps.clock.now(), { isCut: call.request.signal.aborted, waits: wait_ms > 0 });
    }
    if (this.ended.signal.aborted)
      throw new ApiError("service_unavailable", "The server is shutting down. Retry the request.");
    return this.workAfter(this.authenticate(call), presence, position);
  }

  /**
   * Records results of a probe.
   * @throws ApiError `unauthorized`, `forbidden`, `rate_limit_exceeded`
   */
  async receive(call: OpenCall, { results, ...sent }: ProbeResultsBody): Promise<ProbeResultsAccepted> {
    const probe = this.authenticate(call);
    const presence = this.presenceOf(probe.ref, probe);
    const monitors = presence.monitors(() => this.deps.votes.countOf(probe.ref, RATED_MONITORS_MAX));
    this.takeTokens(
      this.results,
      {
        probe,
        rate: { ...RESULT_RATE, gainPerMs: Math.max(1, monitors) },
        count: Math.max(1, results.length),
      },
      "The probe sends too much. Retry later.",
    );
    const receipt = {
      at: this.deps.clock.now(),
      delayMs: presence.transit.delayOf(sent, monotonicMs()),
    };
    presence.lastSeenAt = receipt.at;
    const rejected: ProbeResultsAccepted["rejected"] = [];
    for (let start = 0; start < results.length || start === 0; start += RESULTS_PER_UNIT) {
      const part = results.slice(start, start + RESULTS_PER_UNIT);
      // As the checks of the server are: requests of others come first.
      const reasons = await this.deps.writer.submitInBackground((tx) => {
        // It may have been removed or suspended since the last part.
        const row = this.authenticate(call);
        const isStale = row.offline || tx.now - (row.lastSeenAt ?? 0) >= SEEN_MS;
        if (start === 0 && isStale) this.seen(tx, row, {});
        return part.map((result) => this.record(tx, probe, result, receipt));
      });
      for (const [index, reason] of reasons.entries()) {
        if (reason === null) presence.recorded(part[index]?.monitor_id.toLowerCase() ?? "");
        else rejected.push({ index: start + index, reason });
      }
    }
    return { accepted: results.length - rejected.length, rejected };
  }

  /** Under a test clock: has the probes of a monitor check it, and waits for those that are connected. */
  async checkDue(monitor: MonitorRow): Promise<void> {
    if (!this.deps.isTestClock) return;
    const asked = this.probesOf(monitor)
      .filter((probe) => this.isOnline(probe))
      .map(({ ref }) => {
        const isConnected = this.presences.get(ref)?.isConnected;
        const result = this.request(ref, monitor, false);
        return isConnected ? result : null;
      });
    await Promise.all(asked);
  }

  /**
   * The probe that makes a manual check: the named one, else none if the server checks, else the first that is online, those that
   * are connected before the others.
   * @throws ApiError `validation_error` for a name that the monitor does not have, `probe_offline`
   */
  chosenFor(monitor: MonitorRow, name: string | undefined): number | null {
    const { probes } = monitor.settings;
    if (name !== undefined && !probes.includes(name))
      throw invalidField("probe", "must be the name of a probe of this monitor, or local");
    if (name === LOCAL || (name === undefined && probes.includes(LOCAL))) return null;
    const online = this.probesOf(monitor)
      .filter((probe) => (name ?? probe.name) === probe.name && this.isOnline(probe) === true)
      .filter(({ ref }) => this.presences.get(ref)?.isCut !== true);
    const chosen = online.find(({ ref }) => this.presences.get(ref)?.isConnected) ?? online[0];
    if (chosen === undefined)
      throw new ApiError("probe_offline", `No probe of this monitor is online: ${probes.join(", ")}.`);
    return chosen.ref;
  }

  /** Has a probe check a monitor once. Resolves to whether its result came. */
  request(probeRef: number, monitor: MonitorRow, manual: boolean): Promise<boolean> {
    const { monitorId, settings } = monitor;
    // It may have been removed since it was chosen.
    if (this.deps.probes.withRef(probeRef) === null) return Promise.resolve(false);
    return this.presenceOf(probeRef, monitor).request(
      monitorId,
      manual,
      settings.timeout + REQUESTED_MS[manual ? "manual" : "due"],
    );
  }

  /** The monitors of probes have changed. */
  changed(tx: Tx, probeRefs: Iterable<number>): void {
    const refs = [...probeRefs];
    tx.afterCommit(() => {
      for (const ref of refs) this.presences.get(ref)?.changed();
    });
  }

  /** A probe is removed: what waits ends. */
  removed(tx: Tx, ref: number): void {
    this.deps.scheduler.cancel(tx, OFFLINE_JOB, String(ref));
    tx.afterCommit(() => {
      this.presences.get(ref)?.close();
      this.presences.delete(ref);
    });
  }

  /** A project is deleted: what its probes wait for ends. */
  projectDeleted(tx: Tx, projectRef: number): void {
    tx.afterCommit(() => {
      for (const [ref, presence] of this.presences) {
        if (presence.owner.projectRef !== projectRef) continue;
        presence.close();
        this.presences.delete(ref);
      }
    });
  }

  /** Whether a probe is online; null before its first request. */
  isOnline({ ref, lastSeenAt, offline }: ProbeRow): boolean | null {
    return lastSeenAt === null ? null : !offline || this.isWaiting(ref);
  }

  /** Time of the last request of a probe, epoch milliseconds; null before its first. */
  seenAt({ ref, lastSeenAt }: ProbeRow, now: number): number | null {
    if (this.isWaiting(ref)) return now;
    return lastSeenAt && Math.max(lastSeenAt, this.presences.get(ref)?.lastSeenAt ?? 0);
  }

  /** Whether a request of a probe waits, which counts as seen. */
  isWaiting(ref: number): boolean {
    return this.presences.get(ref)?.isWaiting === true;
  }

  /** @throws ApiError `unauthorized`, `forbidden` */
  private authenticate({ request }: OpenCall): ProbeRow {
    const token = /^Bearer (\S{1,128})$/i.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
    const probe = keyPrefix(token) === TOKEN_PREFIX ? this.deps.probes.withToken(keyDigest(token)) : null;
    if (probe === null || this.deps.stopped.has(probe.projectRef)) throw unauthorized();
    if (this.deps.owners.account(probe.accountRef).suspended)
      throw new ApiError("forbidden", "This account is suspended. Contact the operator of the server.");
    return probe;
  }

  /** @throws ApiError `rate_limit_exceeded` */
  private takeTokens(buckets: TokenBuckets<number>, { probe, rate, count }: Use, message: string): void {
    const bucket = buckets.at(probe.ref, rate, this.deps.clock.now());
    const waitMs = waitForTokens(bucket, count);
    if (waitMs > 0)
      throw new ApiError("rate_limit_exceeded", message, {
        retryAfterSeconds: Math.ceil(waitMs / 1_000),
      });
    takeTokens(bucket, count);
  }

  private presenceOf(ref: number, { projectRef, accountRef }: PresenceOwner): Presence {
    const known = this.presences.get(ref);
    if (known !== undefined) return known;
    const presence = new Presence(this.run, { projectRef, accountRef });
    this.presences.set(ref, presence);
    return presence;
  }

  private probesOf({ projectRef, settings }: MonitorRow): ProbeRow[] {
    return settings.probes.flatMap((name) =>
      name === LOCAL ? [] : (this.deps.probes.named(projectRef, name) ?? []),
    );
  }

  /** Records that a probe has called, and notifies channels if it was offline. */
  private seen(tx: Tx, before: ProbeRow, { version, queue, time_ms }: ProbeWorkQuery): void {
    const { probes, scheduler } = this.deps;
    const { ref } = before;
    probes.setSeen(tx, {
      ref,
      now: tx.now,
      version: version ?? null,
      queue: queue ?? null,
      clockOffsetMs: time_ms === undefined ? null : time_ms - tx.now,
    });
    scheduler.enqueue(tx, OFFLINE_JOB, String(ref), tx.now + OFFLINE_MS, null);
    if (before.offline) this.notify(tx, before, "probe.online", "is online again");
    if (before.offline || before.lastSeenAt === null)
      this.deps.changes.inProject(tx, before.projectRef, "pulse");
  }

  /** Looks whether a probe is silent. */
  private async lookAt(ref: number) {
    const { probes, clock, scheduler } = this.deps;
    const { suspended } = scheduler;
    const probe = probes.withRef(ref);
    if (probe === null || probe.offline) return {};
    const { accountRef } = probe;
    const seenAt = this.seenAt(probe, clock.now()) ?? 0;
    // It cannot call while its account is suspended.
    const since = suspended.has(accountRef)
      ? clock.now()
      : Math.max(seenAt, receivingSince(clock, this.startedAt), suspended.activeSince(accountRef));
    if (since > clock.now()) {
      // The clock was set back: its time begins anew.
      const retryAt = clock.now() + OFFLINE_MS;
      return { retryAt, attempt: 0, record: (tx: Tx) => this.setSeenAt(tx, ref) };
    }
    if (clock.now() - since < OFFLINE_MS) return { retryAt: since + OFFLINE_MS, attempt: 0 };
    return {
      record: (tx: Tx) => {
        const now = probes.withRef(ref);
        if (now === null || (this.seenAt(now, tx.now) ?? 0) !== seenAt) return;
        probes.setOffline(tx, ref);
        this.deps.changes.inProject(tx, probe.projectRef, "pulse");
        this.notify(
          tx,
          probe,
          "probe.offline",
          "has sent nothing for 2 minutes: its monitors are checked without it",
        );
      },
    };
  }

  private setSeenAt(tx: Tx, ref: number): void {
    this.deps.probes.setSeenAt(tx, { ref, now: tx.now });
    const presence = this.presences.get(ref);
    if (presence !== undefined) presence.lastSeenAt = tx.now;
  }

  private notify(
    tx: Tx,
    { name, location, projectRef, accountRef }: ProbeRow,
    event: "probe.offline" | "probe.online",
    text: string,
  ): void {
    const { stopped, owners, alerting } = this.deps;
    if (stopped.has(projectRef) || owners.account(accountRef).suspended) return;
    const title = `Probe ${name}${location === null ? "" : ` (${location})`}`;
    alerting.notifyChannels(tx, { projectRef, monitor: null, event, title, text, facts: { probe: name } });
  }

  /** Records one result. Returns why it is rejected, or null. */
  private record(tx: Tx, probe: ProbeRow, result: ProbeResult, receipt: Receipt) {
    const { monitors, probes, votes, checks, stopped } = this.deps;
    const monitorId = result.monitor_id.toLowerCase();
    const monitor = UUID.test(monitorId) ? monitors.find(monitorId) : null;
    const isOwn = monitor !== null && votes.has(monitor.ref, probe.ref) !== 0;
    if (!isOwn || !monitor.settings.active || stopped.has(monitor.projectRef)) return "unknown_monitor";
    const { age_ms: sentAgeMs } = result;
    const ageMs = sentAgeMs + receipt.delayMs;
    if (!(sentAgeMs >= 0 && ageMs <= RESULT_AGE_MS_MAX)) return "age";
    if (!probes.remember(tx, probe.ref, result.result_id, receipt.at - RESULT_ID_MS)) return "duplicate";
    const { interval, timeout } = monitor.settings;
    const check: CompletedCheck = {
      up: result.status === "up",
      ...(result.status === "unknown" && { isUnknown: true }),
      latencyMs: result.latency_ms ?? 0,
      at: Math.floor(receipt.at - ageMs),
      manual: this.presences.get(probe.ref)?.isManual(monitorId) === true,
      responseStatus: result.response_status ?? null,
      // It stands in lines of e-mails and terminals.
      error: result.status === "up" ? null : onOneLine(result.error ?? "the probe reports no reason", " "),
      probe: { ref: probe.ref, name: probe.name },
      isLate: ageMs > interval + timeout,
      ...(result.observer_offline === true && { offline: "account" as const }),
      ...(result.icmp && { icmp: result.icmp }),
      ...(result.certificate && {
        certificate: {
          notAfter: result.certificate.not_after * 1_000,
          issuer: result.certificate.issuer,
          ...(result.certificate.intermediate && { intermediate: result.certificate.intermediate }),
        },
      }),
    };
    checks.recordNow(tx, monitor, [check]);
    return null;
  }

  private workAfter(probe: ProbeRow, presence: Presence, position: Position): ProbeWork {
    const { monitors, votes, isTestClock } = this.deps;
    // A list that is being read is read to its end: one that changes all the time would never be read.
    const isReading = !position.isComplete && presence.isOwnList(position.list);
    const list = isReading ? position.list : presence.list;
    const isSame = position.list === list;
    const scheduled = !isTestClock;
    if (isSame && position.isComplete) {
      const unchanged = { cursor: cursorOf(position), reset: false, complete: true, monitors: [] };
      return { ...unchanged, due: presence.takeDue(), scheduled };
    }
    const shown: ProbeMonitor[] = [];
    let [ref, length] = [isSame ? position.ref : 0, 0];
    const rows = votes.monitorsOf(probe.ref, ref, MONITORS_PER_PAGE + 1);
    let read = 0;
    for (const row of rows.slice(0, MONITORS_PER_PAGE)) {
      if (length > PAGE_LENGTH_MAX) break;
      read += 1;
      ref = row.ref;
      const monitor = monitors.monitor(ref);
      if (monitor === null || !monitor.settings.active) continue;
      const item = this.viewOf(monitor);
      length += JSON.stringify(item).length;
      shown.push(item);
    }
    const complete = read === rows.length;
    const cursor = cursorOf({ list, ref, isComplete: complete });
    // Only who has the whole list has the monitors that are due.
    const due = complete ? presence.takeDue() : [];
    return { cursor, reset: !isSame, complete, monitors: shown, due, scheduled };
  }

  /** A monitor as a probe needs it, without anything of alerts. */
  private viewOf({ monitorId, settings }: MonitorRow): ProbeMonitor {
    return {
      monitor_id: monitorId,
      type: settings.type,
      url: settings.url,
      method: settings.method,
      headers: MONITOR_HEADERS.openOrNull(this.deps.vault, monitorId, settings.headers),
      body: settings.body,
      timeout: settings.timeout,
      interval: settings.interval,
      consecutive_threshold: settings.consecutive_threshold,
      retry_interval: settings.retry_interval,
      down_interval: settings.down_interval,
      host: settings.host,
      port: settings.port,
      record_type: settings.record_type,
      record_value: settings.record_value,
      record_values: settings.record_values,
      match: settings.match,
      resolver: settings.resolver,
      accept_status: settings.accept_status,
      keyword: settings.keyword,
      keyword_absent: settings.keyword_absent,
      keywords_all: settings.keywords_all,
      keywords_any: settings.keywords_any,
      tls: settings.tls,
      tls_verify: settings.tls_verify,
      tls_client_certificate: settings.tls_client_certificate,
      tls_client_key: MONITOR_CLIENT_KEY.openOrNull(this.deps.vault, monitorId, settings.tls_client_key),
      json_path: settings.json_path,
      json_op: settings.json_op,
      json_value: settings.json_value,
      packets: settings.packets,
      max_loss_percent: settings.max_loss_percent,
    };
  }
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** When results were received, epoch milliseconds, and for how long they were delayed on their way. */
interface Receipt {
  readonly at: number;
  readonly delayMs: number;
}

/** How far a probe has read its list of monitors. */
interface Position {
  readonly list: string;
  /** Reference of the last monitor that was read. */
  readonly ref: number;
  readonly isComplete: boolean;
}

/** A cursor that is not ours begins a new list. */
function positionOf(cursor: string | undefined): Position {
  const [, list = "", ref = "0", end = ""] =
    /^([A-Za-z0-9-]{1,60})\.(\d{1,15})(e?)$/.exec(cursor ?? "") ?? [];
  return { list, ref: Number(ref), isComplete: end === "e" };
}

function cursorOf({ list, ref, isComplete }: Position): string {
  return `${list}.${ref}${isComplete ? "e" : ""}`;
}

function unauthorized(): ApiError {
  return new ApiError(
    "unauthorized",
    "This is not the token of a probe, or the probe was deleted. Send it as `Authorization: Bearer probe_…`.",
    { headers: { "www-authenticate": "Bearer" } },
  );
}
