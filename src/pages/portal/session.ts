import { signal } from "@preact/signals";

/**
 * The token of the link. It comes in the fragment of the address, which browsers send to no server and in no `Referer`, and
 * is removed from there, so that the address can be copied or shown without giving access. There is no cookie: browsers block
 * those of embedded pages, and a cookie would be sent with requests of other pages.
 */
let token = "";

/** Where the token survives a reload of this tab. Browsers that block storage of embedded pages keep it in memory only. */
const STORED = "ninefold.portal";

/** Counts the links that this page has been opened with. */
export const visit = signal(0);

/** The current place, such as `["endpoints", "ep_…"]`. */
export const place = signal<readonly string[]>([]);

/** Reads the token and the theme from the address, or the token from this tab's storage. */
export function takeToken(): void {
  const given = new URLSearchParams(location.hash.slice(1));
  const found = given.get("token");
  const theme = given.get("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
  if (found === null) token = stored();
  else {
    token = found;
    store(found);
    history.replaceState(null, "", location.pathname);
  }
}

/** The header of requests. */
export function authorization(): string {
  return `Bearer ${token}`;
}

/** Follows the fragment of the address: places within the page, or another link. */
export function followAddress(): void {
  const read = (): void => {
    if (location.hash.startsWith("#token=")) {
      takeToken();
      visit.value += 1;
    }
    place.value = location.hash.slice(2).split("/").filter(Boolean).map(decodeURIComponent);
  };
  addEventListener("hashchange", read);
  read();
}

/** The address of a place. */
export function href(...parts: readonly string[]): string {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function go(...parts: readonly string[]): void {
  location.hash = href(...parts);
}

function stored(): string {
  try {
    return sessionStorage.getItem(STORED) ?? "";
  } catch {
    return "";
  }
}

function store(value: string): void {
  try {
    sessionStorage.setItem(STORED, value);
  } catch {
    // It stays in memory.
  }
}
