import { type KeyObject, sign } from "node:crypto";
import { chainHashOf, type VerifierCrypto } from "../../verify/receipt.ts";
import type { ChainActor, PredictedReceipt } from "./chain.ts";

/** With fewer processors, the event loop, the clients and the disk leave no core free for signatures. */
const CORES_MIN = 3;

/**
 * Signatures in flight, more than there are units of work in one commit. The runtime's threads also do other work, which
 * may hang; the limit keeps signatures from queuing up behind it.
 */
export const SIGNATURES_IN_FLIGHT_MAX = 256;

/** Signs on a thread of the runtime and passes the signature to `done`, or null on failure. */
export type SignInBackground = (
  key: KeyObject,
  hash: Uint8Array,
  done: (signature: Uint8Array | null) => void,
) => void;

const signInBackground: SignInBackground = (key, hash, done) => {
  sign(null, hash, key, (error, signature) => done(error === null ? signature : null));
};

/**
 * Signs receipts off the event loop while their units of work wait for a commit: an Ed25519 signature is a fifth of the
 * event loop time of a receipt. The position of a receipt is predictable when its unit is queued, unless an earlier one is
 * rejected. Then the signature does not match, is discarded, and the unit signs again. With few processors the unit always
 * signs. A signature that does not match never leaves this process.
 */
export class SpeculativeSigner {
  private readonly isEnabled: boolean;
  private inFlight = 0;

  /** `queued` returns the number of pending units of work. */
  constructor(
    private readonly crypto: Pick<VerifierCrypto, "sha256">,
    private readonly queued: () => number,
    cores: number,
    private readonly sign: SignInBackground = signInBackground,
  ) {
    this.isEnabled = cores >= CORES_MIN;
  }

  /** Predicts the next receipt of a chain from its log's hash. Call it just before queuing the receipt's unit of work. */
  predict(chain: ChainActor, contentHash: Uint8Array): PredictedReceipt | null {
    if (!this.isEnabled || chain.privateKey === null) return null;
    const { privateKey } = chain;
    const { sequence: before, hash: prevHash } = chain.predicted ?? chain;
    const sequence = before + 1;
    const hash = chainHashOf(this.crypto, prevHash, BigInt(sequence), contentHash);
    const predicted: PredictedReceipt = { chain, prevHash, sequence, hash, signature: null };
    chain.predicted = predicted;
    // With an empty queue the commit may come before another thread starts.
    if (this.queued() > 0 && this.inFlight < SIGNATURES_IN_FLIGHT_MAX) this.start(predicted, privateKey);
    return predicted;
  }

  private start(predicted: PredictedReceipt, privateKey: KeyObject): void {
    this.inFlight += 1;
    this.sign(privateKey, predicted.hash, (signature) => {
      this.inFlight -= 1;
      predicted.signature = signature;
    });
  }
}

/** Returns the prediction if the chain is still where it was predicted. Otherwise it discards the chain's predictions. */
export function matchingPrediction(
  predicted: PredictedReceipt | null,
  chain: ChainActor,
): Pick<PredictedReceipt, "hash" | "signature"> | null {
  // Compared by identity: equal bytes in another chain, or in this one after a reload, prove nothing.
  if (predicted !== null && predicted.chain === chain && predicted.prevHash === chain.hash) return predicted;
  chain.predicted = null;
  return null;
}
