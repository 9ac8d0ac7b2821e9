import type { AuditTrail } from "../../kernel/audit/trail.ts";
import type { CallerAccount, CallerProject, Charger } from "../../kernel/callers/caller.ts";
import { ApiError, StartupError } from "../../kernel/errors.ts";
import type { Authenticator } from "../../kernel/http/access/guard.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { isUnlimited } from "../../kernel/limits/tiers.ts";
import type { MailQueue } from "../../kernel/mail/outbox.ts";
import type { ExportedTable } from "../../kernel/projects/account-export.ts";
import type { Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { PlatformCredentials } from "./credentials.ts";
import { monthOf } from "./domain.ts";
import { AccountExports } from "./exports.ts";
import { type AccountActor, AccountLedger, Accounts, type DefaultProjects } from "./ledger.ts";
import { AccountRemoval, type RemovalDeps } from "./removal.ts";
import { accountRoutes } from "./routes.ts";
import { AccountService, type AccountServiceDeps, type AccountSettings } from "./service.ts";
import { accountStore } from "./store.ts";

/** What accounts provide to other areas. */
export interface AccountsArea extends ApiArea, OperatorAccess {
  readonly authenticator: Authenticator;
  /** Permanent names of platform keys: not secret, and never reused. */
  readonly keyNames: Pick<PlatformCredentials, "nameOf" | "digestOf">;
  readonly charger: Charger;
  /** Declares the operations that cost credits: their metrics exist from then on, also at zero. */
  readonly countCredits: (operations: readonly { readonly name: string }[]) => void;
  /** The account's newest platform key, with which deliveries are signed; null if a restore has removed its text. */
  readonly signingKey: (accountRef: number) => string | null;
  /** An account, kept up to date until it is `passivated`: then call again. */
  readonly account: (accountRef: number) => LiveAccount;
  /** The reference of the account with this user id; 0 when there is none. */
  readonly refOfUser: (userId: string) => number;
  /** The account that a setting names by its id or address; null: the operator's. 0 when there is none. */
  readonly refOf: (name: string | null) => number;
  /** The tables that an export of an account has. */
  readonly exportedTables: () => readonly ExportedTable[];
  /** Interrupts the removal of deleted accounts. Call before the scheduler stops. */
  readonly stop: () => void;
  /** Changes the default project of an account. */
  readonly setDefaultProject: (tx: Tx, accountRef: number, project: CallerProject) => void;
}

/** An account in memory. Once it is `passivated` it is no longer updated. */
export type LiveAccount = CallerAccount & Readonly<Pick<AccountActor, "email" | "passivated">>;

/** Builds the area: accounts, their platform keys and their balances. */
export function createAccounts(
  kernel: Kernel,
  settings: AccountSettings,
  deps: {
    projects: DefaultProjects;
    outbox: MailQueue;
    trail: AuditTrail;
    contents: RemovalDeps["contents"];
  },
): AccountsArea {
  const store = accountStore(kernel.db);
  const accounts = new Accounts(store, deps.projects);
  const ledger = new AccountLedger(store, accounts, kernel);
  const credentials = new PlatformCredentials(store, accounts, kernel);
  const { suspended } = kernel.scheduler;
  suspended.load(store.suspended().map(({ ref }) => ref));
  const shared = { ...kernel, ...settings, ...deps, store, accounts, ledger, credentials, suspended };
  const removal = new AccountRemoval(shared);
  const exports = new AccountExports(shared);
  const serviceDeps = { ...shared, removal, exports };
  const service = new AccountService(serviceDeps);
  registerMonthlyGrant(kernel.scheduler, serviceDeps);
  return {
    authenticator: credentials,
    keyNames: credentials,
    charger: ledger,
    countCredits: (operations) => ledger.countCredits(operations),
    parts: [
      { name: "Signup", description: "Create your own account, if the operator has opened signup." },
      {
        name: "Operator",
        description:
          "Accounts, the server itself and the test clock. For keys of the operator's account only.",
      },
    ],
    alsoCalled: { accounts: ["users"], signup: ["register", "sign-up"] },
    routes: (api) => accountRoutes(api, service, ledger, { ...settings, clock: kernel.clock }),
    exportedTables: () => exports.tables,
    stop: () => removal.stop(),
    signingKey: (accountRef) => credentials.signingKey(accounts.get(accountRef)),
    account: (accountRef) => accounts.get(accountRef),
    refOfUser: store.refOfUser,
    refOf: (name) => {
      if (name === null) return store.firstRef();
      return name.includes("@") ? store.refOfEmail(name.toLowerCase()) : store.refOfUser(name);
    },
    setDefaultProject: (tx, accountRef, defaultProject) =>
      accounts.change(tx, accounts.get(accountRef), { defaultProject }),
    ...operatorAccess(service, serviceDeps),
  };
}

/** The operator's account. */
export interface Operator {
  readonly userId: string;
  /** Its key until it has been shown; then null. */
  readonly key: string | null;
}

/** E-mail address of the operator's account if none is configured. */
const OPERATOR_EMAIL = "operator@localhost";

type OperatorAccess = ReturnType<typeof operatorAccess>;

/** Access of the process to the operator's account, which is the first one that was created. */
function operatorAccess(service: AccountService, deps: AccountServiceDeps) {
  const { store, accounts, credentials, writer } = deps;
  const operatorAccount = () => accounts.get(store.firstRef());
  return {
    /**
     * The operator's account. The first start creates it, with the given key or a new one. The result contains the key
     * until it has been shown: it is new, or an earlier start stopped before `markOperatorAnnounced`. Every start sets the
     * configured e-mail address.
     *
     * @throws StartupError when another account has that address.
     */
    operator: async (givenKey: string | null, email: string | null): Promise<Operator> => {
      if (store.firstRef() === 0) {
        await writer.submit((tx) => {
          const terms = { email: email ?? OPERATOR_EMAIL, tier: "unlimited" } as const;
          const { account } = service.create(tx, terms, givenKey ?? undefined);
          // A given key is known already.
          if (givenKey === null) store.setUnannouncedOperator(tx, account.ref);
        });
      }
      const account = operatorAccount();
      if (email !== null && email !== account.email) await setOperatorEmail(service, deps, account, email);
      const unannounced = store.unannouncedOperator() === account.ref;
      return { userId: account.userId, key: unannounced ? credentials.signingKey(account) : null };
    },
    /**
     * The operator's newest platform key, for commands that work on a stopped server's folder; one for this process alone if a
     * restore without the master key has removed its text.
     */
    operatorKey: () => credentials.signingKey(operatorAccount()) ?? credentials.temporary(operatorAccount()),
    /** Records that the operator's key has been shown: later starts do not show it. */
    markOperatorAnnounced: async () => {
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
    throw new StartupError(
      `operator_email: another account has the address ${email}. Configure a different one.`,
    );
  }
}

/** Accounts granted in one unit of work: a few milliseconds, so that requests run in between. */
const GRANT_SLICE = 200;

/** Registers the monthly grant: once a month, each balance below its tier's monthly credits is raised to them. */
function registerMonthlyGrant(scheduler: Scheduler, deps: AccountServiceDeps): void {
  const { writer, store, accounts, ledger, tiers } = deps;
  scheduler.recurring("accounts.monthly-grant", "0 0 1 * *", async () => {
    let after = 0;
    const grantSlice = (tx: Tx): number => {
      const month = monthOf(tx.now);
      const rows = store.refsWithoutGrant(after, month, GRANT_SLICE);
      for (const { ref } of rows) {
        const account = accounts.get(ref);
        // The month is stored with the grant: a job that runs again after a crash grants no account twice.
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
