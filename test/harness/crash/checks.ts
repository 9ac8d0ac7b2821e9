import type { HttpResponse } from "../processes/connection.ts";
import { ChangeLog, entriesSince } from "./changes.ts";
import { sumOf } from "./meters.ts";
import type { Random } from "./random.ts";
import { inParallel } from "./target.ts";
import {
  bodyOf,
  createAccount,
  type Tally,
  type Target,
  type TargetRequest,
  type Workload,
} from "./workload.ts";

const CUSTOMERS = 20;
/** Credits and uses of a customer: more than any run uses. */
const PLENTY = 1_000_000_000_000;
/** More than any customer ever has: such a check is always denied. */
const OVERDRAW = 2 * PLENTY;
const READERS = 8;

interface Customer {
  readonly id: string;
  readonly log: ChangeLog;
  keyId: string;
  secret: string;
  verifiedThrough: number;
  /** Deductions seen in the meter's ledger. */
  deducted: number;
}

/**
 * Checks that deduct credits and take a use, also denied ones, with and without Idempotency-Keys, some sent twice
 * concurrently. Credits and uses are taken together: each deduction corresponds to one use.
 */
export class CheckWorkload implements Workload {
  readonly name = "checks";
  readonly weight = 6;
  private readonly customers: readonly Customer[];
  private key = "";
  private checks = 0;

  constructor(customers = CUSTOMERS) {
    this.customers = Array.from({ length: customers }, (_, index) => {
      const id = `customer-${index}`;
      return { id, log: new ChangeLog(id), keyId: "", secret: "", verifiedThrough: 0, deducted: 0 };
    });
  }

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "checks@example.com", PLENTY);
    for (const customer of this.customers) {
      await target.ask(this.post(`/v1/meter/${customer.id}/refill`, { amount: PLENTY }));
      const terms = { prefix: "acme", name: customer.id, scopes: ["x"], owner_id: customer.id };
      const created = await target.ask(this.post("/v1/keys", { ...terms, uses: { remaining: PLENTY } }));
      const { key_id, secret } = bodyOf(created);
      if (created.status !== 201) throw new Error(`no key: ${created.text}`);
      Object.assign(customer, { keyId: String(key_id), secret: String(secret) });
      const [newest] = await this.entriesOf(target, customer);
      customer.verifiedThrough = newest?.sequence ?? 0;
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const { id, log, secret } = random.pick(this.customers);
    this.checks += 1;
    const isDenied = random.chance(0.1);
    // A denial is not stored: its repeat is a new check.
    const keyed = !isDenied && random.chance(0.4);
    const number = isDenied ? OVERDRAW + this.checks : this.checks;
    const request: TargetRequest = {
      ...this.post("/v1/check", { secret, deduct: { amount: number } }),
      ...(keyed ? { idempotencyKey: `${id}-${number}` } : {}),
    };
    await log.make(translated(target), { kind: "deduct", number, request }, keyed && random.chance(0.15));
  }

  async verify(target: Target): Promise<string[]> {
    const found = await inParallel(this.customers, READERS, (customer) =>
      this.verifyCustomer(target, customer).catch((error: unknown) => [`${customer.id}: ${String(error)}`]),
    );
    return found.flat();
  }

  takeTally(): Tally {
    return sumOf(this.customers.map(({ log }) => log.takeTally()));
  }

  private async verifyCustomer(target: Target, customer: Customer): Promise<string[]> {
    await customer.log.retry(translated(target));
    const entries = await this.entriesOf(target, customer);
    const problems = customer.log.compare(entries);
    customer.verifiedThrough = entries[0]?.sequence ?? customer.verifiedThrough;
    customer.deducted += entries.length;
    const response = await target.ask({ method: "GET", path: `/v1/keys/${customer.keyId}`, key: this.key });
    const { remaining } = bodyOf(response)["uses"] as { remaining: number };
    if (remaining !== PLENTY - customer.deducted) {
      problems.push(
        `${customer.id}: ${PLENTY - remaining} uses were taken, and credits ${customer.deducted} times`,
      );
    }
    return problems;
  }

  private entriesOf(target: Target, { id, verifiedThrough }: Customer) {
    return entriesSince(target, `/v1/meter/${id}/history`, this.key, verifiedThrough);
  }

  private post(path: string, body: object): TargetRequest {
    return { method: "POST", path, key: this.key, body };
  }
}

/** A target whose checks are acknowledged like deductions: with the balance, or 402. */
function translated(target: Target): Target {
  return {
    operatorKey: target.operatorKey,
    folder: target.folder,
    send: async (request) => {
      const response = await target.send(request);
      return response && asDeduction(response);
    },
    ask: async (request) => asDeduction(await target.ask(request)),
  };
}

function asDeduction(response: HttpResponse): HttpResponse {
  if (response.status !== 200) return response;
  const { allowed, meter } = bodyOf(response) as { allowed?: boolean; meter?: { balance: number } };
  return { ...response, status: allowed === true ? 200 : 402, text: JSON.stringify(meter ?? {}) };
}
