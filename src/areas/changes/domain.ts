/** Changes of this time go out in one message. */
export const COALESCED_MS = 500;
/** A comment goes out so often, and the credential is looked at again: proxies close what stays silent. */
export const HEARTBEAT_MS = 20_000;
/** Ids of one area in a message; where more have changed it says `true`. */
export const IDS_PER_AREA_MAX = 20;
/** Streams of one credential. */
export const STREAMS_PER_CREDENTIAL_MAX = 5;
/** Streams of the server, a quarter of them per account: each holds a connection, and some kilobytes. */
export const STREAMS_MAX = 200;

/** What has changed in each area: ids, or true where there is none or too many. */
export type Changed = Map<string, Set<string> | true>;

/** Adds a change to those that wait. */
export function add(changed: Changed, area: string, id: string | null): void {
  const known = changed.get(area);
  if (known === true) return;
  if (id === null || (known !== undefined && !known.has(id) && known.size >= IDS_PER_AREA_MAX)) {
    changed.set(area, true);
  } else changed.set(area, (known ?? new Set()).add(id));
}

/** The message that tells of them, as Server-Sent Events have it. */
export function message(at: number, changed: Changed): string {
  const areas = Object.fromEntries([...changed].map(([area, ids]) => [area, ids === true || [...ids]]));
  return `event: changes\ndata: ${JSON.stringify({ at, areas })}\n\n`;
}
