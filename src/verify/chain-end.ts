// Compares a chain with checkpoints: a checkpoint says where a chain ends, or how far it has come at least.
import { toHex } from "./bytes.ts";
import { type CheckpointKeys, type CheckpointVerdict, checkCheckpoint } from "./checkpoint.ts";
import { isObject, type VerifierCrypto } from "./receipt.ts";
import { type LeafFields, leafHashOf, leafOf, RunningTree } from "./tree.ts";

/** What a chain proves together with its checkpoints. */
export interface EndVerdict {
  readonly problems: readonly string[];
  /** What is proved, a line each. */
  readonly proved: readonly string[];
}

/** A receipt by which a server has declared that its history was replaced by an older one. */
interface Restored {
  readonly previous_origin: string;
  /** Number of receipts that both histories have. */
  readonly size: number;
}

/** Builds the tree over a chain, receipt by receipt, and compares its roots with those of checkpoints. */
export class ChainEnd {
  private readonly tree: RunningTree;
  private readonly checkpoints: { readonly note: string; readonly verdict: CheckpointVerdict }[] = [];
  /** Roots at the sizes of the checkpoints. */
  private readonly roots = new Map<number, string>();
  private readonly restored: Restored[] = [];
  /** Whether every receipt had its place in the tree. */
  private isWhole = true;

  constructor(
    private readonly crypto: VerifierCrypto,
    notes: readonly string[],
  ) {
    this.tree = new RunningTree(crypto);
    for (const note of notes) this.addCheckpoint(note);
    this.noteRoot();
  }

  /** Adds a checkpoint: before the receipts that it covers, or right after the last one of them. */
  addCheckpoint(note: string): void {
    const verdict = checkCheckpoint(note, { publicKey: null }, this.crypto);
    this.checkpoints.push({ note, verdict });
    this.noteRoot();
  }

  /** Adds the chain's next receipt; null for one that is not valid. */
  add(receipt: unknown): void {
    if (!isObject(receipt) || receipt.sequence_id !== String(this.tree.size + 1)) {
      this.isWhole = false;
      return;
    }
    this.tree.add(leafHashOf(this.crypto, leafOf(receipt as unknown as LeafFields)));
    this.noteRoot();
    const { log } = receipt;
    if (isObject(log) && log.ninefold === "restored" && typeof log.previous_origin === "string")
      this.restored.push({ previous_origin: log.previous_origin, size: Number(log.size) });
  }

  /** Compares the checkpoints with the chain. `keys`: who must have signed them. */
  finish(keys: CheckpointKeys): EndVerdict {
    if (this.checkpoints.length === 0)
      return { problems: [], proved: ["The end of the chain is not proved: no checkpoint was given."] };
    const problems: string[] = [];
    const proved: string[] = [];
    let covered = 0;
    for (const { note } of this.checkpoints) {
      const verdict = checkCheckpoint(note, keys, this.crypto);
      const found = [...(verdict.errors ?? []), ...this.rootProblems(verdict)];
      problems.push(...found);
      if (found.length > 0 || verdict.size === null) continue;
      covered = Math.max(covered, verdict.size);
      const witnesses =
        verdict.witnesses.length === 0 ? "" : `, witnessed by ${verdict.witnesses.join(", ")}`;
      proved.push(`checkpoint: ${counted(verdict.size)} of ${verdict.origin}${witnesses}`);
    }
    const { size } = this.tree;
    if (problems.length === 0 && covered < size)
      proved.push(
        `The end of the chain is not proved: the checkpoint covers ${shown(covered)} of ${counted(size)}.`,
      );
    return { problems, proved };
  }

  private rootProblems({ origin, size, root_hash }: CheckpointVerdict): string[] {
    if (size === null) return [];
    if (!this.isWhole) return ["A checkpoint can only be compared with all receipts from the first one on."];
    const root = this.roots.get(size);
    if (root === root_hash) return [];
    // Of the origin of an earlier history, which ended at a backup.
    const parted = this.restored.find(({ previous_origin }) => previous_origin === origin);
    if (parted !== undefined)
      return [
        `The chain was restored from a backup: it parts from the checkpoint of ${origin} after receipt ${shown(parted.size)}. The checkpoint covers ${shown(size)}.`,
      ];
    if (size > this.tree.size)
      return [`The chain ends at ${shown(this.tree.size)}; the checkpoint covers ${shown(size)}.`];
    if (root === undefined)
      return [`The checkpoint of ${counted(size)} is in the file after later receipts.`];
    return [
      `The chain is not the one that the checkpoint of ${counted(size)} covers: a receipt was changed.`,
    ];
  }

  private noteRoot(): void {
    const { size } = this.tree;
    if (this.checkpoints.some(({ verdict }) => verdict.size === size) && !this.roots.has(size))
      this.roots.set(size, toHex(this.tree.root));
  }
}

function shown(count: number): string {
  return count.toLocaleString("en");
}

function counted(count: number): string {
  return `${shown(count)} ${count === 1 ? "receipt" : "receipts"}`;
}
