import { hash, type KeyObject, sign } from "node:crypto";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { fromBase64Url, isEqual } from "../../../verify/bytes.ts";
import { createNativeCrypto } from "../../../verify/native.ts";
import {
  COSIGNATURE,
  cosignatureBytes,
  cosignedText,
  type NoteKey,
  noteKey,
  parseVkey,
  signatureBy,
  signatureLine,
  vkeyOf,
} from "../../../verify/note.ts";
import { emptyRoot, isConsistent } from "../../../verify/tree.ts";
import { privateKeyOf, publicXOf, SEED_BYTES } from "../chain.ts";
import { parseSubmission, type Submission } from "../witnesses/add-checkpoint.ts";
import type { PeerStore } from "./store.ts";

const SEAL_CONTEXT = "notary-witness-key";
const PUBLIC_KEY_BYTES = 32;

/** Restores of a log that are followed without another entry in the configuration: the suffixes `/e1` to `/e999`. */
const EPOCH = /^[1-9][0-9]{0,2}$/;
const EPOCH_MARK = "/e";

/** This server as a witness, as the configuration has it. */
export interface PeerSettings {
  readonly name: string;
  /** `vkey`s of the logs whose checkpoints it cosigns. */
  readonly logs: readonly string[];
}

/** What became of a submission: a signature line with its newline, or the size that was cosigned last. */
export type Cosigned = { readonly line: string } | { readonly size: number };

/** The key of the witness. */
interface Signer {
  readonly key: NoteKey;
  readonly privateKey: KeyObject;
}

/** This server as a witness for the logs of others: it cosigns a checkpoint only if it continues the one before. */
export class PeerWitness {
  private readonly crypto = createNativeCrypto();
  /** Keys of the logs by origin. */
  private readonly logs: ReadonlyMap<string, NoteKey>;
  private signer: Signer | null = null;

  constructor(
    private readonly kernel: Pick<Kernel, "vault" | "ids" | "writer">,
    private readonly store: PeerStore,
    private readonly settings: PeerSettings | null,
  ) {
    const keys = (settings?.logs ?? []).flatMap((vkey) => parseVkey(this.crypto, vkey) ?? []);
    this.logs = new Map(keys.map((key) => [key.name, key]));
  }

  /** Creates the key of the witness at the first start with a name. */
  async start(): Promise<void> {
    if (this.settings === null || this.store.key() !== null) return;
    await this.kernel.writer.submit((tx) => {
      const seed = Buffer.from(this.kernel.ids.bytes(SEED_BYTES)).toString("base64url");
      this.store.addKey(tx, this.kernel.vault.seal(seed, SEAL_CONTEXT));
    });
  }

  /** Name and verifier key of this witness. @throws ApiError `not_found` if it is none. */
  get identity(): { readonly name: string; readonly vkey: string } {
    const { key } = this.signerToUse();
    return { name: key.name, vkey: vkeyOf(key) };
  }

  /** Returns the newest cosigned checkpoint of an origin, by the SHA-256 of the origin. @throws ApiError `not_found` */
  checkpoint(originHash: string): string {
    this.signerToUse();
    const row = this.store.witnessed(originHash);
    if (row === null)
      throw new ApiError("not_found", "This witness has cosigned no checkpoint of this origin.");
    return row.note;
  }

  /**
   * Cosigns a checkpoint that continues the one before. The new size is durable before the cosignature is returned.
   *
   * @throws ApiError `not_found` for a log that is not configured, `validation_error` for a malformed request, `forbidden`
   *   without a valid signature of the log, `notary.inconsistent` for a proof that does not fit.
   */
  async add(text: string): Promise<Cosigned> {
    const signer = this.signerToUse();
    const submission = parseSubmission(text);
    if (submission === null)
      throw invalidField(
        "body",
        'must be "old <size>", the lines of a proof, an empty line and a checkpoint',
      );
    const { note, checkpoint, oldSize } = submission;
    const log = this.logOf(checkpoint.origin);
    if (log === null)
      throw new ApiError("not_found", "This witness does not know the origin of the checkpoint.");
    const signature = signatureBy(this.crypto, note, log);
    if (signature === null)
      throw new ApiError("forbidden", "The checkpoint has no valid signature of the log's key.");
    if (oldSize > checkpoint.size) throw invalidField("body", "has an old size above that of the checkpoint");
    return this.kernel.writer.submit((tx) => this.cosign(tx, signer, submission, signature.line));
  }

  private cosign(tx: Tx, signer: Signer, submission: Submission, logLine: string): Cosigned {
    const { oldSize, hashes, note, checkpoint } = submission;
    const originHash = hash("sha256", checkpoint.origin, "hex");
    const last = this.store.witnessed(originHash) ?? { size: 0, root: emptyRoot(this.crypto) };
    if (oldSize !== last.size) return { size: last.size };
    if (oldSize === checkpoint.size && !isEqual(last.root, checkpoint.root)) return { size: last.size };
    if (!isConsistent(this.crypto, last, checkpoint, hashes))
      throw new ApiError(
        "notary.inconsistent",
        `The proof does not show that the checkpoint continues the one of size ${last.size}.`,
      );
    const time = Math.floor(tx.now / 1_000);
    const signed = sign(null, Buffer.from(cosignedText(note.text, time)), signer.privateKey);
    const line = `${signatureLine(signer.key, cosignatureBytes(time, signed))}\n`;
    this.store.setWitnessed(tx, {
      origin_hash: originHash,
      size: checkpoint.size,
      root: checkpoint.root,
      note: `${note.text}\n${logLine}\n${line}`,
    });
    return { line };
  }

  /** The key of a log; after a restore of the log, the same key under the origin of its epoch. */
  private logOf(origin: string): NoteKey | null {
    const known = this.logs.get(origin);
    if (known !== undefined) return known;
    const end = origin.lastIndexOf(EPOCH_MARK);
    const log = end < 0 ? undefined : this.logs.get(origin.slice(0, end));
    if (log === undefined || !EPOCH.test(origin.slice(end + EPOCH_MARK.length))) return null;
    return noteKey(this.crypto, origin, log.publicKey);
  }

  /** @throws ApiError `not_found` if this server is no witness. */
  private signerToUse(): Signer {
    const { settings, store, kernel } = this;
    const row = settings === null ? null : store.key();
    if (settings === null || row === null)
      throw new ApiError("not_found", "This server is not a witness: notary.witness_name is not set.");
    if (this.signer === null) {
      const seed = kernel.vault.open(row.private_key, SEAL_CONTEXT);
      const privateKey = privateKeyOf(Buffer.from(seed, "base64url"));
      const publicKey = fromBase64Url(publicXOf(privateKey), PUBLIC_KEY_BYTES) ?? new Uint8Array();
      this.signer = { key: noteKey(this.crypto, settings.name, publicKey, COSIGNATURE), privateKey };
    }
    return this.signer;
  }
}
