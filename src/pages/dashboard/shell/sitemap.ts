/** A page of the console. Its icon has the name of its path. */
export interface PageFacts {
  /** First segment of its address. */
  readonly path: string;
  readonly title: string;
  /** Opens the page after `g`. */
  readonly letter: string;
  readonly group: "" | "Services" | "Server";
  /** The scope that the session needs; `operator` for the operator's pages. */
  readonly needs: string | null;
  /** Its parts, by the second segment of their addresses; the first part has none. */
  readonly parts?: readonly (readonly [segment: string, title: string])[];
}

/** All pages, in the order of the sidebar. */
export const SITEMAP = [
  { path: "overview", title: "Overview", letter: "o", group: "", needs: null },
  { path: "start", title: "Get started", letter: "g", group: "", needs: "pulse:write" },
  { path: "projects", title: "Projects", letter: "p", group: "", needs: "projects:read" },
  { path: "keys", title: "Keys", letter: "k", group: "Services", needs: "keys:read" },
  { path: "customers", title: "Customers", letter: "e", group: "Services", needs: "keys:read" },
  { path: "check", title: "Test a check", letter: "y", group: "Services", needs: "check:write" },
  { path: "meters", title: "Meters", letter: "m", group: "Services", needs: "meter:read" },
  { path: "flags", title: "Flags", letter: "f", group: "Services", needs: "gate:read" },
  { path: "locks", title: "Locks", letter: "l", group: "Services", needs: "latch:read" },
  {
    path: "monitors",
    title: "Monitors",
    letter: "u",
    group: "Services",
    needs: "pulse:read",
    parts: [
      ["", "All monitors"],
      ["incidents", "Incidents"],
      ["pages", "Status pages"],
      ["channels", "Channels"],
      ["maintenance", "Maintenance"],
    ],
  },
  {
    path: "relay",
    title: "Relay",
    letter: "r",
    group: "Services",
    needs: "relay:read",
    parts: [
      ["", "Deliveries"],
      ["endpoints", "Endpoints"],
      ["messages", "Messages"],
      ["schedules", "Schedules"],
    ],
  },
  { path: "catch", title: "Catch", letter: "c", group: "Services", needs: "catch:read" },
  { path: "notary", title: "Notary", letter: "n", group: "Services", needs: "witness:read" },
  { path: "audit", title: "Audit log", letter: "a", group: "Server", needs: "audit:read" },
  { path: "backups", title: "Backups", letter: "b", group: "Server", needs: "operator" },
  { path: "metrics", title: "Metrics", letter: "t", group: "Server", needs: "operator" },
  { path: "settings", title: "Settings", letter: "s", group: "Server", needs: null },
] as const satisfies readonly PageFacts[];

/** First segment of a page's address. */
export type PagePath = (typeof SITEMAP)[number]["path"];

/** Shortcuts other than those of pages, which follow `g`. */
export const SHORTCUTS: readonly (readonly [keys: string, what: string])[] = [
  ["Ctrl K", "search and commands"],
  ["/", "search"],
  ["j", "next row"],
  ["k", "previous row"],
  ["Enter", "open row"],
  ["?", "show shortcuts"],
];
