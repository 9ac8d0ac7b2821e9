import { type KeyObject, sign } from "node:crypto";
import { chainHashOf, type VerifierCrypto } from "../../verify/receipt.ts";
import type { ChainActor, Foreseen } from "./chain.ts";

/** With fewer processors the event loop, the clients and the disk's work leave none for signatures. */
const CORES_MIN = 3;

/**
 * Signatures under way at once: more than wait for one commit. The runtime's threads also do other work, which may hang;
 * then nothing piles up behind it.
 */
export const SIGNED_AHEAD_MAX = 256;

/** Signs on a thread of the runtime's, and hands over the signature, or null when that failed. */
export type SignBeside = (
  key: KeyObject,
  hash: Uint8Array,
  done: (signature: Uint8Array | null) => void,
) => void;

const signBeside: SignBeside = (key, hash, done) => {
  sign(null, hash, key, (error, signature) => done(error === null ? signature : null));
};

/**
 * Signs receipts beside the event loop while their units of work wait for a commit: an Ed25519 signature takes a fifth of
 * all the time that a receipt takes the loop. Which place a receipt will have is known as soon as it is queued, unless one
 * before it is refused. Then its signature does not fit and is made within the unit, as it always is where there are few
 * processors. A signature that does not fit never leaves this process.
 */
export class SigningAhead {
  private readonly worthIt: boolean;
  private underWay = 0;

  /** `queued`: how many units of work wait. */
  constructor(
    private readonly crypto: Pick<VerifierCrypto, "sha256">,
    private readonly queued: () => number,
    cores: number,
    private readonly beside: SignBeside = signBeside,
  ) {
    this.worthIt = cores >= CORES_MIN;
  }

  /** Foresees the next receipt of a chain, with its log's hash. To be called just before its unit of work is queued. */
  foresee(chain: ChainActor, contentHash: Uint8Array): Foreseen | null {
    if (!this.worthIt) return null;
    const { sequence: before, hash: prevHash } = chain.foreseen ?? chain;
    const sequence = before + 1;
    const hash = chainHashOf(this.crypto, prevHash, BigInt(sequence), contentHash);
    const foreseen: Foreseen = { chain, prevHash, sequence, hash, signature: null };
    chain.foreseen = foreseen;
    // Where nobody waits the commit may come at once, before another thread has begun.
    if (this.queued() > 0 && this.underWay < SIGNED_AHEAD_MAX) this.begin(foreseen);
    return foreseen;
  }

  private begin(foreseen: Foreseen): void {
    this.underWay += 1;
    this.beside(foreseen.chain.privateKey, foreseen.hash, (signature) => {
      this.underWay -= 1;
      foreseen.signature = signature;
    });
  }
}

/** What of a receipt's hash and signature is there already. A chain whose receipts come in another order than foreseen forgets what it foresaw. */
export function ofForeseen(
  foreseen: Foreseen | null,
  chain: ChainActor,
): Pick<Foreseen, "hash" | "signature"> | null {
  // By identity: equal bytes in another chain, or in this one read anew, prove nothing.
  if (foreseen !== null && foreseen.chain === chain && foreseen.prevHash === chain.hash) return foreseen;
  chain.foreseen = null;
  return null;
}
