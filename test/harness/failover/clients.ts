import { Ninefold, NinefoldError } from "../../../src/client/index.ts";

/** An attempt at a node that hangs ends after this: it adds to the interruption that is measured. */
const ATTEMPT_MS = 250;
const RETRY_MS = 50;
const CREDITS = 1_000_000_000;
const LOCK = "failover";
const LOCK_TTL_MS = 2_000;
const LOCK_WAIT_MS = 1_000;

/** What went wrong. */
export interface Findings {
  lost: number;
  doubled: number;
  staleReads: number;
  fencing: number;
  /** Responses while the engine had no quorum: to changes, and to reads after the lease. */
  withoutQuorum: number;
  /** Nodes that kept a change that the log does not have. */
  unnoticed: number;
  readonly problems: string[];
}

/** What all clients have done together. */
export class Journal {
  acknowledged = 0;
  reads = 0;
  locks = 0;
  readonly findings: Findings = {
    lost: 0,
    doubled: 0,
    staleReads: 0,
    fencing: 0,
    withoutQuorum: 0,
    unnoticed: 0,
    problems: [],
  };
  /** When the newest of the changes was sent that are acknowledged. */
  newestSent = 0;
  private inFlight = 0;
  private isOpen: Promise<void> = Promise.resolve();
  /** Highest fencing token that was given to anybody. */
  fencingMax = 0;
  private waiting: { readonly since: number; readonly resolve: (ms: number) => void } | null = null;

  /** Resolves to the time until a change is acknowledged that was sent from now on. */
  nextAcknowledged(): Promise<number> {
    return new Promise((resolve) => {
      this.waiting = { since: performance.now(), resolve };
    });
  }

  report(kind: "withoutQuorum" | "unnoticed", count: number, problem: string): void {
    this.findings[kind] += count;
    this.findings.problems.push(problem);
  }

  /** Lets no change begin until the returned function is called. Resolves when none is in flight. */
  async hold(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.isOpen = promise;
    while (this.inFlight > 0) await Bun.sleep(1);
    return resolve;
  }

  /** Runs a change when none is held back. */
  async during<T>(change: () => Promise<T>): Promise<T> {
    await this.isOpen;
    this.inFlight += 1;
    try {
      return await change();
    } finally {
      this.inFlight -= 1;
    }
  }

  acknowledge(sentAt: number): void {
    this.acknowledged += 1;
    this.newestSent = Math.max(this.newestSent, sentAt);
    if (this.waiting === null || sentAt < this.waiting.since) return;
    this.waiting.resolve(performance.now() - this.waiting.since);
    this.waiting = null;
  }
}

/** One client with an account, a meter and a chain of its own. It does one thing after another. */
export class FailoverClient {
  private readonly nf: Ninefold;
  /** Those that all clients compete for. */
  private readonly locks: Ninefold["locks"];
  /** Each node alone: what it answers, though it may not lead. */
  private readonly direct: readonly Ninefold[];
  private deducted = 0;
  private logged = 0;
  private readonly receipts: {
    readonly sequenceId: string;
    readonly number: number;
    readonly signature: string;
  }[] = [];

  private constructor(
    private readonly name: string,
    private readonly journal: Journal,
    urls: readonly string[],
    apiKey: string,
    locksKey: string,
  ) {
    const options = { apiKey, retries: 0, timeoutMs: ATTEMPT_MS };
    this.locks = new Ninefold({ ...options, apiKey: locksKey, url: urls }).locks;
    this.nf = new Ninefold({ ...options, url: urls });
    this.direct = urls.map((url) => new Ninefold({ ...options, url }));
  }

  static async create(
    name: string,
    journal: Journal,
    urls: readonly string[],
    operator: Ninefold,
    locksKey: string,
  ): Promise<FailoverClient> {
    const client = new FailoverClient(name, journal, urls, await createAccount(operator, name), locksKey);
    await untilDone(() => client.meter.refill(CREDITS, { idempotencyKey: "fill" }));
    await untilDone(() => client.nf.notary.init({}, { idempotencyKey: "init" }));
    return client;
  }

  /** Works until it is enough. */
  async run(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      await this.deduct();
      await this.read();
      await this.log();
      await this.lock();
    }
  }

  /** Compares what is there at the end with what was acknowledged. */
  async verify(): Promise<void> {
    const { findings } = this.journal;
    const { balance } = await untilDone(() => this.meter.balance());
    this.compare(balance, "at the end");
    for (const { sequenceId, number, signature } of this.receipts) {
      const found = await untilDone(() => this.nf.notary.receipts.get(sequenceId));
      if (found.signature === signature && found.log?.["number"] === number) continue;
      findings.lost += 1;
      findings.problems.push(`${this.name}: receipt ${sequenceId} is not the one that was returned`);
    }
    const all = await untilDone(() => Array.fromAsync(this.nf.notary.receipts.list()));
    const size = all.length;
    if (size === this.logged) return;
    findings.doubled += Math.max(0, size - this.logged);
    findings.lost += Math.max(0, this.logged - size);
    findings.problems.push(`${this.name}: the chain has ${size} receipts instead of ${this.logged}`);
  }

  private get meter() {
    return this.nf.meter(this.name);
  }

  private async deduct(): Promise<void> {
    const idempotencyKey = `deduct-${this.deducted + 1}`;
    const { balance } = await this.change(() => this.meter.deduct(1, { idempotencyKey }));
    this.deducted += 1;
    this.compare(balance, `after deduct ${this.deducted}`);
  }

  private compare(balance: number, when: string): void {
    const { findings } = this.journal;
    const expected = CREDITS - this.deducted;
    if (balance === expected) return;
    if (balance > expected) findings.lost += 1;
    else findings.doubled += 1;
    findings.problems.push(`${this.name}: balance ${balance} instead of ${expected} ${when}`);
  }

  /** How many nodes respond to a read now. */
  async responding(): Promise<number> {
    const balances = await this.balances();
    return balances.filter((balance) => balance !== null).length;
  }

  /** Requests the balance of every node: whoever responds must know everything that was acknowledged. */
  private async read(): Promise<void> {
    const { journal } = this;
    const expected = CREDITS - this.deducted;
    const balances = await this.balances();
    for (const balance of balances) {
      if (balance === null) continue;
      journal.reads += 1;
      if (balance === expected) continue;
      journal.findings.staleReads += 1;
      journal.findings.problems.push(`${this.name}: read ${balance} instead of ${expected}`);
    }
  }

  /** Of each node; null for one that does not respond. */
  private balances(): Promise<(number | null)[]> {
    return Promise.all(
      this.direct.map((node) =>
        node
          .meter(this.name)
          .balance()
          .then(({ balance }) => balance)
          .catch(() => null),
      ),
    );
  }

  private async log(): Promise<void> {
    const number = this.logged + 1;
    const receipt = await this.change(() =>
      this.nf.notary.log({ number }, { idempotencyKey: `log-${number}` }),
    );
    this.logged = number;
    this.receipts.push({ sequenceId: receipt.sequence_id, number, signature: receipt.signature });
    if (Number(receipt.sequence_id) === number) return;
    this.journal.findings.problems.push(`${this.name}: log ${number} became receipt ${receipt.sequence_id}`);
    this.journal.findings.doubled += 1;
  }

  private async lock(): Promise<void> {
    const { journal } = this;
    const before = journal.fencingMax;
    const token = crypto.randomUUID();
    const held = await journal
      .during(() => this.locks.acquire(LOCK, { token, ttlMs: LOCK_TTL_MS, waitMs: LOCK_WAIT_MS }))
      .catch((error: unknown) => {
        // Another client has it, or there is no leader now.
        if (error instanceof NinefoldError && (error.code === "timeout" || mayPass(error))) return null;
        throw error;
      });
    if (held === null) return;
    journal.locks += 1;
    this.checkFencing(held.fencing_token, before);
    // If the release is lost, the lock expires.
    await journal.during(() => this.locks.release(LOCK, token)).catch(() => undefined);
  }

  private checkFencing(fencing: number, before: number): void {
    const { journal } = this;
    if (fencing <= before) {
      journal.findings.fencing += 1;
      journal.findings.problems.push(`${this.name}: fencing token ${fencing} after ${before}`);
    }
    journal.fencingMax = Math.max(journal.fencingMax, fencing);
  }

  private change<T>(send: () => Promise<T>): Promise<T> {
    return this.journal.during(async () => {
      let sentAt = 0;
      const result = await untilDone(() => {
        sentAt = performance.now();
        return send();
      });
      this.journal.acknowledge(sentAt);
      return result;
    });
  }
}

/** Creates an account that meets no limit. Resolves to its key. */
export async function createAccount(operator: Ninefold, name: string): Promise<string> {
  const terms = { email: `${name}@example.com`, tier: "scale", balance: CREDITS } as const;
  const account = await untilDone(() => operator.admin.accounts.create(terms, { idempotencyKey: name }));
  return account.api_key;
}

/** Repeats a request until it is acknowledged. @throws NinefoldError for an error that a retry does not change. */
async function untilDone<T>(send: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof NinefoldError) || !mayPass(error)) throw error;
      await Bun.sleep(RETRY_MS);
    }
  }
}

function mayPass({ status, code, retryAfterMs }: NinefoldError): boolean {
  return status === 0 || status >= 500 || status === 429 || (code === "conflict" && retryAfterMs !== null);
}
