import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  Recorded,
  type Target,
  type TargetRequest,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const KEYS = 30;
/** More than any run uses. */
const USES = 1_000_000_000_000;
const CREDITS = 1_000_000_000;
/** Costs are powers of two below this one, in turn: a sum shows which of those in doubt have happened. */
const COST_BITS = 20;

interface Pending {
  readonly request: TargetRequest;
  readonly cost: number;
}

interface LimitedKey {
  readonly id: string;
  readonly secret: string;
  /** Costs of all uses with a response. */
  taken: number;
  turn: number;
  /** Uses without a response. */
  inDoubt: Pending[];
  /** Remaining uses according to responses, which must be unique. */
  readonly said: Set<number>;
}

/** Verifications of keys with limited uses: no acknowledged use is lost, and none is taken twice. */
export class KeyUsesWorkload extends Recorded implements Workload {
  readonly name = "uses of keys";
  readonly weight = 6;
  private key = "";
  private keys: LimitedKey[] = [];
  private requests = 0;

  constructor(private readonly count = KEYS) {
    super();
  }

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "key-uses@example.com", CREDITS);
    const terms = { prefix: "acme", scopes: ["orders:read"], uses: { remaining: USES } };
    for (let number = 0; number < this.count; number += 1) {
      const body = { ...terms, name: `Key ${number}` };
      const created = bodyOf(await target.ask({ method: "POST", path: "/v1/keys", key: this.key, body }));
      const { key_id, secret } = created;
      this.keys.push({
        id: String(key_id),
        secret: String(secret),
        taken: 0,
        turn: 0,
        inDoubt: [],
        said: new Set(),
      });
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const of = random.pick(this.keys);
    const cost = 2 ** (of.turn++ % COST_BITS);
    this.requests += 1;
    const request: TargetRequest = {
      method: "POST",
      path: "/v1/keys/verify",
      key: this.key,
      body: { secret: of.secret, cost },
      ...(random.chance(0.3) ? { idempotencyKey: `use-${this.requests}` } : {}),
    };
    const isTwice = request.idempotencyKey !== undefined && random.chance(0.2);
    const responses = await Promise.all((isTwice ? [1, 2] : [1]).map(() => target.send(request)));
    const statuses = responses.map((response) => response?.status ?? null);
    const success = responses.find((response) => response?.status === 200);
    if (success) this.note(of, cost, bodyOf(success));
    else if (statuses.includes(null)) {
      this.counts.inDoubt += 1;
      of.inDoubt.push({ request, cost });
    } else if (!statuses.every((status) => status === UNAVAILABLE)) {
      this.problems.push(`${of.id}: unexpected responses ${statuses.join(", ")}`);
    }
  }

  async verify(target: Target): Promise<string[]> {
    for (const of of this.keys) await this.verifyKey(target, of);
    return this.problems.splice(0);
  }

  private note(of: LimitedKey, cost: number, { valid, uses_remaining }: Record<string, unknown>): void {
    this.counts.acknowledged += 1;
    if (valid !== true) this.problems.push(`${of.id}: a use was rejected`);
    const left = Number(uses_remaining);
    if (of.said.has(left)) this.problems.push(`${of.id}: two uses left ${left}`);
    of.said.add(left);
    of.taken += cost;
  }

  private async verifyKey(target: Target, of: LimitedKey): Promise<void> {
    // A repeat with an Idempotency-Key is safe: it happens now, or has happened.
    for (const { request, cost } of of.inDoubt.filter(
      ({ request }) => request.idempotencyKey !== undefined,
    )) {
      const response = await target.ask(request);
      if (response.headers.get("idempotent-replayed") === "true") this.counts.happened += 1;
      this.note(of, cost, bodyOf(response));
    }
    const open = of.inDoubt.filter(({ request }) => request.idempotencyKey === undefined);
    of.inDoubt = [];
    const { uses } = bodyOf(await target.ask({ method: "GET", path: `/v1/keys/${of.id}`, key: this.key }));
    const left = Number((uses as { remaining?: unknown } | null)?.remaining);
    const happened = subsetWith(
      open.map(({ cost }) => cost),
      USES - left - of.taken,
    );
    if (happened === null)
      this.problems.push(`${of.id}: ${USES - left} uses are taken, ${of.taken} were answered`);
    this.counts.happened += happened?.length ?? 0;
    of.taken = USES - left;
  }
}

/** Numbers of the list with the given sum; null if there are none. */
function subsetWith(numbers: readonly number[], sum: number): readonly number[] | null {
  if (sum === 0) return [];
  const [first, ...rest] = numbers;
  if (first === undefined || sum < 0) return null;
  const found = subsetWith(rest, sum - first);
  return found === null ? subsetWith(rest, sum) : [first, ...found];
}
