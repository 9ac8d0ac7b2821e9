import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { endsWithUs } from "../test/harness/processes/children.ts";
import {
  type Command,
  plainEnvironment,
  type ServerProcess,
} from "../test/harness/processes/server-process.ts";
import { processorMs, residentMiB } from "../test/harness/processes/usage.ts";
import type { Finding } from "./benchmark.ts";
import { asClients, type Receiver, startReceiver } from "./schedule.ts";
import type { Stage } from "./stage.ts";

const MINUTE_MS = 60_000;
/** Names that select these measurements. */
export const ONE_PROBE = "one probe, 300 checks a second";
export const MANY_PROBES = "50 probes, 10,000 monitors";

/** Monitors of the one probe: 300 checks a second at the shortest interval of the operator's tier. */
const ONE = { monitors: 4_500, intervalMs: 15_000, coreMax: 30 };
const MANY = { monitors: 10_000, probes: 50, processes: 2, coreMax: 25 };
/** The interval that is required, and one at which twice as much is checked. */
const INTERVALS_MS = [MINUTE_MS, MINUTE_MS / 2] as const;
/** Until lists are read, code is compiled, and each monitor was checked several times. */
const WARM_MS = 2 * MINUTE_MS;
/** Time between two looks at the memory. */
const SAMPLE_MS = 5_000;
/** Growth of the memory over the measurement in percent, by the line that fits it best: less is what the garbage collector leaves. */
const GROWTH_MAX = 10;

/** Arguments of a probe: the targets are on this machine. */
const ALLOWED = ["--allow-private-targets", "127.0.0.0/8"];

/** How probes are started, and for how many minutes they are measured. */
interface Run {
  readonly command: Command;
  readonly minutes: number;
}

/** A process of a probe takes 300 checks a second from a server. Measures its share of a core, and its memory. */
export async function measureOneProbe(
  stage: Stage,
  say: (text: string) => void,
  { command, minutes }: Run,
): Promise<Finding[]> {
  const { monitors, intervalMs, coreMax } = ONE;
  say(`${ONE_PROBE}: making ${monitors} monitors, watching for ${WARM_MS / MINUTE_MS + minutes} minutes`);
  return onServer(stage, "one-probe", async (server, receiver) => {
    const [token = ""] = await makeProbes(stage, server, 1);
    await makeMonitors(server, receiver, { monitors, intervalMs, namesOf: () => [nameOf(0)] });
    const pid = startProbe(stage, command, server, token);
    await Bun.sleep(WARM_MS);
    const { share, perSecond, memory } = await watch(pid, server, receiver, minutes * MINUTE_MS);
    return [
      rateFinding(ONE_PROBE, perSecond, (monitors * 1_000) / intervalMs),
      shareFinding(`${ONE_PROBE}: the probe's processor time`, { share, perSecond }, coreMax),
      memoryFinding(`${ONE_PROBE}: the probe's memory`, memory),
    ];
  });
}

/** Many probes check many monitors, each at two or three. Measures the share of a core that the server takes, and its memory. */
export async function measureManyProbes(
  stage: Stage,
  say: (text: string) => void,
  { command, minutes }: Run,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const intervalMs of INTERVALS_MS) {
    const name = `${MANY_PROBES} at ${intervalMs / 1_000} s`;
    const isRequired = intervalMs === INTERVALS_MS[0];
    const watchedMs = isRequired ? minutes * MINUTE_MS : MINUTE_MS;
    say(`${name}: watching for ${(WARM_MS + watchedMs) / MINUTE_MS} minutes`);
    const found = await onServer(stage, `probes-${intervalMs}`, async (server, receiver) => {
      const tokens = await makeProbes(stage, server, MANY.probes);
      await makeMonitors(server, receiver, { monitors: MANY.monitors, intervalMs, namesOf: namesOfMany });
      for (const token of tokens.slice(0, MANY.processes)) startProbe(stage, command, server, token);
      startFleet(stage, server, tokens.slice(MANY.processes));
      await Bun.sleep(WARM_MS);
      const { share, perSecond, memory } = await watch(server.pid, server, receiver, watchedMs);
      const expected = (2.5 * MANY.monitors * 1_000) / intervalMs;
      return [
        rateFinding(name, perSecond, expected),
        shareFinding(
          `${name}: the server's processor time`,
          { share, perSecond },
          isRequired ? MANY.coreMax : null,
        ),
        ...(isRequired ? [memoryFinding(`${name}: the server's memory`, memory)] : []),
      ];
    });
    findings.push(...found);
  }
  return findings;
}

function nameOf(probe: number): string {
  return `probe-${probe}`;
}

/** Two probes of a monitor, and three of every other one, so that each probe has as many. */
function namesOfMany(monitor: number): string[] {
  const count = 2 + (monitor % 2);
  return Array.from({ length: count }, (_, at) => nameOf((Math.floor(monitor / 2) + 17 * at) % MANY.probes));
}

async function onServer(
  stage: Stage,
  folder: string,
  measure: (server: ServerProcess, receiver: Receiver) => Promise<Finding[]>,
): Promise<Finding[]> {
  await using receiver = await startReceiver();
  const server = await stage.startNinefold(stage.subfolder(folder));
  try {
    return await measure(server, receiver);
  } finally {
    for (const child of started.splice(0)) child.kill("SIGKILL");
    await server.stop("SIGKILL");
  }
}

/** Creates probes, and returns their tokens. */
async function makeProbes(stage: Stage, server: ServerProcess, count: number): Promise<string[]> {
  const tokens: string[] = [];
  for (let probe = 0; probe < count; probe += 1) {
    const made = await stage.post("/v1/pulse/probes", { name: nameOf(probe) }, server.key ?? "", server.url);
    tokens.push(String(made["token"]));
  }
  return tokens;
}

interface Monitors {
  readonly monitors: number;
  readonly intervalMs: number;
  readonly namesOf: (monitor: number) => string[];
}

function makeMonitors(
  server: ServerProcess,
  receiver: Receiver,
  { monitors, intervalMs, namesOf }: Monitors,
): Promise<void> {
  return asClients(server, server.key ?? "", monitors, (ask, number) =>
    ask("POST", "/v1/pulse", {
      url: `${receiver.hostUrl(number)}/monitor/${number}`,
      interval: intervalMs,
      probes: namesOf(number),
    }),
  );
}

/** Processes that end with the measurement. */
const started: Bun.Subprocess[] = [];

function start(command: Command): number {
  const child = Bun.spawn([...command], {
    env: plainEnvironment({ NODE_ENV: "production" }),
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  started.push(endsWithUs(child));
  return child.pid;
}

/** Starts a probe as a process. Returns its id. */
function startProbe(stage: Stage, command: Command, { url }: ServerProcess, token: string): number {
  const file = join(stage.folder, `${token.slice(-8)}.token`);
  writeFileSync(file, token);
  return start([...command, "probe", "--url", url, "--token-file", file, ...ALLOWED]);
}

/** Starts one process that is many probes. */
function startFleet(stage: Stage, { url }: ServerProcess, tokens: readonly string[]): void {
  const file = join(stage.folder, "fleet.tokens");
  writeFileSync(file, tokens.join("\n"));
  start([process.execPath, "--no-env-file", join(import.meta.dir, "probe-fleet.ts"), url, file]);
}

/** What a process took for some time. */
interface Usage {
  /** Percent of a core. */
  readonly share: number;
  /** Results that the server has recorded. */
  readonly perSecond: number;
  /** Resident memory, MiB, at equal distances. */
  readonly memory: readonly number[];
}

async function watch(
  pid: number,
  server: ServerProcess,
  receiver: Receiver,
  watchedMs: number,
): Promise<Usage> {
  const memory: number[] = [];
  const recorded = await recordedBy(server);
  const before = processorMs(pid);
  const begun = performance.now();
  while (performance.now() - begun < watchedMs) {
    await Bun.sleep(SAMPLE_MS);
    // The receiver keeps what has not been taken.
    await receiver.take();
    memory.push(residentMiB(pid) ?? Number.NaN);
  }
  const passedMs = performance.now() - begun;
  const share = ((processorMs(pid) - before) / passedMs) * 100;
  const perSecond = (((await recordedBy(server)) - recorded) * 1_000) / passedMs;
  return { share, perSecond, memory };
}

/** Results of checks that a server has recorded since its start. */
async function recordedBy({ url, key }: ServerProcess): Promise<number> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${key}` } });
  const counts = (await response.text()).matchAll(/^ninefold_monitor_checks_total\{.*\} (\d+)$/gm);
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** As many checks as there should be. */
function rateFinding(name: string, perSecond: number, expected: number): Finding {
  const ok = Math.abs(perSecond / expected - 1) <= 0.05;
  const required = `${expected.toFixed(0)} a second, ± 5 %`;
  return { what: `${name}: checks`, measured: `${perSecond.toFixed(1)} a second`, required, ok };
}

/** `most`: null if it is shown only. */
function shareFinding(
  what: string,
  { share, perSecond }: Pick<Usage, "share" | "perSecond">,
  most: number | null,
): Finding {
  const required = most === null ? "–" : `≤ ${most} % of a core`;
  const measured = `${share.toFixed(1)} %, ${((share * 10_000) / perSecond).toFixed(0)} µs a check`;
  return { what, measured, required, ok: most === null ? null : share <= most };
}

/** The growth of the memory, by the method of least squares. */
function memoryFinding(what: string, memory: readonly number[]): Finding {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const middle = (memory.length - 1) / 2;
  const average = mean(memory);
  const slope =
    mean(memory.map((value, at) => (at - middle) * (value - average))) /
    mean(memory.map((_, at) => (at - middle) ** 2));
  const growth = ((slope * 2 * middle) / average) * 100;
  const minutes = (memory.length * SAMPLE_MS) / MINUTE_MS;
  return {
    what,
    measured: `${memory[0]?.toFixed(0)} MiB, then ${memory.at(-1)?.toFixed(0)} MiB: ${growth.toFixed(1)} % in ${minutes.toFixed(0)} min`,
    required: `≤ ${GROWTH_MAX} %`,
    ok: growth <= GROWTH_MAX,
  };
}
