import { SortedTexts } from "../../kernel/data/sorted-texts.ts";
import type { Lock } from "./lock.ts";

const NO_LOCKS: ReadonlyMap<string, Lock> = new Map();

/** The held locks of a project. */
interface ProjectLocks {
  readonly locks: Map<string, Lock>;
  readonly keys: SortedTexts;
}

/** The held locks, by project and key. A free lock has no entry, because no data about it is stored. */
export class LockTable {
  private readonly projects = new Map<number, ProjectLocks>();

  /** Returns the locks of a project, by key. */
  ofProject(projectRef: number): ReadonlyMap<string, Lock> {
    return this.projects.get(projectRef)?.locks ?? NO_LOCKS;
  }

  /** Iterates over the locks of a project from a key on, in the order of keys, also while locks come and go. */
  *inOrder(projectRef: number, fromKey: string): IterableIterator<Lock> {
    let key = this.projects.get(projectRef)?.keys.atLeast(fromKey);
    while (key !== undefined) {
      const lock = this.ofProject(projectRef).get(key);
      if (lock !== undefined) yield lock;
      key = this.projects.get(projectRef)?.keys.after(key);
    }
  }

  /** Iterates over all held locks. */
  *all(): IterableIterator<Lock> {
    for (const { locks } of this.projects.values()) yield* locks.values();
  }

  /** Adds a lock. */
  add(lock: Lock): void {
    const { projectRef, key } = lock;
    const project = this.projects.get(projectRef) ?? { locks: new Map(), keys: new SortedTexts() };
    const { size } = project.locks;
    if (project.locks.set(key, lock).size > size) project.keys.add(key);
    this.projects.set(projectRef, project);
  }

  /** Removes a lock that has become free. */
  remove({ projectRef, key }: Lock): void {
    const project = this.projects.get(projectRef);
    if (project === undefined) return;
    if (project.locks.delete(key)) project.keys.remove(key);
    if (project.locks.size === 0) this.projects.delete(projectRef);
  }
}
