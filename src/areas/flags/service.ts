import { type AuditChange, difference } from "../../kernel/audit/change.ts";
import { ApiError } from "../../kernel/errors.ts";
import { isStorageFailure } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { deletedFlag, type FlagSetting, savedFlag } from "./definitions/audit.ts";
import { changedDefinition, jsonBytes, resolved } from "./definitions/definition.ts";
import {
  creditsOfSave,
  DEFINITIONS_BYTES_MAX,
  FLAGS_PER_PROJECT_MAX,
  noSuchFlag,
  ruleInvalid,
  STALE_AFTER_MS,
  USE_RESOLUTION_MS,
} from "./domain.ts";
import { Effort, type EvaluationContext } from "./evaluation/context.ts";
import { evaluate, type Outcome } from "./evaluation/evaluation.ts";
import type { FlagUses } from "./evaluation/usage.ts";
import {
  type ActiveFlag,
  FLAGS_IN_MEMORY_MAX,
  FlagRegistry,
  ROWS_PER_STEP,
  storedDefinition,
} from "./registry.ts";
import type {
  FlagBody,
  FlagConfig,
  FlagConfigQuery,
  FlagDefinition,
  FlagDeleted,
  FlagEvaluation,
  FlagSaved,
} from "./schema.ts";
import type { FlagRow, FlagStore } from "./store.ts";

/** Keys read in one step: a millisecond or two. */
const KEYS_PER_STEP = 500;

/** How an evaluation goes. */
export interface EvaluationOptions {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Whether flags that are for servers alone are found. */
  readonly seesServerOnly: boolean;
}

/** The use cases of flags. Changes run in units of work; the next request sees them. */
export class FlagService {
  private readonly active: FlagRegistry;
  private nextRef: number;

  constructor(
    private readonly store: FlagStore,
    private readonly uses: FlagUses,
    inMemoryMax = FLAGS_IN_MEMORY_MAX,
  ) {
    this.active = new FlagRegistry(store, uses, inMemoryMax);
    this.nextRef = store.highestRef() + 1;
  }

  /**
   * Creates a flag, or changes the one with this key. What is left out stays; null is the default. What changes nothing
   * writes nothing. `pay` takes the credits that a large change costs.
   *
   * @throws ApiError `gate.rule_invalid`; `conflict` when the flag has another version than was expected; `forbidden` for one
   *   flag too many, or too much in their definitions; what `pay` throws.
   */
  save(tx: Tx, projectRef: number, body: FlagBody, pay: (credits: number) => void = () => {}): FlagSaved {
    const { flag_key } = body;
    const row = this.store.find(projectRef, flag_key);
    const before = row && settingOf(row);
    const after = changedSetting(before, body);
    assertVersion(body.if_version, row);
    const change = savedFlag(flag_key, before, after);
    tx.audit(change);
    if (change === null && row !== null) return { success: true, flag_key, version: row.version };
    const state = this.active.stateOf(projectRef);
    const definition = after.definition && JSON.stringify(after.definition);
    const bytes = byteLength(definition) - byteLength(row?.definition ?? null);
    if (row === null) assertCapacity(state.count);
    if (bytes > 0) assertBytes(state.bytes + bytes);
    const credits = creditsOfSave(change === null ? 0 : changedBytes(change));
    if (credits > 0) pay(credits);
    const version = state.version + 1;
    const isHidden = isServerOnly(after) && (before === null || isServerOnly(before));
    this.active.change(tx, projectRef, {
      version,
      ...(isHidden ? {} : { public_version: version }),
      bytes: state.bytes + bytes,
      count: state.count + (row === null ? 1 : 0),
    });
    const stored = {
      enabled: Number(after.enabled),
      description: after.description,
      archived: Number(after.archived),
      version,
      updated_at: tx.now,
      definition,
    };
    const { ref = this.nextRef, created_at = tx.now, evaluated_at = null } = row ?? {};
    if (row === null) this.store.insert(tx, { ref, project_ref: projectRef, flag_key, ...stored });
    else this.store.update(tx, { ref, ...stored });
    this.nextRef = Math.max(this.nextRef, ref + 1);
    this.active.refresh(tx, projectRef, flag_key, row, {
      ref,
      flag_key,
      created_at,
      evaluated_at,
      ...stored,
    });
    return { success: true, flag_key, version };
  }

  /** Whether a flag is on. @throws ApiError `gate.feature_not_found`, `gate.evaluation_failed` */
  evaluate(projectRef: number, flagKey: string, now: number): FlagEvaluation {
    let flag: ActiveFlag | undefined;
    try {
      flag = this.active.find(projectRef, flagKey);
    } catch (cause) {
      throw failedEvaluation(cause);
    }
    if (flag === undefined) throw noSuchFlag("gate.feature_not_found", flagKey);
    if (now - flag.evaluatedAt >= USE_RESOLUTION_MS) this.noteUse(flag, now);
    return { enabled: flag.enabled, flag_key: flagKey };
  }

  /**
   * What a flag is for a context; undefined for one that is absent, archived or hidden.
   * @throws ApiError `validation_error` for a context that takes too long, `gate.evaluation_failed`
   */
  outcomeOf(
    projectRef: number,
    flagKey: string,
    context: EvaluationContext,
    { now, seesServerOnly }: EvaluationOptions,
    effort = new Effort(),
  ): Outcome | undefined {
    return evaluating(() => {
      const flag = this.active.find(projectRef, flagKey);
      if (flag === undefined || flag.archived) return undefined;
      if (flag.compiled.serverOnly && !seesServerOnly) return undefined;
      if (now - flag.evaluatedAt >= USE_RESOLUTION_MS) this.noteUse(flag, now);
      return evaluate(flag.compiled, context, now, effort);
    });
  }

  /** The same for some flags at once, in the order of their keys. */
  outcomesOf(
    projectRef: number,
    flagKeys: readonly string[],
    context: EvaluationContext,
    options: EvaluationOptions,
  ): (Outcome | undefined)[] {
    const effort = new Effort();
    return flagKeys.map((flagKey) => this.outcomeOf(projectRef, flagKey, context, options, effort));
  }

  /**
   * The same for all flags of a project that can be evaluated, sorted by key, one flag a step. Which of them are in use
   * cannot be told from it.
   */
  *outcomes(
    projectRef: number,
    context: EvaluationContext,
    { now, seesServerOnly }: EvaluationOptions,
  ): Generator<Outcome> {
    const effort = new Effort();
    try {
      for (const flag of this.active.ofProject(projectRef))
        if (seesServerOnly || !flag.serverOnly) yield evaluate(flag, context, now, effort);
    } catch (cause) {
      throw failedEvaluation(cause);
    }
  }

  /**
   * A number that is higher after every change of the project's flags, deletions included. Who does not see flags that are for
   * servers alone gets one that only changes of the others raise.
   */
  version(projectRef: number, { seesServerOnly }: Pick<EvaluationOptions, "seesServerOnly">): number {
    const { version, public_version } = this.active.stateOf(projectRef);
    return seesServerOnly ? version : public_version;
  }

  /** The keys of a project's flags, newest first, without archived ones. */
  *keys(projectRef: number): Generator<string> {
    for (const { flag_key } of inSteps((below) => this.store.newestKeys(projectRef, below, KEYS_PER_STEP)))
      yield flag_key;
  }

  /** The flags of a project, newest first. */
  *config(
    projectRef: number,
    { full, tag, archived }: FlagConfigQuery,
    now: number,
  ): Generator<FlagConfig["flags"][number]> {
    for (const row of inSteps((below) => this.store.newest(projectRef, below, ROWS_PER_STEP))) {
      if (row.archived !== 0 && !archived) continue;
      if (tag !== undefined && !hasTag(row, tag)) continue;
      yield full ? this.definitionOf(row, now) : briefly(row);
    }
  }

  /** All that is known of a flag. @throws ApiError `gate.feature_not_found` */
  definition(projectRef: number, flagKey: string, now: number): FlagDefinition {
    const row = this.store.find(projectRef, flagKey);
    if (row === null) throw noSuchFlag("gate.feature_not_found", flagKey);
    return this.definitionOf(row, now);
  }

  /** @throws ApiError `flag_not_found` */
  delete(tx: Tx, projectRef: number, flagKey: string): FlagDeleted {
    const row = this.store.find(projectRef, flagKey);
    if (row === null) throw noSuchFlag("flag_not_found", flagKey);
    const before = settingOf(row);
    tx.audit(deletedFlag(flagKey, before));
    const state = this.active.stateOf(projectRef);
    const version = state.version + 1;
    this.active.change(tx, projectRef, {
      version,
      ...(isServerOnly(before) ? {} : { public_version: version }),
      bytes: state.bytes - byteLength(row.definition),
      count: state.count - 1,
    });
    this.store.remove(tx, row.ref);
    this.uses.forget(tx, row.ref);
    this.active.refresh(tx, projectRef, flagKey, row, null);
    return { success: true };
  }

  /** Removes at most `rowsMax` flags of a deleted project. Returns how many it removed. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    const leaving = this.store.someOfProject(projectRef, rowsMax);
    for (const { ref } of leaving) {
      this.store.remove(tx, ref);
      this.uses.forget(tx, ref);
    }
    if (leaving.length < rowsMax) this.store.removeProject(tx, projectRef);
    const keys = leaving.map(({ flag_key }) => flag_key);
    this.active.forget(tx, projectRef, keys);
    return leaving.length;
  }

  private noteUse(flag: ActiveFlag, now: number): void {
    flag.evaluatedAt = this.uses.note(flag.ref, now);
  }

  private definitionOf(row: FlagRow, now: number): FlagDefinition {
    const evaluatedAt = this.uses.lastOf(row.ref, row.evaluated_at);
    const definition = resolved(storedDefinition(row) ?? {});
    const hasOneOutcome = definition.rules.length === 0 && definition.default.split === undefined;
    const isUnused = evaluatedAt === null || now - evaluatedAt >= STALE_AFTER_MS;
    return {
      flag_key: row.flag_key,
      enabled: row.enabled !== 0,
      description: row.description,
      ...definition,
      archived: row.archived !== 0,
      version: row.version,
      created_at: isoTimeOrNull(row.created_at),
      updated_at: isoTime(row.updated_at),
      last_evaluated_at: isoTimeOrNull(evaluatedAt),
      stale: row.archived === 0 && now - row.updated_at >= STALE_AFTER_MS && (isUnused || hasOneOutcome),
    };
  }
}

/** Goes through rows with falling numbers, some at a time. */
function* inSteps<Row extends { readonly ref: number }>(read: (below: number) => Row[]): Generator<Row> {
  let below = Number.MAX_SAFE_INTEGER;
  for (let rows = read(below); rows.length > 0; rows = read(below)) {
    yield* rows;
    below = rows.at(-1)?.ref ?? 0;
  }
}

function evaluating<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw failedEvaluation(cause);
  }
}

/** A failing disk is the writer's to answer for, a refusal the caller's; anything else is a defect of ours. */
function failedEvaluation(cause: unknown): unknown {
  if (cause instanceof ApiError || isStorageFailure(cause)) return cause;
  const message = "The flag could not be evaluated. Nothing was charged.";
  return new ApiError("gate.evaluation_failed", message, { cause });
}

function settingOf(row: FlagRow): FlagSetting {
  const { enabled, description, archived } = row;
  return {
    enabled: enabled !== 0,
    description,
    archived: archived !== 0,
    definition: storedDefinition(row),
  };
}

/** @throws ApiError `gate.rule_invalid` */
function changedSetting(before: FlagSetting | null, body: FlagBody): FlagSetting {
  const { enabled, description, archived } = body;
  if (typeof (archived ?? false) !== "boolean") throw ruleInvalid({ archived: ["must be true or false"] });
  return {
    enabled,
    description: description === undefined ? (before?.description ?? null) : description,
    archived: archived === undefined ? (before?.archived ?? false) : archived === true,
    definition: changedDefinition(before?.definition ?? null, body),
  };
}

/** @throws ApiError `gate.rule_invalid`, `conflict` with the `version` that the flag has; null where there is none. */
function assertVersion(wanted: unknown, row: FlagRow | null): void {
  if (wanted === undefined || wanted === null) return;
  if (!Number.isSafeInteger(wanted) || (wanted as number) < 0)
    throw ruleInvalid({ if_version: ["must be the version of the flag, a whole number"] });
  const version = row?.version ?? null;
  if (version === wanted) return;
  const message =
    version === null
      ? "There is no flag with this key any more."
      : `The flag has version ${version} by now. Read it again.`;
  throw new ApiError("conflict", message, { extras: { version } });
}

/** Bytes of JSON of the fields that a change sets. */
function changedBytes({ before, after }: AuditChange): number {
  return jsonBytes(before === null ? after : difference(after ?? {}, before));
}

/** @throws ApiError `forbidden` */
function assertCapacity(count: number): void {
  if (count < FLAGS_PER_PROJECT_MAX) return;
  throw new ApiError(
    "forbidden",
    `A project can have ${FLAGS_PER_PROJECT_MAX} flags, and this one has. Delete some first.`,
  );
}

/** @throws ApiError `forbidden` */
function assertBytes(bytes: number): void {
  if (bytes <= DEFINITIONS_BYTES_MAX) return;
  throw new ApiError(
    "forbidden",
    `The definitions of a project's flags can have ${DEFINITIONS_BYTES_MAX} bytes of JSON together, and with this one they would have ${bytes}. Delete flags that are no longer needed.`,
  );
}

function isServerOnly({ definition }: FlagSetting): boolean {
  return definition?.server_only === true;
}

function hasTag(row: FlagRow, tag: string): boolean {
  return storedDefinition(row)?.tags?.includes(tag) === true;
}

function briefly({ flag_key, enabled, description }: FlagRow) {
  return { flag_key, enabled: enabled !== 0, ...(description === null ? {} : { description }) };
}

function byteLength(text: string | null): number {
  return text === null ? 0 : Buffer.byteLength(text);
}
