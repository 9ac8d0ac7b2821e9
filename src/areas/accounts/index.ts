import type { ManualClock } from "../../kernel/clock.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Authenticator, CallerAccount, CallerProject, Charger } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isUnlimited, type Tiers } from "../../kernel/tiers.ts";
import { PlatformCredentials } from "./credentials.ts";
import { monthOf, type SignupMode } from "./domain.ts";
import { AccountLedger } from "./ledger.ts";
import { Accounts, type DefaultProjects } from "./registry.ts";
import { accountRoutes } from "./routes.ts";
import { AccountService, type AccountServiceDeps, type Operator } from "./service.ts";
import { AccountStore } from "./store.ts";

export type { Operator } from "./service.ts";

/** What the configuration says about accounts. */
export interface AccountSettings {
  readonly signup: SignupMode;
  readonly rotationGraceMs: number;
  readonly tiers: Tiers;
  /** The test clock, which the operator can advance; null on a real clock. */
  readonly testClock: ManualClock | null;
}

/** What accounts offer to the rest of the house. */
export interface AccountsArea extends ApiArea {
  readonly authenticator: Authenticator;
  readonly charger: Charger;
  /** Says which operations cost credits: these are counted from then on, zeros included. */
  readonly countCredits: (operations: readonly { readonly name: string }[]) => void;
  /** The account's newest platform key: deliveries are signed with it. */
  readonly signingKey: (accountRef: number) => string;
  /** An account, live. Ask again once it is `passivated`. */
  readonly account: (accountRef: number) => LiveAccount;
  /** Gives an account another default project. */
  readonly setDefaultProject: (tx: Tx, accountRef: number, project: CallerProject) => void;
  /**
   * The operator's account. The first start makes it, with the given key or a new one. The key comes along as long as
   * it has not been shown: it is new, or an earlier start ended before it was {@link operatorAnnounced}.
   */
  readonly operator: (givenKey: string | null) => Promise<Operator>;
  /** The operator's newest platform key, for commands that work on a stopped server's folder. */
  readonly operatorKey: () => string;
  /** Notes that the operator's key has been shown: no later start shows it. */
  readonly operatorAnnounced: () => Promise<void>;
}

/** An account in memory. */
export interface LiveAccount extends CallerAccount {
  readonly email: string;
  readonly defaultProject: CallerProject;
  /** Set when it has left the memory: from then on it is no longer kept up to date. */
  readonly passivated: boolean;
}

/** Builds the area: accounts, their keys as credentials, their balances. */
export function createAccounts(
  kernel: Kernel,
  settings: AccountSettings,
  ports: { projects: DefaultProjects; outbox: Outbox },
): AccountsArea {
  const store = new AccountStore(kernel.db);
  const accounts = new Accounts(store, ports.projects);
  const ledger = new AccountLedger(store, accounts, kernel.writer);
  const credentials = new PlatformCredentials({ ...kernel, store, accounts });
  const deps = { ...kernel, ...settings, ...ports, store, accounts, ledger, credentials };
  const service = new AccountService(deps);
  registerMonthlyGrant(kernel.scheduler, deps);
  return {
    authenticator: credentials,
    charger: ledger,
    countCredits: (operations) =>
      ledger.countCredits(
        kernel.metrics,
        operations.map(({ name }) => name),
      ),
    parts: [
      { name: "Signup", description: "An account of your own, where the operator has opened signup." },
      {
        name: "Operator",
        description: "Accounts and the test clock. For keys of the operator's account only.",
      },
    ],
    routes: (api) => accountRoutes(api, service, { ...settings, clock: kernel.clock }),
    signingKey: (accountRef) => credentials.signingKey(accounts.get(accountRef)),
    account: (accountRef) => accounts.get(accountRef),
    setDefaultProject: (tx, accountRef, defaultProject) =>
      accounts.change(tx, accounts.get(accountRef), { defaultProject }),
    operator: (givenKey) => service.operator(givenKey),
    operatorKey: () => service.operatorKey(),
    operatorAnnounced: () => service.operatorAnnounced(),
  };
}

/** The first of each month, 00:00 UTC. */
const MONTHLY = "0 0 1 * *";
/** Accounts granted in one unit of work: a few milliseconds, so that requests get their turn in between. */
const GRANT_SLICE = 200;

/** Registers the monthly grant: each balance is raised to its tier's figure if it is lower, once a month. */
function registerMonthlyGrant(
  scheduler: Scheduler,
  { writer, store, accounts, ledger, tiers }: AccountServiceDeps,
): void {
  const grantSlice = (tx: Tx, after: number): number | null => {
    const month = monthOf(tx.now);
    const refs = store.refsWithoutGrant(after, month, GRANT_SLICE);
    for (const ref of refs) {
      const account = accounts.get(ref);
      // The month is noted with the grant: a job that runs again after a crash grants nobody twice.
      store.setGranted(tx, ref, month);
      if (!isUnlimited(account.tier)) ledger.grantUpTo(tx, account, tiers[account.tier].monthlyCredits);
    }
    return refs.at(-1) ?? null;
  };
  scheduler.recurring("accounts.monthly-grant", MONTHLY, async () => {
    let after: number | null = 0;
    while (after !== null) {
      const position: number = after;
      after = await writer.submit((tx) => grantSlice(tx, position));
    }
  });
}
