import { hash, sign } from "node:crypto";
import { invalidField } from "../../../kernel/errors.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { sendAttempt } from "../../../kernel/outbound/attempt.ts";
import type { OutboundClient, OutboundRequest } from "../../../kernel/outbound/client.ts";
import type { Answered, OutboundOutcome } from "../../../kernel/outbound/outcome.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import { createNativeCrypto } from "../../../verify/native.ts";
import {
  COSIGNATURE,
  checkpointText,
  type NoteKey,
  noteKey,
  parseCheckpoint,
  parseNote,
  parseVkey,
  signatureBy,
  signatureLine,
  verifySignature,
} from "../../../verify/note.ts";
import { emptyRoot } from "../../../verify/tree.ts";
import type { ChainActor } from "../chain.ts";
import type { Checkpoints, SubmittedCheckpoint } from "../checkpoints/checkpoints.ts";
import { type Fork, originOf } from "../history.ts";
import type { Witness, WitnessesBody } from "../schema.ts";
import type { NotaryService } from "../service.ts";
import type { WitnessRow, WitnessStore } from "../store.ts";
import type { Submissions } from "../submissions.ts";
import type { ProjectOwners } from "../uploads.ts";
import { parseSize, SIZE_TYPE, submissionText } from "./add-checkpoint.ts";

/** Timeout of a submission. */
const SUBMISSION_TIMEOUT_MS = 10_000;

/** Bytes of a response that are read: signature lines, of which a witness has a few. */
const RESPONSE_BYTES_MAX = 16 * 1024;

/** Characters of an error in the list of witnesses. */
const ERROR_LENGTH_MAX = 300;

const ADD_CHECKPOINT = "add-checkpoint";
const TEXT_TYPE = "text/plain; charset=utf-8";

/** What a witness said to a checkpoint. */
export type Submitted =
  | { readonly kind: "cosigned"; readonly line: string; readonly signedAt: number }
  /** It has a checkpoint of the chain's own key over a larger tree. */
  | { readonly kind: "larger"; readonly size: number }
  /** The same request would be rejected again. */
  | { readonly kind: "rejected"; readonly problem: string }
  | { readonly kind: "unavailable"; readonly problem: string };

/** What is wrong with a witness of a chain. */
export interface WitnessProblem {
  readonly vkey: string;
  readonly problem: string;
}

interface WitnessDeps {
  readonly kernel: Pick<Kernel, "changes">;
  readonly store: WitnessStore;
  readonly notary: NotaryService;
  readonly checkpoints: Checkpoints;
  readonly outbound: Pick<OutboundClient, "send" | "policy">;
  readonly submissions: Submissions;
  readonly owners: ProjectOwners;
}

/** The witnesses of chains: they confirm by cosignatures that a chain only grew (c2sp.org/tlog-witness). */
export class Witnesses {
  private readonly crypto = createNativeCrypto();

  constructor(private readonly deps: WitnessDeps) {}

  /** @throws ApiError `validation_error` for a key that is none of a witness, a witness twice, or a URL that is not allowed. */
  assertUsable({ witnesses }: WitnessesBody): void {
    const seen = new Set<string>();
    for (const [at, { url, vkey }] of witnesses.entries()) {
      const field = `witnesses[${at}]`;
      if (parseVkey(this.crypto, vkey)?.type !== COSIGNATURE)
        throw invalidField(`${field}.vkey`, "must be the verifier key of a witness (signature type 0x04)");
      if (seen.has(vkey)) throw invalidField(`${field}.vkey`, "is already in the list");
      seen.add(vkey);
      const { url: parsed } = this.deps.outbound.policy.assertUrl(`${field}.url`, url, {
        requireHttps: true,
      });
      if (parsed.search !== "" || parsed.hash !== "" || url.includes("?") || url.includes("#"))
        throw invalidField(`${field}.url`, "must not have a query or a fragment");
    }
  }

  /** Replaces the witnesses of a project's chain. Those with the same key and URL keep their state. @throws ApiError `conflict` */
  set(tx: Tx, projectRef: number, { witnesses }: WitnessesBody): Witness[] {
    const { store, notary, submissions } = this.deps;
    const chain = notary.chainToUse(projectRef, tx);
    const before = store.witnesses(chain.ref);
    const configured = witnesses.map(({ name, url, vkey }): WitnessRow => {
      const known = before.find((row) => row.vkey === vkey && row.url === url);
      const state = known ?? { epoch: chain.epoch, size: 0, cosigned_at: null, last_error: null };
      return { ...state, name: name ?? nameOf(vkey), url, vkey };
    });
    store.removeWitnesses(tx, chain.ref);
    for (const [position, row] of configured.entries())
      store.add(tx, { ...row, chain_ref: chain.ref, position });
    tx.audit({
      summary: "Witnesses of the chain set",
      target: { type: "chain", id: chain.chainId },
      before: { witnesses: before.map(termsOf) },
      after: { witnesses: configured.map(termsOf) },
    });
    submissions.schedule(tx, chain);
    return configured.map((row) => viewOf(chain, row));
  }

  /** Returns the witnesses of a project's chain with their state. @throws ApiError `conflict` before init. */
  list(projectRef: number): Witness[] {
    const chain = this.deps.notary.chainToUse(projectRef);
    return this.deps.store.witnesses(chain.ref).map((row) => viewOf(chain, row));
  }

  /** Whether a chain has a witness. */
  areConfigured({ ref }: ChainActor): boolean {
    return this.deps.store.witnesses(ref).length > 0;
  }

  /** The witnesses that have not cosigned a checkpoint. */
  missing(chain: ChainActor, { epoch, size }: SubmittedCheckpoint): WitnessRow[] {
    return this.deps.store
      .witnesses(chain.ref)
      .filter((row) => row.epoch !== epoch || row.size < size || row.cosigned_at === null);
  }

  /** Submits a checkpoint to a witness; once more from the size that the witness names. */
  async submit(chain: ChainActor, row: WitnessRow, checkpoint: SubmittedCheckpoint): Promise<Submitted> {
    const oldSize = row.epoch === checkpoint.epoch ? Math.min(row.size, checkpoint.size) : 0;
    const first = await this.post(chain, row, checkpoint, oldSize);
    const size = sizeIn(first);
    if (size === null || size === oldSize) return this.read(first, row, checkpoint);
    if (size > checkpoint.size) return this.proofOfLarger(chain, row, checkpoint, size);
    return this.read(await this.post(chain, row, checkpoint, size), row, checkpoint);
  }

  /** Records what a witness said. Returns false, and changes nothing, if it was removed or got another URL meanwhile. */
  record(
    tx: Tx,
    chain: ChainActor,
    { vkey, url }: WitnessRow,
    { epoch, size }: SubmittedCheckpoint,
    said: Submitted,
  ): boolean {
    const { store, kernel } = this.deps;
    if (!store.witnesses(chain.ref).some((row) => row.vkey === vkey && row.url === url)) return false;
    kernel.changes.inProject(tx, chain.projectRef, "witness", "witnesses");
    if (said.kind === "cosigned") {
      const { line, signedAt } = said;
      store.setCosigned(tx, { chain_ref: chain.ref, vkey, epoch, size, cosigned_at: tx.now });
      store.addCosignature(tx, { chain_ref: chain.ref, epoch, size, vkey, line, signed_at: signedAt });
      return true;
    }
    const problem =
      said.kind === "larger"
        ? `the witness has a checkpoint of this chain over ${said.size} receipts, more than it has: see accept-fork`
        : said.problem;
    store.setError(tx, problem.slice(0, ERROR_LENGTH_MAX), chain.ref, vkey);
    return true;
  }

  /** Shows the problems of witnesses in their list. */
  recordProblems(tx: Tx, { ref }: ChainActor, problems: readonly WitnessProblem[]): void {
    for (const { vkey, problem } of problems)
      this.deps.store.setError(tx, problem.slice(0, ERROR_LENGTH_MAX), ref, vkey);
  }

  /**
   * Asks the witnesses of a restored chain whether they have seen more of its previous epoch. `found`: the longest history that
   * one of them proves, null if none does, `unknown` while a witness does not say.
   */
  async findLonger(chain: ChainActor): Promise<{
    readonly found: Fork | null | "unknown";
    readonly problems: readonly WitnessProblem[];
  }> {
    const checkpoint = this.lastOfPreviousEpoch(chain);
    const rows = this.deps.store.witnesses(chain.ref);
    if (checkpoint === null) return { found: null, problems: [] };
    const said = await Promise.all(rows.map((row) => this.submit(chain, row, checkpoint)));
    let fork: Fork | null = null;
    for (const [at, outcome] of said.entries()) {
      if (outcome.kind !== "larger" || outcome.size <= Math.max(chain.sequence, fork?.seen ?? 0)) continue;
      fork = { by: `the witness ${rows[at]?.name}`, seen: outcome.size };
    }
    const problems = rows.flatMap(({ vkey }, at) => {
      const outcome = said[at];
      return outcome !== undefined && "problem" in outcome ? [{ vkey, problem: outcome.problem }] : [];
    });
    const isUnknown = said.some(({ kind }) => kind === "unavailable");
    return { found: fork ?? (isUnknown ? "unknown" : null), problems };
  }

  /** The newest stored checkpoint of the epoch before; of an empty tree, which contradicts none, if there is none. */
  private lastOfPreviousEpoch(chain: ChainActor): SubmittedCheckpoint | null {
    const epoch = Math.max(0, chain.epoch - 1);
    const stored = this.deps.checkpoints.submitted(chain, epoch);
    if (stored !== null || chain.privateKey === null) return stored;
    const origin = originOf(chain, epoch);
    const text = checkpointText({ origin, size: 0, root: emptyRoot(this.crypto) });
    const key = noteKey(this.crypto, origin, Buffer.from(chain.publicX, "base64url"));
    const line = signatureLine(key, sign(null, Buffer.from(text), chain.privateKey));
    return { epoch, key, size: 0, note: `${text}\n${line}\n`, prove: () => [] };
  }

  /**
   * Reads the proof of a size that a witness has named: the checkpoint that it cosigned, with the signature of this chain. A
   * number alone proves nothing, and does not stop a chain.
   */
  private async proofOfLarger(
    chain: ChainActor,
    row: WitnessRow,
    { key, size }: SubmittedCheckpoint,
    named: number,
  ): Promise<Submitted> {
    const path = `${hash("sha256", key.name, "hex")}/checkpoint`;
    const outcome = await this.send(chain, row, { method: "GET", path });
    const claim = `the witness returned 409 with the size ${named}, above that of the chain`;
    if (!outcome.answered)
      return {
        kind: "unavailable",
        problem: `${claim}, but no response with its checkpoint: ${outcome.failure.message}`,
      };
    const { status } = outcome;
    const proven = status === 200 ? this.sizeSignedBy(outcome, key) : null;
    if (proven !== null && proven > size) return { kind: "larger", size: proven };
    const problem = `${claim}, without a proof: ${path} returned ${status} and no checkpoint of the chain's key over more receipts`;
    return { kind: status === 429 || status >= 500 ? "unavailable" : "rejected", problem };
  }

  /** The size of a checkpoint that a chain has signed; null for anything else. */
  private sizeSignedBy({ body }: Answered, key: NoteKey): number | null {
    const note = parseNote(Buffer.from(body).toString("utf8"));
    const checkpoint = note && parseCheckpoint(note.text);
    if (note === null || checkpoint === null || checkpoint.origin !== key.name) return null;
    return signatureBy(this.crypto, note, key) === null ? null : checkpoint.size;
  }

  private post(
    chain: ChainActor,
    row: WitnessRow,
    { note, prove }: SubmittedCheckpoint,
    oldSize: number,
  ): Promise<OutboundOutcome> {
    return this.send(chain, row, {
      method: "POST",
      path: ADD_CHECKPOINT,
      headers: { "content-type": TEXT_TYPE },
      body: Buffer.from(submissionText(oldSize, prove(oldSize), note)),
    });
  }

  private send(
    chain: ChainActor,
    { url }: WitnessRow,
    {
      path,
      ...request
    }: Pick<OutboundRequest, "method"> &
      Partial<Pick<OutboundRequest, "headers" | "body">> & { readonly path: string },
  ): Promise<OutboundOutcome> {
    return sendAttempt(this.deps.outbound, {
      headers: {},
      body: null,
      ...request,
      account: this.deps.owners.accountOf(chain.projectRef),
      url: `${url}${url.endsWith("/") ? "" : "/"}${path}`,
      timeoutMs: SUBMISSION_TIMEOUT_MS,
      bodyBytesMax: RESPONSE_BYTES_MAX,
      requireHttps: true,
    });
  }

  private read(outcome: OutboundOutcome, { vkey }: WitnessRow, { note }: SubmittedCheckpoint): Submitted {
    if (!outcome.answered)
      return { kind: "unavailable", problem: `no response from the witness: ${outcome.failure.message}` };
    const { status } = outcome;
    if (status === 200) return this.cosignatureIn(outcome, vkey, note);
    const problem = PROBLEMS[status] ?? `the witness returned ${status}`;
    // A witness over its rate limit accepts the request later.
    const isFinal = status >= 400 && status < 500 && status !== 429;
    return { kind: isFinal ? "rejected" : "unavailable", problem };
  }

  private cosignatureIn({ body }: Answered, vkey: string, note: string): Submitted {
    const key = parseVkey(this.crypto, vkey);
    const parsed = parseNote(note + Buffer.from(body).toString("utf8"));
    const signature = key && parsed && signatureBy(this.crypto, parsed, key);
    const time = key && parsed && signature && verifySignature(this.crypto, parsed.text, signature, key);
    // A response with an empty line would move the end of the text, so that something else is signed.
    const isOfCheckpoint = parsed?.text === parseNote(note)?.text;
    if (signature === null || time === null || !isOfCheckpoint)
      return { kind: "rejected", problem: "the response has no valid cosignature of the key in vkey" };
    return { kind: "cosigned", line: signature.line, signedAt: time * 1_000 };
  }
}

/** What statuses of witnesses mean. */
const PROBLEMS: Readonly<Record<number, string>> = {
  403: "the witness returned 403: it has another key for this origin",
  404: "the witness returned 404: it does not know this origin; give it the checkpoint's vkey",
  409: "the witness returned 409: it has cosigned another history of this size",
  422: "the witness returned 422: it has cosigned another history of this origin",
};

/** The size that a witness cosigned last, from a response with 409; null for any other. */
function sizeIn(outcome: OutboundOutcome): number | null {
  if (!outcome.answered || outcome.status !== 409) return null;
  const [type = ""] = (outcome.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== SIZE_TYPE) return null;
  const text = Buffer.from(outcome.body).toString("latin1");
  return parseSize(text.endsWith("\n") ? text.slice(0, -1) : text);
}

function nameOf(vkey: string): string {
  return vkey.slice(0, vkey.indexOf("+"));
}

function termsOf({ name, url, vkey }: WitnessRow) {
  return { name, url, vkey };
}

function viewOf({ epoch: present }: ChainActor, row: WitnessRow): Witness {
  const { name, url, vkey, epoch, size, cosigned_at, last_error } = row;
  return {
    name,
    url,
    vkey,
    cosigned_size: epoch === present ? size : 0,
    cosigned_at: isoTimeOrNull(cosigned_at),
    last_error,
  };
}
