import { isIP, isIPv6 } from "node:net";
import { onOneLine } from "../one-line.ts";
import { realTimeout } from "../time/clock.ts";
import { type Deadline, OutboundFailure } from "./outcome.ts";

/** Processes that run concurrently, of all accounts: below the 256 tasks that the service of the packages may have. */
const PINGS_MAX = 64;
/** The same of one account: those of others run on time, whatever hosts it checks. */
export const PINGS_PER_ACCOUNT_MAX = PINGS_MAX / 2;
/** Bytes of its output that are read: a summary has two hundred. */
const OUTPUT_BYTES_MAX = 8 * 1024;
/** Seconds between packets: the shortest time that every version takes from users who are not root. */
const PACKET_SECONDS = "0.2";
/** Time for its summary after the timeout. */
const SUMMARY_MS = 1_000;
/** Longest reason of its own that is shown. */
const REASON_LENGTH_MAX = 120;

const INSTALL =
  "Install it: apt install iputils-ping (Debian, Ubuntu), apk add iputils-ping (Alpine), dnf install iputils (Fedora)";
const PERMIT =
  'Permit it: setcap cap_net_raw+p on the command, or sysctl net.ipv4.ping_group_range="0 2147483647"';

/** What became of the packets to a host. */
export interface PingStatistics {
  readonly sent: number;
  /** At most `sent`. */
  readonly received: number;
  /** Round-trip times in milliseconds; null without a reply. */
  readonly times: { readonly min: number; readonly avg: number; readonly max: number } | null;
}

/** Packets to one of several addresses. */
export interface Packets {
  /** Reference of the account whose check it is; null: the operator's, or a probe's. */
  readonly account: number | null;
  /** How many are sent. */
  readonly packets: number;
  /** Time for sending and replies, from the start of the process, in milliseconds. */
  readonly timeoutMs: number;
}

interface Waiting {
  readonly account: number | null;
  readonly start: () => void;
}

/** Runs the `ping` of the system: sockets for ICMP are not open to this process. Its processes have a limit for each account. */
export class Pings {
  private total = 0;
  private readonly running = new Map<number | null, number>();
  private readonly waiting = new Set<Waiting>();

  /** `commandNamed`: path of a command of this machine; null without one. */
  constructor(private readonly commandNamed: (name: string) => string | null = Bun.which) {}

  /**
   * Sends packets to the first of some addresses to which there is a route. `deadline`: of the wait for a free place.
   * @throws OutboundFailure `connect`, `timeout`; `unsupported` without a `ping` that may send packets; `local` without a free place
   */
  async send(
    addresses: readonly string[],
    { account, packets, timeoutMs }: Packets,
    deadline: Deadline,
  ): Promise<PingStatistics & { readonly address: string }> {
    await this.take(account, deadline);
    try {
      let failure = new OutboundFailure("dns", "the name has no address");
      for (const address of addresses) {
        try {
          return { ...(await run(this.commandNamed, address, packets, timeoutMs)), address };
        } catch (error) {
          if (!(error instanceof OutboundFailure) || error.kind !== "connect") throw error;
          failure = error;
        }
      }
      throw failure;
    } finally {
      this.release(account);
    }
  }

  private take(account: number | null, deadline: Deadline): Promise<void> {
    return deadline.within<void>((settle) => {
      const start = (): void => {
        settle.onAbandoned(() => {});
        this.total += 1;
        this.running.set(account, this.runningOf(account) + 1);
        settle.resolve();
      };
      if (this.hasPlace(account)) {
        start();
        return;
      }
      const waiting: Waiting = { account, start };
      this.waiting.add(waiting);
      settle.onAbandoned(() => {
        this.waiting.delete(waiting);
        settle.reject(new OutboundFailure("local", "too many other pings run at the same time"));
      });
    });
  }

  private release(account: number | null): void {
    this.total -= 1;
    const others = this.runningOf(account) - 1;
    if (others > 0) this.running.set(account, others);
    else this.running.delete(account);
    for (const waiting of this.waiting) {
      if (this.total >= PINGS_MAX) return;
      if (!this.hasPlace(waiting.account)) continue;
      this.waiting.delete(waiting);
      waiting.start();
    }
  }

  private runningOf(account: number | null): number {
    return this.running.get(account) ?? 0;
  }

  private hasPlace(account: number | null): boolean {
    // A probe has no accounts, and all places.
    const most = account === null ? PINGS_MAX : PINGS_PER_ACCOUNT_MAX;
    return this.total < PINGS_MAX && this.runningOf(account) < most;
  }
}

/** @throws OutboundFailure */
async function run(
  commandNamed: (name: string) => string | null,
  address: string,
  packets: number,
  timeoutMs: number,
): Promise<PingStatistics> {
  // What follows the options is an address, whoever has named it.
  if (isIP(address) === 0) throw new OutboundFailure("invalid", "the host has no address");
  const command = commandFor(process.platform, address, packets, timeoutMs);
  if (command === null)
    throw new OutboundFailure("unsupported", "the ping of Windows is another one. Use a probe on Linux");
  const program = commandNamed(command.name);
  if (program === null)
    throw new OutboundFailure("unsupported", `the command ping is not installed on this machine. ${INSTALL}`);
  const child = started([program, ...command.args]);
  const end = (signal: "SIGINT" | "SIGKILL") => (): void => child.kill(signal);
  // Interrupted, it prints what has happened until then.
  const cancels = [
    realTimeout(timeoutMs, end("SIGINT")),
    realTimeout(timeoutMs + SUMMARY_MS, end("SIGKILL")),
  ];
  try {
    const [output, errors] = await Promise.all([firstOf(child.stdout), firstOf(child.stderr), child.exited]);
    const statistics = statisticsIn(output);
    if (statistics !== null) return statistics;
    throw failureOf(errors, address);
  } finally {
    for (const cancel of cancels) cancel();
    child.kill("SIGKILL");
  }
}

/** @throws OutboundFailure `unsupported`, `local` */
function started(cmd: string[]) {
  try {
    return Bun.spawn({
      cmd,
      env: { LC_ALL: "C" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EACCES" || code === "EPERM")
      throw new OutboundFailure("unsupported", `the command ping may not be run on this machine. ${PERMIT}`);
    throw new OutboundFailure("local", "this machine cannot start another process now");
  }
}

/** The command of a platform, and its arguments: the address is the last one. Null where it is another one. */
export function commandFor(
  platform: NodeJS.Platform,
  address: string,
  packets: number,
  timeoutMs: number,
): { readonly name: string; readonly args: readonly string[] } | null {
  if (platform === "win32") return null;
  const args = ["-n", "-q", "-c", String(packets), "-i", PACKET_SECONDS];
  if (platform !== "darwin")
    return { name: "ping", args: [...args, "-W", String(Math.ceil(timeoutMs / 1_000)), address] };
  // That of macOS counts in milliseconds, and has another command for IPv6, which always waits for ten seconds.
  if (isIPv6(address)) return { name: "ping6", args: [...args, address] };
  return { name: "ping", args: [...args, "-W", String(timeoutMs), address] };
}

/** The beginning of what a process prints. The rest is read and dropped, so that it can end. */
async function firstOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of stream) {
    if (length < OUTPUT_BYTES_MAX) parts.push(part.subarray(0, OUTPUT_BYTES_MAX - length));
    length += part.length;
  }
  return Buffer.concat(parts).toString("latin1");
}

const COUNTS = /^(\d{1,6}) packets transmitted, (\d{1,6}) (?:packets )?received/;
const TIMES =
  /^(?:rtt|round-trip) min\/avg\/max(?:\/[a-z]{1,10})? = (\d{1,9}(?:\.\d{1,6})?)\/(\d{1,9}(?:\.\d{1,6})?)\/(\d{1,9}(?:\.\d{1,6})?)/;

/**
 * Reads the summary of the `ping` of iputils, BusyBox, GNU and BSD. Null: there is none, or no packet was sent.
 */
export function statisticsIn(output: string): PingStatistics | null {
  const lines = output.split("\n");
  const [sent = 0, received = 0] = numbersIn(lines, COUNTS);
  if (sent === 0) return null;
  const [min, avg, max] = numbersIn(lines, TIMES);
  const isTimed = min !== undefined && avg !== undefined && max !== undefined && received > 0;
  return { sent, received: Math.min(sent, received), times: isTimed ? { min, avg, max } : null };
}

/** The numbers of the first line that matches; none without one. */
function numbersIn(lines: readonly string[], pattern: RegExp): readonly number[] {
  for (const line of lines) {
    const [match, ...numbers] = pattern.exec(line) ?? [];
    if (match !== undefined) return numbers.map(Number);
  }
  return [];
}

/** Why it has sent nothing. */
function failureOf(errors: string, address: string): OutboundFailure {
  const reason = onOneLine(errors.trim().replaceAll(address, "the host"), " ").slice(0, REASON_LENGTH_MAX);
  if (/permi|privilege|cap_/i.test(reason))
    return new OutboundFailure("unsupported", `the command ping may send no packets (${reason}). ${PERMIT}`);
  if (/usage|option|invalid/i.test(reason))
    return new OutboundFailure("unsupported", `the command ping is another one (${reason}). ${INSTALL}`);
  if (reason === "") return new OutboundFailure("timeout", "ping has sent no packet in time");
  return new OutboundFailure("connect", reason.replace(/^ping6?: /, ""));
}
