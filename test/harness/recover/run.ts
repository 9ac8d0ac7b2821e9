import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { SLOW_DISK } from "../../../src/kernel/storage/writer.ts";
import { createRandom, type Random } from "../crash/random.ts";
import { ServerTarget } from "../crash/target.ts";
import { bodyOf, createAccount, settled, type TargetRequest, UNAVAILABLE } from "../crash/workload.ts";
import type { HttpResponse } from "../processes/connection.ts";
import { freePort } from "../processes/ports.ts";
import { type Command, type Launch, ServerProcess } from "../processes/server-process.ts";
import { describeMeasured, type Measured, secondsText, Watch } from "../processes/watch.ts";
import { judge, type Measurements } from "./judge.ts";
import { MESSAGE_PREFIX, Receiver } from "./receiver.ts";
import type {
  AcceptedMessage,
  EndpointRecord,
  Kill,
  RecordedDelivery,
  RecordedRun,
  RecoverTerms,
} from "./record.ts";

/** Settings of a run. */
export interface RecoverLoad {
  readonly command: Command;
  /** An empty folder; the data folder is created in it. */
  readonly folder: string;
  /** Endpoints, which are recovered at the same time, and the messages, order keys and failing keys of each. */
  readonly endpoints: number;
  readonly messages: number;
  readonly keys: number;
  readonly failingKeys: number;
  readonly perSecond: number;
  readonly kills: number;
  readonly seed: number;
  /** Called when something has happened. */
  readonly report?: (line: string) => void;
}

/** Result of a run. */
export interface RecoverResult extends Measurements {
  readonly problems: readonly string[];
  readonly kills: number;
  readonly messages: number;
  /** Deliveries that were seen after a kill to wait for an earlier one of their key. */
  readonly held: number;
  /** Times that the server has reported that its disk is slow, which explains pauses. */
  readonly slowDisk: number;
  readonly acceptedMs: number;
  /** Time from the first recovery to the end of the last one, and the part of it in which the server was down. */
  readonly recoveredMs: number;
  readonly downMs: number;
  readonly sending: Measured;
  /** Processor time of the same server without a recovery, in milliseconds per second; null where it is not reported. */
  readonly idleMsPerSecond: number | null;
}

/** The breaker of an endpoint would otherwise hold all of its keys when attempts of failing ones follow each other. */
const CONFIG = `
[tiers.scale]
requests_per_minute = 1000000000

[relay]
breaker_failures = 100
`;
/** A tier's balance that pays for all. */
const CREDITS = 10_000_000;
/** Messages of one recovery, and of one batch. */
const RUN_MAX = 10_000;
const BATCH = 100;
/** Default of `max_concurrency`. */
const CONCURRENCY = 16;
/** A failing message holds those of its key longer than the recovery takes to come to the next one, and still retries then. */
const WAIT_FACTOR = 1.2;
const RETRY_FACTOR = 0.65;
const RETRIES = 2;
/** Share of the expected time in which the kills take place. */
const KILLED_SHARE = 0.85;
/** Interval of looks at a run, and of test events while only failing keys are left, so that the breaker does not hold them. */
const LOOK_MS = 100;
const TEST_MS = 1_000;
/** The end is expected within so many times the computed duration, and so much more. */
const DURATION_FACTOR = 4;
const DURATION_MS = 120_000;
/** Time for which the processor time of the idle server is measured. */
const IDLE_MS = 2_000;

/** Recovers what endpoints have missed while the server is killed repeatedly, and compares it with what arrived. */
export async function runRecover(load: RecoverLoad): Promise<RecoverResult> {
  const random = createRandom(load.seed);
  const failing = failingMessages(load);
  const receivers = Array.from(
    { length: load.endpoints },
    (_, number) => new Receiver(number, failing.ids, random),
  );
  const run = await RecoverRun.start(load, receivers, random);
  try {
    return await run.result(failing.keys);
  } finally {
    await run.stop();
    for (const receiver of receivers) await receiver.stop();
  }
}

/** The key of each message of an endpoint, one key after another, and again. */
function keyAt({ keys }: RecoverLoad, endpoint: number, at: number): string {
  return `key-${endpoint}-${at % keys}`;
}

function idAt(endpoint: number, at: number): string {
  return `${MESSAGE_PREFIX}${endpoint}-${at}`;
}

/** Keys that fail, apart from each other, and their messages. */
function failingMessages(load: RecoverLoad): {
  readonly keys: ReadonlySet<string>;
  readonly ids: ReadonlySet<string>;
} {
  const { keys, failingKeys, endpoints, messages } = load;
  const chosen = new Set(
    Array.from({ length: failingKeys }, (_, at) => Math.floor(((at + 0.5) * keys) / failingKeys)),
  );
  const [names, ids] = [new Set<string>(), new Set<string>()];
  for (let endpoint = 0; endpoint < endpoints; endpoint += 1)
    for (let at = 0; at < messages; at += 1) {
      if (!chosen.has(at % keys)) continue;
      names.add(keyAt(load, endpoint, at));
      ids.add(idAt(endpoint, at));
    }
  return { keys: names, ids };
}

/** An endpoint that was disabled while its messages were accepted. */
interface Missing {
  readonly receiver: Receiver;
  readonly endpointId: string;
  readonly messages: AcceptedMessage[];
  readonly runs: RecordedRun[];
}

/** Messages that were accepted from one time to before another, by the server's clock. */
interface Slice {
  readonly since: number;
  readonly until: number;
  readonly messages: number;
}

class RecoverRun {
  private readonly kills: Kill[] = [];
  private readonly problems: string[] = [];
  private isOver = false;
  private held = 0;
  private slowDisk = 0;
  private key = "";

  private constructor(
    private readonly load: RecoverLoad,
    private readonly receivers: readonly Receiver[],
    private readonly random: Random,
    private readonly launch: Launch,
    private readonly target: ServerTarget,
    private server: ServerProcess,
  ) {}

  static async start(load: RecoverLoad, receivers: readonly Receiver[], random: Random): Promise<RecoverRun> {
    const { command, folder } = load;
    const [config, data] = [join(folder, "ninefold.toml"), join(folder, "data")];
    writeFileSync(config, CONFIG);
    const args = ["--port", String(freePort()), "--data", data, "--config", config, "--log-level", "warn"];
    args.push("--allow-private-targets", "127.0.0.0/8");
    const launch = { command, args };
    const server = await ServerProcess.start(launch);
    const target = new ServerTarget(server.url, server.key ?? "", data);
    return new RecoverRun(load, receivers, random, launch, target, server);
  }

  async result(failingKeys: ReadonlySet<string>): Promise<RecoverResult> {
    const { load, target, report } = { ...this, report: this.load.report };
    this.key = await createAccount(target, "recover@example.com", CREDITS);
    const reader = await createAccount(target, "reader@example.com", "unlimited");
    const watch = await Watch.start(this.server, reader);
    const idle = await this.idle(watch);
    const endpoints = await this.createEndpoints();
    const { balance } = await this.ask("GET", "/v1/meter/balance");
    const begun = performance.now();
    const slices = await this.sendAll(endpoints);
    const acceptedMs = performance.now() - begun;
    const total = load.endpoints * load.messages;
    report?.(`${total} messages accepted in ${secondsText(acceptedMs)}`);
    watch.take();
    const recovering = performance.now();
    const killing = this.killAll(watch);
    await Promise.all(endpoints.map((endpoint) => this.recoverAll(endpoint, slices)));
    const recoveredMs = performance.now() - recovering;
    const sending = watch.take();
    const downMs = this.kills.reduce((sum, { at, readyAt }) => sum + readyAt - at, 0);
    report?.(`all recovered in ${secondsText(recoveredMs)}`);
    await this.checkBalance(Number(balance) - total, endpoints);
    await this.untilFinished(endpoints);
    this.isOver = true;
    await killing;
    await watch.stop();
    this.checkServer();
    const verdicts = (await this.recordsOf(endpoints, failingKeys)).map((record) =>
      judge(record, this.kills, this.terms(failingKeys)),
    );
    return {
      problems: [...this.problems, ...verdicts.flatMap(({ problems }) => problems)],
      repeated: verdicts.reduce((sum, { repeated }) => sum + repeated, 0),
      overtaken: Math.max(...verdicts.map(({ overtaken }) => overtaken)),
      longestPauseMs: Math.max(...verdicts.map(({ longestPauseMs }) => longestPauseMs)),
      kills: this.kills.length,
      messages: total,
      held: this.held,
      slowDisk: this.slowDisk,
      acceptedMs,
      recoveredMs,
      downMs,
      sending,
      idleMsPerSecond: idle,
    };
  }

  async stop(): Promise<void> {
    this.isOver = true;
    await this.server.stop("SIGKILL");
  }

  private get expectedMs(): number {
    const { messages, perSecond } = this.load;
    return (messages * 1_000) / perSecond;
  }

  /** Longer than a recovery takes from one message of a key to the next. */
  private get orderWaitMs(): number {
    const { keys, perSecond } = this.load;
    return Math.round((WAIT_FACTOR * keys * 1_000) / perSecond);
  }

  private terms(failingKeys: ReadonlySet<string>): RecoverTerms {
    const { perSecond } = this.load;
    const { orderWaitMs } = this;
    return { failingKeys, attemptsMax: RETRIES + 1, orderWaitMs, concurrency: CONCURRENCY, perSecond };
  }

  private async idle(watch: Watch): Promise<number | null> {
    watch.take();
    await Bun.sleep(IDLE_MS);
    const { processorMs } = watch.take();
    return processorMs === null ? null : (processorMs * 1_000) / IDLE_MS;
  }

  private createEndpoints(): Promise<Missing[]> {
    const retryMs = Math.round(this.orderWaitMs * RETRY_FACTOR);
    return Promise.all(
      this.receivers.map(async (receiver, endpoint) => {
        const created = await this.ask("POST", "/v1/relay/endpoints", {
          url: receiver.url,
          event_types: [typeOf(endpoint)],
          order_wait_ms: this.orderWaitMs,
          retry_schedule: Array(RETRIES).fill(`${Math.ceil(retryMs / 1_000)}s`),
          disable_after_hours: 0,
          keep_responses: false,
        });
        const endpointId = String(created["endpoint_id"]);
        await this.disable(endpointId);
        return { receiver, endpointId, messages: [], runs: [] };
      }),
    );
  }

  /** The receiver says that the endpoint is gone, which disables it. */
  private async disable(endpointId: string): Promise<void> {
    await this.ask("POST", `/v1/relay/endpoints/${endpointId}/test`, {});
    const look = () => this.ask("GET", `/v1/relay/endpoints/${endpointId}`);
    await this.until(DURATION_MS, look, ({ state }) => state === "disabled");
  }

  /** Sends the messages of all endpoints. Returns the times in which those of one recovery were accepted. */
  private async sendAll(endpoints: readonly Missing[]): Promise<Slice[]> {
    const slices: Slice[] = [];
    for (let from = 0; from < this.load.messages; from += RUN_MAX) {
      const through = Math.min(this.load.messages, from + RUN_MAX);
      const since = await nextMillisecond();
      for (const [number, endpoint] of endpoints.entries())
        await this.sendSome(number, endpoint, from, through);
      slices.push({ since, until: await nextMillisecond(), messages: through - from });
    }
    for (const { endpointId, receiver } of endpoints) {
      receiver.isGone = false;
      await this.ask("PATCH", `/v1/relay/endpoints/${endpointId}`, { state: "live" });
    }
    return slices;
  }

  private async sendSome(
    number: number,
    { messages }: Missing,
    from: number,
    through: number,
  ): Promise<void> {
    for (let at = from; at < through; at += BATCH) {
      const batch = Array.from({ length: Math.min(BATCH, through - at) }, (_, offset) => ({
        id: idAt(number, at + offset),
        key: keyAt(this.load, number, at + offset),
      }));
      await this.ask("POST", "/v1/relay/messages/batch", {
        messages: batch.map(({ id, key }) => ({
          event_type: typeOf(number),
          message_id: id,
          order_key: key,
          payload: { id, text: "x".repeat(200) },
        })),
      });
      messages.push(...batch);
    }
  }

  /** Recovers the times of an endpoint one after another, as its owner would. */
  private async recoverAll({ endpointId, runs }: Missing, slices: readonly Slice[]): Promise<void> {
    for (const { since, until, messages } of slices) {
      const path = `/v1/relay/endpoints/${endpointId}/recover`;
      const body = { since, until, per_second: this.load.perSecond };
      const started = await this.ask("POST", path, body, `${endpointId}-${since}`);
      const look = () => this.ask("GET", `/v1/relay/resends/${String(started["resend_id"])}`);
      const limitMs = DURATION_MS + (DURATION_FACTOR * messages * 1_000) / this.load.perSecond;
      const run = await this.until(limitMs, look, ({ status }) => status !== "running");
      const [matched, resent, skipped] = ["matched", "resent", "skipped"].map((name) => Number(run[name]));
      runs.push({
        messages,
        status: String(run["status"]),
        matched: matched ?? 0,
        resent: resent ?? 0,
        skipped: skipped ?? 0,
      });
    }
  }

  private async untilFinished(endpoints: readonly Missing[]): Promise<void> {
    let testedAt = performance.now();
    const limitMs = DURATION_MS + DURATION_FACTOR * (this.orderWaitMs + this.expectedMs);
    for (const status of ["scheduled", "delivering"]) {
      const look = async () => {
        if (performance.now() - testedAt > TEST_MS) {
          testedAt = performance.now();
          for (const { endpointId } of endpoints)
            await this.ask("POST", `/v1/relay/endpoints/${endpointId}/test`, {});
        }
        return this.ask("GET", `/v1/relay?status=${status}&limit=1`);
      };
      await this.until(limitMs, look, ({ deliveries }) => (deliveries as unknown[]).length === 0);
    }
  }

  private async until<T>(limitMs: number, look: () => Promise<T>, isOver: (seen: T) => boolean): Promise<T> {
    const end = performance.now() + limitMs;
    for (;;) {
      const seen = await look();
      if (isOver(seen) || performance.now() > end) return seen;
      await Bun.sleep(LOOK_MS);
    }
  }

  /** Kills the server at random times over the recovery, and starts it again at the same address. */
  private async killAll(watch: Watch): Promise<void> {
    const { kills, report } = this.load;
    const meanMs = (KILLED_SHARE * this.expectedMs) / kills;
    for (let number = 1; number <= kills && !this.isOver; number += 1) {
      await Bun.sleep(meanMs * (0.1 + (1.8 * this.random.below(1_000)) / 1_000));
      const at = performance.now();
      watch.pause();
      this.target.expectDeath();
      await this.server.stop("SIGKILL");
      this.checkServer();
      const startedAt = performance.now();
      this.server = await ServerProcess.start(this.launch);
      this.target.attach(this.server.url);
      watch.follow(this.server);
      const readyAt = performance.now();
      this.kills.push({ at, startedAt, readyAt });
      report?.(`kill ${number}: ready again after ${(readyAt - at).toFixed(0)} ms`);
      await this.checkHeld();
    }
    if (this.kills.length < kills)
      this.problems.push(`all was over after ${this.kills.length} of ${kills} kills`);
  }

  /** Deliveries that are held wait for an older one of their key, also after a kill. */
  private async checkHeld(): Promise<void> {
    const listed = (await this.ask("GET", "/v1/relay?status=scheduled&limit=100"))["deliveries"];
    for (const { message_id, waiting_for, attempts } of listed as ListedDelivery[]) {
      if (waiting_for === null) continue;
      this.held += 1;
      const head = (await this.ask("GET", `/v1/relay/${waiting_for}`)) as unknown as ListedDelivery;
      if (attempts > 0 || !this.isBehind(message_id, head.message_id))
        this.problems.push(`${message_id} waits for ${head.message_id} after ${attempts} attempts`);
    }
  }

  private isBehind(id: string, other: string): boolean {
    const [[endpoint = 0, at = 0] = [], [otherEndpoint = 0, before = 0] = []] = [id, other].map((name) =>
      name.split("-").slice(1).map(Number),
    );
    const { load } = this;
    return keyAt(load, endpoint, at) === keyAt(load, otherEndpoint, before) && before < at;
  }

  /** Until it is killed a server must respond to every request, and log no warning or error. */
  private checkServer(): void {
    const { target, server, problems } = this;
    if (target.unexplained > 0) problems.push(`${target.unexplained} requests without a response and a kill`);
    if (target.rejections > 0) problems.push(`${target.rejections} requests got 503`);
    this.slowDisk += server.log.split(SLOW_DISK).length - 1;
    if (server.warnings !== "") problems.push(`the server's log: ${server.warnings.trim()}`);
  }

  private async recordsOf(
    endpoints: readonly Missing[],
    failingKeys: ReadonlySet<string>,
  ): Promise<EndpointRecord[]> {
    const failing = new Set(
      endpoints.flatMap(({ messages }) =>
        messages.filter(({ key }) => failingKeys.has(key)).map(({ id }) => id),
      ),
    );
    const all = new Map<string, RecordedDelivery[]>(endpoints.map(({ endpointId }) => [endpointId, []]));
    const known = new Set(endpoints.flatMap(({ messages }) => messages.map(({ id }) => id)));
    for await (const { endpoint_id, relay_id, message_id, status, attempts } of this.deliveries()) {
      // The one that disabled the endpoint.
      if (!known.has(message_id)) continue;
      const firstAttemptAt = failing.has(message_id) ? await this.firstAttempt(relay_id) : undefined;
      const delivery = {
        messageId: message_id,
        status,
        attempts,
        ...(firstAttemptAt === undefined ? {} : { firstAttemptAt }),
      };
      all.get(endpoint_id)?.push(delivery);
    }
    return endpoints.map(({ receiver, endpointId, messages, runs }) => ({
      messages,
      runs,
      arrivals: receiver.arrivals,
      deliveries: all.get(endpointId) ?? [],
    }));
  }

  private async *deliveries(): AsyncGenerator<ListedDelivery> {
    for (let after = ""; ; ) {
      const page = await this.ask("GET", `/v1/relay?limit=100${after}`);
      yield* page["deliveries"] as ListedDelivery[];
      if (page["cursor"] === undefined) return;
      after = `&cursor=${encodeURIComponent(String(page["cursor"]))}`;
    }
  }

  private async firstAttempt(relayId: string): Promise<number | undefined> {
    const log = (await this.ask("GET", `/v1/relay/${relayId}`))["attempt_log"];
    return (log as { readonly started_at: number }[])[0]?.started_at;
  }

  /** Each message that is sent has cost a credit of those that were left when all were accepted. */
  private async checkBalance(before: number, endpoints: readonly Missing[]): Promise<void> {
    const sent = endpoints.flatMap(({ runs }) => runs).reduce((sum, { resent }) => sum + resent, 0);
    const { balance } = await this.ask("GET", "/v1/meter/balance");
    const expected = before - sent;
    if (balance !== expected) this.problems.push(`the balance is ${String(balance)}, not ${expected}`);
  }

  /** The body of a success; the request is repeated until the server is there. @throws Error for a rejection */
  private async ask(
    method: TargetRequest["method"],
    path: string,
    body?: object,
    idempotencyKey?: string,
  ): Promise<Record<string, unknown>> {
    const request = {
      method,
      path,
      key: this.key,
      ...(body === undefined ? {} : { body }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    };
    const send = (): Promise<HttpResponse | null> => this.target.send(request);
    const response = await settled(DURATION_MS, send, (seen) => seen !== null && seen.status !== UNAVAILABLE);
    if (response === null || response.status >= 300)
      throw new Error(`${method} ${path}: ${response?.status ?? "no response"} ${response?.text ?? ""}`);
    return bodyOf(response);
  }
}

interface ListedDelivery {
  readonly relay_id: string;
  readonly endpoint_id: string;
  readonly message_id: string;
  readonly waiting_for: string | null;
  readonly status: string;
  readonly attempts: number;
}

function typeOf(endpoint: number): string {
  return `missed.${endpoint}`;
}

/** A time that is later than that of everything before it, in epoch milliseconds. */
async function nextMillisecond(): Promise<number> {
  await Bun.sleep(2);
  return Date.now();
}

/** A result as lines of text. */
export function describeRecover(result: RecoverResult): string {
  const { messages, kills, recoveredMs, downMs, repeated, overtaken, longestPauseMs, sending } = result;
  const { idleMsPerSecond, held, slowDisk } = result;
  const upMs = recoveredMs - downMs;
  const lines = [
    `${messages} messages recovered in ${secondsText(recoveredMs)}, ${kills} kills, down for ${secondsText(downMs)}: ` +
      `${((messages * 1_000) / upMs).toFixed(1)} per second while it was up`,
    `${repeated} requests repeated; at most ${overtaken} older messages were in flight when a newer one arrived`,
    `${held} deliveries were seen to be held by their key after a kill`,
    `longest pause of keys that do not fail: ${longestPauseMs.toFixed(0)} ms, without the time in which it was down; the disk was slow ${slowDisk} times`,
    describeMeasured(sending),
  ];
  if (sending.processorMs !== null && idleMsPerSecond !== null) {
    const perMessage = (sending.processorMs - (idleMsPerSecond * upMs) / 1_000) / messages;
    lines.push(
      `processor time per message: ${perMessage.toFixed(2)} ms, without that of the other account's reads`,
    );
  }
  return lines.join("\n");
}
