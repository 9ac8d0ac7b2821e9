import type { Lock } from "./lock.ts";

const NO_LOCKS: ReadonlyMap<string, Lock> = new Map();

/** The held locks, by project and key. A free lock has no entry, because no data about it is stored. */
export class LockTable {
  private readonly projects = new Map<number, Map<string, Lock>>();

  /** Returns the locks of a project, by key. */
  ofProject(projectRef: number): ReadonlyMap<string, Lock> {
    return this.projects.get(projectRef) ?? NO_LOCKS;
  }

  /** Iterates over all held locks. */
  *all(): IterableIterator<Lock> {
    for (const locks of this.projects.values()) yield* locks.values();
  }

  /** Adds a lock. */
  add(lock: Lock): void {
    const locks = this.projects.get(lock.projectRef) ?? new Map<string, Lock>();
    this.projects.set(lock.projectRef, locks.set(lock.key, lock));
  }

  /** Removes a lock that has become free. */
  remove(lock: Lock): void {
    const locks = this.projects.get(lock.projectRef);
    locks?.delete(lock.key);
    if (locks?.size === 0) this.projects.delete(lock.projectRef);
  }
}
