import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Charger } from "../../../kernel/callers/caller.ts";
import type { Api } from "../../../kernel/http/api.ts";
import { largeBody } from "../../../kernel/http/operation.ts";
import type { Call } from "../../../kernel/http/requests/call.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import { assertDefinitionHeld } from "../definitions/definition.ts";
import { CHECKED } from "../scheduled/schema.ts";
import type { Participant, Proposals } from "./proposals.ts";
import {
  FlagProposal,
  FlagProposalBody,
  FlagProposalPage,
  FlagProposalQuery,
  FlagProposalRejectBody,
  ProposalId,
} from "./schema.ts";

/** Operation that large proposals are charged for. */
const CREATE = "gate.proposals.create";
const TAGS = { tags: ["Flags"] };

/** What the routes need. */
export interface ProposalRouteDeps {
  readonly proposals: Proposals;
  readonly charger: Charger;
  readonly participantOf: (call: Call) => Participant;
  /** Schema of a flag's key in a path. */
  readonly flagKey: ReturnType<typeof Type.String>;
}

/** Declares the proposals of flag changes. */
export function proposalRoutes(api: Api, deps: ProposalRouteDeps) {
  return [createRoutes(api, deps), readRoutes(api, deps), decisionRoutes(api, deps)];
}

function createRoutes(api: Api, { proposals, charger, participantOf, flagKey }: ProposalRouteDeps) {
  return new Elysia(TAGS).post(
    "/v1/gate/:flagKey/proposals",
    api.endpoint(
      {
        name: CREATE,
        audit: "yes",
        access: "gate:write",
        summary: "Propose a change of a flag",
        description:
          "Fields of a save, or `delete`. The flag need not exist. The change is checked now, and applied when somebody else approves it. A change in another way makes the proposal `outdated`. An equal open proposal of the same proposer is returned instead of a second one. A project can have 100 open proposals; the newest 1,000 are stored for a year. Costs credits as a save does; the approval is free of charge.",
        errors: ["gate.rule_invalid", "flag_not_found", "proposal_limit_exceeded", "insufficient_balance"],
        example: { enabled: true, comment: "After the campaign" },
        bodyLimits: largeBody(),
        params: Type.Object({ flagKey }),
        body: FlagProposalBody,
        response: { 201: FlagProposal },
      },
      ({ call, params, body }) => {
        assertDefinitionHeld(call.bodyText, CHECKED);
        return call.perform((tx) => {
          const charge = (credits: number) => charger.charge(tx, call.caller.account, CREATE, credits);
          return reply(201, proposals.propose(tx, participantOf(call), params.flagKey, body, charge));
        });
      },
    ),
  );
}

function readRoutes(api: Api, { proposals, flagKey }: ProposalRouteDeps) {
  return new Elysia(TAGS)
    .get(
      "/v1/gate/config/proposals",
      api.endpoint(
        {
          name: "gate.proposals.list",
          access: "gate:read",
          summary: "List proposals of all flags, newest first",
          description:
            "Those that wait for a decision have the status `open`; the decided ones stay for a year, up to 1,000 in all. `before` and `after` have the fields that change. A page also ends when its changes exceed 256 KiB.",
          query: FlagProposalQuery,
          response: FlagProposalPage,
        },
        ({ call, query }) => proposals.list(call.caller.project.ref, null, query),
      ),
    )
    .get(
      "/v1/gate/:flagKey/proposals",
      api.endpoint(
        {
          name: "gate.proposals.list_of_flag",
          access: "gate:read",
          summary: "List proposals of a flag, newest first",
          description: "Also of a flag that does not exist.",
          params: Type.Object({ flagKey }),
          query: FlagProposalQuery,
          response: FlagProposalPage,
        },
        ({ call, params, query }) => proposals.list(call.caller.project.ref, params.flagKey, query),
      ),
    )
    .get(
      "/v1/gate/:flagKey/proposals/:proposal_id",
      api.endpoint(
        {
          name: "gate.proposals.read",
          access: "gate:read",
          summary: "Get a proposal",
          description:
            "Shows the fields that change, who proposed and who decided. A proposal becomes `outdated` as soon as its flag changes.",
          errors: ["not_found"],
          params: Type.Object({ flagKey, proposal_id: ProposalId }),
          response: FlagProposal,
        },
        ({ call, params }) => proposals.get(call.caller.project.ref, params.flagKey, params.proposal_id),
      ),
    );
}

function decisionRoutes(api: Api, { proposals, participantOf, flagKey }: ProposalRouteDeps) {
  const params = Type.Object({ flagKey, proposal_id: ProposalId });
  const terms = { audit: "yes", access: "gate:write", params, response: FlagProposal } as const;
  return new Elysia(TAGS)
    .post(
      "/v1/gate/:flagKey/proposals/:proposal_id/approve",
      api.endpoint(
        {
          ...terms,
          name: "gate.proposals.approve",
          summary: "Approve a proposal, which applies the change",
          description:
            "By somebody other than the proposer: another person, or another key that the same person has not created. A key and those that it was rotated to are one.",
          errors: ["not_found", "own_proposal", "conflict", "gate.rule_invalid"],
        },
        ({ call, params: { flagKey, proposal_id } }) =>
          call.perform((tx) => proposals.approve(tx, participantOf(call), flagKey, proposal_id)),
      ),
    )
    .post(
      "/v1/gate/:flagKey/proposals/:proposal_id/reject",
      api.endpoint(
        {
          ...terms,
          name: "gate.proposals.reject",
          summary: "Reject a proposal",
          description:
            "The flag does not change. Anyone who may write flags can reject, the proposer included.",
          errors: ["not_found", "conflict"],
          example: { comment: "Not before the audit" },
          body: FlagProposalRejectBody,
        },
        ({ call, params: { flagKey, proposal_id }, body: { comment = null } }) =>
          call.perform((tx) =>
            proposals.close(tx, participantOf(call), flagKey, proposal_id, { status: "rejected", comment }),
          ),
      ),
    )
    .delete(
      "/v1/gate/:flagKey/proposals/:proposal_id",
      api.endpoint(
        {
          ...terms,
          name: "gate.proposals.withdraw",
          summary: "Withdraw a proposal",
          description: "Closes it without a decision; the flag does not change.",
          errors: ["not_found", "conflict"],
        },
        ({ call, params: { flagKey, proposal_id } }) =>
          call.perform((tx) =>
            proposals.close(tx, participantOf(call), flagKey, proposal_id, { status: "withdrawn" }),
          ),
      ),
    );
}
