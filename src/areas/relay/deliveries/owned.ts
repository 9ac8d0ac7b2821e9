import { encodeCursor, pageStart } from "../../../kernel/http/requests/pagination.ts";
import type { MessageStore } from "../messages/store.ts";
import { filtersOf, itemOf, matches, type OfMessages, SCANNED_ROWS_MAX, statusOf } from "./listing.ts";
import { LIST_LIMIT, type RelayItem, type RelayPage, type RelayQuery } from "./schema.ts";
import type { WebhookSender } from "./sender.ts";
import type { RelayRequest, RelayStore } from "./store.ts";

/** Messages read at a time: most pages need no more. */
const MESSAGES_READ = 100;
/** Places for the deliveries of a message in a cursor: more than a project has endpoints. */
const PLACES = 1_024;

interface OwnedParts {
  readonly store: Pick<RelayStore, "ofMessage">;
  readonly messageRows: Pick<MessageStore, "pageOfOwner">;
  readonly sender: Pick<WebhookSender, "isInFlight">;
}

/**
 * A page of the deliveries of messages to a customer, newest first. The message decides: after an endpoint is given to
 * another customer, its earlier deliveries stay with the previous one.
 * @throws ApiError `validation_error` for a foreign cursor.
 */
export function listOfOwner(
  { store, messageRows, sender }: OwnedParts,
  projectRef: number,
  ownerId: string,
  query: RelayQuery,
  of: OfMessages,
): RelayPage {
  const { limit = LIST_LIMIT, status } = query;
  const filters = filtersOf(query, of);
  const isShown = (row: RelayRequest): boolean =>
    (status === undefined || statusOf(row, sender) === status) && matches(row, filters);
  const shown: RelayItem[] = [];
  let position = pageStart(query.cursor);
  let isCut = false;
  for (const step of walk({ store, messageRows }, projectRef, ownerId, position)) {
    if (step.row !== null && isShown(step.row)) {
      if (shown.length === limit) return { deliveries: shown, cursor: encodeCursor([position]) };
      shown.push(itemOf(step.row, sender));
    }
    ({ position, isCut } = step);
  }
  return { deliveries: shown, ...(isCut ? { cursor: encodeCursor([position]) } : {}) };
}

/** A step of a walk: a delivery, or the end of a message; and the position behind it. */
interface Step {
  readonly row: RelayRequest | null;
  readonly position: number;
  /** Whether the walk ends here, though there may be more. */
  readonly isCut: boolean;
}

/** Walks through deliveries, newest first, until it has read {@link SCANNED_ROWS_MAX} rows. */
function* walk(
  { store, messageRows }: Pick<OwnedParts, "store" | "messageRows">,
  projectRef: number,
  ownerId: string,
  from: number,
): Generator<Step> {
  let position = from;
  let left = SCANNED_ROWS_MAX;
  for (;;) {
    const first = Math.floor(position / PLACES);
    const read = messageRows.pageOfOwner(projectRef, ownerId, first + 1, MESSAGES_READ);
    for (const { ref, first_ref, deliveries } of read) {
      const places = ref === first ? Math.min(position % PLACES, deliveries) : deliveries;
      const rows = places === 0 ? [] : store.ofMessage(ref, first_ref, places, left);
      for (const row of rows) yield { row, position: ref * PLACES + row.ref - first_ref, isCut: false };
      const isWhole = rows.length < left;
      left -= 1 + rows.length;
      position = ref * PLACES + (isWhole ? 0 : (rows.at(-1)?.ref ?? first_ref) - first_ref);
      yield { row: null, position, isCut: left <= 0 };
      if (left <= 0) return;
    }
    if (read.length < MESSAGES_READ) return;
  }
}
