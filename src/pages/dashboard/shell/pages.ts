import type { ComponentType } from "preact";
import { mayCall, session } from "../core/session.ts";
import { lazy } from "../ui/lazy.tsx";
import { type PageFacts, type PagePath, SITEMAP } from "./sitemap.ts";

/** The component of each page. */
export const VIEWS: Readonly<Record<PagePath, ComponentType>> = {
  overview: lazy(async () => (await import("../pages/overview.tsx")).OverviewPage),
  start: lazy(async () => (await import("../pages/start.tsx")).StartPage),
  projects: lazy(async () => (await import("../pages/server/projects.tsx")).ProjectsPage),
  keys: lazy(async () => (await import("../pages/keys/keys.tsx")).KeysPage),
  customers: lazy(async () => (await import("../pages/customers/customers.tsx")).CustomersPage),
  check: lazy(async () => (await import("../pages/keys/check.tsx")).CheckPage),
  meters: lazy(async () => (await import("../pages/meters/meters.tsx")).MetersPage),
  flags: lazy(async () => (await import("../pages/flags/flags.tsx")).FlagsPage),
  locks: lazy(async () => (await import("../pages/locks.tsx")).LocksPage),
  monitors: lazy(async () => (await import("../pages/monitors/monitors.tsx")).MonitorsPage),
  relay: lazy(async () => (await import("../pages/relay/relay.tsx")).RelayPage),
  catch: lazy(async () => (await import("../pages/catch/catch.tsx")).CatchPage),
  notary: lazy(async () => (await import("../pages/notary.tsx")).NotaryPage),
  people: lazy(async () => (await import("../pages/people/people.tsx")).PeoplePage),
  profile: lazy(async () => (await import("../pages/people/profile.tsx")).ProfilePage),
  audit: lazy(async () => (await import("../pages/server/audit.tsx")).AuditPage),
  backups: lazy(async () => (await import("../pages/server/backups.tsx")).BackupsPage),
  metrics: lazy(async () => (await import("../pages/server/metrics.tsx")).MetricsPage),
  settings: lazy(async () => (await import("../pages/server/settings.tsx")).SettingsPage),
};

/** The pages that the session can view. */
export function visiblePages(): readonly (PageFacts & { readonly path: PagePath })[] {
  const isOperator = session.value?.operator === true;
  return SITEMAP.filter(
    ({ needs }) => needs === null || (needs === "operator" ? isOperator : mayCall(needs)),
  );
}
