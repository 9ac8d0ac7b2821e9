import type { ComponentType } from "preact";
import { may, session } from "../core/session.ts";
import { CatchPage } from "../pages/catch/catch.tsx";
import { FlagsPage } from "../pages/flags/flags.tsx";
import { KeysPage } from "../pages/keys/keys.tsx";
import { MetersPage } from "../pages/meters/meters.tsx";
import { MonitorsPage } from "../pages/monitors/monitors.tsx";
import { OverviewPage } from "../pages/overview.tsx";
import { RelayPage } from "../pages/relay/relay.tsx";
import { ProjectsPage } from "../pages/server/projects.tsx";
import type { IconName } from "../ui/icon.tsx";
import { lazy } from "./lazy.tsx";

/** A page of the console. */
export interface PageEntry {
  /** First segment of its address. */
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  /** Opens the page after `g`. */
  readonly letter: string;
  readonly group: "" | "Services" | "Server";
  /** The scope that the session needs; `operator` for the operator's pages. */
  readonly needs: string | null;
  readonly View: ComponentType;
}

const ALL: readonly PageEntry[] = [
  {
    path: "overview",
    title: "Overview",
    icon: "overview",
    letter: "o",
    group: "",
    needs: null,
    View: OverviewPage,
  },
  {
    path: "projects",
    title: "Projects",
    icon: "projects",
    letter: "p",
    group: "",
    needs: "projects:read",
    View: ProjectsPage,
  },
  {
    path: "keys",
    title: "Keys",
    icon: "keys",
    letter: "k",
    group: "Services",
    needs: "keys:read",
    View: KeysPage,
  },
  {
    path: "check",
    title: "Test a check",
    icon: "check",
    letter: "y",
    group: "Services",
    needs: "check:write",
    View: lazy(async () => (await import("../pages/keys/check.tsx")).CheckPage),
  },
  {
    path: "meters",
    title: "Meters",
    icon: "meters",
    letter: "m",
    group: "Services",
    needs: "meter:read",
    View: MetersPage,
  },
  {
    path: "flags",
    title: "Flags",
    icon: "flags",
    letter: "f",
    group: "Services",
    needs: "gate:read",
    View: FlagsPage,
  },
  {
    path: "locks",
    title: "Locks",
    icon: "locks",
    letter: "l",
    group: "Services",
    needs: "latch:read",
    View: lazy(async () => (await import("../pages/locks.tsx")).LocksPage),
  },
  {
    path: "monitors",
    title: "Monitors",
    icon: "monitors",
    letter: "u",
    group: "Services",
    needs: "pulse:read",
    View: MonitorsPage,
  },
  {
    path: "relay",
    title: "Relay",
    icon: "relay",
    letter: "r",
    group: "Services",
    needs: "relay:read",
    View: RelayPage,
  },
  {
    path: "catch",
    title: "Catch",
    icon: "catch",
    letter: "c",
    group: "Services",
    needs: "catch:read",
    View: CatchPage,
  },
  {
    path: "notary",
    title: "Notary",
    icon: "notary",
    letter: "n",
    group: "Services",
    needs: "witness:read",
    View: lazy(async () => (await import("../pages/notary.tsx")).NotaryPage),
  },
  {
    path: "audit",
    title: "Audit log",
    icon: "audit",
    letter: "a",
    group: "Server",
    needs: "audit:read",
    View: lazy(async () => (await import("../pages/server/audit.tsx")).AuditPage),
  },
  {
    path: "backups",
    title: "Backups",
    icon: "backups",
    letter: "b",
    group: "Server",
    needs: "operator",
    View: lazy(async () => (await import("../pages/server/backups.tsx")).BackupsPage),
  },
  {
    path: "metrics",
    title: "Metrics",
    icon: "metrics",
    letter: "t",
    group: "Server",
    needs: "operator",
    View: lazy(async () => (await import("../pages/server/metrics.tsx")).MetricsPage),
  },
  {
    path: "settings",
    title: "Settings",
    icon: "settings",
    letter: "s",
    group: "Server",
    needs: null,
    View: lazy(async () => (await import("../pages/server/settings.tsx")).SettingsPage),
  },
];

/** The pages that the session can view. */
export function visiblePages(): readonly PageEntry[] {
  const isOperator = session.value?.operator === true;
  return ALL.filter(({ needs }) => needs === null || (needs === "operator" ? isOperator : may(needs)));
}
