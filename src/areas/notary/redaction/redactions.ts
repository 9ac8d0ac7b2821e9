import { ApiError } from "../../../kernel/errors.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { DAY_MS } from "../../../kernel/time/units.ts";
import { type ChainActor, contentHashOf, readLogEntry } from "../chain.ts";
import type { Redacted } from "../schema.ts";
import type { NotaryService } from "../service.ts";
import type { NotaryStore, ReceiptRow } from "../store.ts";
import type { Uploads } from "../uploads.ts";

/** Receipts of one step of the retention. A step also ends after {@link STEP_LOG_BYTES_MAX}. */
const STEP_RECEIPTS_MAX = 100;

/** Bytes of logs that one step deletes, a few milliseconds of the writer's time. A single log may exceed it. */
const STEP_LOG_BYTES_MAX = 256 * 1024;

interface RedactionDeps {
  readonly store: NotaryStore;
  readonly notary: NotaryService;
  readonly uploads: Uploads;
}

/**
 * Deletes the texts of logs. Hashes, signatures and the tree stay, so the chain is verified as before; only whether a text
 * is the one that was signed can no longer be answered without that text.
 */
export class Redactions {
  /** The chain that the retention has dealt with last. */
  private lastChain = 0;

  constructor(
    private readonly deps: RedactionDeps,
    { housekeeping }: Pick<Kernel, "housekeeping">,
  ) {
    housekeeping.addPurge({
      name: "notary logs",
      rowsMax: STEP_RECEIPTS_MAX,
      remove: (tx, rowsMax) => (this.retain(tx, rowsMax) ? rowsMax : 0),
    });
  }

  /**
   * Deletes a receipt's log, or the note of a receipt without one, and logs that in the chain. A chain whose signing key is
   * lost is redacted without that.
   *
   * @throws ApiError `not_found`, `conflict` for a second redaction, `notary.fork_detected`.
   */
  redact(tx: Tx, projectRef: number, sequence: number, reason: string): Redacted {
    const { store, notary, uploads } = this.deps;
    const chain = notary.chain(projectRef, tx);
    const row = chain && store.receipt(chain.ref, sequence);
    if (!chain || !row) throw new ApiError("not_found", `This project's chain has no receipt ${sequence}.`);
    if (isRedacted(store, chain, row))
      throw new ApiError("conflict", `The text of receipt ${sequence} is already deleted.`);
    const log = { ninefold: "redacted", sequence_id: String(sequence), reason };
    const declared =
      chain.privateKey === null
        ? null
        : uploads.append(tx, projectRef, readLogEntry({ log }, JSON.stringify({ log })), null).receipt;
    this.erase(tx, projectRef, chain, row);
    tx.audit({
      summary: `Log of receipt ${sequence} deleted`,
      target: { type: "receipt", id: `${chain.chainId}:${sequence}` },
      before: { redacted: false },
      after: { redacted: true, reason },
    });
    const receipt = notary.receipt(projectRef, sequence);
    if (receipt === null) throw new Error(`receipt ${sequence} of chain ${chain.ref} is lost`);
    return {
      receipt: uploads.withStatus(projectRef, receipt),
      declared_by: declared?.sequence_id ?? null,
    };
  }

  private erase(tx: Tx, projectRef: number, chain: ChainActor, row: ReceiptRow): void {
    const { store, notary, uploads } = this.deps;
    const { sequence } = row;
    const content_hash = row.log === "" ? new Uint8Array(0) : contentHashOf(row.log);
    store.redactions.setRedacted(tx, {
      chain_ref: chain.ref,
      sequence,
      content_hash,
      now: tx.now,
    });
    if (row.log !== "") store.redactions.eraseLog(tx, chain.ref, sequence);
    notary.search.remove(tx, chain.ref, sequence);
    uploads.replaceCopy(tx, projectRef, chain, sequence);
  }

  /** Deletes logs by age, at most `rowsMax`. Returns whether there may be more. */
  private retain(tx: Tx, rowsMax: number): boolean {
    const { store, notary } = this.deps;
    const due = store.redactions.nextRetention(this.lastChain);
    const { lastChain } = this;
    tx.onRollback(() => {
      this.lastChain = lastChain;
    });
    if (due === null) {
      this.lastChain = 0;
      return false;
    }
    const chain = notary.chain(due.project_ref, tx);
    const before = tx.now - due.retain_days * DAY_MS;
    let last = due.retained_after;
    let bytes = 0;
    let rows = 0;
    let row: ReceiptRow | null = null;
    for (; chain !== undefined && rows < rowsMax && bytes < STEP_LOG_BYTES_MAX; rows += 1) {
      row = store.oldestAfter(chain.ref, last);
      if (row === null || row.at >= before) break;
      if (!isRedacted(store, chain, row)) this.erase(tx, due.project_ref, chain, row);
      last = row.sequence;
      bytes += row.log.length;
      row = null;
    }
    if (last !== due.retained_after) store.redactions.setRetainedAfter(tx, last, due.ref);
    const isDone = chain === undefined || rows === 0 || row !== null || last === chain.sequence;
    if (isDone) this.lastChain = due.ref;
    return true;
  }
}

function isRedacted(store: NotaryStore, chain: ChainActor, { log, sequence }: ReceiptRow): boolean {
  if (log !== "") return false;
  return typeof store.redactions.withoutLog(chain.ref, sequence)?.redacted_at === "number";
}
