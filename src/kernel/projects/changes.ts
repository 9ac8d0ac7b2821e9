import type { Tx } from "../storage/tx.ts";

/**
 * Learns of a change once it is committed: in which area, and of what; null where that has no id, or many have changed.
 * `shared` is given for a change in what the projects of an account share.
 */
export type ChangeListener = (area: string, id: string | null, shared?: SharedChange) => void;

/** A change in what the projects of an account share: keys, projects, the audit log. */
export interface SharedChange {
  /** The id of the project that it belongs to; null where it is the account's. */
  readonly projectId: string | null;
}

/** What somebody listens to: one project, and what belongs to the account around it. */
export interface Listened {
  readonly accountRef: number;
  readonly projectRef: number;
}

/**
 * Tells listeners what has been changed, never how. Units of work note it; it is told after their commit. While nobody
 * listens a note is the test of one integer; while somebody does, elsewhere, it is a look into a map.
 */
export class Changes {
  private listening = 0;
  private readonly projects = new Map<number, Set<ChangeListener>>();
  private readonly accounts = new Map<number, Set<ChangeListener>>();

  /** Notes a change in a project. */
  inProject(tx: Tx, projectRef: number, area: string, id: string | null = null): void {
    if (this.listening > 0 && this.projects.has(projectRef))
      tx.afterCommit(() => tell(this.projects.get(projectRef), area, id));
  }

  /** Notes a change in what the projects of an account share. `projectId`: the project that it belongs to, if any. */
  inAccount(
    tx: Tx,
    accountRef: number,
    area: string,
    id: string | null = null,
    projectId: string | null = null,
  ): void {
    if (this.listening > 0 && this.accounts.has(accountRef))
      tx.afterCommit(() => tell(this.accounts.get(accountRef), area, id, { projectId }));
  }

  /** Tells a listener from now on. Returns how to end that. */
  listen({ accountRef, projectRef }: Listened, listener: ChangeListener): () => void {
    const leave = [join(this.projects, projectRef, listener), join(this.accounts, accountRef, listener)];
    this.listening += 1;
    return () => {
      this.listening -= 1;
      for (const one of leave) one();
    };
  }
}

function tell(
  listeners: ReadonlySet<ChangeListener> | undefined,
  area: string,
  id: string | null,
  shared?: SharedChange,
): void {
  for (const listener of listeners ?? []) listener(area, id, shared);
}

function join(all: Map<number, Set<ChangeListener>>, ref: number, listener: ChangeListener): () => void {
  const listeners = all.get(ref) ?? new Set();
  all.set(ref, listeners.add(listener));
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && all.get(ref) === listeners) all.delete(ref);
  };
}
