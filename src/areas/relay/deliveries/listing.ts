import { encodeCursor, pageOf, pageStart } from "../../../kernel/http/requests/pagination.ts";
import { NOTIFICATION } from "../domain.ts";
import { LIST_LIMIT, RELAY_STATUSES, type RelayPage, type RelayQuery, type RelayStatus } from "./schema.ts";
import { type InFlight, itemOf, statusOf } from "./status.ts";
import {
  type Filters,
  failureNumber,
  kindNumber,
  type RelayDelivery,
  type RelayRow,
  type RelayStore,
  statusNumber,
} from "./store.ts";

/** Deliveries of each status that one page scans, whatever its filters: a few milliseconds. */
export const SCANNED_ROWS_MAX = 1_000;

/** Number of HTTP statuses of a class. */
const STATUS_CLASS = 100;

/** Filters by endpoint and by message. */
export type OfMessages = Pick<Filters, "endpointRef" | "messageRef">;

/** A page of a project's deliveries, newest first. @throws ApiError `validation_error` for a foreign cursor. */
export function listRelays(
  store: RelayStore,
  inFlight: InFlight,
  projectRef: number,
  query: RelayQuery,
  of: OfMessages,
): RelayPage {
  const { status, limit = LIST_LIMIT, cursor } = query;
  const before = pageStart(cursor);
  // Deliveries with a first attempt in flight are stored as scheduled: a page must be full without them as well.
  const attempted = status === undefined ? [] : inFlight.ofProject(projectRef);
  const statuses = status === undefined ? RELAY_STATUSES : [status];
  const scan = scanOf(store, projectRef, query, of, before, limit + 1 + attempted.length);
  const scans = statuses.map(scan);
  // Deliveries below the highest floor of the scans may be missing: the next page starts there.
  const floor = Math.max(...scans.map((scan) => scan.floor));
  const rows = new Map(scans.flatMap((scan) => scan.rows).map((row) => [row.ref, row]));
  for (const ref of status === "delivering" ? attempted : []) {
    const row = ref < before ? store.delivery(ref) : null;
    if (row !== null && matches(row, filtersOf(query, of))) rows.set(ref, row);
  }
  const matching = [...rows.values()]
    .filter((row) => row.ref >= floor && (status === undefined || statusOf(row, inFlight) === status))
    .sort((a, b) => b.ref - a.ref);
  const { items, ...next } = pageOf(matching.slice(0, limit + 1), limit, ({ ref }) => [ref]);
  const more = next.cursor === undefined && floor > 0 ? { cursor: encodeCursor([floor]) } : next;
  return { deliveries: items.map((row) => itemOf(row, inFlight)), ...more };
}

/** The filters of a query. */
export function filtersOf(
  query: Omit<RelayQuery, "endpoint_id" | "message_id" | "owner_id" | "status" | "q">,
  of: OfMessages,
): Filters {
  const { filter, event_type, since, until, error, response_status, target_url, schedule_id } = query;
  const notifications = kindNumber(NOTIFICATION);
  const isClass = response_status?.endsWith("xx") === true;
  const statusFrom = response_status === undefined ? null : Number(response_status.replace("xx", "00"));
  return {
    ...of,
    kind: filter === NOTIFICATION ? notifications : null,
    notKind: filter === "deliveries" ? notifications : null,
    event: event_type ?? null,
    since: since ?? null,
    until: until ?? null,
    failure: error === undefined ? null : failureNumber(error),
    statusFrom,
    statusThrough: statusFrom === null ? null : statusFrom + (isClass ? STATUS_CLASS - 1 : 0),
    target: target_url ?? null,
    schedule: schedule_id ?? null,
  };
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
  const filters = filtersOf(query, of);
  const { kind, ...others } = filters;
  const isFiltered = Object.values(others).some((value) => value !== null);
  return (status: RelayStatus): { floor: number; rows: RelayRow[] } => {
    if (!isFiltered) {
      return { floor: 0, rows: store.page(kind !== null, projectRef, status, before, limit) };
    }
    const place = { projectRef, status: statusNumber(status) };
    const floor = store.floor(projectRef, place.status, before, SCANNED_ROWS_MAX - 1);
    const rows = store.matching({ ...filters, ...place, floor, before, limit });
    return { floor: rows.length === limit ? 0 : floor, rows };
  };
}

/** Whether a delivery matches the filters. */
export function matches(
  { item, endpointRef, messageRef, failure }: RelayDelivery,
  filters: Filters,
): boolean {
  const { since, until, statusFrom, statusThrough } = filters;
  const kind = kindNumber(item.kind);
  const isSame = (wanted: string | number | null, value: string | number | null): boolean =>
    wanted === null || wanted === value;
  return (
    isSame(filters.kind, kind) &&
    kind !== filters.notKind &&
    isSame(filters.event, item.event) &&
    isSame(filters.failure, failure) &&
    isSame(filters.target, item.target_url) &&
    isSame(filters.schedule, item.schedule_id) &&
    isSame(filters.endpointRef, endpointRef) &&
    isSame(filters.messageRef, messageRef) &&
    (since === null || item.created_at >= since) &&
    (until === null || item.created_at < until) &&
    (statusFrom === null ||
      (item.response_status !== null &&
        item.response_status >= statusFrom &&
        item.response_status <= (statusThrough ?? statusFrom)))
  );
}
