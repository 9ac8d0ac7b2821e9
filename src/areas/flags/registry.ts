import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import { LruMap } from "../../kernel/limits/lru-map.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { StoredDefinition } from "./definitions/schema.ts";
import { type CompiledFlag, compileFlag } from "./evaluation/evaluation.ts";
import type { UsedFlag } from "./evaluation/usage.ts";
import type { FlagProjectRow, FlagRow, FlagStore } from "./store.ts";

/**
 * Individually cached flags, about 200 bytes each. Any other flag costs one indexed read. A flag with a definition counts as
 * several.
 */
export const FLAGS_IN_MEMORY_MAX = 131_072;
/** Cached flags of projects with bulk evaluations: six projects of 20,000 flags, or fewer with large definitions. */
const PROJECT_FLAGS_IN_MEMORY_MAX = 131_072;
/** Bytes of a definition that count as one flag, as a power of two. */
const WEIGHT_SHIFT = 8;
/** Rows per read, one or two milliseconds with the largest definitions. */
export const ROWS_PER_STEP = 16;
/** Cached project states. */
const PROJECTS_IN_MEMORY_MAX = 10_000;
/** Cached lists of flags: each caller evaluates the same few lists. */
const LISTS_CACHED_MAX = 1_024;
/** Longest cached list, in characters of its keys: limits the memory of the cache to about a megabyte. */
const LIST_CACHED_LENGTH_MAX = 1_024;

/** A flag in memory. */
export interface ActiveFlag extends Actor, UsedFlag {
  readonly enabled: boolean;
  readonly archived: boolean;
  readonly compiled: CompiledFlag;
}

/** All active flags of a project, sorted by key. */
interface ProjectFlags extends Actor {
  readonly weight: number;
  readonly flags: readonly CompiledFlag[];
}

/** Totals of a project's flags. */
export interface ProjectState extends Actor, FlagProjectRow {
  count: number;
  version: number;
  public_version: number;
  bytes: number;
}

/** Cache of the flags in use, with a size limit. */
export class FlagRegistry {
  private readonly flags: ActorRegistry<string, ActiveFlag>;
  private readonly byProject = new ActorRegistry<number, ProjectFlags>(PROJECT_FLAGS_IN_MEMORY_MAX);
  private readonly projects = new ActorRegistry<number, ProjectState>(PROJECTS_IN_MEMORY_MAX);
  /** Lists of flags by project and keys, as of the last change of any flag in memory. */
  private lists = new LruMap<string, readonly (ActiveFlag | undefined)[]>(LISTS_CACHED_MAX);

  constructor(
    private readonly store: FlagStore,
    inMemoryMax: number,
  ) {
    this.flags = new ActorRegistry(inMemoryMax, () => this.forgetLists());
  }

  /** Returns a flag, archived or not. */
  find(projectRef: number, flagKey: string): ActiveFlag | undefined {
    return this.flags.get(nameOf(projectRef, flagKey), () => {
      const row = this.store.find(projectRef, flagKey);
      if (row === null) return undefined;
      const { ref, definition } = row;
      const [enabled, archived] = [row.enabled !== 0, row.archived !== 0];
      const compiled = compiledRow(row);
      const weight = weightOf(definition);
      return { idle: true, recent: false, weight, ref, enabled, archived, compiled, use: null };
    });
  }

  /** Returns several flags like {@link find}, in the order of the given keys. */
  findAll(projectRef: number, flagKeys: readonly string[]): readonly (ActiveFlag | undefined)[] {
    const name = nameOf(projectRef, flagKeys.join("/"));
    const known = this.lists.get(name);
    if (known !== undefined) return known;
    const found = flagKeys.map((flagKey) => this.find(projectRef, flagKey));
    if (name.length <= LIST_CACHED_LENGTH_MAX) this.lists.set(name, found);
    return found;
  }

  /**
   * Iterates over all flags of a project that are not archived, sorted by key. They are read during the iteration: each is
   * at least as recent as the first step.
   */
  *ofProject(projectRef: number): Generator<CompiledFlag> {
    const known = this.byProject.get(projectRef, () => undefined);
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
    // After a change meanwhile, some of these may be outdated.
    if (this.stateOf(projectRef).version === version)
      this.put(projectRef, { idle: true, recent: false, weight, flags });
  }

  /** Returns the totals of a project's flags. */
  stateOf(projectRef: number): ProjectState {
    return this.projects.get(projectRef, () => {
      const row = this.store.project(projectRef) ?? { version: 0, public_version: 0, bytes: 0 };
      return { idle: true, recent: false, ...row, count: this.store.count(projectRef) };
    });
  }

  /** Updates the totals of a project's flags. */
  change(tx: Tx, projectRef: number, change: Partial<Omit<ProjectState, keyof Actor>>): void {
    const state = Object.assign(this.stateOf(projectRef), change);
    // Read again after a rollback: another unit of the batch may have counted the change.
    tx.onRollback(() => this.projects.drop(projectRef));
    this.store.saveProject(tx, projectRef, state.version, state.public_version, state.bytes);
  }

  /** Updates the cached flag after a change; `row` is null after a deletion. */
  refresh(tx: Tx, projectRef: number, flagKey: string, before: FlagRow | null, row: FlagRow | null): void {
    const drop = () => this.dropFlag(projectRef, flagKey);
    drop();
    // Read again after a rollback: another unit of the batch may have read the change.
    tx.onRollback(drop);
    const previous = this.byProject.peek(projectRef);
    this.put(projectRef, previous && replaceFlag(previous, flagKey, before, row));
    tx.onRollback(() => this.put(projectRef, previous));
  }

  /** Removes a deleted project from the cache. */
  forget(tx: Tx, projectRef: number, flagKeys: readonly string[]): void {
    const drop = () => {
      for (const flagKey of flagKeys) this.dropFlag(projectRef, flagKey);
      this.byProject.drop(projectRef);
      this.projects.drop(projectRef);
    };
    drop();
    tx.onRollback(drop);
  }

  private dropFlag(projectRef: number, flagKey: string): void {
    this.flags.drop(nameOf(projectRef, flagKey));
    this.forgetLists();
  }

  /** Forgets all lists, because a flag in them has changed, or has left the memory and would stay there by its list. */
  private forgetLists(): void {
    if (this.lists.size > 0) this.lists = new LruMap(LISTS_CACHED_MAX);
  }

  private put(projectRef: number, flags: ProjectFlags | undefined): void {
    this.byProject.drop(projectRef);
    if (flags !== undefined) this.byProject.insert(projectRef, flags);
  }
}

/** Returns the definition in a row. */
export function storedDefinition({ definition }: Pick<FlagRow, "definition">): StoredDefinition | null {
  return definition === null ? null : (JSON.parse(definition) as StoredDefinition);
}

function compiledRow(row: FlagRow): CompiledFlag {
  return compileFlag(row.flag_key, row.enabled !== 0, storedDefinition(row));
}

/** Returns the flags with one of them updated. */
function replaceFlag(
  { flags, weight, ...more }: ProjectFlags,
  flagKey: string,
  before: FlagRow | null,
  row: FlagRow | null,
): ProjectFlags {
  const isShown = row !== null && row.archived === 0;
  const at = indexOf(flags, flagKey);
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

/** Returns the index of a key, or its insertion point, in sorted flags. */
function indexOf(flags: readonly CompiledFlag[], flagKey: string): number {
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
