import { type Cancel, monotonicMs, realTimeout } from "../clock.ts";
import type { Connection } from "./connection.ts";

/** Idle connections kept in all: each holds a file descriptor here and one at the other end. */
export const IDLE_CONNECTIONS_MAX = 256;
/** Idle connections kept to one target. */
export const IDLE_PER_TARGET_MAX = 16;
/** How long an idle connection is kept: less than the 5 s after which common servers close theirs. */
export const IDLE_MS_MAX = 4_000;
/** How often idle connections are looked over. */
const SWEEP_MS = 1_000;

/** Connections that wait for another request to the same checked address and name. */
export class ConnectionPool {
  private readonly idle = new Map<string, Connection[]>();
  private count = 0;
  private cancelSweep: Cancel | null = null;
  private closed = false;

  /** An open connection for this key, taken out; null when there is none. */
  take(key: string): Connection | null {
    const waiting = this.idle.get(key);
    for (;;) {
      const connection = waiting?.pop();
      if (connection === undefined) return null;
      this.count -= 1;
      if (waiting?.length === 0) this.idle.delete(key);
      if (connection.isOpen && connection.idleSince > monotonicMs() - IDLE_MS_MAX) return connection;
      connection.destroy();
    }
  }

  /** Puts a connection aside, or closes it when there is no room. */
  give(connection: Connection): void {
    connection.listener = null;
    const waiting = this.idle.get(connection.key) ?? [];
    if (this.closed || this.count >= IDLE_CONNECTIONS_MAX || waiting.length >= IDLE_PER_TARGET_MAX) {
      connection.destroy();
      return;
    }
    connection.idleSince = monotonicMs();
    waiting.push(connection);
    this.idle.set(connection.key, waiting);
    this.count += 1;
    this.cancelSweep ??= realTimeout(SWEEP_MS, () => this.sweep());
  }

  /** Idle connections. */
  get size(): number {
    return this.count;
  }

  /** Closes all of them and keeps none from now on. */
  close(): void {
    this.closed = true;
    this.cancelSweep?.();
    for (const waiting of this.idle.values()) for (const connection of waiting) connection.destroy();
    this.idle.clear();
    this.count = 0;
  }

  private sweep(): void {
    const oldest = monotonicMs() - IDLE_MS_MAX;
    for (const [key, waiting] of this.idle) {
      const kept = waiting.filter((connection) => connection.isOpen && connection.idleSince > oldest);
      for (const connection of waiting) if (!kept.includes(connection)) connection.destroy();
      this.count -= waiting.length - kept.length;
      if (kept.length === 0) this.idle.delete(key);
      else this.idle.set(key, kept);
    }
    this.cancelSweep = this.count === 0 ? null : realTimeout(SWEEP_MS, () => this.sweep());
  }
}
