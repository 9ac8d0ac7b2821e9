import type { Kernel } from "../../kernel/kernel.ts";
import type { TierName, Tiers } from "../../kernel/limits/tiers.ts";
import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { ExportedTable } from "../../kernel/projects/account-export.ts";
import type { StoppedProjects } from "../../kernel/projects/stopped-projects.ts";
import type { Alerting, Attention } from "./alerting.ts";
import type { CheckStore, MonitorStore } from "./store.ts";

/** Accounts that own monitors. */
export interface MonitorOwners {
  /** The current state of an account. */
  account(accountRef: number): {
    readonly email: string;
    readonly tier: TierName;
    readonly suspended: boolean;
  };
}

/** What monitors need from the other areas and the kernel's optional parts. */
export interface MonitorDeps {
  readonly owners: MonitorOwners;
  readonly outbox: Pick<Outbox, "available">;
  readonly tiers: Tiers;
  readonly outbound: OutboundClient;
  /** Hosts with ports that show whether this server is online. */
  readonly observerTargets: readonly string[];
  /** File or URL of the list of RDAP servers; null: that of IANA. */
  readonly rdapBootstrap: string | null;
  /** The id of a project, a label of metrics. */
  readonly projectIdOf: (projectRef: number) => string | null;
  /** The time zone of texts of a project. */
  readonly timeZoneOf: (projectRef: number) => string;
  /** Version of the server, which probes must understand. */
  readonly version: string;
  /** Whether time stands still until a test advances it. */
  readonly isTestClock: boolean;
  readonly alerting: Alerting;
  readonly attention: Attention;
  /** The channels of a monitor in an export. */
  readonly exportedChannels: ExportedTable;
}

/** What every part of this area may use. A part declares what it needs of the others. */
export interface AreaDeps
  extends MonitorDeps,
    Pick<
      Kernel,
      "db" | "clock" | "ids" | "vault" | "digests" | "scheduler" | "metrics" | "changes" | "writer" | "log"
    > {
  readonly monitors: MonitorStore;
  readonly checks: CheckStore;
  readonly stopped: StoppedProjects;
}
