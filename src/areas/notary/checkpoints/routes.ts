import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import type { Call } from "../../../kernel/http/requests/call.ts";
import { additionalReply } from "../../../kernel/http/responses/response.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import {
  Bundle,
  BundleQuery,
  CheckpointQuery,
  ConsistencyProof,
  ConsistencyQuery,
  InclusionProof,
  InclusionQuery,
  ReceiptParams,
  SignedCheckpoint,
} from "../schema.ts";
import type { Checkpoints } from "./checkpoints.ts";

/** Media type of notes and proofs as texts. */
export const TEXT = { "content-type": "text/plain; charset=utf-8" };
const TEXT_CONTENT = { "text/plain": null };

const READ = {
  access: "witness:read",
  errors: ["conflict", "service_unavailable", "notary.fork_detected"],
} as const;

/** Routes of checkpoints and proofs. */
export function checkpointRoutes(api: Api, checkpoints: Checkpoints) {
  return new Elysia({ tags: ["Notary"] })
    .get(
      "/v1/witness/checkpoint",
      api.endpoint(
        {
          ...READ,
          name: "witness.checkpoint",
          exactResponse: true,
          summary: "Get a signed checkpoint over all receipts",
          description:
            "A checkpoint commits the server to the number of receipts and to each of them. A new one is signed if the chain has grown, at most once per second. Store it: `ninefold verify --checkpoint` then proves that nothing was removed, changed or reordered.",
          additionalResponses: { "200": { description: "Success.", content: TEXT_CONTENT } },
          query: CheckpointQuery,
          response: SignedCheckpoint,
        },
        async ({ call, query: { format } }) => {
          const size = checkpoints.size(call.caller.project.ref);
          const found = await signed(call, checkpoints, size, (ref, tx) => checkpoints.current(ref, tx));
          return format === "json" ? found : additionalReply(200, found.note, TEXT);
        },
      ),
    )
    .get(
      "/v1/witness/proofs/inclusion",
      api.endpoint(
        {
          ...READ,
          name: "witness.proofs.inclusion",
          summary: "Prove that a receipt is in the chain",
          description:
            "Use it to prove to an auditor that a receipt is part of the chain that a checkpoint covers, without all other receipts. Without `size` the proof is for the newest checkpoint; a receipt that none covers yet is 409 with `Retry-After: 1`.",
          errors: [...READ.errors, "not_found"],
          query: InclusionQuery,
          response: InclusionProof,
        },
        ({ call, query: { sequence_id, size = null } }) => {
          const sequence = Number(sequence_id);
          return signed(call, checkpoints, size ?? sequence, (ref, tx) =>
            checkpoints.inclusion(ref, sequence, size, tx),
          );
        },
      ),
    )
    .get(
      "/v1/witness/proofs/consistency",
      api.endpoint(
        {
          ...READ,
          name: "witness.proofs.consistency",
          summary: "Prove that the chain only grew between two sizes",
          description:
            "Use it to prove that nothing was removed, changed or reordered since a checkpoint that you stored: `from` is its size. Without `to` the proof leads to the newest checkpoint. A size that the chain does not have is 400.",
          query: ConsistencyQuery,
          response: ConsistencyProof,
        },
        ({ call, query: { from, to = null } }) => {
          const size = to ?? checkpoints.size(call.caller.project.ref);
          return signed(call, checkpoints, size, (ref, tx) => checkpoints.consistency(ref, from, to, tx));
        },
      ),
    )
    .get(
      "/v1/witness/receipts/:sequence_id/bundle",
      api.endpoint(
        {
          ...READ,
          name: "witness.bundle",
          exactResponse: true,
          summary: "Get a receipt with the proof that it is in the chain",
          description:
            "The bundle can be verified without the server: by `ninefold verify --bundle`, or in a browser by `verifyBundle` of `ninefold/verify`.",
          errors: [...READ.errors, "not_found"],
          additionalResponses: { "200": { description: "Success.", content: TEXT_CONTENT } },
          params: ReceiptParams,
          query: BundleQuery,
          response: Bundle,
        },
        ({ call, params: { sequence_id }, query: { format } }) => {
          const sequence = Number(sequence_id);
          checkpoints.assertReceipt(call.caller.project.ref, sequence);
          return signed(call, checkpoints, sequence, (ref, tx) =>
            format === "tlog-proof"
              ? additionalReply(200, checkpoints.tlogProof(ref, sequence, tx), TEXT)
              : checkpoints.bundle(ref, sequence, tx),
          );
        },
      ),
    );
}

/** Responds from the newest checkpoint; only if it does not cover `size` receipts, in a unit of work that signs another. */
async function signed<T extends object>(
  call: Call,
  checkpoints: Checkpoints,
  size: number,
  respond: (projectRef: number, tx?: Tx) => T,
): Promise<T> {
  const { ref } = call.caller.project;
  return checkpoints.mustSign(ref, size)
    ? await call.perform((tx) => respond(call.caller.project.ref, tx))
    : await call.read(() => respond(ref));
}
