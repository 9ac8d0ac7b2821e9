import type { ManualClock } from "../../kernel/clock.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Authenticator, CallerAccount, CallerProject, Charger } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { LedgerPage } from "../../kernel/ledger-entry.ts";
import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import type { Tiers } from "../../kernel/tiers.ts";
import { PlatformCredentials } from "./credentials.ts";
import { CreditCounts } from "./credit-counts.ts";
import type { SignupMode } from "./domain.ts";
import { registerMonthlyGrant } from "./jobs.ts";
import { AccountLedger } from "./ledger.ts";
import type { DefaultProjects } from "./ports.ts";
import { Accounts } from "./registry.ts";
import { accountRoutes } from "./routes.ts";
import { AccountService } from "./service.ts";
import { AccountStore } from "./store.ts";

/** What the operator settles about accounts. */
export interface AccountSettings {
  readonly signup: SignupMode;
  readonly rotationGraceMs: number;
  readonly tiers: Tiers;
  /** Set when the server runs on a test clock: then it can be advanced by the operator. */
  readonly testClock: ManualClock | null;
}

/** What accounts offer to the rest of the house. */
export interface AccountsArea extends ApiArea {
  readonly authenticator: Authenticator;
  readonly charger: Charger;
  /** Says which operations cost credits: what they cost is counted from then on, also while it is nothing. */
  readonly countCredits: (operations: readonly { readonly name: string }[]) => void;
  readonly ownBalance: OwnBalance;
  /** The account's newest platform key: deliveries are signed with it. */
  readonly signingKey: (accountRef: number) => string;
  /** An account, live. Ask again once it is `passivated`. */
  readonly account: (accountRef: number) => LiveAccount;
  /** Tells accounts that another project is the default one now. */
  readonly setDefaultProject: (tx: Tx, accountRef: number, project: CallerProject) => void;
  /**
   * The operator's account, made at the first start with the given key or a new one. The key comes along when it
   * is to be told: it is new, or an earlier start ended before it was {@link operatorAnnounced}.
   */
  readonly operator: (givenKey: string | null) => Promise<Operator>;
  /** The operator's newest platform key, for commands that work on a stopped server's folder. */
  readonly operatorKey: () => string;
  /** Notes that the operator's key has been told: no later start tells it. */
  readonly operatorAnnounced: () => Promise<void>;
}

/** The operator's account. */
export interface Operator {
  readonly userId: string;
  /** Its key, when nobody has been told it yet. */
  readonly key: string | null;
}

/** An account in memory. */
export interface LiveAccount extends CallerAccount {
  readonly email: string;
  readonly defaultProject: CallerProject;
  /** Set when it has left the memory: from then on it is no longer kept up to date. */
  readonly passivated: boolean;
}

/** The own balance, for the endpoints that change it. */
export interface OwnBalance {
  read(accountRef: number): { balance: number; user_id: string };
  deduct(tx: Tx, accountRef: number, amount: number, requestId: string): { balance: number; user_id: string };
  refill(tx: Tx, accountRef: number, amount: number, requestId: string): { balance: number; user_id: string };
  history(accountRef: number, limit: number, cursor: string | undefined): LedgerPage;
}

/** The e-mail address on the operator's account. */
const OPERATOR_EMAIL = "operator@localhost";

/** Builds the area: accounts, their keys as credentials, their balances. */
export function createAccounts(
  kernel: Kernel,
  settings: AccountSettings,
  ports: { projects: DefaultProjects; outbox: Outbox },
): AccountsArea {
  const { db, writer, clock, ids, vault, scheduler, metrics } = kernel;
  const { projects, outbox } = ports;
  const store = new AccountStore(db);
  const accounts = new Accounts(store, projects);
  const counts = new CreditCounts(metrics);
  const ledger = new AccountLedger(store, accounts, writer, counts);
  const credentials = new PlatformCredentials({ store, accounts, vault, ids, clock });
  const { tiers, signup, rotationGraceMs, testClock } = settings;
  const service = new AccountService({
    store,
    accounts,
    ledger,
    credentials,
    projects,
    writer,
    ids,
    outbox,
    tiers,
    signup,
    rotationGraceMs,
  });
  registerMonthlyGrant({ scheduler, writer, store, accounts, ledger, tiers });
  return {
    authenticator: credentials,
    charger: ledger,
    countCredits: (operations) => {
      for (const { name } of operations) counts.of(name);
    },
    ownBalance: ownBalanceOf(accounts, ledger),
    parts: [
      { name: "Signup", description: "Where the operator has opened it: an account of one's own." },
      {
        name: "Operator",
        description: "Accounts and the test clock. For keys of the operator's account only.",
      },
    ],
    routes: (api) => accountRoutes(api, service, { signup, clock, testClock }),
    signingKey: (accountRef) => credentials.signingKey(accounts.get(accountRef)),
    account: (accountRef) => accounts.get(accountRef),
    setDefaultProject: (tx, accountRef, project) => setDefaultProject(tx, accounts, accountRef, project),
    operator: (givenKey) => findOperator({ store, accounts, credentials, service, writer }, givenKey),
    operatorKey: () => credentials.signingKey(accounts.get(store.firstAccount())),
    operatorAnnounced: () => writer.submit((tx) => store.clearUnannouncedOperator(tx)),
  };
}

async function findOperator(
  parts: {
    store: AccountStore;
    accounts: Accounts;
    credentials: PlatformCredentials;
    service: AccountService;
    writer: Writer;
  },
  givenKey: string | null,
): Promise<Operator> {
  const { store, accounts, credentials, service, writer } = parts;
  if (store.firstAccount() === 0) {
    await writer.submit((tx) => {
      const key = givenKey === null ? {} : { key: givenKey };
      const { account } = service.create(tx, { email: OPERATOR_EMAIL, tier: "unlimited", ...key });
      // Whoever handed a key in knows it.
      if (givenKey === null) store.setUnannouncedOperator(tx, account.ref);
      return null;
    });
  }
  // The operator's account is the first that was ever made.
  const account = accounts.get(store.firstAccount());
  const untold = store.unannouncedOperator() === account.ref;
  return { userId: account.userId, key: untold ? credentials.signingKey(account) : null };
}

function ownBalanceOf(accounts: Accounts, ledger: AccountLedger): OwnBalance {
  const view = (ref: number) => {
    const { balance, userId } = accounts.get(ref);
    return { balance, user_id: userId };
  };
  return {
    read: view,
    deduct(tx, ref, amount, requestId) {
      ledger.deduct(tx, accounts.get(ref), amount, requestId);
      return view(ref);
    },
    refill(tx, ref, amount, requestId) {
      ledger.refill(tx, accounts.get(ref), amount, requestId);
      return view(ref);
    },
    history: (ref, limit, cursor) => ledger.history(ref, limit, cursor),
  };
}

function setDefaultProject(tx: Tx, accounts: Accounts, accountRef: number, project: CallerProject): void {
  const account = accounts.get(accountRef);
  const before = account.defaultProject;
  accounts.touch(account);
  account.defaultProject = project;
  tx.onRollback(() => {
    account.defaultProject = before;
  });
}
