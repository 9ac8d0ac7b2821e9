import { ApiError, invalidField, refusalBy } from "../../kernel/errors.ts";
import { type Reply, reply } from "../../kernel/http/answer.ts";
import type { Caller, CallerAccount, Charger } from "../../kernel/http/caller.ts";
import type { AcrossNetwork } from "../../kernel/http/perform.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { removeInSlices } from "../../kernel/removal.ts";
import type { Job, JobOutcome } from "../../kernel/scheduler/scheduler.ts";
import type { StoppedProjects } from "../../kernel/stopped-projects.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { RESENT_MAX } from "./domain.ts";
import { idOf, isIdOf } from "./ids.ts";
import type { ResendFilters, ResendRow, ResendStore } from "./resend-store.ts";
import {
  PER_SECOND,
  RESEND_STATUSES,
  type RelayResend,
  type RelayResendBody,
  type RelayResendMatched,
  type RelayResendStarted,
} from "./schema.ts";
import type { MessageRefs, RelayService } from "./service.ts";

/** The job of a resend of many, which sends some of them each time. */
const RESENDS = "relay.resends";
/** Such jobs at once: each is a few milliseconds. */
const CONCURRENCY = 4;
/** Resends of many that run in a project at once. */
export const RESENDS_RUNNING_MAX = 10;
/** Failed deliveries that are looked at in one go: a few milliseconds. */
export const LOOKED_AT_MAX = 1_000;
/** The operation whose credits are charged for each. */
const CHARGED_AS = "relay.resend";

/** As the rows have them. */
const [RUNNING, DONE, CANCELLED] = [1, 2, 3] as const;

/** What those that began before it was there are not narrowed by. */
const NO_FILTER = { endpoint: null };

/** A resend of many that was asked for. */
interface Asked {
  readonly filters: ResendFilters;
  readonly now: number;
}

/** What matches, as far as it is resent. */
interface Found extends RelayResendMatched {
  /** The last one. */
  readonly through: number;
}

/** What one run of the job does. */
interface Turn {
  readonly refs: readonly number[];
  readonly after: number;
  readonly isLast: boolean;
}

/** Sends failed deliveries again, many at once. */
export class Resends {
  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "clock" | "ids" | "changes"> & {
      readonly resends: ResendStore;
      readonly service: RelayService;
      readonly stopped: StoppedProjects;
      readonly refs: MessageRefs;
      readonly charger: Charger;
      readonly accounts: { account(accountRef: number): CallerAccount };
    },
  ) {
    deps.scheduler.register(RESENDS, { concurrency: CONCURRENCY, run: (job) => this.run(job) });
  }

  /**
   * Begins a resend of many, or says how many it would send. They are counted in slices, so that nobody waits for it.
   * @throws ApiError, from its parts: `validation_error` without `since`, `conflict` when too many run.
   */
  start(
    { account, project }: Caller,
    body: RelayResendBody,
  ): AcrossNetwork<Asked, Found, Reply<202, RelayResendStarted> | Reply<200, RelayResendMatched>> {
    const { event_type: event = null, since, until = null, per_second = PER_SECOND, endpoint_id } = body;
    return {
      claim: (tx) => {
        if (since === undefined && endpoint_id === undefined)
          throw invalidField("since", "is required, or endpoint_id: from when on they were created");
        if (body.dry_run !== true) this.assertRoom(project.ref);
        const endpoint = endpoint_id === undefined ? null : this.deps.refs.endpoint(project.ref, endpoint_id);
        return {
          filters: { event, since: since ?? null, until, endpoint, endedBy: tx.now },
          now: tx.now,
        };
      },
      outside: ({ filters }) => this.count(project.ref, filters),
      settle: (tx, { filters }, { through, ...matched }) => {
        if (body.dry_run === true) {
          tx.audit(null);
          return reply(200, matched);
        }
        this.assertRoom(project.ref);
        // Nothing to do is done.
        const isDone = matched.matched === 0;
        const row: ResendRow = {
          ...{
            resend_id: idOf("rsn", this.deps.ids.uuidV7()),
            accountRef: account.ref,
            projectRef: project.ref,
          },
          ...{ filters: JSON.stringify(filters), per_second, after_ref: 0, through_ref: through },
          ...{ matched: matched.matched, more: matched.more === true ? 1 : 0, resent: 0, error: null },
          ...{ status: isDone ? DONE : RUNNING, created_at: tx.now, finished_at: isDone ? tx.now : null },
        };
        this.deps.resends.insert(tx, row);
        if (!isDone) this.enqueue(tx, row);
        const asked = { event_type: event, endpoint_id: endpoint_id ?? null, since: since ?? null, until };
        const after = { ...matched, per_second, ...asked };
        tx.audit({ ...about(row, "begun"), before: null, after });
        return reply(202, { resend_id: row.resend_id, ...matched });
      },
    };
  }

  /** @throws ApiError `not_found` */
  read(projectRef: number, resendId: string): RelayResend {
    return resendView(this.find(projectRef, resendId));
  }

  /** Ends one that runs; what was sent, was sent. @throws ApiError `not_found` */
  stop(tx: Tx, projectRef: number, resendId: string): RelayResend {
    const row = this.find(projectRef, resendId);
    if (row.status !== RUNNING) {
      tx.audit(null);
      return resendView(row);
    }
    const after = { status: "cancelled", resent: row.resent };
    tx.audit({ ...about(row, "stopped"), before: { status: "running" }, after });
    return resendView(this.end(tx, row, CANCELLED, null));
  }

  private find(projectRef: number, resendId: string): ResendRow {
    const row = isIdOf("rsn", resendId) ? this.deps.resends.find(projectRef, resendId) : null;
    if (row === null)
      throw new ApiError("not_found", "There is no resend with this resend_id in this project.");
    return row;
  }

  private assertRoom(projectRef: number): void {
    if (this.deps.resends.running(projectRef) < RESENDS_RUNNING_MAX) return;
    throw new ApiError(
      "conflict",
      `${RESENDS_RUNNING_MAX} resends of this project are running: wait for the end of one.`,
    );
  }

  private async count(projectRef: number, filters: ResendFilters): Promise<Found> {
    let [matched, through, after, more] = [0, 0, 0, false];
    const slice = async (): Promise<boolean> => {
      const rows = this.deps.resends.failedAfter({ ...filters, projectRef, after, limit: LOOKED_AT_MAX });
      for (const { ref, matches } of rows) {
        after = ref;
        if (matches === 0) continue;
        more = matched === RESENT_MAX;
        if (more) return false;
        matched += 1;
        through = ref;
      }
      return rows.length === LOOKED_AT_MAX;
    };
    await removeInSlices(slice, () => false);
    return { matched, through, ...(more ? { more } : {}) };
  }

  private enqueue(tx: Tx, { projectRef, resend_id }: ResendRow): void {
    this.deps.scheduler.enqueue(tx, RESENDS, resend_id, tx.now, { projectRef });
  }

  private async run({ key, payload }: Job): Promise<JobOutcome> {
    const { projectRef } = payload as { projectRef: number };
    const row = this.deps.resends.find(projectRef, key);
    if (row === null || row.status !== RUNNING || this.deps.stopped.has(projectRef)) return {};
    const turn = this.turnOf(row);
    const record = (tx: Tx): void => this.record(tx, row, turn);
    if (turn.isLast) return { record };
    const pauseMs = Math.round((turn.refs.length * 1_000) / row.per_second);
    return { record, retryAt: this.deps.clock.now() + pauseMs };
  }

  /** The next ones that match, at most as many as are sent in a second. */
  private turnOf({ projectRef, filters, after_ref, through_ref, per_second }: ResendRow): Turn {
    const place = { projectRef, after: after_ref, limit: LOOKED_AT_MAX };
    const rows = this.deps.resends.failedAfter({
      ...NO_FILTER,
      ...(JSON.parse(filters) as ResendFilters),
      ...place,
    });
    const refs: number[] = [];
    for (const { ref, matches } of rows) {
      if (ref > through_ref) return { refs, after: through_ref, isLast: true };
      if (matches === 1) refs.push(ref);
      if (refs.length === per_second || ref === through_ref)
        return { refs, after: ref, isLast: ref === through_ref };
    }
    return { refs, after: rows.at(-1)?.ref ?? through_ref, isLast: rows.length < LOOKED_AT_MAX };
  }

  private record(tx: Tx, { projectRef, resend_id }: ResendRow, turn: Turn): void {
    const row = this.deps.resends.find(projectRef, resend_id);
    // Stopped, or removed with its project, since the look at it.
    if (row === null || row.status !== RUNNING) return;
    let { resent } = row;
    for (const ref of turn.refs) {
      const outcome = this.sendOne(tx, row, ref);
      if (outcome === "no-credits") {
        const error = "the account has no credits left";
        this.end(tx, { ...row, resent, after_ref: ref - 1 }, CANCELLED, error);
        return;
      }
      if (outcome === "sent") resent += 1;
    }
    const next = { ...row, resent, after_ref: turn.after };
    if (turn.isLast) this.end(tx, next, DONE, null);
    else this.deps.resends.update(tx, next);
  }

  private sendOne(tx: Tx, { accountRef }: ResendRow, ref: number): "sent" | "skipped" | "no-credits" {
    const { service, charger, accounts, changes } = this.deps;
    const row = service.resendable(ref);
    // Sent again by hand since the look at it.
    if (row === null) return "skipped";
    const refusal = refusalBy(() => charger.charge(tx, accounts.account(accountRef), CHARGED_AS, 1));
    if (refusal !== null) return "no-credits";
    service.sendAgain(tx, row);
    changes.inProject(tx, row.projectRef, "relay", row.item.relay_id);
    return "sent";
  }

  private end(tx: Tx, row: ResendRow, status: number, error: string | null): ResendRow {
    const ended = { ...row, status, error, finished_at: tx.now };
    this.deps.resends.update(tx, ended);
    return ended;
  }
}

function about({ resend_id }: ResendRow, what: string) {
  return { summary: `Resend of failed deliveries ${what}`, target: { type: "resend", id: resend_id } };
}

function resendView(row: ResendRow): RelayResend {
  const { resend_id, matched, resent, error, created_at, finished_at } = row;
  return {
    resend_id,
    status: RESEND_STATUSES[row.status - 1] ?? "running",
    matched,
    ...(row.more === 0 ? {} : { more: true }),
    resent,
    skipped: finished_at === null ? 0 : Math.max(0, matched - resent),
    ...{ error, created_at, finished_at },
  };
}
