import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { StoredDefinition } from "./definitions/schema.ts";
import { type CompiledFlag, compileFlag } from "./evaluation/evaluation.ts";
import type { FlagUses } from "./evaluation/usage.ts";
import type { FlagProjectRow, FlagRow, FlagStore } from "./store.ts";

/**
 * Flags kept in memory one by one, about 200 bytes each: the ones in use. Beyond them a flag costs one indexed read. One with
 * a definition counts as several.
 */
export const FLAGS_IN_MEMORY_MAX = 131_072;
/** The same for flags of projects that evaluate all of theirs together: six of 20,000, or fewer with large definitions. */
const FLAGS_TOGETHER_MAX = 131_072;
/** Bytes of a definition that count as one more flag, as a power of two. */
const WEIGHT_SHIFT = 8;
/** Rows read in one step: with the largest definitions a millisecond or two. */
export const ROWS_PER_STEP = 16;
/** Projects whose number of flags is kept in memory. */
const PROJECTS_IN_MEMORY_MAX = 10_000;

/** A flag in memory. */
export interface ActiveFlag extends Actor {
  readonly ref: number;
  readonly enabled: boolean;
  readonly archived: boolean;
  readonly compiled: CompiledFlag;
  /** The hour of its last evaluation that is noted, epoch milliseconds; 0 for none. */
  evaluatedAt: number;
}

/** All flags of a project that can be evaluated, sorted by key. */
interface ProjectFlags extends Actor {
  readonly weight: number;
  readonly flags: readonly CompiledFlag[];
}

/** What a project's flags come to. */
export interface ProjectState extends Actor, FlagProjectRow {
  count: number;
  version: number;
  public_version: number;
  bytes: number;
}

/** The flags that are in use, in memory. A bounded number of them; all others cost a read. */
export class FlagRegistry {
  private readonly flags: ActorRegistry<string, ActiveFlag>;
  private readonly together = new ActorRegistry<number, ProjectFlags>(FLAGS_TOGETHER_MAX);
  private readonly projects = new ActorRegistry<number, ProjectState>(PROJECTS_IN_MEMORY_MAX);

  constructor(
    private readonly store: FlagStore,
    private readonly uses: FlagUses,
    inMemoryMax: number,
  ) {
    this.flags = new ActorRegistry(inMemoryMax);
  }

  /** A flag, archived or not. */
  find(projectRef: number, flagKey: string): ActiveFlag | undefined {
    return this.flags.get(nameOf(projectRef, flagKey), () => {
      const row = this.store.find(projectRef, flagKey);
      if (row === null) return undefined;
      const evaluatedAt = this.uses.lastOf(row.ref, row.evaluated_at) ?? 0;
      const { ref, definition } = row;
      const [enabled, archived] = [row.enabled !== 0, row.archived !== 0];
      const compiled = compiledRow(row);
      const weight = weightOf(definition);
      return { idle: true, recent: false, weight, ref, enabled, archived, compiled, evaluatedAt };
    });
  }

  /**
   * All flags of a project that are not archived, sorted by key. They are read while they are gone through: each is at
   * least as recent as the first step.
   */
  *ofProject(projectRef: number): Generator<CompiledFlag> {
    const known = this.together.get(projectRef, () => undefined);
    if (known !== undefined) return yield* known.flags;
    const { version } = this.stateOf(projectRef);
    const flags: CompiledFlag[] = [];
    let weight = 1;
    for (let rows = this.store.byKey(projectRef, "", ROWS_PER_STEP); rows.length > 0; ) {
      for (const row of rows) {
        if (row.archived !== 0) continue;
        const flag = compiledRow(row);
        weight += weightOf(row.definition);
        flags.push(flag);
        yield flag;
      }
      rows = this.store.byKey(projectRef, rows.at(-1)?.flag_key ?? "", ROWS_PER_STEP);
    }
    // After a change in between, some of these may be as they were before it.
    if (this.stateOf(projectRef).version === version)
      this.put(projectRef, { idle: true, recent: false, weight, flags });
  }

  /** What a project's flags come to. */
  stateOf(projectRef: number): ProjectState {
    return this.projects.get(projectRef, () => {
      const row = this.store.project(projectRef) ?? { version: 0, public_version: 0, bytes: 0 };
      return { idle: true, recent: false, ...row, count: this.store.count(projectRef) };
    });
  }

  /** Writes what a project's flags come to after a change. */
  change(tx: Tx, projectRef: number, change: Partial<Omit<ProjectState, keyof Actor>>): void {
    const state = Object.assign(this.stateOf(projectRef), change);
    // Read again after a rollback: another unit of the batch may have counted what is taken back.
    tx.onRollback(() => this.projects.drop(projectRef));
    this.store.saveProject(tx, projectRef, state.version, state.public_version, state.bytes);
  }

  /** Takes a flag as its row is now; `row` null: it is gone. */
  refresh(tx: Tx, projectRef: number, flagKey: string, before: FlagRow | null, row: FlagRow | null): void {
    const name = nameOf(projectRef, flagKey);
    this.flags.drop(name);
    // Read again after a rollback: another unit of the batch may have read what is taken back.
    tx.onRollback(() => this.flags.drop(name));
    const was = this.together.peek(projectRef);
    this.put(projectRef, was && withFlag(was, flagKey, before, row));
    tx.onRollback(() => this.put(projectRef, was));
  }

  /** Forgets all of a deleted project. */
  forget(tx: Tx, projectRef: number, flagKeys: readonly string[]): void {
    const drop = () => {
      for (const flagKey of flagKeys) this.flags.drop(nameOf(projectRef, flagKey));
      this.together.drop(projectRef);
      this.projects.drop(projectRef);
    };
    drop();
    tx.onRollback(drop);
  }

  private put(projectRef: number, flags: ProjectFlags | undefined): void {
    this.together.drop(projectRef);
    if (flags !== undefined) this.together.insert(projectRef, flags);
  }
}

/** The definition that a row holds. */
export function storedDefinition({ definition }: Pick<FlagRow, "definition">): StoredDefinition | null {
  return definition === null ? null : (JSON.parse(definition) as StoredDefinition);
}

function compiledRow(row: FlagRow): CompiledFlag {
  return compileFlag(row.flag_key, row.enabled !== 0, storedDefinition(row));
}

/** The same flags with one as it is now. */
function withFlag(
  { flags, weight, ...more }: ProjectFlags,
  flagKey: string,
  before: FlagRow | null,
  row: FlagRow | null,
): ProjectFlags {
  const isShown = row !== null && row.archived === 0;
  const at = placeOf(flags, flagKey);
  const wasShown = flags[at]?.key === flagKey;
  return {
    ...more,
    weight:
      weight -
      (wasShown ? weightOf(before?.definition ?? null) : 0) +
      (isShown ? weightOf(row.definition) : 0),
    flags: flags.toSpliced(at, wasShown ? 1 : 0, ...(isShown ? [compiledRow(row)] : [])),
  };
}

/** Where a key stands, or would stand, among sorted flags. */
function placeOf(flags: readonly CompiledFlag[], flagKey: string): number {
  let low = 0;
  let high = flags.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((flags[middle] as CompiledFlag).key < flagKey) low = middle + 1;
    else high = middle;
  }
  return low;
}

function weightOf(definition: string | null): number {
  return 1 + ((definition?.length ?? 0) >>> WEIGHT_SHIFT);
}

function nameOf(projectRef: number, flagKey: string): string {
  return `${projectRef}/${flagKey}`;
}
