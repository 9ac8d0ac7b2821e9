import type { ProjectResources } from "../../kernel/project-resources.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { RETENTION_MS } from "./domain.ts";
import type { KeyRegistry } from "./registry.ts";
import type { KeyStore } from "./store.ts";
import type { KeyUses } from "./uses.ts";

/**
 * The keys in projects. Those of a deleted project are emptied rather than removed: for 30 days verify says
 * `deleted`, and a request with one 403, as with a revoked key.
 */
export class KeyResources implements ProjectResources {
  readonly name = "keys";
  private readonly store: KeyStore;
  private readonly registry: KeyRegistry;
  private readonly uses: KeyUses;

  constructor(deps: { store: KeyStore; registry: KeyRegistry; uses: KeyUses }) {
    this.store = deps.store;
    this.registry = deps.registry;
    this.uses = deps.uses;
  }

  /** Keys that work in the project and are not revoked: its own, in the default project also the account's. */
  count(projectRef: number, defaultOf: number | null): number {
    const own = this.store.countOfProject(projectRef);
    return defaultOf === null ? own : own + this.store.countOfAccount(defaultOf);
  }

  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    const leaving = this.store.ofProjectSome(projectRef, rowsMax);
    for (const { ref, digest } of leaving) {
      this.store.setDeleted(tx, ref, tx.now + RETENTION_MS);
      this.registry.drop(tx, digest);
      this.uses.forget(ref);
    }
    return leaving.length;
  }
}
