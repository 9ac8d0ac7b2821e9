import { type Static, Type } from "@sinclair/typebox";
import { Actor } from "../../../kernel/audit/actor.ts";
import { dateTime, flag, NextCursor, named, oneOf, orNull, text } from "../../../kernel/data/schema.ts";
import { pageQuery } from "../../../kernel/http/requests/pagination.ts";
import { MANAGED } from "../../../kernel/resources/managed.ts";
import { FlagChange } from "../definitions/change.ts";
import { COMMENT_LENGTH_MAX } from "../domain.ts";
import { SCHEDULED } from "../scheduled/schema.ts";

/** States of a proposal. */
const PROPOSAL_STATUSES = ["open", "applied", "rejected", "withdrawn", "outdated"] as const;
export type ProposalStatus = (typeof PROPOSAL_STATUSES)[number];

/** Default number of proposals per page. */
export const PROPOSALS_LIMIT = 20;
const ID = "prop_018f3c5e7a4b7cc09d3e5f6a7b8c9d0e";

/** Id of a proposal in a path. */
export const ProposalId = Type.String({ maxLength: 64, examples: [ID] });

const Comment = text({ min: 0, max: COMMENT_LENGTH_MAX, examples: ["After the campaign"] });

/** Body of a proposal: fields of a save, or the deletion. */
export const FlagProposalBody = named("FlagProposalBody", {
  ...FlagChange.properties,
  ...SCHEDULED,
  ...MANAGED,
  delete: Type.Optional(
    flag({ description: "Whether the flag is to be deleted. Then no other field of the flag is allowed." }),
  ),
  comment: Type.Optional(orNull(Comment, { description: "Reason, for those who decide." })),
});
export type FlagProposalBody = Static<typeof FlagProposalBody>;

/** Body of a rejection. */
export const FlagProposalRejectBody = named("FlagProposalRejectBody", {
  comment: Type.Optional(orNull(Comment, { description: "Reason of the rejection." })),
});
export type FlagProposalRejectBody = Static<typeof FlagProposalRejectBody>;

const Fields = Type.Object({}, { additionalProperties: true, examples: [{ enabled: true }] });

export const FlagProposal = named("FlagProposal", {
  proposal_id: Type.String({ examples: [ID] }),
  flag_key: Type.String({ examples: ["new-checkout"] }),
  status: oneOf(PROPOSAL_STATUSES, {
    description:
      "`outdated`: the flag has changed in another way since the change was proposed. Propose it again.",
  }),
  base_version: orNull(Type.Integer(), {
    description: "Version of the flag when the change was proposed; null if there was no flag.",
    examples: [7],
  }),
  before: orNull(Fields, {
    description: "Changed fields before the change; null for a new flag.",
    examples: [{ enabled: false }],
  }),
  after: orNull(Fields, {
    description: "Changed fields after the change; null for a deletion.",
    examples: [{ enabled: true }],
  }),
  proposed_by: Actor,
  decided_by: orNull(Actor),
  comment: orNull(Type.String(), { examples: ["After the campaign"] }),
  decision_comment: orNull(Type.String(), { description: "Reason of a rejection.", examples: [null] }),
  created_at: dateTime(),
  decided_at: orNull(dateTime(), {
    description: "Time of the decision; null while it is open, and for `outdated`.",
  }),
});
export type FlagProposal = Static<typeof FlagProposal>;

export const FlagProposalQuery = Type.Object({
  status: Type.Optional(
    oneOf(PROPOSAL_STATUSES, { description: "Returns only proposals with this status." }),
  ),
  ...pageQuery(PROPOSALS_LIMIT).properties,
});
export type FlagProposalQuery = Static<typeof FlagProposalQuery>;

export const FlagProposalPage = named("FlagProposalPage", {
  proposals: Type.Array(FlagProposal),
  cursor: NextCursor,
});
export type FlagProposalPage = Static<typeof FlagProposalPage>;
