import { version } from "../../../package.json" with { type: "json" };
import { OPTION_DEFAULTS } from "../../areas/monitors/options.ts";
import {
  ERROR_LENGTH_MAX,
  type ProbeMonitor,
  type ProbeResult,
  type ProbeWork,
} from "../../areas/monitors/probes/schema.ts";
import { type Measurement, measureTarget } from "../../areas/monitors/targets/measure.ts";
import { MONITOR_TYPES } from "../../areas/monitors/types.ts";
import { UsageError } from "../../config/command-line.ts";
import { assertObserverTargets } from "../../config/observer-targets.ts";
import { readText } from "../../config/sources.ts";
import { itemsIn } from "../../config/values.ts";
import { counted } from "../../kernel/data/backup-check.ts";
import { StartupError } from "../../kernel/errors.ts";
import { isPublicAddress } from "../../kernel/outbound/address.ts";
import { extraAuthorities } from "../../kernel/outbound/authorities.ts";
import { OutboundClient } from "../../kernel/outbound/client.ts";
import { monotonicMs, realTimeout } from "../../kernel/time/clock.ts";
import type { Arguments } from "../arguments.ts";
import { unlessAborted } from "../listen/server.ts";
import { interruption, printError } from "../output.ts";
import { ProbeSchedule } from "./schedule.ts";
import { type Answer, ProbeServer, type Trouble } from "./server.ts";

/** Results that are kept while they cannot be sent; then the oldest are dropped. About 4 MB. */
export const QUEUE_MAX = 10_000;
/** Results of one request. */
const BATCH_MAX = 200;
/** Time in which further results join one that says the same as the last one of its monitor: each request costs the server a commit. */
const GATHER_MS = 1_000;
/** The same for a result that says something else, or that somebody waits for. */
const NEWS_MS = 200;
/** First wait before a request is repeated; it doubles each time up to {@link RETRY_MS_MAX}. */
const RETRY_MS = 500;
const RETRY_MS_MAX = 15_000;
/** How long an end by SIGTERM waits for results to be sent. */
const LAST_CALL_MS = 8_000;
/** Checks that run concurrently: beyond it a check is skipped. */
const CONCURRENCY_MAX = 4_096;
/** Timeout of a connectivity check. */
const REACH_MS = 2_000;
/** Failures that occur when this machine is offline. */
const CONNECTIVITY_FAILURE = /^(?:dns|connect|timeout|reset):/;

/** A result that is not sent yet. */
interface Kept {
  /** The settings that were checked. */
  readonly monitor: ProbeMonitor;
  /** Monotonic milliseconds of the start of the check. */
  readonly at: number;
  readonly result: Omit<ProbeResult, "age_ms">;
}

/** `ninefold probe`: checks monitors of a server from this machine. */
export async function probe(args: Arguments): Promise<number> {
  const signal = interruption();
  const observerTargets = listOf(args, "--observer-targets");
  assertObserverTargets("--observer-targets", observerTargets);
  const run = new Probing(serverOf(args), outboundOf(args), observerTargets, signal);
  await run.work();
  return 0;
}

/** @throws UsageError, StartupError */
function serverOf(args: Arguments): ProbeServer {
  const url = args.text("--url");
  const file = args.text("--token-file");
  if (url === null || file === null) throw new UsageError("probe needs --url URL and --token-file FILE.");
  const server = serverUrl(url);
  const token = readText(file, "--token-file").trim();
  if (!TOKEN.test(token))
    throw new StartupError(
      `--token-file: ${file} does not contain the token of a probe, which begins with probe_. Create a probe with POST /v1/pulse/probes or in the console, and write its token to the file.`,
    );
  return new ProbeServer(server, token, extraAuthorities(args.text("--extra-ca")));
}

/** The form of a token: whether it is valid, the server knows. */
const TOKEN = /^probe_[A-Za-z0-9_]{1,120}$/;

/** The token must not travel unencrypted through the Internet. @throws UsageError */
function serverUrl(text: string): string {
  const url = URL.parse(text);
  const isServer =
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    `${url.username}${url.password}${url.search}${url.hash}` === "";
  if (!isServer)
    throw new UsageError(
      "--url must be the URL of a server, such as https://ninefold.example.com, without a password or query.",
    );
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isAddress = /^[\d.]+$/.test(host) || host.includes(":");
  const isPrivate = isAddress
    ? !isPublicAddress(host)
    : !host.includes(".") || /\.(?:local|internal|lan|home\.arpa)$/.test(host);
  if (url.protocol === "http:" && !isPrivate)
    throw new UsageError("--url must begin with https, except for private addresses: it carries the token.");
  return url.href.replace(/\/$/, "");
}

function outboundOf(args: Arguments): OutboundClient {
  const authorities = extraAuthorities(args.text("--extra-ca"));
  return new OutboundClient(listOf(args, "--allow-private-targets"), { ...authorities, runsIn: "probe" });
}

/** The values of an option that can be repeated, and have several with commas. */
function listOf(args: Arguments, flag: string): string[] {
  return args.texts(flag).flatMap(itemsIn);
}

/** A running probe. */
export class Probing {
  private readonly queue: Kept[] = [];
  private readonly schedule = new ProbeSchedule((monitor) => void this.check(monitor, false));
  private readonly runId = crypto.randomUUID().slice(0, 13);
  private results = 0;
  private running = 0;
  private dropped = 0;
  private isLost = false;
  /** Whether a pause that the server asks for was reported. Since results are sent all the time, once is enough. */
  private isPaused = false;
  private wasConnected = false;
  private isSending = false;
  /** When the results of the queue are sent, if there are any, monotonic milliseconds. */
  private sendAt = 0;
  /** Results of the next request: fewer after one that was rejected, so that one result does not take others with it. */
  private batchMax = BATCH_MAX;

  constructor(
    private readonly server: ProbeServer,
    private readonly outbound: OutboundClient,
    private readonly observerTargets: readonly string[],
    private readonly signal: AbortSignal,
  ) {}

  /** Works until the process is to stop. @throws TokenRefused */
  async work(): Promise<void> {
    const sending = this.sendAll();
    // Whichever is refused ends the process.
    await Promise.race([this.follow(), sending]);
    this.schedule.stop();
    await Promise.race([this.flush(), pause(LAST_CALL_MS)]);
    this.outbound.close();
    this.server.close();
  }

  /** Follows the list of monitors. */
  private async follow(): Promise<void> {
    let cursor: string | null = null;
    let isComplete = false;
    for (let pauseMs = RETRY_MS; !this.signal.aborted; ) {
      const answer: Answer<ProbeWork> | null = await unlessAborted(
        this.server.work(cursor, this.queue.length, isComplete && !this.isLost),
        this.signal,
      );
      if (answer === null) return;
      if ("trouble" in answer) {
        await this.recover(answer.trouble, pauseMs);
        pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX);
        continue;
      }
      pauseMs = RETRY_MS;
      this.back();
      const body: ProbeWork = answer.body;
      cursor = body.cursor;
      isComplete = body.complete;
      if (this.schedule.take(body)) {
        printError(`Checking ${counted(this.schedule.size, "monitor")}.`);
        this.dropOutdated();
      }
      for (const id of body.due) {
        const monitor = this.schedule.find(id);
        if (monitor !== null) void this.check(monitor, true);
      }
    }
  }

  /** `isDue`: the server waits for the result. */
  private async check(monitor: ProbeMonitor, isDue: boolean): Promise<void> {
    if (this.running >= CONCURRENCY_MAX) return;
    if (!Object.hasOwn(MONITOR_TYPES, monitor.type)) {
      const error = `unsupported: this probe has version ${version}, which has no type ${monitor.type}. Update it with ninefold upgrade`;
      const unknown = {
        at: monotonicMs(),
        up: false,
        isUnknown: true,
        latencyMs: 0,
        responseStatus: null,
        error,
      };
      this.keep(monitor, unknown, { isOffline: false, isDue });
      return;
    }
    this.running += 1;
    try {
      // An older server does not know every setting.
      const settings = { ...OPTION_DEFAULTS, ...monitor };
      const { headers, tls_client_key: clientKey = null } = monitor;
      const target = { account: null, settings, headers, clientKey };
      const found = await measureTarget(this.outbound, target, monotonicMs);
      if (found === null || this.signal.aborted) return;
      if (!this.isCurrent(monitor)) {
        // It has changed meanwhile, and may have another target.
        const changed = this.schedule.find(monitor.monitor_id);
        if (isDue && changed !== null) await this.check(changed, true);
        return;
      }
      const { measured } = found;
      // What could not be checked has not failed.
      this.schedule.checked(monitor, measured.up || measured.isUnknown === true);
      this.keep(monitor, measured, { isOffline: await this.isOffline(measured), isDue });
    } finally {
      this.running -= 1;
    }
  }

  /** Whether a failure may be this machine's own: none of the observer targets is reached, or without such the server is not. */
  private async isOffline({ error }: Measurement): Promise<boolean> {
    if (error === null || !CONNECTIVITY_FAILURE.test(error)) return false;
    if (this.observerTargets.length === 0) return !(await this.server.isReached());
    const rules = { account: null, timeoutMs: REACH_MS, anywhere: true };
    const reached = this.observerTargets.map((host) => this.outbound.reaches(`http://${host}`, rules));
    return !(await Promise.all(reached)).includes(true);
  }

  private keep(
    monitor: ProbeMonitor,
    measured: Measurement,
    { isOffline, isDue }: { readonly isOffline: boolean; readonly isDue: boolean },
  ): void {
    this.results += 1;
    const { certificate, icmp } = measured;
    const status = measured.isUnknown ? "unknown" : measured.up ? "up" : "down";
    const isNews = this.schedule.found(monitor.monitor_id, status) || isDue;
    this.queue.push({
      monitor,
      at: measured.at,
      result: {
        result_id: `${this.runId}-${this.results}`,
        monitor_id: monitor.monitor_id,
        status,
        latency_ms: Math.round(measured.latencyMs),
        response_status: measured.responseStatus,
        error: measured.error?.slice(0, ERROR_LENGTH_MAX).toWellFormed() ?? null,
        ...(isOffline && { observer_offline: true }),
        ...(icmp && { icmp }),
        ...(certificate && {
          certificate: {
            not_after: Math.floor(certificate.notAfter / 1_000),
            issuer: certificate.issuer,
            ...(certificate.intermediate && { intermediate: certificate.intermediate }),
          },
        }),
      },
    });
    if (this.queue.length > QUEUE_MAX) {
      this.queue.shift();
      this.dropped += 1;
      if (this.dropped === 1) printError(`More than ${QUEUE_MAX} results wait: the oldest are dropped.`);
    }
    const sendAt = monotonicMs() + (isNews ? NEWS_MS : GATHER_MS);
    const isFirst = this.queue.length === 1;
    if (!isFirst && sendAt >= this.sendAt && this.queue.length < this.batchMax) return;
    this.sendAt = isFirst ? sendAt : Math.min(sendAt, this.sendAt);
    this.wake();
  }

  /** Whether the server still has these settings. */
  private isCurrent(monitor: ProbeMonitor): boolean {
    return this.schedule.find(monitor.monitor_id) === monitor;
  }

  /** Drops results of monitors that have changed: they say nothing about their present targets. */
  private dropOutdated(): void {
    const current = this.queue.filter(({ monitor }) => this.isCurrent(monitor));
    if (current.length < this.queue.length) this.queue.splice(0, this.queue.length, ...current);
  }

  private wake: () => void = () => undefined;

  /** Waits until the results of the queue are due, or fill a request. */
  private async gathered(): Promise<void> {
    while (!this.signal.aborted && this.queue.length < this.batchMax) {
      const leftMs = this.queue.length === 0 ? Number.POSITIVE_INFINITY : this.sendAt - monotonicMs();
      if (leftMs <= 0) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.wake = resolve;
      const cancel = Number.isFinite(leftMs) ? realTimeout(leftMs, resolve) : () => undefined;
      await unlessAborted(promise, this.signal);
      cancel();
    }
  }

  /** Sends results as they come. */
  private async sendAll(): Promise<void> {
    for (let pauseMs = RETRY_MS; !this.signal.aborted; ) {
      await this.gathered();
      const answer = await this.sendBatch();
      if (answer === null || "body" in answer) {
        pauseMs = RETRY_MS;
        if (answer !== null) this.back();
      } else {
        await this.recover(answer.trouble, pauseMs);
        pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX);
      }
    }
  }

  /** Sends what is left. */
  private async flush(): Promise<void> {
    while (this.queue.length > 0) {
      if (this.isSending) await pause(NEWS_MS);
      const answer = await this.sendBatch();
      if (answer !== null && "trouble" in answer) await pause(RETRY_MS);
    }
  }

  /** Sends the oldest results. Null: there are none, or they are being sent. */
  private async sendBatch(): Promise<Answer<object> | null> {
    const batch = this.queue.slice(0, this.batchMax);
    if (batch.length === 0 || this.isSending) return null;
    this.isSending = true;
    try {
      const now = monotonicMs();
      const results = batch.map(({ at, result }) => ({
        ...result,
        age_ms: Math.max(0, Math.round(now - at)),
      }));
      const answer = await this.server.send(results);
      if ("trouble" in answer && (answer.trouble.isTemporary || batch.length > 1)) {
        if (answer.trouble.isTemporary) return answer;
        this.batchMax = Math.ceil(batch.length / 2);
        return null;
      }
      this.batchMax = Math.min(2 * this.batchMax, BATCH_MAX);
      // Others may have been dropped meanwhile.
      while (this.queue[0] !== undefined && batch.includes(this.queue[0])) this.queue.shift();
      // Those that came meanwhile have waited as long as the request took.
      this.sendAt = monotonicMs() + NEWS_MS;
      if ("body" in answer) return answer;
      printError(`A result was rejected: ${answer.trouble.message}`);
      return null;
    } finally {
      this.isSending = false;
    }
  }

  private async recover({ message, pauseMs, isPause }: Trouble, leastMs: number): Promise<void> {
    if (isPause) {
      if (!this.isPaused) printError(`Paused: ${sentence(message)}`);
      this.isPaused = true;
    } else {
      const what = this.wasConnected ? "Connection lost" : `No connection to ${this.server.url}`;
      if (!this.isLost) printError(`${what}: ${sentence(message)} Retrying until it is back.`);
      this.isLost = true;
    }
    await unlessAborted(pause(Math.max(leastMs, pauseMs)), this.signal);
  }

  private back(): void {
    if (this.isLost) printError("Connection is back.");
    this.isLost = false;
    this.wasConnected = true;
  }
}

function pause(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  realTimeout(ms, resolve);
  return promise;
}

/** Messages of servers end with a full stop, and those of networks do not. */
function sentence(message: string): string {
  return /[.?]$/.test(message) ? message : `${message}.`;
}
