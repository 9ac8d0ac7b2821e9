import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { WitnessesBody, WitnessList } from "../schema.ts";
import type { Witnesses } from "./witnesses.ts";

const PATH = "/v1/witness/witnesses";

/** Routes of the witnesses of a project's chain. */
export function witnessRoutes(api: Api, witnesses: Witnesses) {
  return new Elysia({ tags: ["Notary"] })
    .get(
      PATH,
      api.endpoint(
        {
          name: "witness.witnesses.read",
          access: "witness:read",
          summary: "List the witnesses of the chain with what they have cosigned",
          description:
            "Use it to see whether witnesses follow the chain: `cosigned_size` is the size of the last checkpoint that each has cosigned, and `last_error` why the last submission failed.",
          errors: ["conflict"],
          response: WitnessList,
        },
        ({ call }) => ({ witnesses: witnesses.list(call.caller.project.ref) }),
      ),
    )
    .put(
      PATH,
      api.endpoint(
        {
          name: "witness.witnesses.set",
          audit: "yes",
          access: "witness:write",
          summary: "Set the witnesses of the chain",
          description:
            "Replaces the list. Each new checkpoint is sent to the witnesses, at most once a minute (c2sp.org/tlog-witness). A witness cosigns it only if it continues the checkpoint that it cosigned before. The cosignatures are part of the checkpoint.",
          errors: ["conflict"],
          example: {
            witnesses: [
              {
                name: "Witness of a friend",
                url: "https://witness.example/v1/witness/peer",
                vkey: "ninefold/witness-1+84c42f62+BBOY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK",
              },
            ],
          },
          body: WitnessesBody,
          response: WitnessList,
        },
        ({ call, body }) => {
          witnesses.assertUsable(body);
          return call.perform((tx) => ({ witnesses: witnesses.set(tx, call.caller.project.ref, body) }));
        },
      ),
    );
}
