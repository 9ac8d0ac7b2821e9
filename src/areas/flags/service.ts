import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import { type AuditChange, changed } from "../../kernel/audit/change.ts";
import { ApiError } from "../../kernel/errors.ts";
import { isStorageFailure } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { FLAGS_PER_PROJECT_MAX, noSuchFlag } from "./domain.ts";
import type { FlagConfig, FlagDeleted, FlagEvaluation, FlagKeys, FlagSaved } from "./schema.ts";
import type { FlagStore } from "./store.ts";

/** Flags kept in memory, about 200 bytes each: the ones in use. Beyond them a flag costs one indexed read. */
export const FLAGS_IN_MEMORY_MAX = 131_072;
/** Projects whose number of flags is kept in memory. */
const COUNTS_IN_MEMORY_MAX = 10_000;

/** A flag in memory. */
interface ActiveFlag extends Actor {
  readonly ref: number;
  enabled: boolean;
  description: string | null;
}

/** How many flags a project has. */
interface FlagCount extends Actor {
  value: number;
}

/** The use cases of flags. Changes run in units of work; the next request sees them. */
export class FlagService {
  private readonly flags: ActorRegistry<string, ActiveFlag>;
  private readonly counts = new ActorRegistry<number, FlagCount>(COUNTS_IN_MEMORY_MAX);
  private nextRef: number;

  constructor(
    private readonly store: FlagStore,
    inMemoryMax = FLAGS_IN_MEMORY_MAX,
  ) {
    this.flags = new ActorRegistry(inMemoryMax);
    this.nextRef = store.highestRef() + 1;
  }

  /**
   * Creates a flag, or changes the one with this key. Without a description it keeps its own; `null` clears it.
   *
   * @throws ApiError `forbidden` for one flag too many.
   */
  save(
    tx: Tx,
    projectRef: number,
    flagKey: string,
    enabled: boolean,
    description?: string | null,
  ): FlagSaved {
    const flag = this.find(projectRef, flagKey);
    if (flag === undefined) this.assertRoom(projectRef);
    tx.audit(savedFlag(flagKey, flag, enabled, description));
    if (flag === undefined) {
      this.store.insert(tx, this.nextRef++, projectRef, flagKey, Number(enabled), description ?? null);
      this.countBy(tx, projectRef, 1);
    } else {
      const kept = description === undefined ? flag.description : description;
      this.store.update(tx, Number(enabled), kept, flag.ref);
      Object.assign(flag, { enabled, description: kept });
    }
    // Read again after a rollback: another unit of the batch may have read what is taken back.
    tx.onRollback(() => this.flags.drop(nameOf(projectRef, flagKey)));
    return { success: true, flag_key: flagKey };
  }

  /** Whether a flag is on. @throws ApiError `gate.feature_not_found`, `gate.evaluation_failed` */
  evaluate(projectRef: number, flagKey: string): FlagEvaluation {
    let flag: ActiveFlag | undefined;
    try {
      flag = this.find(projectRef, flagKey);
    } catch (cause) {
      // The writer answers for a failing disk; anything else is a defect of ours.
      if (isStorageFailure(cause)) throw cause;
      const message = "The flag could not be evaluated. Nothing was charged.";
      throw new ApiError("gate.evaluation_failed", message, { cause });
    }
    if (flag === undefined) throw noSuchFlag("gate.feature_not_found", flagKey);
    return { enabled: flag.enabled, flag_key: flagKey };
  }

  /** The keys of a project's flags, newest first. */
  keys(projectRef: number): FlagKeys {
    return { flags: this.store.keysOfProject(projectRef).map(({ flag_key }) => flag_key) };
  }

  /** All flags of a project, newest first. */
  config(projectRef: number): FlagConfig {
    const flags = this.store.ofProject(projectRef).map(({ flag_key, enabled, description }) => ({
      flag_key,
      enabled: enabled !== 0,
      ...(description === null ? {} : { description }),
    }));
    return { flags };
  }

  /** @throws ApiError `flag_not_found` */
  delete(tx: Tx, projectRef: number, flagKey: string): FlagDeleted {
    const flag = this.find(projectRef, flagKey);
    if (flag === undefined) throw noSuchFlag("flag_not_found", flagKey);
    const { enabled, description } = flag;
    tx.audit({
      summary: `Flag ${flagKey} deleted`,
      target: targetOf(flagKey),
      before: { enabled, description },
      after: null,
    });
    this.remove(tx, projectRef, flagKey, flag.ref);
    return { success: true };
  }

  /** Removes at most `rowsMax` flags of a deleted project. Returns how many it removed. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    const leaving = this.store.someOfProject(projectRef, rowsMax);
    for (const { ref, flag_key } of leaving) this.remove(tx, projectRef, flag_key, ref);
    return leaving.length;
  }

  private find(projectRef: number, flagKey: string): ActiveFlag | undefined {
    return this.flags.get(nameOf(projectRef, flagKey), () => {
      const row = this.store.find(projectRef, flagKey);
      if (row === null) return undefined;
      const { ref, enabled, description } = row;
      return { idle: true, recent: false, ref, enabled: enabled !== 0, description };
    });
  }

  private assertRoom(projectRef: number): void {
    const count = (): FlagCount => ({ idle: true, recent: false, value: this.store.count(projectRef) });
    if (this.counts.get(projectRef, count).value < FLAGS_PER_PROJECT_MAX) return;
    throw new ApiError(
      "forbidden",
      `A project can have ${FLAGS_PER_PROJECT_MAX} flags, and this one has. Delete some first.`,
    );
  }

  private remove(tx: Tx, projectRef: number, flagKey: string, ref: number): void {
    this.store.remove(tx, ref);
    this.flags.drop(nameOf(projectRef, flagKey));
    this.countBy(tx, projectRef, -1);
  }

  private countBy(tx: Tx, projectRef: number, change: number): void {
    const count = this.counts.peek(projectRef);
    if (count !== undefined) count.value += change;
    // Counted again after a rollback: another unit of the batch may have counted what is taken back.
    tx.onRollback(() => this.counts.drop(projectRef));
  }
}

function targetOf(id: string) {
  return { type: "flag", id };
}

/** What a save is to the audit log. */
function savedFlag(
  flagKey: string,
  flag: ActiveFlag | undefined,
  enabled: boolean,
  description: string | null | undefined,
): AuditChange | null {
  const target = targetOf(flagKey);
  const state = enabled ? "on" : "off";
  if (flag === undefined) {
    const after = { enabled, description: description ?? null };
    return { summary: `Flag ${flagKey} created, ${state}`, target, before: null, after };
  }
  const before = { enabled: flag.enabled, description: flag.description };
  const after = { enabled, description: description === undefined ? flag.description : description };
  const what = flag.enabled === enabled ? "described anew" : `switched ${state}`;
  return changed({ summary: `Flag ${flagKey} ${what}`, target, before, after });
}

function nameOf(projectRef: number, flagKey: string): string {
  return `${projectRef}/${flagKey}`;
}
