/** Changes within this time are sent in one message. */
export const COALESCED_MS = 500;
/** Interval of comments, and of checks of the credential: proxies close silent connections. */
export const HEARTBEAT_MS = 20_000;
/** Ids of one area in a message; if more have changed, the message contains `true`. */
export const IDS_PER_AREA_MAX = 20;
/** Streams of one credential. */
export const STREAMS_PER_CREDENTIAL_MAX = 5;
/** Streams of the server, a quarter of them per account: each takes a connection and some kilobytes. */
export const STREAMS_MAX = 200;

/** The changes of each area: ids, or true if there are too many or a change has no id. */
export type Changed = Map<string, Set<string> | true>;

export function addChange(changed: Changed, area: string, id: string | null): void {
  const known = changed.get(area);
  if (known === true) return;
  if (id === null || (known !== undefined && !known.has(id) && known.size >= IDS_PER_AREA_MAX)) {
    changed.set(area, true);
  } else changed.set(area, (known ?? new Set()).add(id));
}

/** The changes as a server-sent event. */
export function changesMessage(at: number, changed: Changed): string {
  const areas = Object.fromEntries([...changed].map(([area, ids]) => [area, ids === true || [...ids]]));
  return `event: changes\ndata: ${JSON.stringify({ at, areas })}\n\n`;
}
