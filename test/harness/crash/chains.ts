import { ChainVerifier, verifyReceiptText } from "../../../src/verify/chain.ts";
import { type CheckpointHead, checkCheckpoint, checkConsistency } from "../../../src/verify/checkpoint.ts";
import { createNativeCrypto } from "../../../src/verify/native.ts";
import type { HttpResponse } from "../processes/connection.ts";
import type { Random } from "./random.ts";
import { inParallel } from "./target.ts";
import {
  bodyOf,
  createAccount,
  Recorded,
  type Target,
  type TargetRequest,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const CHAINS = 4;
const READERS = 4;
const CREDITS = 1_000_000_000;
/** Share of the steps that request a checkpoint. */
const CHECKPOINT_CHANCE = 0.1;
/** Share of the steps that redact a receipt. */
const REDACTION_CHANCE = 0.1;
/** Redactions of each chain that are verified again after every crash; the oldest are dropped. */
const REDACTIONS_MAX = 20;
/** Maximum of random additional bytes of a log, so that some rows use overflow pages. */
const PADDING_MAX = 3_000;

/** A sent log that is not verified yet. */
interface Sent {
  readonly number: number;
  readonly request: TargetRequest;
  /** The receipt, if it was acknowledged. */
  receipt: string | null;
}

/** A log of the workload, or one that declares a redaction. */
type LoggedLog =
  | { readonly number: number }
  | { readonly ninefold: "redacted"; readonly sequence_id: string };

/** A redaction that was requested. */
interface Redaction {
  readonly sequence: string;
  isAcknowledged: boolean;
}

/** One account's chain, as issued and as last read. */
class Chain {
  readonly name: string;
  key = "";
  open: Sent[] = [];
  readonly verifier = new ChainVerifier(createNativeCrypto());
  readonly numbers = new Set<number>();
  /** Checkpoints that were returned and are not verified yet; the last verified one first. */
  checkpoints: CheckpointHead[] = [];
  /** Positions of verified receipts with a log. */
  redactable: string[] = [];
  redactions: Redaction[] = [];
  /** Positions whose redaction the chain declares. */
  readonly declared = new Set<string>();

  constructor(name: string) {
    this.name = name;
  }
}

/**
 * Logs to several chains, redacts receipts, and requests checkpoints: after every crash each chain has no gap or fork, contains
 * every issued receipt, continues every checkpoint that was returned, and has no text whose redaction was acknowledged.
 */
export class ChainWorkload extends Recorded implements Workload {
  readonly name = "chains";
  readonly weight = 6;
  private readonly chains = Array.from({ length: CHAINS }, (_, index) => new Chain(`chain-${index}`));
  private sent = 0;

  async prepare(target: Target): Promise<void> {
    for (const chain of this.chains) {
      chain.key = await createAccount(target, `${chain.name}@example.com`, CREDITS);
      await target.ask({ method: "POST", path: "/v1/witness/sys/init", key: chain.key });
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const chain = random.pick(this.chains);
    if (random.chance(CHECKPOINT_CHANCE)) return this.takeCheckpoint(target, chain);
    if (chain.redactable.length > 0 && random.chance(REDACTION_CHANCE))
      return this.redact(target, chain, random.pick(chain.redactable));
    this.sent += 1;
    const number = this.sent;
    const log = { number, padding: "x".repeat(random.below(PADDING_MAX)) };
    const request: TargetRequest = {
      method: "POST",
      path: "/v1/witness/log",
      key: chain.key,
      body: { log },
      ...(random.chance(0.5) ? { idempotencyKey: `log-${number}` } : {}),
    };
    const sent: Sent = { number, request, receipt: null };
    chain.open.push(sent);
    const response = await target.send(request);
    if (response === null) this.counts.inDoubt += 1;
    else if (response.status === UNAVAILABLE) chain.open = chain.open.filter((stream) => stream !== sent);
    else this.acknowledge(chain, sent, response);
  }

  async verify(target: Target): Promise<string[]> {
    await inParallel(this.chains, READERS, (chain) => this.verifyChain(target, chain));
    return this.problems.splice(0);
  }

  private async verifyChain(target: Target, chain: Chain): Promise<void> {
    const before = await this.takeNew(target, chain);
    for (const sent of chain.open) {
      if (sent.receipt !== null) continue;
      if (before.has(sent.number)) this.counts.happened += 1;
      // A repeat with its key is safe, and appends only missing logs.
      if (sent.request.idempotencyKey !== undefined) {
        this.acknowledge(chain, sent, await target.ask(sent.request), false);
      }
    }
    const after = await this.takeNew(target, chain);
    for (const { number, receipt } of chain.open) {
      const listed = before.get(number) ?? after.get(number);
      if (receipt !== null && listed !== receipt)
        this.problem(chain, `receipt of log ${number} was given and is not there`);
      before.delete(number);
      after.delete(number);
    }
    for (const number of [...before.keys(), ...after.keys()])
      this.problem(chain, `log ${number} is there for no reason`);
    chain.open = [];
    await this.verifyRedactions(target, chain);
    await this.verifyCheckpoints(target, chain);
  }

  private async redact(target: Target, chain: Chain, sequence: string): Promise<void> {
    chain.redactable = chain.redactable.filter((one) => one !== sequence);
    const redaction: Redaction = { sequence, isAcknowledged: false };
    chain.redactions.push(redaction);
    const path = `/v1/witness/receipts/${sequence}/redact`;
    const response = await target.send({ method: "POST", path, key: chain.key, body: { reason: "crash" } });
    if (response === null) this.counts.inDoubt += 1;
    else if (response.status === 200) {
      this.counts.acknowledged += 1;
      redaction.isAcknowledged = true;
    } else if (response.status !== UNAVAILABLE)
      this.problem(chain, `unexpected response ${response.status} ${response.text}`);
  }

  /** A text and the receipt that declares its redaction change together. */
  private async verifyRedactions(target: Target, chain: Chain): Promise<void> {
    for (const { sequence, isAcknowledged } of chain.redactions) {
      const path = `/v1/witness/receipts/${sequence}`;
      const { text } = await target.ask({ method: "GET", path, key: chain.key });
      const { log, redacted_at } = JSON.parse(text);
      const isRedacted = log === undefined && redacted_at !== undefined;
      if (isAcknowledged && !isRedacted)
        this.problem(chain, `the redaction of receipt ${sequence} is undone`);
      if (isRedacted !== chain.declared.has(sequence))
        this.problem(chain, `receipt ${sequence}: its redaction and the chain differ`);
      const { errors = [] } = verifyReceiptText(text, createNativeCrypto()).verdict;
      for (const error of errors) this.problem(chain, `receipt ${sequence}: ${error}`);
    }
    chain.redactions = chain.redactions
      .filter((redaction) => redaction.isAcknowledged)
      .slice(-REDACTIONS_MAX);
  }

  private async takeCheckpoint(target: Target, chain: Chain): Promise<void> {
    const response = await target.send({
      method: "GET",
      path: "/v1/witness/checkpoint?format=json",
      key: chain.key,
    });
    if (response === null) this.counts.inDoubt += 1;
    else if (response.status === 200) {
      this.counts.acknowledged += 1;
      chain.checkpoints.push(bodyOf(response) as unknown as CheckpointHead);
    } else if (response.status !== UNAVAILABLE)
      this.problem(chain, `unexpected response ${response.status} ${response.text}`);
  }

  /** Two signed checkpoints are never inconsistent, whether a crash was between them or not. */
  private async verifyCheckpoints(target: Target, chain: Chain): Promise<void> {
    const crypto = createNativeCrypto();
    for (const older of chain.checkpoints) {
      const path = `/v1/witness/proofs/consistency?from=${older.size}`;
      const { hashes, checkpoint } = bodyOf(await target.ask({ method: "GET", path, key: chain.key }));
      const newer = checkCheckpoint(String(checkpoint), { publicKey: chain.verifier.publicKey }, crypto);
      if (chain.verifier.publicKey !== null && !newer.valid)
        this.problem(chain, `checkpoint ${newer.size}: ${newer.errors}`);
      if (!checkConsistency(older, newer, (hashes ?? []) as string[], crypto))
        this.problem(chain, `checkpoint ${newer.size} does not continue checkpoint ${older.size}`);
    }
    chain.checkpoints = chain.checkpoints.slice(-1);
  }

  /** Receipts since the last verification, by the number of their log; each is verified as the chain's next one. */
  private async takeNew(target: Target, chain: Chain): Promise<Map<number, string>> {
    const found: { log: LoggedLog; sequence: string; text: string }[] = [];
    for (let cursor = ""; ; ) {
      const path = `/v1/witness/receipts?limit=100${cursor}`;
      const page = bodyOf(await target.ask({ method: "GET", path, key: chain.key }));
      const receipts = page.receipts as { sequence_id: string; log: LoggedLog }[];
      const fresh = receipts.filter(
        ({ sequence_id }) => Number(sequence_id) > Number(chain.verifier.last ?? 0),
      );
      found.push(
        ...fresh.map((receipt) => ({
          log: receipt.log,
          sequence: receipt.sequence_id,
          text: JSON.stringify(receipt),
        })),
      );
      if (fresh.length < receipts.length || page.cursor === undefined) break;
      cursor = `&cursor=${encodeURIComponent(String(page.cursor))}`;
    }
    const logged = new Map<number, string>();
    for (const { log, sequence, text } of found.reverse()) {
      for (const problem of chain.verifier.add(text).problems) this.problem(chain, problem);
      if ("ninefold" in log) {
        chain.declared.add(log.sequence_id);
        continue;
      }
      if (chain.numbers.has(log.number)) this.problem(chain, `log ${log.number} is there twice`);
      chain.numbers.add(log.number);
      chain.redactable.push(sequence);
      logged.set(log.number, text);
    }
    return logged;
  }

  private acknowledge(chain: Chain, sent: Sent, response: HttpResponse, counts = true): void {
    if (counts) this.counts.acknowledged += 1;
    if (response.status === 200) sent.receipt = response.text;
    else this.problem(chain, `unexpected response ${response.status} ${response.text}`);
  }

  private problem(chain: Chain, what: string): void {
    this.problems.push(`${chain.name}: ${what}`);
  }
}
