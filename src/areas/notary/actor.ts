import type { KeyObject } from "node:crypto";
import type { Actor } from "../../kernel/actors/registry.ts";

/** A chain in memory: where it ends, and the key that signs what comes next. */
export class ChainActor implements Actor {
  readonly ref: number;
  readonly chainId: string;
  /** The `x` of the public key. */
  readonly publicX: string;
  readonly privateKey: KeyObject;
  /** The last position; 0 for an empty chain. */
  sequence: number;
  /** The last chain hash; zeros for an empty chain. */
  hash: Uint8Array;
  recent = false;

  constructor(chain: {
    ref: number;
    chainId: string;
    publicX: string;
    privateKey: KeyObject;
    sequence: number;
    hash: Uint8Array;
  }) {
    this.ref = chain.ref;
    this.chainId = chain.chainId;
    this.publicX = chain.publicX;
    this.privateKey = chain.privateKey;
    this.sequence = chain.sequence;
    this.hash = chain.hash;
  }

  /** Between two batches a chain is what its rows say. */
  get idle(): boolean {
    return true;
  }
}
