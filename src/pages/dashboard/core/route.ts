import { computed, signal } from "@preact/signals";
import { mayLeave } from "./drafts.ts";

/** The current route: `#/proj_…/catch/brave-otter-314159/evt_1?tab=raw`. */
export interface Place {
  /** First segment after the project: the page. */
  readonly page: string;
  /** The other segments. */
  readonly rest: readonly string[];
  readonly query: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  if (location.hash === hash.value) return;
  if (mayLeave()) hash.value = location.hash;
  else history.pushState(null, "", hash.value);
});

/** Stands in an address for the default project of the account. */
export const DEFAULT_PROJECT = "default";
const PROJECT = /^(proj_|default$)/;

const parts = computed(() => {
  const [path = "", search = ""] = hash.value.replace(/^#\/?/, "").split("?", 2);
  const segments = path.split("/").map(decoded);
  const project = PROJECT.test(segments[0] ?? "") ? segments.shift() : undefined;
  return { project, segments, search };
});

/** The project in the address; undefined if there is none. */
export const addressProject = computed(() => parts.value.project);
/** The project that addresses name, so that a link opens the same data for everyone; null for none. */
export const projectSegment = signal<string | null>(null);

/** The route of the current address. */
export const place = computed((): Place => {
  const { segments, search } = parts.value;
  const [page = "", ...rest] = segments;
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
  const project = projectSegment.value === null ? [] : [projectSegment.value];
  return `#/${[...project, ...segments].map(encodeURIComponent).join("/")}${search}`;
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
