import { type Answer, Client } from "../../support/client.ts";
import { readLedger } from "../../support/ledger.ts";

/** Size of a run. */
export interface ExactSize {
  readonly clients: number;
  /** Deductions of 1, each with its own `Idempotency-Key`. */
  readonly deducts: number;
  /** Initial balance of the meter. */
  readonly balance: number;
}

/** Result of a run. */
export interface ExactResult {
  /** Deductions with the response 200. */
  readonly succeeded: number;
  /** Deductions with the response 402. */
  readonly rejected: number;
  /** Deductions with another response, or with different responses when repeated. */
  readonly wrong: readonly string[];
  /** All requests, including copies and repetitions. */
  readonly requests: number;
  /** Requests that were repeated because their connection was closed before the response. */
  readonly cut: number;
  readonly balanceAfter: number;
  /** Deductions in the meter's ledger. */
  readonly ledgerDeducts: number;
  readonly seconds: number;
}

const METER = "/v1/meter/exact";

/** Disturbances of deductions: of ten, one each is sent twice concurrently, cut off, and repeated later. */
const FATES = ["twice", "cut", "repeated", "once", "once", "once", "once", "once", "once", "once"] as const;
/** Maximum time before a connection is closed, similar to the response time, so that some are closed before and some after the response. */
const CUT_AFTER_MS_MAX = 4;
/** Number of times that a deduction is cut off. */
const CUTS_MAX = 3;

/**
 * Deducts from one meter with many concurrent clients over unreliable connections, and counts the results.
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
  readonly counts = { succeeded: 0, rejected: 0, requests: 0, cut: 0 };
  readonly wrong: string[] = [];
  private readonly client: Client;

  constructor(client: Client) {
    this.client = client;
  }

  /** Sends one deduction until it has a response. */
  async deduct(index: number): Promise<void> {
    const fate = FATES[index % FATES.length];
    if (fate === "cut") await this.sendAndCut(index);
    const responses = await Promise.all(
      Array.from({ length: fate === "twice" ? 2 : 1 }, () => this.send(index)),
    );
    if (fate === "repeated") responses.push(await this.send(index));
    const [first] = responses;
    const texts = new Set(responses.map(({ status, text }) => `${status} ${text}`));
    if (texts.size > 1) this.wrong.push(`deduction ${index}: ${[...texts].join(" and ")}`);
    if (first?.status === 200) this.counts.succeeded += 1;
    else if (first?.status === 402) this.counts.rejected += 1;
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
