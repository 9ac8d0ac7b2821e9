import { type AuditChange, changed } from "../../../kernel/audit/change.ts";
import { SIDE_BYTES_MAX } from "../../../kernel/audit/redaction.ts";
import { isPrefixedId, prefixedId } from "../../../kernel/data/uuid.ts";
import { ApiError, type ErrorMeaning, invalidField, registerErrors } from "../../../kernel/errors.ts";
import type { Caller } from "../../../kernel/http/access/caller.ts";
import { pageOf, pageStart } from "../../../kernel/http/requests/pagination.ts";
import { type Reply, withJson } from "../../../kernel/http/responses/response.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { NO_LIMIT, type Tiers } from "../../../kernel/limits/tiers.ts";
import { withSecretsCovered } from "../../../kernel/outbound/headers.ts";
import type { TargetPolicy } from "../../../kernel/outbound/target.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { LIST_LIMIT } from "../deliveries/schema.ts";
import type { ScheduleRuns } from "./runs.ts";
import {
  NEXT_RUNS,
  type Schedule,
  type ScheduleBody,
  type ScheduleItem,
  type SchedulePage,
  type ScheduleQuery,
  type ScheduleRun,
  type ScheduleUpdateBody,
} from "./schema.ts";
import { changeOf, DEFAULT_SETTINGS, firstRun, isTimed, nextRun, type ScheduleChange } from "./settings.ts";
import type { ScheduleRow, ScheduleStore } from "./store.ts";

const codes = registerErrors({
  schedule_name_taken: [409, "Another schedule of the project has this name; `schedule_id` identifies it."],
  schedule_limit_exceeded: [403, "The project has reached its tier's limit of schedules."],
});

declare module "../../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

export class Schedules {
  private nextRef: number;

  constructor(
    private readonly deps: Pick<Kernel, "ids"> & {
      readonly schedules: ScheduleStore;
      readonly runs: ScheduleRuns;
      readonly policy: TargetPolicy;
      readonly tiers: Tiers;
    },
  ) {
    this.nextRef = deps.schedules.highestRef() + 1;
  }

  /** Checks a caller's settings. @throws ApiError `validation_error` naming the field. */
  prepare(given: ScheduleUpdateBody, bodyText: string): Promise<ScheduleChange> {
    return changeOf(given, bodyText, this.deps.policy);
  }

  /** @throws ApiError `validation_error`, `schedule_limit_exceeded`, `schedule_name_taken` */
  create(
    tx: Tx,
    caller: Caller,
    { cron }: Pick<ScheduleBody, "cron">,
    change: ScheduleChange,
  ): Reply<201, Schedule> {
    const { schedules, runs, ids } = this.deps;
    const { account, project } = caller;
    const schedule_id = prefixedId("sch", ids.uuidV7());
    const headers = runs.sealed(change.headers ?? {}, schedule_id);
    const settings = { ...DEFAULT_SETTINGS, ...change, cron, headers };
    if (settings.target_url === null && settings.event_type === null)
      throw invalidField("target_url", "is required unless event_type is given");
    const first = firstRun(settings, tx.now);
    this.assertNameFree(project.ref, settings.name, null);
    this.assertBelowLimit(caller);
    const next_run_at = settings.state === "live" ? first : null;
    const ref = this.nextRef++;
    const owner = { accountRef: account.ref, projectRef: project.ref };
    schedules.insert(tx, { ...settings, ...owner, ref, schedule_id, next_run_at, created_at: tx.now });
    if (next_run_at !== null) runs.setNextRun(tx, { ref, accountRef: account.ref }, next_run_at);
    const row = this.find(project.ref, schedule_id);
    tx.audit({ ...about(row, "created"), before: null, after: this.audited(row) });
    return this.view(201, row);
  }

  /** @throws ApiError `not_found`, `validation_error`, `schedule_name_taken` */
  update(tx: Tx, projectRef: number, scheduleId: string, change: ScheduleChange): Reply<200, Schedule> {
    const { schedules, runs } = this.deps;
    const before = this.find(projectRef, scheduleId);
    const headers = change.headers === undefined ? before.headers : runs.sealed(change.headers, scheduleId);
    const settings = { ...before, ...change, headers };
    this.assertNameFree(projectRef, change.name ?? null, before.ref);
    const isNew = isTimed(change) || (settings.state === "live" && before.state === "paused");
    const first = isNew ? firstRun(settings, tx.now) : before.next_run_at;
    const next_run_at = settings.state === "live" ? first : null;
    schedules.update(tx, { ...settingsOf(settings), ref: before.ref, next_run_at, now: tx.now });
    if (next_run_at !== before.next_run_at) runs.setNextRun(tx, before, next_run_at);
    const row = this.find(projectRef, scheduleId);
    const sides = { before: this.audited(before), after: this.audited(row) };
    tx.audit(changed({ ...about(row, "changed"), ...sides }));
    return this.view(200, row);
  }

  /** @throws ApiError `not_found` */
  delete(tx: Tx, projectRef: number, scheduleId: string): void {
    const row = this.find(projectRef, scheduleId);
    this.remove(tx, row.ref);
    tx.audit({ ...about(row, "deleted"), before: this.audited(row), after: null });
  }

  /** Removes at most `rowsMax` schedules of a deleted project. Returns the number removed. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    const some = this.deps.schedules.someOfProject(projectRef, rowsMax);
    for (const { ref } of some) this.remove(tx, ref);
    return some.length;
  }

  /** Runs a schedule now, even if it is paused. @throws ApiError `not_found`, `insufficient_balance` */
  run(tx: Tx, projectRef: number, scheduleId: string): ScheduleRun {
    const row = this.find(projectRef, scheduleId);
    const sent = this.deps.runs.runNow(tx, row);
    tx.audit({ ...about(row, "run manually"), before: null, after: { ...sent } });
    return sent;
  }

  /** @throws ApiError `not_found` */
  read(projectRef: number, scheduleId: string): Reply<200, Schedule> {
    return this.view(200, this.find(projectRef, scheduleId));
  }

  /** A page of a project's schedules, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(projectRef: number, { name, limit = LIST_LIMIT, cursor }: ScheduleQuery): SchedulePage {
    const { schedules } = this.deps;
    const before = pageStart(cursor);
    const rows =
      name === undefined
        ? schedules.page(projectRef, before, limit + 1)
        : [schedules.named(projectRef, name) ?? []].flat();
    const { items, ...next } = pageOf(rows, limit, ({ ref }) => [ref]);
    return { schedules: items.map((row) => this.item(row)), ...next };
  }

  private find(projectRef: number, scheduleId: string): ScheduleRow {
    const row = isPrefixedId("sch", scheduleId) ? this.deps.schedules.find(scheduleId) : null;
    if (row === null || row.projectRef !== projectRef)
      throw new ApiError("not_found", "There is no schedule with this schedule_id in this project.");
    return row;
  }

  private remove(tx: Tx, ref: number): void {
    this.deps.runs.setNextRun(tx, { ref, accountRef: 0 }, null);
    this.deps.schedules.remove(tx, ref);
  }

  private assertBelowLimit({ account, project }: Caller): void {
    const most = this.deps.tiers[account.tier].schedules;
    // Without a bound nothing has to be counted.
    if (most === NO_LIMIT || this.deps.schedules.count(project.ref) < most) return;
    throw new ApiError(
      "schedule_limit_exceeded",
      `Your tier allows ${most} schedules in a project. Delete one, or move to a larger tier.`,
    );
  }

  /** A name is unique within its project. `ownRef`: the schedule that may already have it. */
  private assertNameFree(projectRef: number, name: string | null, ownRef: number | null): void {
    const holder = name === null ? null : this.deps.schedules.named(projectRef, name);
    if (holder === null || holder.ref === ownRef) return;
    const { schedule_id } = holder;
    const message = `The schedule ${schedule_id} of this project has this name. Choose another name, or rename that schedule.`;
    throw new ApiError("schedule_name_taken", message, { extras: { schedule_id } });
  }

  private item(row: ScheduleRow): ScheduleItem {
    const { ref, accountRef, projectRef, payload, ...shown } = row;
    return {
      ...shown,
      headers: withSecretsCovered(this.deps.runs.headersOf(row)),
      retry_schedule: row.retry_schedule === null ? null : JSON.parse(row.retry_schedule),
    };
  }

  private view<const Status extends number>(status: Status, row: ScheduleRow): Reply<Status, Schedule> {
    const next_runs: number[] = [];
    for (let at = row.next_run_at; at !== null && next_runs.length < NEXT_RUNS; at = nextRun(row, at))
      next_runs.push(at);
    return withJson(status, { ...this.item(row), next_runs }, "payload", row.payload);
  }

  /** The settings as the audit log records them. */
  private audited(row: ScheduleRow): NonNullable<AuditChange["after"]> {
    const { headers, ...settings } = settingsOf(row);
    return { ...settings, headers: this.deps.runs.headersOf(row), payload: auditedPayload(row.payload) };
  }
}

function about({ schedule_id, name, cron }: ScheduleRow, what: string) {
  return { summary: `Schedule ${name ?? cron} ${what}`, target: { type: "schedule", id: schedule_id } };
}

/** A payload that is too long for an entry of the audit log is recorded by its size and SHA-256. */
function auditedPayload(payload: string): unknown {
  if (payload.length <= SIDE_BYTES_MAX) return JSON.parse(payload);
  return {
    bytes: Buffer.byteLength(payload),
    sha256: new Bun.CryptoHasher("sha256").update(payload).digest("hex"),
  };
}

function settingsOf(row: ScheduleRow) {
  const { name, cron, time_zone, target_url, method, event_type, headers, payload, state } = row;
  const { missed, overlap, starts_at, ends_at, retry_schedule } = row;
  return {
    name,
    cron,
    time_zone,
    target_url,
    method,
    event_type,
    headers,
    payload,
    state,
    missed,
    overlap,
    starts_at,
    ends_at,
    retry_schedule,
  };
}
