import { isValueDeeper } from "../../json-text.ts";
import { difference } from "../../kernel/audit/change.ts";
import { hourOf, type UsageQuery, usageOf } from "../../kernel/data/usage.ts";
import { prefixedId } from "../../kernel/data/uuid.ts";
import { ApiError, invalidField, rejectionBy, withFieldPrefix } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import { type ManagedBy, managedView } from "../../kernel/resources/managed.ts";
import { isStorageFailure } from "../../kernel/storage/storage-failures.ts";
import type { AuditChange, Tx } from "../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { auditOfDeletion, auditOfSave, type FlagSettings } from "./audit.ts";
import type { FlagChange } from "./definitions/change.ts";
import { jsonBytes, withDefaults } from "./definitions/definition.ts";
import { changedSettings, type Settings } from "./definitions/settings.ts";
import {
  byteLength,
  creditsOfSave,
  DEFINITIONS_BYTES_MAX,
  EVALUATIONS_RETENTION_MS,
  FLAGS_PER_PROJECT_MAX,
  flagNotFoundError,
  invalidRuleError,
  NO_VALUE,
  STALE_AFTER_MS,
  SWITCH,
} from "./domain.ts";
import { Effort, type EvaluationContext } from "./evaluation/context.ts";
import {
  compileFlag,
  type Explanation,
  evaluate,
  type Outcome,
  outcomeForAll,
} from "./evaluation/evaluation.ts";
import { CONTEXT_LEVELS_MAX } from "./evaluation/schema.ts";
import type { FlagUsage, VariantCount } from "./evaluation/usage.ts";
import type { Participant, ProposedChange } from "./proposals/proposals.ts";
import {
  type ActiveFlag,
  FLAGS_IN_MEMORY_MAX,
  FlagRegistry,
  ROWS_PER_STEP,
  storedDefinition,
} from "./registry.ts";
import type { FlagSchedule } from "./scheduled/schedule.ts";
import {
  type ScheduledChange,
  type Scheduling,
  scheduledAfter,
  scheduledBytes,
  scheduledView,
} from "./scheduled/scheduled.ts";
import type {
  FlagBody,
  FlagConfig,
  FlagConfigQuery,
  FlagDefinition,
  FlagDeleted,
  FlagEvaluation,
  FlagEvaluations,
  FlagPreview,
  FlagPreviewBody,
  FlagSaved,
} from "./schema.ts";
import type { FlagRow, FlagStore } from "./store.ts";

/** Who saves a flag, and what a save costs. */
export interface Saving {
  /** Charges the credits of a large change; free of charge without it. */
  readonly charge?: (credits: number) => void;
  /** Whose changes a save schedules; null: it schedules none. */
  readonly by?: Pick<Scheduling, "by" | "accountRef"> | null;
  /** Writes the entry of the audit log; the operation's without it. */
  readonly audit?: (change: AuditChange | null) => void;
}

/** What a change of a flag leads to. */
interface Write {
  readonly projectRef: number;
  readonly flag_key: string;
  /** Null for a new flag. */
  readonly row: FlagRow | null;
  readonly before: FlagSettings | null;
  readonly after: FlagSettings;
  readonly managed_by?: ManagedBy;
  readonly charge?: Saving["charge"];
  readonly audit?: Saving["audit"];
}

/** Keys per read, one or two milliseconds. */
const KEYS_PER_STEP = 500;

export interface EvaluationOptions {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Whether server-only flags are visible. */
  readonly seesServerOnly: boolean;
}

/** The operations of flags. Changes run in units of work and apply from the next request on. */
export class FlagService {
  private readonly registry: FlagRegistry;
  private nextRef: number;

  constructor(
    private readonly store: FlagStore,
    private readonly usage: FlagUsage,
    private readonly schedule: FlagSchedule,
    private readonly ids: Ids,
    /** Called in the unit of work that changes or deletes a flag. */
    private readonly onChange: (tx: Tx, projectRef: number, flagKey: string) => void = () => {},
    inMemoryMax = FLAGS_IN_MEMORY_MAX,
  ) {
    this.registry = new FlagRegistry(store, inMemoryMax);
    this.nextRef = store.highestRef() + 1;
  }

  /**
   * Creates or updates a flag. Omitted fields stay unchanged; null restores the default. A save without changes writes
   * nothing.
   *
   * @throws ApiError `gate.rule_invalid`; `conflict` if the flag has another version than expected; `forbidden` at the limits
   *   of flags and definitions; errors of `charge`.
   */
  save(tx: Tx, projectRef: number, body: FlagBody, { charge, by = null, audit }: Saving = {}): FlagSaved {
    const { flag_key, managed_by = null } = body;
    const row = this.store.find(projectRef, flag_key);
    const before = row && this.settingsOf(row);
    const after = this.settingsAfter(tx, before, body, by);
    assertVersion(body.if_version, row);
    return this.write(tx, { projectRef, flag_key, row, before, after, managed_by, charge, audit });
  }

  private settingsAfter(
    tx: Tx,
    before: FlagSettings | null,
    change: FlagChange & { readonly scheduled?: unknown },
    by: Saving["by"] = null,
  ): FlagSettings {
    const settings = changedSettings(before, change);
    const scheduling = by && { ...by, now: tx.now, newId: () => prefixedId("chg", this.ids.uuidV7()) };
    const scheduled = scheduledAfter(before?.scheduled ?? [], change.scheduled, settings, scheduling);
    return { ...settings, scheduled };
  }

  exists(projectRef: number, flagKey: string): boolean {
    return this.store.find(projectRef, flagKey) !== null;
  }

  /** What a change would do. @throws ApiError `gate.rule_invalid`; `flag_not_found` for a deletion. */
  draft(tx: Tx, { projectRef, accountRef, actor }: Participant, flagKey: string, change: ProposedChange) {
    const row = this.store.find(projectRef, flagKey);
    const before = row && this.settingsOf(row);
    const version = row?.version ?? null;
    if (change === null) {
      if (before === null) throw flagNotFoundError("flag_not_found", flagKey);
      return { version, entry: auditOfDeletion(flagKey, before), credits: 0 };
    }
    const after = this.settingsAfter(tx, before, change, { by: actor, accountRef });
    const entry = auditOfSave(flagKey, before, after);
    return { version, entry, credits: entry === null ? 0 : creditsOfSave(changedBytes(entry)) };
  }

  /** Applies a proposed change. @throws as a save or a deletion. */
  apply(
    tx: Tx,
    { projectRef, accountRef, actor }: Participant,
    flag_key: string,
    change: ProposedChange,
    audit: (change: AuditChange | null) => void,
  ): void {
    if (change === null) {
      this.delete(tx, projectRef, flag_key, audit);
      return;
    }
    const enabled = this.store.find(projectRef, flag_key)?.enabled !== 0;
    const by = { by: actor, accountRef };
    this.save(tx, projectRef, { flag_key, enabled, ...change } as FlagBody, { by, audit });
  }

  /** Cancels a scheduled change. @throws ApiError `flag_not_found`, `not_found` */
  cancelScheduled(tx: Tx, projectRef: number, flag_key: string, id: string): FlagSaved {
    const row = this.store.find(projectRef, flag_key);
    if (row === null) throw flagNotFoundError("flag_not_found", flag_key);
    const before = this.settingsOf(row);
    const scheduled = before.scheduled.filter((change) => change.id !== id);
    if (scheduled.length === before.scheduled.length)
      throw new ApiError(
        "not_found",
        "The flag has no scheduled change with this id. It may have been applied.",
      );
    return this.write(tx, { projectRef, flag_key, row, before, after: { ...before, scheduled } });
  }

  /**
   * Applies a scheduled change as a save of its own. Returns the flag, and why the change did not apply; null if it did. Then
   * it stays with the reason.
   */
  applyScheduled(
    tx: Tx,
    flagRef: number,
    change: ScheduledChange,
    audit: (projectRef: number, entry: AuditChange) => void,
  ): { readonly projectRef: number; readonly flag_key: string; readonly problem: string | null } | null {
    const row = this.store.withRef(flagRef);
    if (row === null) return null;
    const { project_ref: projectRef, flag_key } = row;
    const before = this.settingsOf(row);
    const rejection = rejectionBy(() => {
      const settings = changedSettings(before, change.set);
      const scheduled = settings.archived ? [] : before.scheduled.filter(({ id }) => id !== change.id);
      const after = { ...settings, scheduled };
      this.write(tx, {
        projectRef,
        flag_key,
        row,
        before,
        after,
        audit: (entry) => {
          if (entry !== null) audit(projectRef, { ...entry, summary: `${entry.summary}, as scheduled` });
        },
      });
    });
    if (rejection === null) return { projectRef, flag_key, problem: null };
    this.schedule.fail(tx, flagRef, change, rejection.message);
    return { projectRef, flag_key, problem: rejection.message };
  }

  /** @throws ApiError `forbidden` at the limits of flags and definitions, before anything is written; errors of `charge`. */
  private write(tx: Tx, { projectRef, flag_key, row, before, after, ...more }: Write): FlagSaved {
    const { charge, audit = (entry) => tx.audit(entry) } = more;
    const change = auditOfSave(flag_key, before, after);
    if (change === null && row !== null) {
      audit(null);
      return { success: true, flag_key, version: row.version };
    }
    const state = this.registry.stateOf(projectRef);
    const definition = after.definition && JSON.stringify(after.definition);
    const bytes =
      byteLength(definition) -
      byteLength(row?.definition ?? null) +
      scheduledBytes(after.scheduled) -
      scheduledBytes(before?.scheduled ?? []);
    if (row === null) assertFlagCount(state.count);
    if (bytes > 0) assertDefinitionBytes(state.bytes + bytes);
    const credits = creditsOfSave(change === null ? 0 : changedBytes(change));
    if (credits > 0) charge?.(credits);
    audit(change);
    this.onChange(tx, projectRef, flag_key);
    const version = state.version + 1;
    const isHidden = isServerOnly(after) && (before === null || isServerOnly(before));
    this.registry.change(tx, projectRef, {
      version,
      ...(isHidden || isSameNow(before, after) ? {} : { public_version: version }),
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
    const { managed_by = more.managed_by ?? null } = row ?? {};
    if (row === null)
      this.store.insert(tx, { ref, project_ref: projectRef, flag_key, managed_by, ...stored });
    else this.store.update(tx, { ref, ...stored });
    this.nextRef = Math.max(this.nextRef, ref + 1);
    if (before?.scheduled !== after.scheduled)
      this.schedule.replace(tx, ref, before?.scheduled ?? [], after.scheduled);
    this.registry.refresh(tx, projectRef, flag_key, row, {
      ref,
      flag_key,
      created_at,
      evaluated_at,
      managed_by,
      ...stored,
    });
    return { success: true, flag_key, version };
  }

  /** Returns a flag's switch. @throws ApiError `gate.feature_not_found`, `gate.evaluation_failed` */
  evaluate(projectRef: number, flagKey: string, now: number): FlagEvaluation {
    let flag: ActiveFlag | undefined;
    try {
      flag = this.registry.find(projectRef, flagKey);
    } catch (cause) {
      throw evaluationError(cause);
    }
    if (flag === undefined) throw flagNotFoundError("gate.feature_not_found", flagKey);
    const outcome = outcomeForAll(flag.compiled);
    this.usage.count(flag, now, outcome === null ? SWITCH : outcome.variant);
    return { enabled: flag.enabled, flag_key: flagKey };
  }

  /**
   * Evaluates a flag for a context. Returns undefined for a flag that is missing, archived or hidden.
   * @throws ApiError `validation_error` for a context that is too expensive, `gate.evaluation_failed`
   */
  outcomeOf(
    projectRef: number,
    flagKey: string,
    context: EvaluationContext,
    options: EvaluationOptions,
  ): Outcome | undefined {
    try {
      return this.outcomeOfFlag(this.registry.find(projectRef, flagKey), context, options, new Effort());
    } catch (cause) {
      throw evaluationError(cause);
    }
  }

  /**
   * Evaluates a flag for several contexts, archived or not, optionally after a change that is not saved. These evaluations
   * are not recorded, and all of them together have the limit of one.
   * @throws ApiError `gate.feature_not_found`, `gate.rule_invalid`; `validation_error` for contexts that are too deep or too
   *   expensive.
   */
  preview(
    projectRef: number,
    flagKey: string,
    { contexts, definition }: FlagPreviewBody,
    now: number,
  ): FlagPreview {
    const row = this.store.find(projectRef, flagKey);
    if (row === null && definition === undefined) throw flagNotFoundError("gate.feature_not_found", flagKey);
    const before = row && settingsOf(row);
    const after = withFieldPrefix("definition.", () => changedSettings(before, definition ?? {}));
    const flag = compileFlag(flagKey, after.enabled, after.definition);
    const effort = new Effort("contexts");
    const results = contexts.map((context, index) => {
      if (isValueDeeper(context, CONTEXT_LEVELS_MAX))
        throw invalidField(`contexts.${index}`, `is nested deeper than ${CONTEXT_LEVELS_MAX} levels`);
      const explanation: Explanation = { rule: null };
      const {
        value = null,
        variant = null,
        reason,
      } = evaluate(flag, context ?? {}, now, effort, explanation);
      return { value, variant, reason, ...explanation };
    });
    return { results };
  }

  /**
   * Returns a function that evaluates several flags like {@link outcomeOf}, in the order of the given keys. All its
   * evaluations together have the limit of one.
   */
  evaluator() {
    const effort = new Effort();
    return (
      projectRef: number,
      flagKeys: readonly string[],
      context: EvaluationContext,
      options: EvaluationOptions,
    ): (Outcome | undefined)[] => {
      try {
        return this.registry
          .findAll(projectRef, flagKeys)
          .map((flag) => this.outcomeOfFlag(flag, context, options, effort));
      } catch (cause) {
        throw evaluationError(cause);
      }
    };
  }

  /**
   * Evaluates all active flags of a project, sorted by key, one per step. These evaluations are not recorded, because they
   * do not show which flags are in use.
   */
  *outcomes(
    projectRef: number,
    context: EvaluationContext,
    { now, seesServerOnly }: EvaluationOptions,
  ): Generator<Outcome> {
    const effort = new Effort();
    try {
      for (const flag of this.registry.ofProject(projectRef))
        if (seesServerOnly || !flag.serverOnly) yield evaluate(flag, context, now, effort);
    } catch (cause) {
      throw evaluationError(cause);
    }
  }

  /**
   * Returns a number that increases with every change of the project's flags, including deletions. For callers without access
   * to server-only flags, it increases only with changes of visible flags.
   */
  version(projectRef: number, { seesServerOnly }: Pick<EvaluationOptions, "seesServerOnly">): number {
    const { version, public_version } = this.registry.stateOf(projectRef);
    return seesServerOnly ? version : public_version;
  }

  /** Individual evaluations of a flag by hour or day. @throws ApiError `gate.feature_not_found`, `validation_error` */
  evaluations(projectRef: number, flagKey: string, now: number, query: UsageQuery): FlagEvaluations {
    const row = this.store.find(projectRef, flagKey);
    if (row === null) throw flagNotFoundError("gate.feature_not_found", flagKey);
    return usageOf<VariantCount, FlagEvaluations["data"][number]>(query, {
      now,
      retentionMs: EVALUATIONS_RETENTION_MS,
      hours: (from, to) => this.usage.hoursOf(row.ref, from, to),
      empty: (from) => ({ from, total: 0, variants: Object.create(null), no_value: 0, switch_reads: 0 }),
      add(bucket, { variant, count }) {
        bucket.total += count;
        if (variant === NO_VALUE) bucket.no_value += count;
        else if (variant === SWITCH) bucket.switch_reads += count;
        else bucket.variants[variant] = (bucket.variants[variant] ?? 0) + count;
      },
    });
  }

  /** Iterates over the keys of a project's stale flags, newest first. */
  *staleKeys(projectRef: number, now: number): Generator<string> {
    for (const row of readInSteps((below) => this.store.newest(projectRef, below, ROWS_PER_STEP)))
      if (this.staleReason(row, now) !== null) yield row.flag_key;
  }

  /** Iterates over the keys of a project's flags, newest first, without archived ones. */
  *keys(projectRef: number): Generator<string> {
    for (const { flag_key } of readInSteps((below) =>
      this.store.newestKeys(projectRef, below, KEYS_PER_STEP),
    ))
      yield flag_key;
  }

  /** Iterates over the flags of a project, newest first. */
  *config(
    projectRef: number,
    { full, tag, archived, stale }: FlagConfigQuery,
    now: number,
  ): Generator<FlagConfig["flags"][number]> {
    for (const row of readInSteps((below) => this.store.newest(projectRef, below, ROWS_PER_STEP))) {
      if (row.archived !== 0 && !archived) continue;
      if (tag !== undefined && !hasTag(row, tag)) continue;
      if (stale && this.staleReason(row, now) === null) continue;
      yield full ? this.definitionOf(row, now) : summaryOf(row);
    }
  }

  /** Returns a flag's definition. @throws ApiError `gate.feature_not_found` */
  definition(projectRef: number, flagKey: string, now: number): FlagDefinition {
    const row = this.store.find(projectRef, flagKey);
    if (row === null) throw flagNotFoundError("gate.feature_not_found", flagKey);
    return this.definitionOf(row, now);
  }

  /** @throws ApiError `flag_not_found` */
  delete(
    tx: Tx,
    projectRef: number,
    flagKey: string,
    audit: (change: AuditChange | null) => void = (change) => tx.audit(change),
  ): FlagDeleted {
    const row = this.store.find(projectRef, flagKey);
    if (row === null) throw flagNotFoundError("flag_not_found", flagKey);
    const before = this.settingsOf(row);
    audit(auditOfDeletion(flagKey, before));
    this.onChange(tx, projectRef, flagKey);
    const state = this.registry.stateOf(projectRef);
    const version = state.version + 1;
    this.registry.change(tx, projectRef, {
      version,
      ...(isServerOnly(before) ? {} : { public_version: version }),
      bytes: state.bytes - byteLength(row.definition) - scheduledBytes(before.scheduled),
      count: state.count - 1,
    });
    this.removeRow(tx, row.ref);
    this.registry.refresh(tx, projectRef, flagKey, row, null);
    return { success: true };
  }

  /** Removes at most `rowsMax` flags of a deleted project. Returns the number removed. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    const removed = this.store.someOfProject(projectRef, rowsMax);
    for (const { ref } of removed) this.removeRow(tx, ref);
    if (removed.length < rowsMax) this.store.removeProject(tx, projectRef);
    const keys = removed.map(({ flag_key }) => flag_key);
    this.registry.forget(tx, projectRef, keys);
    return removed.length;
  }

  private removeRow(tx: Tx, ref: number): void {
    this.store.remove(tx, ref);
    this.usage.forget(tx, ref);
    this.schedule.removeOf(tx, ref);
  }

  private settingsOf(row: FlagRow): FlagSettings {
    return { ...settingsOf(row), scheduled: this.schedule.of(row.ref) };
  }

  private outcomeOfFlag(
    flag: ActiveFlag | undefined,
    context: EvaluationContext,
    { now, seesServerOnly }: EvaluationOptions,
    effort: Effort,
  ): Outcome | undefined {
    if (flag === undefined || flag.archived) return undefined;
    if (flag.compiled.serverOnly && !seesServerOnly) return undefined;
    const outcome = evaluate(flag.compiled, context, now, effort);
    this.usage.count(flag, now, outcome.variant);
    return outcome;
  }

  private definitionOf(row: FlagRow, now: number): FlagDefinition {
    const evaluatedAt = this.usage.lastEvaluation(row.ref, row.evaluated_at);
    const definition = withDefaults(storedDefinition(row) ?? {});
    const stale_reason = this.staleReason(row, now);
    return {
      flag_key: row.flag_key,
      enabled: row.enabled !== 0,
      description: row.description,
      ...definition,
      archived: row.archived !== 0,
      scheduled: this.schedule.of(row.ref).map(scheduledView),
      version: row.version,
      created_at: isoTimeOrNull(row.created_at),
      updated_at: isoTime(row.updated_at),
      last_evaluated_at: isoTimeOrNull(evaluatedAt),
      ...managedView(row.managed_by),
      stale: stale_reason !== null,
      stale_reason,
    };
  }

  /** Why a flag can probably be removed; null if not. */
  private staleReason(row: FlagRow, now: number): FlagDefinition["stale_reason"] {
    if (row.archived !== 0 || now - row.updated_at < STALE_AFTER_MS) return null;
    const evaluatedAt = this.usage.lastEvaluation(row.ref, row.evaluated_at);
    if (evaluatedAt === null || now - evaluatedAt >= STALE_AFTER_MS) return "unused";
    const { rules, default: fallback } = withDefaults(storedDefinition(row) ?? {});
    if (rules.length === 0 && fallback.split === undefined) return "one_outcome";
    const hours = this.usage.hoursOf(row.ref, hourOf(now - STALE_AFTER_MS), hourOf(now) + 1);
    const variants = new Set(hours.map(({ variant }) => variant));
    variants.delete(SWITCH);
    return variants.size === 1 ? "one_value" : null;
  }
}

/** Iterates over rows in descending order, in steps. */
function* readInSteps<Row extends { readonly ref: number }>(read: (below: number) => Row[]): Generator<Row> {
  let below = Number.MAX_SAFE_INTEGER;
  for (let rows = read(below); rows.length > 0; rows = read(below)) {
    yield* rows;
    below = rows.at(-1)?.ref ?? 0;
  }
}

/** Converts unexpected errors of an evaluation. Storage failures and errors for the caller stay unchanged. */
function evaluationError(cause: unknown): unknown {
  if (cause instanceof ApiError || isStorageFailure(cause)) return cause;
  const message = "The flag could not be evaluated. Nothing was charged.";
  return new ApiError("gate.evaluation_failed", message, { cause });
}

function settingsOf(row: FlagRow): Settings {
  const { enabled, description, archived } = row;
  return {
    enabled: enabled !== 0,
    description,
    archived: archived !== 0,
    definition: storedDefinition(row),
  };
}

/** @throws ApiError `gate.rule_invalid`; `conflict` with the flag's `version`, or null if the flag does not exist. */
function assertVersion(expected: unknown, row: FlagRow | null): void {
  if (expected === undefined || expected === null) return;
  if (!Number.isSafeInteger(expected) || (expected as number) < 0)
    throw invalidRuleError({ if_version: ["must be the version of the flag, an integer"] });
  const version = row?.version ?? null;
  if (version === expected) return;
  const message =
    version === null
      ? "The flag does not exist."
      : `The flag now has version ${version}. Read it again and repeat the change.`;
  throw new ApiError("conflict", message, { extras: { version } });
}

/** Returns the bytes of the changed fields as JSON. */
function changedBytes({ before, after }: AuditChange): number {
  return jsonBytes(before === null ? after : difference(after ?? {}, before));
}

/** @throws ApiError `forbidden` */
function assertFlagCount(count: number): void {
  if (count < FLAGS_PER_PROJECT_MAX) return;
  throw new ApiError(
    "forbidden",
    `The project has ${FLAGS_PER_PROJECT_MAX} flags, the maximum. Delete some first.`,
  );
}

/** @throws ApiError `forbidden` */
function assertDefinitionBytes(bytes: number): void {
  if (bytes <= DEFINITIONS_BYTES_MAX) return;
  throw new ApiError(
    "forbidden",
    `The definitions of the project's flags would have ${bytes} bytes of JSON together. The maximum is ${DEFINITIONS_BYTES_MAX}. Delete flags that you no longer need.`,
  );
}

/** Whether a flag is served as before: only its scheduled changes differ. */
function isSameNow(before: FlagSettings | null, after: FlagSettings): boolean {
  return before !== null && Bun.deepEquals({ ...before, scheduled: null }, { ...after, scheduled: null });
}

function isServerOnly({ definition }: Settings): boolean {
  return definition?.server_only === true;
}

function hasTag(row: FlagRow, tag: string): boolean {
  return storedDefinition(row)?.tags?.includes(tag) === true;
}

function summaryOf({ flag_key, enabled, description }: FlagRow) {
  return { flag_key, enabled: enabled !== 0, ...(description === null ? {} : { description }) };
}
