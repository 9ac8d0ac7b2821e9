import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Command, plainEnvironment, ServerProcess } from "../processes/server-process.ts";
import { createRandom } from "./random.ts";

/** How a run is made. */
export interface ApplyRun {
  readonly command: Command;
  /** A folder of its own. */
  readonly folder: string;
  /** Each kills a creation and a change. */
  readonly rounds: number;
  readonly seed: number;
  /** Called after every kill. */
  readonly report?: (kill: ApplyKill) => void;
}

/** A kill of `ninefold apply`, or of the server under it. */
export interface ApplyKill {
  readonly victim: "apply" | "server";
  /** After the plan was printed. */
  readonly afterMs: number;
  /** Changes that were left for the second run. */
  readonly left: number;
  readonly problems: readonly string[];
}

/** Longest time between the printed plan and the kill: about what the changes of a file take. */
const KILL_MS_MAX = 300;
/** Resources of the sections that are repeated. */
const REPEATED = 12;

/**
 * Kills `ninefold apply` and the server under it, in turn, while a file is applied to a new project, and again while the changed
 * file is applied with `--prune`. After each kill the file is applied again: that must succeed, a plan must have no changes,
 * and the secrets of new keys must be valid. Ends early after a kill with a problem.
 */
export async function runApplyRounds(run: ApplyRun): Promise<ApplyKill[]> {
  const random = createRandom(run.seed);
  const launch = { command: run.command, args: ["--port", "0", "--data", join(run.folder, "data")] };
  let server = await ServerProcess.start(launch);
  const key = server.key ?? "";
  const kills: ApplyKill[] = [];
  try {
    for (let round = 1; round <= run.rounds; round += 1) {
      for (const isChange of [false, true]) {
        const path = join(run.folder, "ninefold.yaml");
        writeFileSync(path, configuration(round, isChange));
        const secrets = join(run.folder, `secrets-${round}.json`);
        const args = ["apply", path, "--yes", "--prune", "--secrets-out", secrets];
        const victim = kills.length % 2 === 0 ? "apply" : "server";
        const afterMs = random.below(KILL_MS_MAX);
        const first = begin(run.command, args, server.url, key);
        // The plan is printed before anything is changed.
        const reader = first.stdout.getReader();
        await reader.read();
        await Bun.sleep(afterMs);
        if (victim === "apply") first.kill("SIGKILL");
        else await server.stop("SIGKILL");
        reader.releaseLock();
        await first.exited;
        if (victim === "server") server = await ServerProcess.start(launch);
        const { left, problems } = await applyAgain(run.command, path, secrets, { url: server.url, key });
        problems.push(...(await keyProblems(secrets, `crash-${round}`, server.url, key)));
        const kill = { victim, afterMs, left, problems } as const;
        kills.push(kill);
        run.report?.(kill);
        if (problems.length > 0) return kills;
      }
    }
  } finally {
    await server.stop("SIGKILL");
  }
  return kills;
}

/** Applies a file to its end. Returns how many changes were left, and what is wrong after it. */
async function applyAgain(
  command: Command,
  path: string,
  secrets: string,
  { url, key }: { readonly url: string; readonly key: string },
): Promise<{ left: number; problems: string[] }> {
  const problems: string[] = [];
  const args = ["apply", path, "--yes", "--prune", "--secrets-out", secrets];
  const again = await ended(begin(command, args, url, key));
  if (again.code !== 0) problems.push(`the second apply: ${again.text}`);
  const plan = await ended(begin(command, ["plan", path, "--prune"], url, key));
  if (plan.code !== 0) problems.push(`the plan after it: ${plan.text}`);
  const left = Number(/(\d+) of \d+ changes applied/.exec(again.text)?.[1] ?? 0);
  return { left, problems };
}

/** A file with resources that refer to each other; changed, other values, and some of them missing. */
function configuration(round: number, isChange: boolean): string {
  const at = Array.from({ length: REPEATED }, (_, index) => index).slice(isChange ? 2 : 0);
  const interval = isChange ? 120_000 : 60_000;
  return `ninefold: 1
project: crash-${round}
name: Round ${round}
keys: { web: { prefix: acme, scopes: [orders] }, worker: { prefix: acme, scopes: [orders] } }
flags: { ${at.map((one) => `f${one}: { enabled: ${isChange} }`).join(", ")} }
channels: { ops: { kind: slack, url: { env: CRASH_URL } } }
endpoints: { billing: { url: https://example.com/hooks, secret: { env: CRASH_SECRET } } }
buckets: { in: { targets: [{ endpoint: billing }], state: ${isChange ? "paused" : "live"} } }
monitors: { ${at.map((one) => `m${one}: { url: https://example.com/${one}, interval: ${interval}, channels: [ops] }`).join(", ")} }
schedules: { nightly: { cron: "0 3 * * *", target_url: https://example.com/, payload: { round: ${round} } } }
`;
}

function begin(command: Command, args: readonly string[], url: string, key: string) {
  return Bun.spawn([...command, ...args], {
    env: plainEnvironment({
      NINEFOLD_URL: url,
      NINEFOLD_API_KEY: key,
      CRASH_URL: "https://hooks.example.com/services/T0/B0/secret",
      CRASH_SECRET: `whsec_${Buffer.alloc(32, 1).toString("base64")}`,
    }),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

async function ended(child: ReturnType<typeof begin>): Promise<{ code: number; text: string }> {
  const [out, error] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, text: `${out}${error}` };
}

/** Every key of the file has a stored secret that is valid. */
async function keyProblems(path: string, project: string, url: string, key: string): Promise<string[]> {
  const secrets = existsSync(path) ? JSON.parse(readFileSync(path, "utf8"))[project] : {};
  const problems: string[] = [];
  for (const name of ["web", "worker"]) {
    const secret: unknown = secrets?.[name];
    const response = await fetch(`${url}/v1/keys/verify`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ secret: String(secret) }),
    });
    const { valid } = (await response.json()) as { valid?: boolean };
    if (typeof secret !== "string" || valid !== true) problems.push(`the key ${name} has no valid secret`);
  }
  return problems;
}

/** A kill as one line. */
export function describeKill({ victim, afterMs, left, problems }: ApplyKill): string {
  const verdict = problems.length === 0 ? "ok" : problems.join("; ");
  return `${victim} killed ${afterMs.toFixed(0)} ms after the plan, ${left} changes left: ${verdict}`;
}
