import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ALERT_EVENTS } from "../../../src/kernel/data/incident-words.ts";
import { createRandom, type Random } from "../crash/random.ts";
import { inParallel } from "../crash/target.ts";
import { freePort } from "../processes/ports.ts";
import type { Command } from "../processes/server-process.ts";
import { AlertSink } from "./alerts.ts";
import { Api } from "./api.ts";
import { judge, type Verdict } from "./judge.ts";
import { type Keeper, ProbeKeeper, ServerKeeper } from "./keepers.ts";
import { Link, PARTITIONS } from "./link.ts";
import { LOCAL, type RunRecord } from "./record.ts";
import { Targets } from "./targets.ts";
import { createWatched, recordOf, runOutages, type Watched } from "./watched.ts";

/** Settings of a run. */
export interface ProbeKills {
  readonly command: Command;
  /** An empty folder; the data folder is created in it. */
  readonly folder: string;
  readonly monitors: number;
  readonly intervalMs: number;
  readonly probes: number;
  readonly kills: number;
  readonly seed: number;
  /** Time that a check may come later than its interval. */
  readonly slackMs: number;
  /** Time in which the same two processes are killed. */
  readonly phaseMs: number;
  /** Longest life of a process between two kills, from when it is ready. */
  readonly lifeMsMax: number;
  readonly outageMs: number;
  /** Time between checks while a target is down; null: the interval. */
  readonly downIntervalMs: number | null;
  /** Shortest and longest partition. The pause after one lasts as long, and so long that the probe can send. */
  readonly partitionMs: readonly [min: number, max: number];
  readonly partitionPauseMs: number;
  /** How much longer an outage lasts that was not noticed: on a slow machine. */
  readonly patienceMs: number;
  /** Longest time after the last fault until everything is checked, and everyone has heard of it. */
  readonly settleMs: number;
  readonly report?: (line: string) => void;
}

/** What a run has done, and what it has shown. */
export interface ProbeKillsResult extends Verdict {
  readonly monitors: number;
  readonly serverKills: number;
  readonly probeKills: number;
  /** Kills before the process was ready. */
  readonly startsKilled: number;
  readonly partitions: number;
  /** Median time of the server from its start until it was ready, in milliseconds. */
  readonly readyMs: number;
  readonly seconds: number;
}

/** Chance that the server is one of the two victims, if it was not before. */
const SERVER_CHANCE = 0.8;
/** Share of the starts that are killed before the process is ready, and the latest time of such a kill. */
const START_KILL_CHANCE = 0.1;
const START_KILL_MS_MAX = 300;
const VICTIMS = 2;
/** Shortest life of a process that was ready. */
const LIFE_MS_MIN = 200;
/** A kill with its restart takes about so long. */
const RESTART_MS = 1_000;
/** Time with a server in reach after which a probe has sent a result: its longest pause between two attempts, and a timeout. */
const SEND_MS = 36_000;
const READY_MS_MAX = 60_000;
const POLL_MS = 250;
const READERS = 16;

/**
 * Kills a server and its probes at random, and partitions one of them, while targets go down and come back. Then compares the
 * checks and the alerts with what must have happened.
 */
export async function runProbeKills(run: ProbeKills): Promise<ProbeKillsResult> {
  const killing = new ProbeKilling(run);
  try {
    return await killing.run();
  } finally {
    await killing.stop();
  }
}

class ProbeKilling {
  private readonly random: Random;
  private readonly targets = new Targets();
  private readonly sink = new AlertSink();
  private readonly port = freePort();
  private readonly link = new Link(this.port);
  private readonly server: ServerKeeper;
  private readonly probes: ProbeKeeper[] = [];
  private watched: Watched[] = [];
  private api: Api = new Api("", null);
  private kills = 0;
  private startsKilled = 0;
  private lastFaultAt = 0;
  private isOver = false;
  private readonly begun = Date.now();

  constructor(private readonly settings: ProbeKills) {
    this.random = createRandom(settings.seed);
    const args = [
      "--port",
      String(this.port),
      "--data",
      join(settings.folder, "data"),
      "--log-level",
      "warn",
    ];
    args.push("--allow-private-targets", "loopback");
    this.server = new ServerKeeper(LOCAL, {
      command: settings.command,
      args,
      readyTimeoutMs: READY_MS_MAX,
    });
  }

  async run(): Promise<ProbeKillsResult> {
    const { monitors, report } = this.settings;
    await this.prepare();
    report?.(`${monitors} monitors and ${this.probes.length} probes are ready`);
    const from = Date.now();
    await Promise.all([
      this.killAll(),
      this.partitionAll(),
      ...this.watched.map((watched) =>
        runOutages(watched, this.settings.patienceMs, (id) => this.sink.nextDown(id)),
      ),
    ]);
    report?.(`${this.kills} kills; waiting until everything is checked again`);
    const to = await this.settled();
    return this.resultOf(await this.recordOf(from, to));
  }

  async stop(): Promise<void> {
    for (const keeper of [...this.probes, this.server]) await keeper.kill();
    this.link.stop();
    this.targets.stop();
    this.sink.stop();
  }

  private async prepare(): Promise<void> {
    const { probes, monitors, intervalMs, folder, command, outageMs, downIntervalMs } = this.settings;
    await this.server.start();
    const { url, key } = this.server.process;
    const operator = new Api(url, key);
    const account = { email: "probes@example.com", tier: "unlimited" };
    const { api_key } = await operator.ask<{ api_key: string }>("POST", "/v1/admin/accounts", account);
    this.api = new Api(url, api_key);
    const config = { url: this.sink.url };
    const channel = { name: "harness", kind: "webhook", config, events: ALERT_EVENTS };
    await this.api.ask("POST", "/v1/pulse/channels", channel);
    for (let number = 1; number <= probes; number += 1) {
      const name = `p${number}`;
      const { token } = await this.api.ask<{ token: string }>("POST", "/v1/pulse/probes", { name });
      const file = join(folder, `${name}.token`);
      writeFileSync(file, token);
      const probeUrl = number === probes ? this.link.url : url;
      this.probes.push(new ProbeKeeper(name, command, probeUrl, file));
    }
    const names = this.probes.map(({ name }) => name);
    const forMs = Math.max(this.expectedMs(), 1.5 * outageMs);
    const plan = { monitors, intervalMs, probes: names, forMs, outageMs, downIntervalMs };
    this.watched = await createWatched(this.api, this.targets, this.random, plan);
    await Promise.all(this.probes.map((probe) => probe.start()));
    // Otherwise the first vote would decide alone.
    await this.untilChecked(0);
  }

  /** About how long the kills take. */
  private expectedMs(): number {
    const { kills, lifeMsMax } = this.settings;
    return (kills / VICTIMS) * ((LIFE_MS_MIN + lifeMsMax) / 2 + RESTART_MS);
  }

  /** In each phase two processes are killed again and again, and the others live on. None is a victim of two phases in turn. */
  private async killAll(): Promise<void> {
    const { kills, phaseMs, report } = this.settings;
    let before: readonly Keeper[] = [];
    while (this.kills < kills) {
      const victims = this.victimsAfter(before);
      const end = Date.now() + phaseMs;
      await Promise.all(victims.map((victim) => this.killUntil(victim, end)));
      before = victims;
      report?.(`${this.kills} kills, now of ${victims.map(({ name }) => name).join(" and ")}`);
    }
    this.isOver = true;
  }

  private victimsAfter(before: readonly Keeper[]): Keeper[] {
    const others = this.probes.filter((probe) => !before.includes(probe));
    const first =
      before.includes(this.server) || !this.random.chance(SERVER_CHANCE)
        ? this.random.pick(others)
        : this.server;
    const rest = others.filter((probe) => probe !== first);
    return rest.length === 0 ? [first] : [first, this.random.pick(rest)];
  }

  private async killUntil(victim: Keeper, end: number): Promise<void> {
    const { kills, lifeMsMax } = this.settings;
    let isEarly = false;
    while (Date.now() < end && this.kills < kills) {
      const lifeMs = isEarly
        ? this.random.below(START_KILL_MS_MAX)
        : LIFE_MS_MIN + this.random.below(lifeMsMax);
      await Bun.sleep(lifeMs);
      await victim.kill();
      this.kills += 1;
      if (isEarly) this.startsKilled += 1;
      this.lastFaultAt = Date.now();
      const ready = victim.start();
      // After a start that was killed, the next one succeeds.
      isEarly = !isEarly && this.random.chance(START_KILL_CHANCE) && Date.now() < end;
      if (!isEarly) await ready;
    }
  }

  private async partitionAll(): Promise<void> {
    const {
      partitionMs: [min, max],
      partitionPauseMs,
    } = this.settings;
    while (!this.isOver) {
      await this.pause(partitionPauseMs / 2);
      if (this.isOver) return;
      this.link.break(this.random.pick(PARTITIONS));
      await this.pause(min + this.random.below(max - min + 1));
      this.link.heal();
      this.lastFaultAt = Date.now();
      await this.pause(partitionPauseMs / 2);
    }
  }

  /** Waits, or until the kills are over. */
  private async pause(ms: number): Promise<void> {
    for (const end = Date.now() + ms; Date.now() < end && !this.isOver; ) await Bun.sleep(POLL_MS);
  }

  /**
   * Waits until each checker has checked each of its monitors after the last fault, and everyone has heard of each outage and of
   * its end. Resolves to the time until which the run is judged.
   */
  private async settled(): Promise<number> {
    // Whole seconds of the history.
    await this.untilChecked(this.lastFaultAt + 1_000);
    const end = Date.now() + this.settings.settleMs;
    while (Date.now() < end && !this.watched.every((watched) => this.isReported(watched)))
      await Bun.sleep(POLL_MS);
    return Date.now();
  }

  /** Waits until each checker has checked each of its monitors since an instant. */
  private async untilChecked(since: number): Promise<void> {
    const { settleMs, report } = this.settings;
    const end = Date.now() + settleMs;
    for (let left = this.watched; ; await Bun.sleep(1_000)) {
      const checked = await inParallel(left, READERS, async ({ id, checkers }) => {
        const history = await this.api.history(id, since, 1);
        return checkers.every((checker) => history.has(checker));
      });
      left = left.filter((_, index) => !checked[index]);
      if (left.length === 0) return;
      if (Date.now() < end) continue;
      report?.(`${left.length} monitors are not checked by all after ${settleMs} ms`);
      return;
    }
  }

  /** Whether every outage that must cause alerts has done so, and all are over. */
  private isReported({ id, outages }: Watched): boolean {
    const countOf = (name: string) =>
      new Set(
        this.sink.received.filter(({ about, event }) => about === id && event === name).map(({ id }) => id),
      ).size;
    const isWaited = this.settings.patienceMs > 0;
    const expected = outages.filter(({ isLong }) => isLong || isWaited).length;
    const downs = countOf("monitor.down");
    return downs >= expected && countOf("monitor.up") === downs;
  }

  private async recordOf(from: number, to: number): Promise<RunRecord> {
    const monitors = await inParallel(this.watched, READERS, (watched) => recordOf(this.api, watched, from));
    const keepers = [this.server, ...this.probes];
    const last = this.probes.at(-1)?.name ?? "";
    return {
      from,
      to,
      intervalMs: this.settings.intervalMs,
      slackMs: this.settings.slackMs,
      sendMs: SEND_MS,
      monitors,
      lives: new Map(keepers.map((keeper) => [keeper.name, keeper.allLives()])),
      cuts: new Map([[last, this.link.spans()]]),
      alerts: this.sink.received,
    };
  }

  private resultOf(record: RunRecord): ProbeKillsResult {
    const verdict = judge(record);
    const readies = this.server.lives
      .flatMap(({ from, readyAt }) => (readyAt === null ? [] : [readyAt - from]))
      .toSorted((left, right) => left - right);
    const serverKills = this.server.lives.length;
    const warnings = this.server.warnings.map((text) => `the server's log: ${text.trim()}`);
    return {
      ...verdict,
      problems: [...verdict.problems, ...warnings],
      monitors: this.watched.length,
      serverKills,
      probeKills: this.kills - serverKills,
      startsKilled: this.startsKilled,
      partitions: this.link.cuts.length,
      readyMs: readies[Math.floor(readies.length / 2)] ?? 0,
      seconds: (Date.now() - this.begun) / 1_000,
    };
  }
}

/** The figures as lines of text. */
export function describeProbeKills(result: ProbeKillsResult): string {
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  const rows: readonly (readonly [name: string, value: string | number])[] = [
    ["monitors", result.monitors],
    ["kills of the server", result.serverKills],
    ["kills of probes", result.probeKills],
    ["of these before it was ready", result.startsKilled],
    ["partitions", result.partitions],
    ["server ready after (median)", seconds(result.readyMs)],
    ["checks that targets saw", result.seen],
    ["checks in histories", result.stored],
    ["longest time without a check, target", seconds(result.longestSeenMs)],
    ["longest time without a check, history", seconds(result.longestStoredMs)],
    ["long outages", result.outages],
    ["short outages, with alerts", `${result.blips}, ${result.blipsAlerted}`],
    ["alerts, repeated attempts", `${result.alerts}, ${result.repeated}`],
    ["slowest alert, recovery", `${seconds(result.longestDownMs)}, ${seconds(result.longestUpMs)}`],
    ["problems", result.problems.length],
    ["duration", seconds(1_000 * result.seconds)],
  ];
  return rows.map(([name, value]) => `${name.padEnd(40)}${String(value).padStart(12)}`).join("\n");
}
