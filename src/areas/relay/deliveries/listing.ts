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

/** Deliveries of each status that one page looks at, whatever it is narrowed to: some milliseconds. */
export const WALKED_ROWS_MAX = 1_000;

type Sender = Pick<WebhookSender, "isUnderWay" | "underWay">;

/** The endpoint, or the message, whose deliveries are asked for. */
type OfMessages = Pick<Filters, "endpointRef" | "messageRef">;

/** A delivery's status: of a first attempt that is under way the row knows nothing. */
export function statusOf({ ref, item: { status } }: RelayRow, sender: Sender): RelayStatus {
  return status === "scheduled" && sender.isUnderWay(ref) ? "delivering" : status;
}

/** A delivery as lists show it. */
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
  // Those whose first attempt is under way are stored as scheduled: a page must be full without them, too.
  const underWay = status === undefined ? [] : sender.underWay(projectRef);
  const statuses = status === undefined ? RELAY_STATUSES : [status];
  const walk = walkOf(store, projectRef, query, of, before, limit + 1 + underWay.length);
  const walked = statuses.map(walk);
  // Below the highest end of a walk others may be missing: there the next page begins.
  const floor = Math.max(...walked.map((one) => one.floor));
  const rows = new Map(walked.flatMap((one) => one.rows).map((row) => [row.ref, row]));
  for (const ref of status === "delivering" ? underWay : []) {
    const row = ref < before ? store.request(ref) : null;
    if (row !== null && matches(row.item, query) && isOf(row, of)) rows.set(ref, row);
  }
  const wanted = [...rows.values()]
    .filter((row) => row.ref >= floor && (status === undefined || statusOf(row, sender) === status))
    .sort((a, b) => b.ref - a.ref);
  const { items, ...next } = pageOf(wanted.slice(0, limit + 1), limit, ({ ref }) => [ref]);
  const more = next.cursor === undefined && floor > 0 ? { cursor: encodeCursor([floor]) } : next;
  return { deliveries: items.map((row) => itemOf(row, sender)), ...more };
}

/** Reads the deliveries of a status, and says down to where it has looked: 0 where that is all, or enough. */
function walkOf(
  store: RelayStore,
  projectRef: number,
  query: RelayQuery,
  of: OfMessages,
  before: number,
  limit: number,
) {
  const { filter, event_type, since, until, error, schedule_id } = query;
  const isNarrowed =
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
    if (!isNarrowed) {
      return { floor: 0, rows: store.page(filter === "pulse", projectRef, status, before, limit) };
    }
    const place = { projectRef, status: statusNumber(status) };
    const floor = store.floor(projectRef, place.status, before, WALKED_ROWS_MAX - 1);
    const rows = store.narrowed({ ...filters, ...place, floor, before, limit });
    return { floor: rows.length === limit ? 0 : floor, rows };
  };
}

function isOf(row: RelayRequest, { endpointRef, messageRef }: OfMessages): boolean {
  return (
    (endpointRef === null || row.endpointRef === endpointRef) &&
    (messageRef === null || row.messageRef === messageRef)
  );
}

/** The same for one that is under way, which has not failed. */
function matches(item: RelayItem, query: RelayQuery): boolean {
  const { filter, event_type, since = 0, until, error, schedule_id } = query;
  if (error !== undefined || (filter !== undefined && item.kind !== filter)) return false;
  if (event_type !== undefined && item.event !== event_type) return false;
  if (schedule_id !== undefined && item.schedule_id !== schedule_id) return false;
  return item.created_at >= since && (until === undefined || item.created_at < until);
}
