import {
  assertBelowRunLimit,
  BULK_MAX,
  bulkRequest,
  type Candidate,
  countMatching,
  type Part,
  PER_SECOND,
} from "../../../kernel/bulk/bulk.ts";
import type { Caller, CallerAccount, Charger } from "../../../kernel/callers/caller.ts";
import { ApiError, invalidField, rejectionBy } from "../../../kernel/errors.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { StoppedProjects } from "../../../kernel/projects/stopped-projects.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import type { OrderKeys } from "../deliveries/destination.ts";
import { RELAY_STATUSES, type RelayRecoverBody } from "../deliveries/schema.ts";
import type { RelayService } from "../deliveries/service.ts";
import { RELAY_RETENTION_MS } from "../domain.ts";
import type { Endpoints } from "../endpoints/endpoints.ts";
import { type Endpoint, type EndpointRegistry, isEnabled } from "../endpoints/registry.ts";
import { LIVE } from "../endpoints/store.ts";
import type { Messages } from "../messages/messages.ts";
import type { MessageRow, MessageStore } from "../messages/store.ts";
import { parsedOnce } from "../payload.ts";
import { CHARGED_AS, RECOVERY, ResendRuns, type RunningResends, targetOf } from "./runs.ts";
import type { RecoveryFilters, ResendRow, ResendStore } from "./store.ts";

/** The job of a recovery, which sends some messages in each run. */
const RECOVERIES = "relay.recoveries";
/**
 * Running resends of a project with which a portal link starts no recovery: the others are for the account, which its
 * customers must not lock out.
 */
export const PORTAL_RUNS_MAX = 5;
/** Messages that a recovery by a portal link sends: the account pays for them. */
export const PORTAL_MATCHED_MAX = 1_000;
/** Time in which portal links start one recovery of an endpoint. */
export const PORTAL_INTERVAL_MS = HOUR_MS;
/** Messages of the time, their deliveries, and characters of payloads, that are looked at in one step: a few milliseconds. */
const LOOKED_MESSAGES_MAX = 200;
const LOOKED_DELIVERIES_MAX = 2_000;
const LOOKED_LENGTH_MAX = 256 * 1024;

/** Sends endpoints the messages that they have missed: while they were disabled, before they were created, or by a failure. */
export class Recoveries {
  private readonly runs: ResendRuns;

  constructor(
    private readonly deps: Pick<Kernel, "scheduler" | "clock" | "ids"> & {
      readonly resends: ResendStore;
      readonly running: RunningResends;
      readonly service: RelayService;
      readonly messages: Messages;
      readonly messageRows: MessageStore;
      readonly endpoints: Pick<Endpoints, "find">;
      readonly registry: EndpointRegistry;
      readonly stopped: StoppedProjects;
      readonly charger: Charger;
      readonly accounts: { account(accountRef: number): CallerAccount };
    },
  ) {
    this.runs = new ResendRuns(deps, {
      job: RECOVERIES,
      look: ({ projectRef, filters }, part) =>
        this.candidates(projectRef, JSON.parse(filters) as RecoveryFilters, part),
      prepare: ({ filters }, refs) => this.orderKeys(JSON.parse(filters) as RecoveryFilters, refs),
      sendOne: (tx, row, ref, keys) => this.sendOne(tx, row, ref, keys),
    });
  }

  /**
   * Starts a recovery, or counts what it would send. A customer with a portal link starts one per hour and endpoint.
   * @throws ApiError, from its parts: `not_found`; `validation_error` for an empty time; `conflict` while the endpoint is paused or
   * disabled, while it is being recovered, when too many runs are running, and for a customer's second run within an hour
   */
  start(caller: Caller, endpointId: string, body: RelayRecoverBody) {
    const { project, portal } = caller;
    const { since, per_second = PER_SECOND, dry_run } = body;
    return bulkRequest({
      dry_run,
      claim: (tx) => {
        // Those of this millisecond are included.
        const { until = tx.now + 1 } = body;
        if (body.until !== undefined && until <= since)
          throw invalidField("until", "must be later than since");
        const endpoint = this.deps.endpoints.find(caller, endpointId);
        if (dry_run !== true) this.assertStartable(tx, caller, endpoint);
        const startedBy = portal === undefined ? {} : { startedBy: portal.ownerId };
        const filters: RecoveryFilters = { recover: endpoint.row.ref, since, until, ...startedBy };
        return filters;
      },
      count: (filters) =>
        countMatching(
          (part) => this.candidates(project.ref, filters, part),
          portal === undefined ? BULK_MAX : PORTAL_MATCHED_MAX,
        ),
      start: (tx, filters, matching, matched) => {
        const endpoint = this.deps.endpoints.find(caller, endpointId);
        this.assertStartable(tx, caller, endpoint);
        const resend_id = this.runs.start(tx, caller, filters, per_second, matching);
        const { endpoint_id } = endpoint.row;
        const after = { ...matched, per_second, endpoint_id, since, until: filters.until };
        tx.audit({ summary: `${RECOVERY} started`, target: targetOf(resend_id), before: null, after });
        return { resend_id };
      },
    });
  }

  /** Messages after a reference, oldest first; none after the end of the time. */
  private candidates(
    projectRef: number,
    { recover, since, until }: RecoveryFilters,
    { after, limit, matchesMax }: Part,
  ): Candidate[] {
    const endpoint = this.deps.registry.get(recover);
    const found: Candidate[] = [];
    let [looked, deliveries, length, matches] = [0, 0, 0, 0];
    const isEnough = (): boolean =>
      matches === matchesMax ||
      looked === LOOKED_MESSAGES_MAX ||
      deliveries >= LOOKED_DELIVERIES_MAX ||
      length >= LOOKED_LENGTH_MAX;
    for (const row of this.messagesAfter(projectRef, after, limit)) {
      if (row.created_at >= until) break;
      // Deliveries are stored for so long: of an older message nobody knows whether it was delivered.
      const from = Math.max(since, this.deps.clock.now() - RELAY_RETENTION_MS);
      const isInTime = row.created_at >= from;
      if (isInTime) {
        looked += 1;
        deliveries += row.deliveries + this.deps.messageRows.laterDeliveries(row.ref);
      }
      const read = (): string => {
        const text = this.deps.messageRows.content(row.ref)?.payload ?? "null";
        length += text.length;
        return text;
      };
      // A run ends with the next message when its endpoint is disabled or deleted: it does not count as done.
      const isMissed = () =>
        endpoint === null || (this.missedBy(endpoint, row) !== null && accepts(endpoint, row, read));
      const isMatch = isInTime && isMissed();
      if (isMatch) matches += 1;
      found.push({ ref: row.ref, matches: isMatch ? 1 : 0 });
      if (isEnough()) break;
    }
    return found;
  }

  /** At most `limit` messages after a reference, read as they are needed. */
  private *messagesAfter(projectRef: number, after: number, limit: number): Generator<MessageRow> {
    let last = after;
    for (let read = 0; read < limit; read += LOOKED_MESSAGES_MAX) {
      const rows = this.deps.messageRows.after(projectRef, last, LOOKED_MESSAGES_MAX);
      yield* rows;
      if (rows.length < LOOKED_MESSAGES_MAX) return;
      last = rows.at(-1)?.ref ?? last;
    }
  }

  /** The failed delivery of a message to an endpoint, `none` if there is no delivery; null if it needs none. */
  private missedBy(
    { row: { ref } }: Endpoint,
    message: MessageRow,
  ): { readonly failed: number } | "none" | null {
    const { messages } = this.deps;
    const delivery = messages.deliveryTo(message, ref);
    if (delivery === null) return messages.canDeliver(message) ? "none" : null;
    return RELAY_STATUSES[delivery.status - 1] === "failed" ? { failed: delivery.ref } : null;
  }

  /** The order keys of messages that an endpoint reads from their payload, by reference. */
  private async orderKeys({ recover }: RecoveryFilters, refs: readonly number[]): Promise<OrderKeys> {
    const { messages, messageRows, registry } = this.deps;
    const endpoint = registry.get(recover);
    const keys = new Map<number, string | null>();
    if (endpoint === null || endpoint.terms.order_by === null) return keys;
    for (const ref of refs) {
      const message = messageRows.find(ref);
      if (message !== null) keys.set(ref, await messages.orderKey(message, endpoint));
    }
    return keys;
  }

  private sendOne(
    tx: Tx,
    row: ResendRow,
    ref: number,
    keys: OrderKeys,
  ): "sent" | "skipped" | "no-credits" | "disabled" {
    const { service, messages, messageRows, charger, accounts, registry } = this.deps;
    const { recover } = JSON.parse(row.filters) as RecoveryFilters;
    const endpoint = registry.get(recover);
    if (!isEnabled(endpoint)) return "disabled";
    const message = messageRows.find(ref);
    const missed = message === null || message.has_payload === 0 ? null : this.missedBy(endpoint, message);
    // Sent by another request, or deleted, in the meantime.
    if (message === null || missed === null) return "skipped";
    const failed = missed === "none" ? null : service.resendable(missed.failed);
    if (missed !== "none" && failed === null) return "skipped";
    const rejection = rejectionBy(() => charger.charge(tx, accounts.account(row.accountRef), CHARGED_AS, 1));
    if (rejection !== null) return "no-credits";
    const key = keys.get(ref) ?? message.order_key;
    if (failed !== null) service.restart(tx, failed, key);
    else messages.deliver(tx, row, message, endpoint, key);
    return "sent";
  }

  private assertStartable(tx: Tx, { project, portal }: Caller, { row, health }: Endpoint): void {
    if (health.state !== LIVE)
      throw new ApiError("conflict", "This endpoint is paused or disabled: set its state to live first.");
    const runs = this.deps.running.ofProject(project.ref);
    if (runs.some(({ recover }) => recover === row.ref))
      throw new ApiError(
        "conflict",
        "This endpoint is being recovered. Wait until that is finished, or stop it.",
      );
    if (portal === undefined) {
      assertBelowRunLimit(runs.length, "resends of this project");
      return;
    }
    if (this.deps.resends.recoveriesByPortal(project.ref, tx.now - PORTAL_INTERVAL_MS, row.ref) > 0)
      throw new ApiError("conflict", "This endpoint was recovered within the last hour. Try again later.");
    if (runs.length >= PORTAL_RUNS_MAX)
      throw new ApiError("conflict", "No recovery can be started now. Try again later.");
  }
}

/** `read`: the text of the payload, which only filters need. A missed message without a payload counts as skipped. */
function accepts(endpoint: Endpoint, row: MessageRow, read: () => string): boolean {
  return endpoint.accepts({
    type: row.event_type,
    channels: row.channels === null ? [] : (JSON.parse(row.channels) as string[]),
    ownerId: row.owner_id,
    value: row.has_payload === 0 ? null : parsedOnce(read),
  });
}
