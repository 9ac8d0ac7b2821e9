import { decodeCursor, encodeCursor } from "../../../kernel/http/requests/pagination.ts";
import { filtersOf, matches, type OfMessages, SCANNED_ROWS_MAX } from "./listing.ts";
import { LIST_LIMIT, type RelayItem, type RelayPage, type RelayQuery } from "./schema.ts";
import { type InFlight, itemOf, statusOf } from "./status.ts";
import type { RelayRequest, RelayStore } from "./store.ts";

/** Rows read at a time: most pages need no more. */
const ROWS_READ = 100;
/** Places for the deliveries of a message in a cursor: more than a project has endpoints. */
const PLACES = 1_024;

/** A message to a customer: the deliveries that were created with it have consecutive references. */
interface OwnedMessage {
  readonly ref: number;
  readonly first_ref: number;
  readonly deliveries: number;
}

/** The messages to customers. */
export interface OwnedMessages {
  /** A project's messages to a customer below a reference, newest first. */
  pageOfOwner(projectRef: number, ownerId: string, before: number, limit: number): readonly OwnedMessage[];
  /** The deliveries to a customer that were created after their messages, below a reference, newest first. */
  laterOfOwner(
    projectRef: number,
    ownerId: string,
    before: number,
    limit: number,
  ): readonly { readonly ref: number }[];
  /** A message; null when it is deleted. */
  find(ref: number): { readonly owner_id: string | null } | null;
}

interface OwnedDeps {
  readonly store: Pick<RelayStore, "ofMessage" | "request">;
  readonly messageRows: OwnedMessages;
  readonly inFlight: InFlight;
}

/** Where a page ends: behind a delivery that was created with its message, and one that was created later. */
type Place = readonly [created: number, later: number];

/**
 * A page of the deliveries of messages to a customer, newest first. The message decides: after an endpoint is given to
 * another customer, its earlier deliveries stay with the previous one.
 * @throws ApiError `validation_error` for a foreign cursor.
 */
export function listOfOwner(
  deps: OwnedDeps,
  projectRef: number,
  ownerId: string,
  query: RelayQuery,
  of: OfMessages,
): RelayPage {
  const { limit = LIST_LIMIT, status } = query;
  const filters = filtersOf(query, of);
  const isShown = (row: RelayRequest): boolean =>
    (status === undefined || statusOf(row, deps.inFlight) === status) && matches(row, filters);
  const shown: RelayItem[] = [];
  let place = placeOf(query.cursor);
  let isCut = false;
  for (const step of newestFirst(deps, projectRef, ownerId, place)) {
    if (step.row !== null && isShown(step.row)) {
      if (shown.length === limit) return { deliveries: shown, cursor: encodeCursor(place) };
      shown.push(itemOf(step.row, deps.inFlight));
    }
    ({ place, isCut } = step);
  }
  return { deliveries: shown, ...(isCut ? { cursor: encodeCursor(place) } : {}) };
}

/** Cursors of earlier versions have no second number: their pages had no deliveries that were created later. */
function placeOf(cursor: string | undefined): Place {
  if (cursor === undefined) return [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
  const [created = 0, later = 0] = decodeCursor(cursor);
  return [created, later];
}

/** A delivery, or a row without one, and the position behind it. */
interface Read {
  readonly row: RelayRequest | null;
  readonly position: number;
}

/** A step of a walk through both kinds of deliveries. */
interface Step {
  readonly row: RelayRequest | null;
  /** The place behind it. */
  readonly place: Place;
  /** Whether the walk ends here, though there may be more. */
  readonly isCut: boolean;
}

/** Merges both kinds of deliveries by the time of their creation, until {@link SCANNED_ROWS_MAX} rows are read. */
function* newestFirst(
  deps: OwnedDeps,
  projectRef: number,
  ownerId: string,
  [createdFrom, laterFrom]: Place,
): Generator<Step> {
  const created = createdWith(deps, projectRef, ownerId, createdFrom);
  const later = createdLater(deps, projectRef, ownerId, laterFrom);
  let [nextCreated, nextLater] = [created.next(), later.next()];
  let place: Place = [createdFrom, laterFrom];
  for (let left = SCANNED_ROWS_MAX; left > 0; left -= 1) {
    const isLater = orderOf(nextLater) > orderOf(nextCreated);
    const read = isLater ? nextLater : nextCreated;
    if (read.done === true) return;
    const { row, position } = read.value;
    place = isLater ? [place[0], position] : [position, place[1]];
    if (isLater) nextLater = later.next();
    else nextCreated = created.next();
    const isCut = left === 1 && !(nextLater.done === true && nextCreated.done === true);
    yield { row, place, isCut };
  }
}

/** References grow with time. Rows without a delivery come first, since they only move the position. */
function orderOf(read: IteratorResult<Read, void>): number {
  if (read.done === true) return Number.NEGATIVE_INFINITY;
  return read.value.row?.ref ?? Number.POSITIVE_INFINITY;
}

/** Deliveries that were created with their messages, newest first, and the ends of their messages. */
function* createdWith(
  { store, messageRows }: OwnedDeps,
  projectRef: number,
  ownerId: string,
  from: number,
): Generator<Read, void> {
  let position = from;
  for (;;) {
    const first = Math.floor(position / PLACES);
    const read = messageRows.pageOfOwner(projectRef, ownerId, first + 1, ROWS_READ);
    for (const { ref, first_ref, deliveries } of read) {
      let places = ref === first ? Math.min(position % PLACES, deliveries) : deliveries;
      while (places > 0) {
        const rows = store.ofMessage(ref, first_ref, places, ROWS_READ);
        for (const row of rows) yield { row, position: ref * PLACES + row.ref - first_ref };
        places = rows.length < ROWS_READ ? 0 : (rows.at(-1)?.ref ?? first_ref) - first_ref;
      }
      position = ref * PLACES;
      yield { row: null, position };
    }
    if (read.length < ROWS_READ) return;
  }
}

/** Deliveries that were created after their messages, newest first. */
function* createdLater(
  { store, messageRows }: OwnedDeps,
  projectRef: number,
  ownerId: string,
  from: number,
): Generator<Read, void> {
  let position = from;
  for (;;) {
    const read = messageRows.laterOfOwner(projectRef, ownerId, position, ROWS_READ);
    for (const { ref } of read) {
      position = ref;
      yield { row: store.request(ref), position };
    }
    if (read.length < ROWS_READ) return;
  }
}
