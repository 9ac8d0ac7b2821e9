import { invalidField } from "../../../kernel/errors.ts";
import { LruMap } from "../../../kernel/limits/lru-map.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { NOTICE_PREFIX } from "./registry.ts";

/** Endpoints of a project that may subscribe to `ninefold.*`: each notice is delivered to all of them. */
export const NOTICE_SUBSCRIBERS_MAX = 10;
/** Minimum time between two notices of a project. */
export const NOTICE_INTERVAL_MS = 60_000;
/** Delayed notices of a project; further ones are dropped, because endpoints show their state anyway. */
export const NOTICES_DELAYED_MAX = 10;
/** Projects in memory, about 1 MB. One beyond it may send a notice early. */
const PROJECTS_REMEMBERED_MAX = 10_000;

/** Whether an endpoint with these types receives notices. */
export function subscribesToNotices(eventTypes: readonly string[]): boolean {
  return eventTypes.some((type) => type.startsWith(NOTICE_PREFIX));
}

/** Notices are about endpoints of all customers. @throws ApiError `validation_error` */
export function assertNoNotices(eventTypes: readonly string[]): void {
  if (!subscribesToNotices(eventTypes)) return;
  throw invalidField(
    "event_types",
    `must not name types of ${NOTICE_PREFIX}*: endpoints of customers receive no notices`,
  );
}

/** @throws ApiError `validation_error` for a type that is reserved for notices. */
export function assertNotReservedType(type: string): void {
  if (!type.startsWith(NOTICE_PREFIX)) return;
  throw invalidField(
    "event_type",
    `must not begin with ${NOTICE_PREFIX}: this prefix is reserved for notices of the server`,
  );
}

/** Whether a message is a notice. */
export function isNotice(eventType: string | null): boolean {
  return eventType?.startsWith(NOTICE_PREFIX) === true;
}

/** When projects may send their next notices. */
export class NoticePace {
  private readonly next = new LruMap<number, number>(PROJECTS_REMEMBERED_MAX);

  /** When a notice of a project can be sent, epoch milliseconds; null where too many are delayed. */
  slot(projectRef: number, now: number): number | null {
    const latest = now + NOTICES_DELAYED_MAX * NOTICE_INTERVAL_MS;
    const at = Math.max(now, this.next.get(projectRef) ?? now);
    // Later than all delayed notices: the clock was set back.
    if (at > latest + NOTICE_INTERVAL_MS) return now;
    return at > latest ? null : at;
  }

  /** Uses a slot; a rollback of the unit of work releases it. */
  take(tx: Tx, projectRef: number, slot: number): void {
    const before = this.next.get(projectRef);
    this.next.set(projectRef, slot + NOTICE_INTERVAL_MS);
    tx.onRollback(() => {
      if (before === undefined) this.next.delete(projectRef);
      else this.next.set(projectRef, before);
    });
  }
}
