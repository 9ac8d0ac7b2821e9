import type { AuditTrail } from "../../kernel/audit/trail.ts";
import { ApiError, StartupError } from "../../kernel/errors.ts";
import type {
  Authenticator,
  CallerAccount,
  CallerProject,
  Charger,
} from "../../kernel/http/access/caller.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { isUnlimited } from "../../kernel/limits/tiers.ts";
import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { PlatformCredentials } from "./credentials.ts";
import { monthOf } from "./domain.ts";
import { type AccountActor, AccountLedger, Accounts, type DefaultProjects } from "./ledger.ts";
import { accountRoutes } from "./routes.ts";
import { AccountService, type AccountServiceDeps, type AccountSettings } from "./service.ts";
import { accountStore } from "./store.ts";

/** What accounts offer to the rest of the house. */
export interface AccountsArea extends ApiArea, OperatorAccess {
  readonly authenticator: Authenticator;
  /** Names of platform keys: no secret, and never another key's. */
  readonly keyNames: Pick<PlatformCredentials, "nameOf" | "digestOf">;
  readonly charger: Charger;
  /** Says which operations cost credits: these are counted from then on, zeros included. */
  readonly countCredits: (operations: readonly { readonly name: string }[]) => void;
  /** The account's newest platform key: deliveries are signed with it. */
  readonly signingKey: (accountRef: number) => string;
  /** An account, live. Ask again once it is `passivated`. */
  readonly account: (accountRef: number) => LiveAccount;
  /** The reference of the account with this user id; 0 when there is none. */
  readonly refOfUser: (userId: string) => number;
  /** Gives an account another default project. */
  readonly setDefaultProject: (tx: Tx, accountRef: number, project: CallerProject) => void;
}

/** An account in memory. From when it is `passivated` it is no longer kept up to date. */
export type LiveAccount = CallerAccount & Readonly<Pick<AccountActor, "email" | "passivated">>;

/** Builds the area: accounts, their keys as credentials, their balances. */
export function createAccounts(
  kernel: Kernel,
  settings: AccountSettings,
  ports: { projects: DefaultProjects; outbox: Outbox; trail: AuditTrail },
): AccountsArea {
  const store = accountStore(kernel.db);
  const accounts = new Accounts(store, ports.projects);
  const ledger = new AccountLedger(store, accounts, kernel);
  const credentials = new PlatformCredentials(store, accounts, kernel);
  const { suspended } = kernel.scheduler;
  suspended.load(store.suspended().map(({ ref }) => ref));
  const deps = { ...kernel, ...settings, ...ports, store, accounts, ledger, credentials, suspended };
  const service = new AccountService(deps);
  registerMonthlyGrant(kernel.scheduler, deps);
  return {
    authenticator: credentials,
    keyNames: credentials,
    charger: ledger,
    countCredits: (operations) => ledger.countCredits(operations),
    parts: [
      { name: "Signup", description: "An account of your own, where the operator has opened signup." },
      {
        name: "Operator",
        description:
          "Accounts, the server itself and the test clock. For keys of the operator's account only.",
      },
    ],
    alsoCalled: { accounts: ["users"], signup: ["register", "sign-up"] },
    routes: (api) => accountRoutes(api, service, ledger, { ...settings, clock: kernel.clock }),
    signingKey: (accountRef) => credentials.signingKey(accounts.get(accountRef)),
    account: (accountRef) => accounts.get(accountRef),
    refOfUser: store.refOfUser,
    setDefaultProject: (tx, accountRef, defaultProject) =>
      accounts.change(tx, accounts.get(accountRef), { defaultProject }),
    ...operatorAccess(service, deps),
  };
}

/** The operator's account. */
export interface Operator {
  readonly userId: string;
  /** Its key, as long as it has not been shown. */
  readonly key: string | null;
}

/** The e-mail address on the operator's account where none is configured. */
const OPERATOR_EMAIL = "operator@localhost";

type OperatorAccess = ReturnType<typeof operatorAccess>;

/** What the process does with the operator's account, which is the first that was ever made. */
function operatorAccess(service: AccountService, deps: AccountServiceDeps) {
  const { store, accounts, credentials, writer } = deps;
  const first = () => accounts.get(store.firstRef());
  return {
    /**
     * The operator's account. The first start makes it, with the given key or a new one. The key comes along as long
     * as it has not been shown: it is new, or an earlier start ended before `operatorAnnounced`. Every start gives it
     * the e-mail address that is configured.
     *
     * @throws StartupError when another account has that address.
     */
    operator: async (givenKey: string | null, email: string | null): Promise<Operator> => {
      if (store.firstRef() === 0) {
        await writer.submit((tx) => {
          const terms = { email: email ?? OPERATOR_EMAIL, tier: "unlimited" } as const;
          const { account } = service.create(tx, terms, givenKey ?? undefined);
          // A key that was handed in is known already.
          if (givenKey === null) store.setUnannouncedOperator(tx, account.ref);
        });
      }
      const account = first();
      if (email !== null && email !== account.email) await setOperatorEmail(service, deps, account, email);
      const unannounced = store.unannouncedOperator() === account.ref;
      return { userId: account.userId, key: unannounced ? credentials.signingKey(account) : null };
    },
    /** The operator's newest platform key, for commands that work on a stopped server's folder. */
    operatorKey: () => credentials.signingKey(first()),
    /** Notes that the operator's key has been shown: no later start shows it. */
    operatorAnnounced: async () => {
      await writer.submit(store.clearUnannouncedOperator);
    },
  };
}

async function setOperatorEmail(
  service: AccountService,
  { writer }: AccountServiceDeps,
  account: AccountActor,
  email: string,
): Promise<void> {
  try {
    await writer.submit((tx) => service.setEmail(tx, account, email));
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "conflict") throw error;
    throw new StartupError(`operator_email: another account has the address ${email}.`);
  }
}

/** The first of each month, 00:00 UTC. */
const MONTHLY = "0 0 1 * *";
/** Accounts granted in one unit of work: a few milliseconds, so that requests get their turn in between. */
const GRANT_SLICE = 200;

/** Registers the monthly grant: each balance is raised to its tier's figure if it is lower, once a month. */
function registerMonthlyGrant(scheduler: Scheduler, deps: AccountServiceDeps): void {
  const { writer, store, accounts, ledger, tiers } = deps;
  scheduler.recurring("accounts.monthly-grant", MONTHLY, async () => {
    let after = 0;
    const grantSlice = (tx: Tx): number => {
      const month = monthOf(tx.now);
      const rows = store.refsWithoutGrant(after, month, GRANT_SLICE);
      for (const { ref } of rows) {
        const account = accounts.get(ref);
        // The month is noted with the grant: a job that runs again after a crash grants nobody twice.
        store.setGranted(tx, month, ref);
        if (!isUnlimited(account.tier)) ledger.grantUpTo(tx, account, tiers[account.tier].monthlyCredits);
      }
      return rows.at(-1)?.ref ?? 0;
    };
    do {
      after = await writer.submit(grantSlice);
    } while (after > 0);
  });
}
