import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { decodeBody } from "../../../kernel/http/requests/body.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import { TEXT } from "../checkpoints/routes.ts";
import type { AdmitAddress } from "../open-requests.ts";
import { PeerIdentity, PeerParams } from "../schema.ts";
import { SIZE_TYPE } from "../witnesses/add-checkpoint.ts";
import type { PeerWitness } from "./peer.ts";

const PEER = "/v1/witness/peer";

/** Routes of this server as a witness for others (c2sp.org/tlog-witness). `PEER` is the submission prefix. */
export function peerRoutes(api: Api, peer: PeerWitness, admit: AdmitAddress) {
  return new Elysia({ tags: ["Notary"] })
    .get(
      PEER,
      api.open(
        {
          name: "witness.peer.read",
          summary: "Get the verifier key of this server as a witness",
          description:
            "For the operator of a log that this server should cosign: `vkey` verifies its cosignatures. 404 unless the server has a `notary.witness_name`.",
          errors: ["not_found", "rate_limit_exceeded"],
          admit,
          response: PeerIdentity,
        },
        () => peer.identity,
      ),
    )
    .post(
      `${PEER}/add-checkpoint`,
      api.open(
        {
          name: "witness.peer.add",
          summary: "Cosign a checkpoint of a log that this server witnesses",
          description:
            "The call `add-checkpoint` of c2sp.org/tlog-witness, for the logs in `notary.witnessed`. The response is a signature line. With another old size than that of the checkpoint that was cosigned last, the response is 409 with that size.",
          anyBody:
            "`old <size>`, the hashes of a consistency proof in base64, one per line, an empty line, and the checkpoint.",
          responseTypes: ["text/plain"],
          additionalResponses: {
            "409": {
              description: "Size of the checkpoint that was cosigned last.",
              content: { [SIZE_TYPE]: null },
            },
          },
          errors: [
            "validation_error",
            "forbidden",
            "not_found",
            "request_too_large",
            "notary.inconsistent",
            "rate_limit_exceeded",
            "service_unavailable",
          ],
          admit,
        },
        async ({ call }) => {
          const cosigned = await peer.add(decodeBody(await call.readBytes()));
          return "line" in cosigned
            ? reply(200, cosigned.line, TEXT)
            : reply(409, `${cosigned.size}\n`, { "content-type": SIZE_TYPE });
        },
      ),
    )
    .get(
      `${PEER}/:origin/checkpoint`,
      api.open(
        {
          name: "witness.peer.checkpoint",
          summary: "Get the newest checkpoint that this server has cosigned as a witness",
          description:
            "Lets a log, or anyone, compare what the witness has seen. `origin` in the path is the SHA-256 of the log's origin, in hex. 404 for a log that the server does not witness.",
          responseTypes: ["text/plain"],
          errors: ["not_found", "rate_limit_exceeded"],
          admit,
          params: PeerParams,
        },
        ({ params: { origin } }) =>
          reply(200, peer.checkpoint(origin), { ...TEXT, "cache-control": "public, max-age=1" }),
      ),
    );
}
