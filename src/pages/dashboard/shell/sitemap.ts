import type { OperationName } from "../../../client/api.ts";

/** A page of the console. Its icon has the name of its path. */
export interface PageFacts {
  /** First segment of its address. */
  readonly path: string;
  readonly title: string;
  /** Opens the page after `g`. */
  readonly letter: string;
  readonly group: "" | "Services" | "Server" | "Own";
  /** The operation that the session must be able to call; `operator` for the operator's pages. */
  readonly needs: OperationName | "operator" | null;
  /** Its parts, by the second segment of their addresses; the first part has none. */
  readonly parts?: readonly (readonly [segment: string, title: string])[];
}

/** All pages, in the order of the sidebar. */
export const SITEMAP = [
  { path: "overview", title: "Overview", letter: "o", group: "", needs: null },
  { path: "start", title: "Get started", letter: "g", group: "", needs: "monitors.create" },
  { path: "projects", title: "Projects", letter: "p", group: "", needs: "projects.list" },
  {
    path: "keys",
    title: "Keys",
    letter: "k",
    group: "Services",
    needs: "keys.list",
    parts: [
      ["", "All keys"],
      ["roles", "Roles"],
    ],
  },
  { path: "customers", title: "Customers", letter: "e", group: "Services", needs: "keys.list" },
  { path: "check", title: "Test a check", letter: "y", group: "Services", needs: "check" },
  { path: "meters", title: "Meters", letter: "m", group: "Services", needs: "meter.list" },
  { path: "flags", title: "Flags", letter: "f", group: "Services", needs: "gate.config" },
  { path: "locks", title: "Locks", letter: "l", group: "Services", needs: "latch.list" },
  {
    path: "monitors",
    title: "Monitors",
    letter: "u",
    group: "Services",
    needs: "monitors.list",
    parts: [
      ["", "All monitors"],
      ["incidents", "Incidents"],
      ["pages", "Status pages"],
      ["channels", "Channels"],
      ["probes", "Probes"],
      ["maintenance", "Maintenance"],
    ],
  },
  {
    path: "relay",
    title: "Relay",
    letter: "r",
    group: "Services",
    needs: "relay.list",
    parts: [
      ["", "Deliveries"],
      ["endpoints", "Endpoints"],
      ["messages", "Messages"],
      ["event-types", "Event types"],
      ["schedules", "Schedules"],
    ],
  },
  { path: "catch", title: "Catch", letter: "c", group: "Services", needs: "catch.buckets.list" },
  { path: "notary", title: "Notary", letter: "n", group: "Services", needs: "witness.receipts.list" },
  { path: "people", title: "People", letter: "w", group: "Server", needs: "people.list" },
  { path: "audit", title: "Audit log", letter: "a", group: "Server", needs: "audit.list" },
  { path: "backups", title: "Backups", letter: "b", group: "Server", needs: "operator" },
  { path: "metrics", title: "Metrics", letter: "t", group: "Server", needs: "operator" },
  { path: "settings", title: "Settings", letter: "s", group: "Server", needs: null },
  // The foot of the sidebar leads to it.
  { path: "profile", title: "Profile", letter: "i", group: "Own", needs: null },
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
