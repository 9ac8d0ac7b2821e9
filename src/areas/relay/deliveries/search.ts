import { slices } from "../../../kernel/background/time-slices.ts";
import { monotonicMs } from "../../../kernel/time/clock.ts";
import type { RelayItem, RelayPage } from "./schema.ts";

/** Longest search of one request, including waits for other requests. The next page continues. */
const SEARCH_MS_MAX = 200;
/** Deliveries that are read in one step. A search examines at least one step: every page makes progress. */
const PAGE = 25;

interface SearchDeps {
  /** A page of the deliveries that match the other filters. */
  readonly page: (cursor: string | undefined, limit: number) => Promise<RelayPage>;
  /** The stored body of a delivery; null without one. */
  readonly body: (relayId: string) => Promise<Uint8Array | null>;
}

/** Finds deliveries with a text in their URL, ids, event type or body, newest first, in slices of the event loop. */
export async function searchDeliveries(
  { page, body }: SearchDeps,
  {
    q,
    cursor: from,
    limit,
  }: {
    readonly q: string;
    readonly cursor: string | undefined;
    readonly limit: number;
  },
): Promise<RelayPage> {
  const text = q.toLowerCase();
  const end = monotonicMs() + SEARCH_MS_MAX;
  const found: RelayItem[] = [];
  let cursor = from;
  do {
    if (slices.isOver) await slices.next();
    // No more than what is missing: the search always ends where a page ends.
    const read = await page(cursor, Math.min(PAGE, limit - found.length));
    for (const item of read.deliveries) {
      if (slices.isOver) await slices.next();
      if (await hasText(item, text, body)) found.push(item);
    }
    cursor = read.cursor;
  } while (cursor !== undefined && found.length < limit && monotonicMs() < end);
  return { deliveries: found, ...(cursor === undefined ? {} : { cursor }) };
}

/** One body is searched at a time: 1 MiB takes 5 ms. */
async function hasText(item: RelayItem, text: string, body: SearchDeps["body"]): Promise<boolean> {
  const { target_url, relay_id, event, message_id } = item;
  if (
    [target_url, relay_id, event ?? "", message_id ?? ""].some((value) => value.toLowerCase().includes(text))
  )
    return true;
  const bytes = await body(relay_id);
  if (bytes === null) return false;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    .toString("utf8")
    .toLowerCase()
    .includes(text);
}
