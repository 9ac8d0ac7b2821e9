import { type Answer, Client } from "../../support/client.ts";
import { readLedger } from "../../support/ledger.ts";

/** How much is deducted, by how many, from what. */
export interface ExactSize {
  readonly clients: number;
  /** Deductions of 1, each under an `Idempotency-Key` of its own. */
  readonly deducts: number;
  /** What the meter holds at first. */
  readonly balance: number;
}

/** What came of it. */
export interface ExactResult {
  /** Deductions that were answered 200. */
  readonly succeeded: number;
  /** Deductions that were answered 402. */
  readonly refused: number;
  /** Deductions that were answered otherwise, or differently when they were sent again. */
  readonly wrong: readonly string[];
  /** Requests sent in all, copies and repeats included. */
  readonly requests: number;
  /** Requests whose connection was cut before their answer, so that they had to be sent again. */
  readonly cut: number;
  readonly balanceAfter: number;
  /** Deductions in the meter's ledger. */
  readonly ledgerDeducts: number;
  readonly seconds: number;
}

const METER = "/v1/meter/exact";

/** What befalls a deduction on its way: of ten, one each is sent twice at once, cut off, and repeated afterwards. */
const FATES = ["twice", "cut", "repeated", "once", "once", "once", "once", "once", "once", "once"] as const;
/** Longest time before a connection is cut: about what an answer takes, so that some are cut before and some after. */
const CUT_AFTER_MS_MAX = 4;
/** Times that a deduction is cut before it is let through. */
const CUTS_MAX = 3;

/**
 * Deducts from one meter with many clients at once, over connections that break, and counts what came of it.
 * The key must be that of an account without rate limit; the meter must not exist.
 */
export async function runExact(url: string, key: string, size: ExactSize): Promise<ExactResult> {
  const client = new Client(url, key);
  const reset = await client.post(`${METER}/reset`, { balance: size.balance });
  if (reset.status !== 200) throw new Error(`the meter could not be filled: ${reset.text}`);
  const run = new Run(client);
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: size.clients }, async (_, first) => {
      for (let index = first; index < size.deducts; index += size.clients) await run.deduct(index);
    }),
  );
  const seconds = (performance.now() - begun) / 1000;
  const { body } = await client.get(`${METER}/balance`);
  const ledger = await readLedger(client, `${METER}/history`);
  return {
    ...run.counts,
    wrong: run.wrong,
    balanceAfter: Number(body.balance),
    ledgerDeducts: ledger.filter(({ kind, amount }) => kind === "deduct" && amount === -1).length,
    seconds,
  };
}

class Run {
  readonly counts = { succeeded: 0, refused: 0, requests: 0, cut: 0 };
  readonly wrong: string[] = [];
  private readonly client: Client;

  constructor(client: Client) {
    this.client = client;
  }

  /** One deduction, sent until it is answered. */
  async deduct(index: number): Promise<void> {
    const fate = FATES[index % FATES.length];
    if (fate === "cut") await this.sendAndCut(index);
    const answers = await Promise.all(
      Array.from({ length: fate === "twice" ? 2 : 1 }, () => this.send(index)),
    );
    if (fate === "repeated") answers.push(await this.send(index));
    const [first] = answers;
    const texts = new Set(answers.map(({ status, text }) => `${status} ${text}`));
    if (texts.size > 1) this.wrong.push(`deduction ${index}: ${[...texts].join(" and ")}`);
    if (first?.status === 200) this.counts.succeeded += 1;
    else if (first?.status === 402) this.counts.refused += 1;
    else this.wrong.push(`deduction ${index}: ${first?.status} ${first?.text}`);
  }

  private send(index: number, signal?: AbortSignal): Promise<Answer> {
    this.counts.requests += 1;
    const headers = { "idempotency-key": `exact-${index}` };
    return this.client.post(`${METER}/deduct`, { amount: 1 }, { headers, ...(signal && { signal }) });
  }

  private async sendAndCut(index: number): Promise<void> {
    for (let cuts = 0; cuts < CUTS_MAX; cuts += 1) {
      try {
        await this.send(index, AbortSignal.timeout(Math.ceil(Math.random() * CUT_AFTER_MS_MAX)));
      } catch {
        this.counts.cut += 1;
      }
    }
  }
}
