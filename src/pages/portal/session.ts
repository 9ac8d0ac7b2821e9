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

/**
 * The token of a link that was opened while another one is in use; null without one. Anyone can send a link of their own: it must
 * not take the place of the customer's page unnoticed.
 */
export const proposed = signal<string | null>(null);

/** The current place, such as `["endpoints", "ep_…"]`. */
export const place = signal<readonly string[]>([]);

/** Reads the token and the theme from the address, or the token from this tab's storage. */
export function takeToken(): void {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const found = fragment.get("token");
  const theme = fragment.get("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
  const inUse = token === "" ? stored() : token;
  if (found === null) token = inUse;
  else {
    history.replaceState(
      null,
      "",
      location.pathname + (place.value.length === 0 ? "" : href(...place.value)),
    );
    // Whoever embeds the page decides which link it loads; only origins that the operator has listed can embed it.
    const isFirstOfFrame = token === "" && window.parent !== window;
    if (inUse === "" || inUse === found || isFirstOfFrame) use(found);
    else {
      token = inUse;
      proposed.value = found;
    }
  }
}

/** Opens the page anew with the proposed link. */
export function switchToProposed(): void {
  if (proposed.value === null) return;
  use(proposed.value);
  proposed.value = null;
  history.replaceState(null, "", location.pathname);
  place.value = [];
  visit.value += 1;
}

function use(newToken: string): void {
  token = newToken;
  store(newToken);
}

/** The token in use. */
export function currentToken(): string {
  return token;
}

/** Follows the fragment of the address: places within the page, or another link. */
export function followAddress(): void {
  const read = (): void => {
    if (location.hash.startsWith("#token=")) {
      takeToken();
      return;
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
