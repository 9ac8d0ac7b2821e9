import { closeSync, openSync, readFileSync } from "node:fs";
import { slices } from "../../background/time-slices.ts";
import { errorCode, errorText } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import { type Cancel, realTimeout } from "../../time/clock.ts";
import type { OwnConnection, SystemSockets } from "./own-connections.ts";

/** How often the number of descriptors is looked at: it takes microseconds. */
const CHECK_MS = 250;
/** Descriptors that connections leave to files, lookups, outbound requests and threads; of a low limit, a part. */
export const RESERVED_DESCRIPTORS = 256;
const RESERVED_PART = 1 / 4;
/** Above the limit, so much of it is made free: otherwise every further connection would close another one. */
const FREED_PART = 1 / 8;
/** Pause between two warnings. */
const WARNING_PAUSE_CHECKS = 240;

const OPEN_FILES = "Max open files";

/** How many descriptors this process may open; null where that is unknown, or without a limit. */
function descriptorLimit(): number | null {
  try {
    const lines = readFileSync("/proc/self/limits", "utf8").split("\n");
    const files = lines.find((line) => line.startsWith(OPEN_FILES)) ?? "";
    // Behind it stand the soft limit, the hard one, and the unit; `unlimited` for none.
    const soft = Number.parseInt(files.slice(OPEN_FILES.length), 10);
    return Number.isNaN(soft) ? null : soft;
  } catch {
    return null;
  }
}

/** The highest descriptor that connections may take. */
export function connectionDescriptors(limit: number): number {
  return limit - Math.min(RESERVED_DESCRIPTORS, Math.ceil(limit * RESERVED_PART));
}

/**
 * Keeps descriptors free: anyone can open connections, and without descriptors nothing else works. The runtime accepts every
 * connection, so the excess is closed: of the network that has the most, first those on which no request has come.
 */
export class ConnectionLimit {
  private cancel: Cancel | null = null;
  private checksSinceWarning = WARNING_PAUSE_CHECKS;
  /** Whether many are used: then they are counted at each check. */
  private isCrowded = false;

  constructor(
    private readonly port: number,
    private readonly log: Pick<Logger, "warn">,
  ) {}

  /** Begins to look, in a later turn: a start would wait for what is read and loaded. */
  start(): void {
    this.cancel = realTimeout(CHECK_MS, () => {
      this.load().catch((error) => this.log.warn("connections are not limited", { error: errorText(error) }));
    });
  }

  stop(): void {
    this.cancel?.();
    this.cancel = null;
  }

  /** What is needed later is loaded while there are descriptors. The runtime has raised their limit as far as it may. */
  private async load(): Promise<void> {
    const limit = descriptorLimit();
    if (limit === null) return;
    const { SystemSockets } = await import("./own-connections.ts");
    this.checkLater(connectionDescriptors(limit), new SystemSockets());
  }

  private checkLater(most: number, sockets: SystemSockets): void {
    if (this.cancel === null) return;
    this.cancel = realTimeout(CHECK_MS, async () => {
      this.checksSinceWarning += 1;
      if (this.isCrowded || lowestFree(most) >= most) await this.closeExcess(most, sockets);
      this.checkLater(most, sockets);
    });
  }

  private async closeExcess(most: number, sockets: SystemSockets): Promise<void> {
    const { connections, used } = await sockets.connections(this.port, slices);
    const wanted = most - Math.ceil(most * FREED_PART);
    this.isCrowded = used > wanted;
    if (used < most) return;
    const excess = connectionsToClose(connections, used - wanted);
    for (const { descriptor } of excess) sockets.close(descriptor);
    if (this.checksSinceWarning < WARNING_PAUSE_CHECKS) return;
    this.checksSinceWarning = 0;
    this.log.warn(
      "connections were closed: too few file descriptors are left; raise the limit of open files (LimitNOFILE)",
      { closed: excess.length, connections: connections.length, descriptors: most },
    );
  }
}

/** The lowest number that is free: all below it are used. `none`: when none is. */
function lowestFree(fallback: number): number {
  try {
    const descriptor = openSync("/dev/null", "r");
    closeSync(descriptor);
    return descriptor;
  } catch (error) {
    if (errorCode(error) === "EMFILE") return fallback;
    throw error;
  }
}

/**
 * The connections that are closed to free so many: always of the network that has the most left, those without a request
 * first, then those that have been silent for longest.
 */
export function connectionsToClose(all: readonly OwnConnection[], count: number): OwnConnection[] {
  const byNetwork = Map.groupBy(all, ({ network }) => network);
  const ranked = [...byNetwork.values()].flatMap((connections) =>
    connections
      .toSorted((a, b) => Number(a.hasSent) - Number(b.hasSent) || b.silentMs - a.silentMs)
      .map((connection, at) => ({ connection, left: connections.length - at })),
  );
  return ranked
    .toSorted((a, b) => b.left - a.left)
    .slice(0, count)
    .map(({ connection }) => connection);
}
