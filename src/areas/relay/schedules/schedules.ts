import { parseNearly } from "../../../json-text.ts";
import { SIDE_BYTES_MAX } from "../../../kernel/audit/redaction.ts";
import { largeBody } from "../../../kernel/http/operation.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tiers } from "../../../kernel/limits/tiers.ts";
import { hasSecrets, withSecretsCovered } from "../../../kernel/outbound/headers.ts";
import type { TargetPolicy } from "../../../kernel/outbound/target.ts";
import { tierLimitPerProject } from "../../../kernel/resources/limit.ts";
import { resource } from "../../../kernel/resources/resource.ts";
import { assertSecretStays } from "../../../kernel/secrets/bound-secret.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { shownCallbacks } from "../deliveries/callback-urls.ts";
import { reservedHeaderWarnings } from "../deliveries/reserved-headers.ts";
import { LIST_LIMIT } from "../deliveries/schema.ts";
import { rejectedBy, type SchemaProblem } from "../event-types/event-types.ts";
import type { ScheduleRuns } from "./runs.ts";
import {
  NEXT_RUNS,
  Schedule,
  ScheduleBody,
  ScheduleFilters,
  ScheduleItem,
  type ScheduleRun,
  ScheduleUpdateBody,
} from "./schema.ts";
import {
  assertHasTarget,
  changeOf,
  checkNew,
  DEFAULT_SETTINGS,
  firstRun,
  isTimed,
  nextRun,
} from "./settings.ts";
import { type ScheduleRow, type ScheduleStore, SETTING_NAMES } from "./store.ts";

interface ScheduleDeps extends Pick<Kernel, "ids" | "digests"> {
  readonly schedules: ScheduleStore;
  readonly runs: ScheduleRuns;
  readonly policy: TargetPolicy;
  readonly tiers: Tiers;
}

/** Declares schedules, which send a webhook at the times of a cron expression. */
function scheduleResource({ ids, digests, schedules, runs, policy, tiers }: ScheduleDeps) {
  function item(row: ScheduleRow): ScheduleItem {
    const { ref, id: schedule_id, accountRef, projectRef, managedBy, payload, ...shown } = row;
    return {
      schedule_id,
      ...shown,
      ...shownCallbacks(row),
      headers: withSecretsCovered(runs.headersOf(row)),
      retry_schedule: row.retry_schedule === null ? null : JSON.parse(row.retry_schedule),
    };
  }

  function secretsOf(row: ScheduleRow) {
    const { callback_url, failure_callback_url } = row;
    return { headers: runs.headersOf(row), callback_url, failure_callback_url };
  }

  return resource(ids, {
    type: "schedule",
    title: "schedule",
    idPrefix: "sch",
    path: "/v1/relay/schedules",
    operations: "relay.schedules",
    tag: "Relay",
    access: { area: "relay" },
    file: { defaults: { ...DEFAULT_SETTINGS, headers: {}, payload: {} }, check: checkNew },
    name: {
      field: "name",
      taken: "schedule_name_taken",
      holder: ({ projectRef, name }) => (name === null ? null : schedules.named(projectRef, name)),
      message: ({ id }) =>
        `The schedule ${id} of this project has this name. Choose another name, or rename that schedule.`,
      extras: ({ id: schedule_id }) => ({ schedule_id }),
    },
    limit: tierLimitPerProject(tiers, "schedules", "schedule_limit_exceeded", schedules.count),
    store: schedules,
    schema: Schedule,
    view(row) {
      const next_runs: number[] = [];
      for (let at = row.next_run_at; at !== null && next_runs.length < NEXT_RUNS; at = nextRun(row, at))
        next_runs.push(at);
      return { ...item(row), next_runs };
    },
    secrets: { digests, of: secretsOf },
    raw: { field: "payload", json: ({ payload }) => payload },
    summary: ({ name, cron }, done) => `Schedule ${name ?? cron} ${done}`,
    audited(_, row) {
      const settings = Object.fromEntries(SETTING_NAMES.map((name) => [name, row[name]]));
      return {
        ...settings,
        ...shownCallbacks(row),
        headers: runs.headersOf(row),
        payload: auditedPayload(row.payload),
      };
    },
    list: {
      summary: "List schedules, newest first",
      description:
        "Lists omit `payload` and `next_runs`. To find a schedule by its name, use `name`: the list then has one item or none.",
      key: "schedules",
      schema: "SchedulePage",
      limit: LIST_LIMIT,
      filters: ScheduleFilters,
      rows({ caller: { project } }, { before, rowsMax }, { name }) {
        if (name === undefined) return schedules.page(project.ref, before, rowsMax);
        return [schedules.named(project.ref, name) ?? []].flat();
      },
      item: ScheduleItem,
      view: item,
    },
    read: {
      summary: "Get a schedule with its next runs",
      description:
        "Use it to check a cron expression and a time zone: `next_runs` has the next five times. The runs themselves are deliveries with this `schedule_id`.",
    },
    create: {
      summary: "Create a schedule that sends a webhook at the times of a cron expression",
      description:
        "Each run sends a delivery and costs 1 credit. With `event_type` it sends a message, which costs 1 more credit for each endpoint.",
      example: {
        name: "nightly",
        cron: "30 2 * * *",
        time_zone: "Europe/Berlin",
        target_url: "https://example.com/hooks",
        payload: { job: "report" },
      },
      bodyLimits: largeBody(1),
      body: ScheduleBody,
      prepare: async (body, call) => {
        call.addWarnings(reservedHeaderWarnings(body.headers));
        return { ...(await changeOf(body, call.bodyText, policy)), cron: body.cron };
      },
      row({ tx }, body, { createdAt, updatedAt, ...identity }) {
        const headers = runs.sealed(body.headers ?? {}, identity.id);
        const settings = { ...DEFAULT_SETTINGS, ...body, headers };
        assertHasTarget(settings);
        const first = firstRun(settings, tx.now);
        return {
          ...identity,
          ...settings,
          next_run_at: settings.state === "live" ? first : null,
          last_run_at: null,
          last_relay_id: null,
          last_message_id: null,
          runs: 0,
          skipped: 0,
          last_error: null,
          created_at: createdAt,
          updated_at: updatedAt,
        };
      },
      created({ tx }, row) {
        if (row.next_run_at !== null) runs.setNextRun(tx, row, row.next_run_at);
      },
    },
    change: {
      verb: "update",
      summary: "Update a schedule",
      description:
        "Omitted fields keep their values. `state: paused` stops the runs. Without the scope `*`, a `target_url` of another origin requires the `headers` again (else 409).",
      errors: ["conflict"],
      example: { state: "paused" },
      bodyLimits: largeBody(1),
      body: ScheduleUpdateBody,
      prepare: (body, call) => {
        call.addWarnings(reservedHeaderWarnings(body.headers));
        return changeOf(body, call.bodyText, policy);
      },
      row({ tx, caller }, before, changes) {
        if (changes.headers === undefined && hasSecrets(runs.headersOf(before))) {
          const { target_url } = before;
          const moved = { field: "target_url", before: target_url, after: changes.target_url ?? target_url };
          assertSecretStays(caller, { ...moved, secretField: "headers" });
        }
        const headers =
          changes.headers === undefined ? before.headers : runs.sealed(changes.headers, before.id);
        const row = { ...before, ...changes, headers, updated_at: tx.now };
        const isNew = isTimed(changes) || (row.state === "live" && before.state === "paused");
        const first = isNew ? firstRun(row, tx.now) : before.next_run_at;
        return { ...row, next_run_at: row.state === "live" ? first : null };
      },
      changed({ tx }, row, _, before) {
        if (row.next_run_at !== before.next_run_at) runs.setNextRun(tx, row, row.next_run_at);
      },
    },
    delete: {
      summary: "Delete a schedule",
      description: "Deliveries of earlier runs are not affected.",
      schema: null,
      remove({ tx }, row) {
        runs.setNextRun(tx, row, null);
        schedules.remove(tx, row.ref);
      },
    },
  });
}

export class Schedules {
  readonly resource;

  constructor(private readonly deps: ScheduleDeps) {
    this.resource = scheduleResource(deps);
  }

  /** Removes at most `rowsMax` schedules of a deleted project. Returns the number removed. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    const { schedules, runs } = this.deps;
    const some = schedules.someOfProject(projectRef, rowsMax);
    for (const { ref } of some) {
      runs.setNextRun(tx, { ref, accountRef: 0 }, null);
      schedules.remove(tx, ref);
    }
    return some.length;
  }

  /** Checks the message of a schedule. @throws ApiError `not_found`; `validation_error` for an enforced schema that it does not fit */
  async assertFits(projectRef: number, scheduleId: string): Promise<readonly SchemaProblem[]> {
    const { problems, isRejected } = await this.deps.runs.check(this.resource.find(projectRef, scheduleId));
    if (isRejected) throw rejectedBy(problems);
    return problems;
  }

  /** Runs a schedule now, even if it is paused. @throws ApiError `not_found`, `insufficient_balance` */
  run(tx: Tx, projectRef: number, scheduleId: string, schemaErrors: readonly SchemaProblem[]): ScheduleRun {
    const row = this.resource.find(projectRef, scheduleId);
    const sent = this.deps.runs.runNow(tx, row, schemaErrors);
    const { name, cron, id } = row;
    const target = { type: "schedule", id };
    tx.audit({ summary: `Schedule ${name ?? cron} run manually`, target, before: null, after: { ...sent } });
    return sent;
  }
}

/** A payload that is too long for an entry of the audit log is recorded by its size and SHA-256. */
function auditedPayload(payload: string): unknown {
  if (payload.length <= SIDE_BYTES_MAX) return parseNearly(payload);
  return {
    bytes: Buffer.byteLength(payload),
    sha256: new Bun.CryptoHasher("sha256").update(payload).digest("hex"),
  };
}
