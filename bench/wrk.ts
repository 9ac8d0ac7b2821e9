import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { endsWithUs } from "../test/harness/processes/children.ts";
import type { Measurement, WrkRequest, WrkScript } from "./benchmark.ts";

/** One thread: on a small machine a second one would only take time from the server. */
const THREADS = 1;
/** `{random}` is below this: the numbers have six digits. */
const RANDOM_DIGITS = 6;
/** Prefix of the line that the script's `done` prints among wrk's own output. */
const RESULT_MARK = "ninefold-result";

/** A measurement by wrk, with its errors. */
export interface WrkResult extends Measurement {
  readonly requests: number;
  /** Responses with other statuses than 2xx and 3xx. */
  readonly otherStatuses: number;
  /** Failed connections and missing responses. */
  readonly broken: number;
}

/** Settings of a run of wrk. */
export interface WrkRun {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  readonly request: WrkRequest | WrkScript;
  /** A folder for the script. */
  readonly folder: string;
}

/** Runs wrk once. @throws Error when wrk itself fails. */
export async function runWrk({ url, connections, seconds, request, folder }: WrkRun): Promise<WrkResult> {
  const path = join(folder, "script.lua");
  writeFileSync(path, scriptOf(request, new URL(url).host));
  const child = Bun.spawn(
    ["wrk", "-t", `${THREADS}`, "-c", `${connections}`, "-d", `${seconds}s`, "--latency", "-s", path, url],
    { stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  );
  endsWithUs(child);
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  const line = out.split("\n").find((text) => text.startsWith(RESULT_MARK));
  if (code !== 0 || line === undefined) throw new Error(`wrk failed (${code}): ${out}${error}`);
  const [requests = 0, durationUs = 1, p50Us = 0, p99Us = 0, otherStatuses = 0, broken = 0] = line
    .split(" ")
    .slice(1)
    .map(Number);
  return {
    perSecond: requests / (durationUs / 1_000_000),
    p50Ms: p50Us / 1_000,
    p99Ms: p99Us / 1_000,
    requests,
    otherStatuses,
    broken,
  };
}

const SETUP = `
local count = 0
function setup(thread)
  thread:set("thread_index", count)
  thread:set("threads", ${THREADS})
  count = count + 1
end
`;

const DONE = `
function done(summary, latency, requests)
  local errors = summary.errors
  print(string.format("${RESULT_MARK} %d %d %d %d %d %d", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
`;

function scriptOf(request: WrkRequest | WrkScript, host: string): string {
  return SETUP + ("lua" in request ? request.lua : luaOf(request, host)) + DONE;
}

/** The whole request is one concatenation: wrk's own helpers would cost the load generator more than the server. */
function luaOf(request: WrkRequest, host: string): string {
  const { method, path, body, headers = {}, below = 1 } = request;
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (body !== undefined) lines.push("Content-Type: application/json");
  const length = body === undefined ? "" : `Content-Length: " .. #body .. "\\r\\n`;
  return `
function init(args)
  math.randomseed(os.time() * 31 + thread_index)
  number = thread_index
end
function request()
  number = number + threads
  local random = string.format("%0${RANDOM_DIGITS}d", math.random(0, ${below - 1}))
  local unique = string.format("%d", number)
  local body = ${luaText(body ?? "")}
  return ${luaText(`${lines.join("\r\n")}\r\n`)} .. "${length}\\r\\n" .. body
end
`;
}

/** A Lua expression for a text with placeholders. */
function luaText(text: string): string {
  return text
    .split(/(\{random\}|\{unique\})/)
    .map((part) => {
      if (part === "{random}" || part === "{unique}") return part.slice(1, -1);
      return `"${part.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\r", "\\r").replaceAll("\n", "\\n")}"`;
    })
    .join(" .. ");
}
