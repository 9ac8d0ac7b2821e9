import { AccountBalanceWorkload } from "./account-balances.ts";
import { AccountWorkload } from "./accounts.ts";
import { AuditWorkload } from "./audit.ts";
import { BucketWorkload } from "./buckets.ts";
import { CallbackWorkload } from "./callbacks.ts";
import { ChainWorkload } from "./chains.ts";
import { ChannelWorkload } from "./channels.ts";
import { CheckWorkload } from "./checks.ts";
import { FlagWorkload } from "./flags.ts";
import { HeldAlertWorkload } from "./held-alerts.ts";
import { HoldWorkload } from "./holds.ts";
import { IncidentWorkload } from "./incidents.ts";
import { KeyRoleWorkload } from "./key-roles.ts";
import { KeyUsesWorkload } from "./key-uses.ts";
import { LargeEventWorkload } from "./large-events.ts";
import { LimitLevelWorkload } from "./limit-levels.ts";
import { MaintenanceWorkload } from "./maintenance.ts";
import { MessageWorkload } from "./messages.ts";
import { MeterWorkload } from "./meters.ts";
import { PingWorkload } from "./pings.ts";
import { PortalWorkload } from "./portals.ts";
import { ProposalWorkload } from "./proposals.ts";
import { PullBucketWorkload } from "./pull-bucket.ts";
import { ReadWorkload } from "./reads.ts";
import { RecoveryWorkload } from "./recoveries.ts";
import { RelayWorkload } from "./relays.ts";
import { RemovedAccountWorkload } from "./removed-accounts.ts";
import { ResendWorkload } from "./resends.ts";
import { ScheduledFlagWorkload } from "./scheduled-flags.ts";
import { ScheduleWorkload } from "./schedules.ts";
import { SessionWorkload } from "./sessions.ts";
import { SharedLockWorkload } from "./shared-locks.ts";
import { SteadyPingWorkload } from "./steady-pings.ts";
import { TargetBucketWorkload } from "./target-buckets.ts";
import type { Workload } from "./workload.ts";

/** A new instance of every workload. A new area adds its workload here. */
export function allWorkloads(): Workload[] {
  return [
    new MeterWorkload(),
    new HoldWorkload(),
    new AccountBalanceWorkload(),
    new AccountWorkload(),
    new RemovedAccountWorkload(),
    new ChainWorkload(),
    new CheckWorkload(),
    new RelayWorkload(),
    new CallbackWorkload(),
    new ResendWorkload(),
    new RecoveryWorkload(),
    new ScheduleWorkload(),
    new PingWorkload(),
    new SteadyPingWorkload(),
    new MessageWorkload(),
    new IncidentWorkload(),
    new BucketWorkload(),
    new LargeEventWorkload(),
    new PortalWorkload(),
    new PullBucketWorkload(),
    new TargetBucketWorkload(),
    new ReadWorkload(),
    new AuditWorkload(),
    new SessionWorkload(),
    new FlagWorkload(),
    new ScheduledFlagWorkload(),
    new ProposalWorkload(),
    new SharedLockWorkload(),
    new KeyRoleWorkload(),
    new KeyUsesWorkload(),
    new LimitLevelWorkload(),
    new MaintenanceWorkload(),
    new ChannelWorkload(),
    new HeldAlertWorkload(),
  ];
}
