import { computed, signal } from "@preact/signals";

/** The current route: `#/catch/brave-otter-314159/evt_1?tab=raw`. */
export interface Place {
  /** First segment: the page. */
  readonly page: string;
  /** The other segments. */
  readonly rest: readonly string[];
  readonly query: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  hash.value = location.hash;
});

/** The route of the current address. */
export const place = computed((): Place => {
  const [path = "", search = ""] = hash.value.replace(/^#\/?/, "").split("?", 2);
  const [page = "", ...rest] = path.split("/").map(decoded);
  return {
    page: page === "" ? "overview" : page,
    rest: rest.filter((part) => part !== ""),
    query: new URLSearchParams(search),
  };
});

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

type Query = Readonly<Record<string, string | undefined>>;

/** The address of a route. */
export function href(segments: readonly string[], query: Query = {}): string {
  const search = searchOf(new URLSearchParams(), query);
  return `#/${segments.map(encodeURIComponent).join("/")}${search}`;
}

/** Navigates to a route. */
export function go(segments: readonly string[], query: Query = {}): void {
  location.hash = href(segments, query);
}

/** Changes the query without a new entry in the browser's history. */
export function setQuery(changes: Query): void {
  const { page, rest, query } = place.value;
  replacePlace(href([page, ...rest]) + searchOf(query, changes));
}

/** Replaces the address without a new entry in the browser's history. Browsers send no event for it. */
export function replacePlace(to: string): void {
  history.replaceState(null, "", to);
  hash.value = to;
}

function searchOf(query: URLSearchParams, changes: Query): string {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  return text === "" ? "" : `?${text}`;
}
