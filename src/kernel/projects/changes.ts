import type { Tx } from "../storage/tx.ts";

/**
 * Called with the area and id of a committed change; the id is null for a resource without one, or if many have changed.
 * `shared` is set for resources that the projects of an account share.
 */
export type ChangeListener = (area: string, id: string | null, shared?: SharedChange) => void;

/** A change of resources that the projects of an account share: keys, projects, the audit log. */
export interface SharedChange {
  /** Id of the project that it belongs to; null for the account. */
  readonly projectId: string | null;
}

/** What a listener listens to: one project, and the shared resources of its account. */
export interface Listened {
  readonly accountRef: number;
  readonly projectRef: number;
}

/**
 * Notifies listeners of changed resources, without the change itself. Units of work note a change; listeners are notified
 * after the commit. Without listeners a note costs one comparison; with listeners elsewhere, one map lookup.
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

  /** Notifies a listener from now on. Returns a function that stops it. */
  listen({ accountRef, projectRef }: Listened, listener: ChangeListener): () => void {
    const leave = [join(this.projects, projectRef, listener), join(this.accounts, accountRef, listener)];
    this.listening += 1;
    return () => {
      this.listening -= 1;
      for (const unsubscribe of leave) unsubscribe();
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
