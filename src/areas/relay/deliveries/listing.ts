import { encodeCursor, pageOf, pageStart } from "../../../kernel/http/requests/pagination.ts";
import {
  LIST_LIMIT,
  RELAY_STATUSES,
  type RelayItem,
  type RelayPage,
  type RelayQuery,
  type RelayStatus,
} from "./schema.ts";
import type { WebhookSender } from "./sender.ts";
import {
  type Filters,
  failureNumber,
  kindNumber,
  type RelayRequest,
  type RelayRow,
  type RelayStore,
  statusNumber,
} from "./store.ts";

/** Deliveries of each status that one page scans, whatever its filters: a few milliseconds. */
export const SCANNED_ROWS_MAX = 1_000;

type Sender = Pick<WebhookSender, "isInFlight" | "inFlight">;

/** Filters by endpoint and by message. */
type OfMessages = Pick<Filters, "endpointRef" | "messageRef">;

/** A delivery's status. The row does not record a first attempt that is in flight. */
export function statusOf({ ref, item: { status } }: RelayRow, sender: Sender): RelayStatus {
  return status === "scheduled" && sender.isInFlight(ref) ? "delivering" : status;
}

export function itemOf(row: RelayRow, sender: Sender): RelayItem {
  return { ...row.item, status: statusOf(row, sender) };
}

/** A page of a project's deliveries, newest first. @throws ApiError `validation_error` for a foreign cursor. */
export function listRelays(
  store: RelayStore,
  sender: Sender,
  projectRef: number,
  query: RelayQuery,
  of: OfMessages,
): RelayPage {
  const { status, limit = LIST_LIMIT, cursor } = query;
  const before = pageStart(cursor);
  // Deliveries with a first attempt in flight are stored as scheduled: a page must be full without them as well.
  const inFlight = status === undefined ? [] : sender.inFlight(projectRef);
  const statuses = status === undefined ? RELAY_STATUSES : [status];
  const scan = scanOf(store, projectRef, query, of, before, limit + 1 + inFlight.length);
  const scans = statuses.map(scan);
  // Deliveries below the highest floor of the scans may be missing: the next page starts there.
  const floor = Math.max(...scans.map((one) => one.floor));
  const rows = new Map(scans.flatMap((one) => one.rows).map((row) => [row.ref, row]));
  for (const ref of status === "delivering" ? inFlight : []) {
    const row = ref < before ? store.request(ref) : null;
    if (row !== null && matches(row.item, query) && isOf(row, of)) rows.set(ref, row);
  }
  const matching = [...rows.values()]
    .filter((row) => row.ref >= floor && (status === undefined || statusOf(row, sender) === status))
    .sort((a, b) => b.ref - a.ref);
  const { items, ...next } = pageOf(matching.slice(0, limit + 1), limit, ({ ref }) => [ref]);
  const more = next.cursor === undefined && floor > 0 ? { cursor: encodeCursor([floor]) } : next;
  return { deliveries: items.map((row) => itemOf(row, sender)), ...more };
}

/** Reads the matching deliveries of a status. `floor`: the reference down to which it scanned; 0 when it read enough, or all. */
function scanOf(
  store: RelayStore,
  projectRef: number,
  query: RelayQuery,
  of: OfMessages,
  before: number,
  limit: number,
) {
  const { filter, event_type, since, until, error, schedule_id } = query;
  const isFiltered =
    [event_type, since, until, error, schedule_id].some((one) => one !== undefined) ||
    of.endpointRef !== null ||
    of.messageRef !== null;
  const filters: Filters = {
    ...of,
    kind: filter === undefined ? null : kindNumber(filter),
    event: event_type ?? null,
    since: since ?? null,
    until: until ?? null,
    failure: error === undefined ? null : failureNumber(error),
    schedule: schedule_id ?? null,
  };
  return (status: RelayStatus): { floor: number; rows: RelayRow[] } => {
    if (!isFiltered) {
      return { floor: 0, rows: store.page(filter === "pulse", projectRef, status, before, limit) };
    }
    const place = { projectRef, status: statusNumber(status) };
    const floor = store.floor(projectRef, place.status, before, SCANNED_ROWS_MAX - 1);
    const rows = store.matching({ ...filters, ...place, floor, before, limit });
    return { floor: rows.length === limit ? 0 : floor, rows };
  };
}

function isOf(row: RelayRequest, { endpointRef, messageRef }: OfMessages): boolean {
  return (
    (endpointRef === null || row.endpointRef === endpointRef) &&
    (messageRef === null || row.messageRef === messageRef)
  );
}

/** Whether a delivery in flight matches the filters. It has not failed. */
function matches(item: RelayItem, query: RelayQuery): boolean {
  const { filter, event_type, since = 0, until, error, schedule_id } = query;
  if (error !== undefined || (filter !== undefined && item.kind !== filter)) return false;
  if (event_type !== undefined && item.event !== event_type) return false;
  if (schedule_id !== undefined && item.schedule_id !== schedule_id) return false;
  return item.created_at >= since && (until === undefined || item.created_at < until);
}
