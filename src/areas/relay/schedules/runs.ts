import type { CallerAccount, Charger } from "../../../kernel/callers/caller.ts";
import { rejectionBy } from "../../../kernel/errors.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { type RequestHeaders, withDefaults } from "../../../kernel/outbound/headers.ts";
import type { StoppedProjects } from "../../../kernel/projects/stopped-projects.ts";
import { laneName } from "../../../kernel/scheduler/dispatcher.ts";
import type { Job, JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import { sealedJson } from "../../../kernel/secrets/sealed-column.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import type { RelayService } from "../deliveries/service.ts";
import { DUE_HEADER } from "../domain.ts";
import type { Endpoint } from "../endpoints/registry.ts";
import {
  type EventTypes,
  rejectedBy,
  type SchemaCheck,
  type SchemaProblem,
} from "../event-types/event-types.ts";
import type { Messages } from "../messages/messages.ts";
import { parsedOnce } from "../payload.ts";
import type { ScheduleRun } from "./schema.ts";
import { nextRun } from "./settings.ts";
import type { ScheduleProgress, ScheduleRow, ScheduleStore } from "./store.ts";

/** The user's headers of a schedule. */
export const SCHEDULE_HEADERS = sealedJson<RequestHeaders>("relay-schedule-headers");

/** The job of a schedule, by its reference. It is due at the next run; without a next run there is no job. */
const RUNS = "relay.schedules";
/** Concurrent runs, which share a commit. */
const CONCURRENCY = 256;
/** Concurrent runs of one account. */
const PER_ACCOUNT = CONCURRENCY / 4;
/** Name of the lane that an account's schedules share. */
const DESTINATION = "schedules";
/** The operation that credits are charged for, per run. */
const CHARGED_AS = "relay.schedules.run";
/** A run that is later than this was missed: a restart is faster. */
export const MISSED_AFTER_MS = 60_000;
/** A clock that is set back further was wrong before: its earlier runs do not count for the next one. */
const SET_BACK_MS = 3 * HOUR_MS;

interface ScheduleRunDeps extends Pick<Kernel, "scheduler" | "clock" | "vault" | "changes"> {
  readonly schedules: ScheduleStore;
  readonly service: Pick<RelayService, "sendScheduled" | "isOpen">;
  readonly messages: Pick<Messages, "send" | "matchingEndpoints" | "isOpen">;
  readonly stopped: StoppedProjects;
  readonly charger: Charger;
  readonly accounts: { account(accountRef: number): CallerAccount };
  readonly eventTypes: Pick<EventTypes, "check">;
}

interface Sending {
  /** Time of the schedule that this run belongs to. */
  readonly due: number;
  readonly next: number | null;
  /** Endpoints of its message; null for a schedule with `target_url`. */
  readonly to: readonly Endpoint[] | null;
  /** The payload of its message, parsed. */
  readonly value: () => unknown;
  /** What of the payload does not fit the schema of its type. */
  readonly schemaErrors: readonly SchemaProblem[];
}

/** A run that is due. */
interface DueRun {
  readonly due: number;
  readonly next: number | null;
  readonly isEarly: boolean;
  readonly check: SchemaCheck;
}

const UNCHECKED: SchemaCheck = { problems: [], isRejected: false };

/** Runs schedules at their times. */
export class ScheduleRuns {
  constructor(private readonly deps: ScheduleRunDeps) {
    deps.scheduler.register(RUNS, {
      concurrency: CONCURRENCY,
      lanes: { perLane: PER_ACCOUNT, perSlowLane: PER_ACCOUNT, slowTotal: CONCURRENCY },
      // Runs of a suspended account are skipped.
      runsSuspended: true,
      run: (job) => this.run(job),
    });
  }

  /** Replaces the job of a schedule's next run; null for no next run. */
  setNextRun(
    tx: Tx,
    { ref, accountRef }: Pick<ScheduleRow, "ref" | "accountRef">,
    next: number | null,
  ): void {
    const { scheduler } = this.deps;
    if (next === null) scheduler.cancel(tx, RUNS, String(ref));
    else scheduler.enqueue(tx, RUNS, String(ref), next, null, laneName(accountRef, DESTINATION));
  }

  /** Runs a schedule manually; its credit is already charged. @throws ApiError `insufficient_balance` for a message's deliveries */
  runNow(tx: Tx, row: ScheduleRow, schemaErrors: readonly SchemaProblem[]): ScheduleRun {
    const { charger, accounts } = this.deps;
    const { to, value } = this.matching(row);
    if (to !== null && to.length > 0)
      charger.charge(tx, accounts.account(row.accountRef), CHARGED_AS, to.length);
    return this.send(tx, row, { due: tx.now, next: row.next_run_at, to, value, schemaErrors });
  }

  /** Checks the message of a schedule by the schema of its type. */
  async check({ event_type: type, projectRef, payload }: ScheduleRow): Promise<SchemaCheck> {
    if (type === null) return UNCHECKED;
    return this.deps.eventTypes.check(
      projectRef,
      type,
      parsedOnce(() => payload),
    );
  }

  /** What a run's message is sent to. */
  private matching({ event_type: type, projectRef, payload }: ScheduleRow): Pick<Sending, "to" | "value"> {
    const value = parsedOnce(() => payload);
    const { messages } = this.deps;
    return {
      to: type === null ? null : messages.matchingEndpoints(projectRef, { type, payload, value }),
      value,
    };
  }

  /** Runs a schedule in this unit of work, and counts the run. */
  private send(tx: Tx, row: ScheduleRow, { due, next, to, value, schemaErrors }: Sending): ScheduleRun {
    const run = { next_run_at: next, last_run_at: tx.now, runs: row.runs + 1, last_error: null };
    if (row.event_type === null || to === null) {
      const { relay_id } = this.sendToTarget(tx, row, due);
      this.note(tx, row, { ...run, last_relay_id: relay_id, last_message_id: null });
      return { relay_id };
    }
    const { event_type: type, payload, id: scheduleId } = row;
    const message = { type, payload, value, to, scheduleId, dueAt: due, schemaErrors };
    const { message_id } = this.deps.messages.send(tx, row, message);
    this.note(tx, row, { ...run, last_relay_id: null, last_message_id: message_id });
    return { message_id };
  }

  private sendToTarget(tx: Tx, row: ScheduleRow, due: number): { relay_id: string } {
    const { accountRef, projectRef, id: schedule_id, target_url, method, payload, retry_schedule } = row;
    const { callback_url, failure_callback_url } = row;
    return this.deps.service.sendScheduled(tx, {
      callbacks: { callback_url, failure_callback_url },
      accountRef,
      projectRef,
      schedule_id,
      method,
      retry_schedule,
      scheduled_for: due,
      target_url: target_url ?? "",
      body: method === "GET" ? null : payload,
      headers: withDefaults({ [DUE_HEADER]: String(due) }, this.headersOf(row)),
    });
  }

  /** The user's headers, unsealed. */
  headersOf({ headers, id }: Pick<ScheduleRow, "headers" | "id">): RequestHeaders {
    return SCHEDULE_HEADERS.openOrNull(this.deps.vault, id, headers) ?? {};
  }

  /** Seals headers for storage. */
  sealed(headers: RequestHeaders, scheduleId: string): Uint8Array | null {
    return SCHEDULE_HEADERS.sealOrNull(this.deps.vault, scheduleId, headers);
  }

  private async run({ key }: Job): Promise<JobOutcome> {
    const { schedules, stopped, clock } = this.deps;
    const row = schedules.withRef(Number(key));
    if (row === null || row.next_run_at === null || stopped.has(row.projectRef)) return {};
    const now = clock.now();
    const due = row.next_run_at;
    const isEarly = due > now;
    const next = nextRun(row, isEarly ? completedUntil(row, now) : now);
    const check = isEarly ? UNCHECKED : await this.check(row);
    const record = (tx: Tx): void => this.record(tx, row.ref, { due, next, isEarly, check });
    return next === null ? { record } : { record, retryAt: next, attempt: 0 };
  }

  /** Records a run in the transaction that sets the next due time of the job. */
  private record(tx: Tx, ref: number, run: DueRun): void {
    const row = this.deps.schedules.withRef(ref);
    const { due, next, isEarly, check } = run;
    const { problems: schemaErrors, isRejected } = check;
    // Updated in the meantime: it has another job.
    if (row === null || row.next_run_at !== due) return;
    if (isEarly) this.note(tx, row, { next_run_at: next });
    else if (isRejected) this.recordSkipped(tx, row, next, rejectedBy(schemaErrors).message);
    else if (this.mayRun(tx, row, due)) this.pay(tx, row, { due, next, schemaErrors, ...this.matching(row) });
    else this.recordSkipped(tx, row, next);
  }

  /** Charges and sends a run; without the credits it is skipped. */
  private pay(tx: Tx, row: ScheduleRow, sending: Sending): void {
    const { accounts, charger } = this.deps;
    const cost = 1 + (sending.to?.length ?? 0);
    const account = accounts.account(row.accountRef);
    const rejection = rejectionBy(() => charger.charge(tx, account, CHARGED_AS, cost));
    if (rejection === null) this.send(tx, row, sending);
    else this.recordSkipped(tx, row, sending.next);
  }

  private recordSkipped(tx: Tx, row: ScheduleRow, next: number | null, error: string | null = null): void {
    this.note(tx, row, { next_run_at: next, skipped: row.skipped + 1, last_error: error });
  }

  private mayRun(tx: Tx, row: ScheduleRow, due: number): boolean {
    const { service, messages, accounts } = this.deps;
    const { last_relay_id, last_message_id } = row;
    if (row.missed === "skip" && tx.now - due > MISSED_AFTER_MS) return false;
    const isOpen = () =>
      (last_relay_id !== null && service.isOpen(last_relay_id)) ||
      (last_message_id !== null && messages.isOpen(row.projectRef, last_message_id));
    if (row.overlap === "skip" && isOpen()) return false;
    return !accounts.account(row.accountRef).suspended;
  }

  private note(tx: Tx, row: ScheduleRow, progress: Partial<ScheduleProgress>): void {
    const { next_run_at, last_run_at, last_relay_id, last_message_id, runs, skipped, last_error } = row;
    const before = { next_run_at, last_run_at, last_relay_id, last_message_id, runs, skipped, last_error };
    this.deps.schedules.progress(tx, { ...before, ...progress, ref: row.ref });
    this.deps.changes.inProject(tx, row.projectRef, "relay", row.id);
  }
}

/** Time up to which a schedule has run, for a job that is early because the clock was set back. */
function completedUntil({ last_run_at }: ScheduleRow, now: number): number {
  return last_run_at === null || last_run_at > now + SET_BACK_MS ? now : Math.max(now, last_run_at);
}
