import { IN_MEMORY_MS_MAX } from "../../../src/kernel/storage/writer.ts";
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

const ACCOUNTS = 3;
const CREDITS = 1_000_000_000;
const FLAG = "/v1/gate";
/** Probability of a change instead of a read. The change is free of charge, and its commit writes earlier charges. */
const CHANGES = 0.05;

interface Reader {
  readonly email: string;
  key: string;
  /** Charges of the account at the last verification. */
  paid: number;
  /** Times of the responses to its reads since then. */
  respondedAt: number[];
  inDoubt: number;
}

/**
 * Metered reads, whose charges are in memory when they are acknowledged. A crash can waive those of the last second that
 * no commit has followed, but no earlier ones, and none is charged twice.
 */
export class ReadWorkload extends Recorded implements Workload {
  readonly name = "reads";
  readonly weight = 6;
  /** Charges that crashes have waived so far. */
  forgiven = 0;
  private readonly readers: readonly Reader[];
  /** Reads acknowledged before this time must have been charged. */
  private writtenUntil = Number.NEGATIVE_INFINITY;

  /** `changes`: probability of a change. */
  constructor(private readonly changes = CHANGES) {
    super();
    this.readers = Array.from({ length: ACCOUNTS }, (_, index) => {
      return { email: `reads-${index}@example.com`, key: "", paid: 0, respondedAt: [], inDoubt: 0 };
    });
  }

  async prepare(target: Target): Promise<void> {
    for (const reader of this.readers) {
      reader.key = await createAccount(target, reader.email, CREDITS);
      await target.ask(saveOf(reader));
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const reader = random.pick(this.readers);
    if (random.chance(this.changes)) return this.change(target, reader);
    const sentAt = performance.now();
    // A 404 is charged as well.
    const path = random.chance(0.2) ? `${FLAG}/absent` : `${FLAG}/there`;
    const response = await target.send({ method: "GET", path, key: reader.key });
    if (response === null) {
      reader.inDoubt += 1;
      this.counts.inDoubt += 1;
    } else if (response.status !== UNAVAILABLE) {
      reader.respondedAt.push(performance.now());
      this.counts.acknowledged += 1;
      // It was charged after it was sent, when no charge was too old.
      this.written(sentAt - IN_MEMORY_MS_MAX);
    }
  }

  async verify(target: Target): Promise<string[]> {
    const problems: string[] = [];
    for (const reader of this.readers) problems.push(...(await this.verifyReader(target, reader)));
    this.writtenUntil = Number.NEGATIVE_INFINITY;
    return problems;
  }

  private async change(target: Target, reader: Reader): Promise<void> {
    const sentAt = performance.now();
    const response = await target.send(saveOf(reader));
    if (response === null) this.counts.inDoubt += 1;
    else if (response.status !== UNAVAILABLE) {
      this.counts.acknowledged += 1;
      this.written(sentAt);
    }
  }

  private written(until: number): void {
    this.writtenUntil = Math.max(this.writtenUntil, until);
  }

  private async verifyReader(target: Target, reader: Reader): Promise<string[]> {
    const { email, key, respondedAt, inDoubt } = reader;
    const { balance } = bodyOf(await target.ask({ method: "GET", path: "/v1/meter/balance", key }));
    const paid = CREDITS - Number(balance);
    const since = paid - reader.paid;
    const least = respondedAt.filter((at) => at < this.writtenUntil).length;
    const most = respondedAt.length + inDoubt;
    this.counts.happened += Math.max(0, since - respondedAt.length);
    this.forgiven += Math.max(0, respondedAt.length - since);
    Object.assign(reader, { paid, respondedAt: [], inDoubt: 0 });
    if (since >= least && since <= most) return [];
    return [`${email}: ${since} reads were paid for, ${least} to ${most} would be right`];
  }
}

function saveOf({ key }: Reader): TargetRequest {
  return { method: "POST", path: FLAG, key, body: { flag_key: "there", enabled: true } };
}
