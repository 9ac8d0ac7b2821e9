import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Clock } from "../../kernel/clock.ts";
import { isoTime } from "../../kernel/date-time.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import type { ProjectDirectory } from "./directory.ts";
import type { ProjectAccounts } from "./ports.ts";
import type { ProjectRow } from "./store.ts";

/** How long an overview is answered from memory. */
export const OVERVIEW_KEPT_MS = 5 * 60 * 1000;
/** Overviews kept in memory, under a kilobyte each. */
export const OVERVIEWS_IN_MEMORY_MAX = 10_000;

/** Every kind of resource in the overview: those that no area offers count 0. */
export const RESOURCE_NAMES = [
  "flags",
  "monitors",
  "relays",
  "buckets",
  "keys",
  "locks",
  "chains",
  "meters",
] as const satisfies readonly ProjectResources["name"][];

/** A project's overview, as its endpoint answers it. */
export interface OverviewView {
  readonly project_id: string;
  readonly project_name: string;
  readonly resources: Readonly<Record<ProjectResources["name"], number>>;
  readonly usage: { readonly meter_balance: number; readonly last_activity: string | null };
}

interface KeptOverview extends Actor {
  readonly view: OverviewView;
  readonly countedAt: number;
}

/** Counts what is in projects, and remembers it for five minutes. */
export class Overviews {
  private readonly kept = new ActorRegistry<number, KeptOverview>(OVERVIEWS_IN_MEMORY_MAX);
  private readonly resources: readonly ProjectResources[];
  private readonly accounts: ProjectAccounts;
  private readonly directory: ProjectDirectory;
  private readonly clock: Clock;

  constructor(deps: {
    resources: readonly ProjectResources[];
    accounts: ProjectAccounts;
    directory: ProjectDirectory;
    clock: Clock;
  }) {
    this.resources = deps.resources;
    this.accounts = deps.accounts;
    this.directory = deps.directory;
    this.clock = deps.clock;
  }

  /** The overview of a project, at most five minutes old. */
  of(project: ProjectRow): OverviewView {
    const now = this.clock.now();
    const known = this.kept.peek(project.ref);
    // A clock that was set back makes an overview look younger than it is: then it is counted anew.
    if (known !== undefined && known.countedAt <= now && now < known.countedAt + OVERVIEW_KEPT_MS) {
      return known.view;
    }
    const view = this.count(project);
    this.kept.drop(project.ref);
    this.kept.insert(project.ref, { idle: true, recent: false, view, countedAt: now });
    return view;
  }

  /** Forgets the overview of a project that has itself changed. */
  drop(projectRef: number): void {
    this.kept.drop(projectRef);
  }

  private count(project: ProjectRow): OverviewView {
    const defaultOf = project.is_default === 0 ? null : project.account_ref;
    const counts = new Map(this.resources.map((kind) => [kind.name, kind.count(project.ref, defaultOf)]));
    const lastActivity = this.directory.activity.lastOf(project.ref);
    return {
      project_id: project.id,
      project_name: project.name,
      resources: Object.fromEntries(
        RESOURCE_NAMES.map((name) => [name, counts.get(name) ?? 0]),
      ) as OverviewView["resources"],
      usage: {
        meter_balance: this.accounts.balance(project.account_ref),
        last_activity: lastActivity === null ? null : isoTime(lastActivity),
      },
    };
  }
}
