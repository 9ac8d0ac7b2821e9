import type { Actor } from "../../../kernel/audit/actor.ts";
import { difference } from "../../../kernel/audit/change.ts";
import { prefixedId } from "../../../kernel/data/uuid.ts";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import { pageStart, pageWithin } from "../../../kernel/http/requests/pagination.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { AuditChange, Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import { FlagChange } from "../definitions/change.ts";
import {
  assertKeyAllowed,
  byteLength,
  OPEN_PROPOSALS_BYTES_MAX,
  OPEN_PROPOSALS_MAX,
  PROPOSALS_PER_PROJECT_MAX,
} from "../domain.ts";
import {
  type FlagProposal,
  type FlagProposalBody,
  type FlagProposalPage,
  type FlagProposalQuery,
  PROPOSALS_LIMIT,
  type ProposalStatus,
} from "./schema.ts";
import type { ProposalRow, ProposalStore } from "./store.ts";

/** A change of a flag: fields of a save, or null to delete it. */
export type ProposedChange = (FlagChange & { readonly scheduled?: unknown }) | null;

/** Who proposes or decides. */
export interface Participant {
  readonly projectRef: number;
  readonly accountRef: number;
  /** The person or the key. */
  readonly identity: string;
  readonly actor: Actor;
}

/** What proposals need of the flags. */
export interface ProposedFlags {
  /** The entry of the audit log that a change would cause, and the version of the flag; null without one. */
  draft(
    tx: Tx,
    participant: Participant,
    flagKey: string,
    change: ProposedChange,
  ): { readonly version: number | null; readonly entry: AuditChange | null; readonly credits: number };
  /** Applies a change. @throws as a save or a deletion. */
  apply(
    tx: Tx,
    participant: Participant,
    flagKey: string,
    change: ProposedChange,
    audit: (entry: AuditChange | null) => void,
  ): void;
}

/** Characters of changes after which a page of proposals ends: writing it takes a few milliseconds. */
const PAGE_LENGTH_MAX = 256 * 1024;

const NAMES = [...Object.keys(FlagChange.properties), "scheduled", "managed_by"];

/** Changes of flags that somebody else has to approve. */
export class Proposals {
  constructor(
    private readonly store: ProposalStore,
    private readonly flags: ProposedFlags,
    private readonly ids: Ids,
  ) {}

  /**
   * Proposes a change. An equal open proposal of the same proposer is returned instead of a second one. `charge` charges the
   * credits of a large change.
   * @throws ApiError `gate.rule_invalid`, `flag_not_found` for a deletion, `proposal_limit_exceeded`; errors of `charge`.
   */
  propose(
    tx: Tx,
    participant: Participant,
    flagKey: string,
    body: FlagProposalBody,
    charge: (credits: number) => void,
  ): FlagProposal {
    assertKeyAllowed(flagKey);
    const { projectRef, identity, actor } = participant;
    const change = changeIn(body);
    const { version, entry, credits } = this.flags.draft(tx, participant, flagKey, change);
    const json = change && JSON.stringify(change);
    const known = this.store
      .openOfFlag(projectRef, flagKey)
      .find((open) => open.proposer === identity && open.change === json && open.base_version === version);
    if (known !== undefined) {
      tx.audit(null);
      return proposalView(known);
    }
    if (this.store.openCount(projectRef) >= OPEN_PROPOSALS_MAX)
      throw new ApiError(
        "proposal_limit_exceeded",
        `The project has ${OPEN_PROPOSALS_MAX} open proposals, the maximum. Decide some of them first.`,
      );
    const { before = null, after = null } = entry ?? {};
    const [was, became] =
      before !== null && after !== null
        ? [difference(before, after), difference(after, before)]
        : [before, after];
    const texts = { was: was && JSON.stringify(was), became: became && JSON.stringify(became) };
    const bytes = byteLength(json) + byteLength(texts.was) + byteLength(texts.became);
    if (this.store.openBytes(projectRef) + bytes > OPEN_PROPOSALS_BYTES_MAX)
      throw new ApiError(
        "proposal_limit_exceeded",
        `The open proposals of the project would have more than ${OPEN_PROPOSALS_BYTES_MAX} bytes together. Decide some of them first.`,
      );
    if (credits > 0) charge(credits);
    if (this.store.count(projectRef) >= PROPOSALS_PER_PROJECT_MAX)
      this.store.removeOldestDecided(tx, projectRef);
    const row = {
      id: prefixedId("prop", this.ids.uuidV7()),
      project_ref: projectRef,
      flag_key: flagKey,
      status: "open" as const,
      base_version: version,
      change: json,
      ...texts,
      comment: body.comment ?? null,
      proposer: identity,
      proposed_by: JSON.stringify(actor),
      decided_by: null,
      decision_comment: null,
      created_at: tx.now,
      decided_at: null,
    };
    this.store.insert(tx, row);
    tx.audit(aboutProposal(row, "proposed"));
    return proposalView(row);
  }

  /** The proposals of a flag, or of all flags of a project, newest first. */
  list(
    projectRef: number,
    flagKey: string | null,
    { status, limit = PROPOSALS_LIMIT, cursor }: FlagProposalQuery,
  ): FlagProposalPage {
    const page = { projectRef, before: pageStart(cursor), status: status ?? null, rowsMax: limit + 1 };
    const rows = flagKey === null ? this.store.ofProject(page) : this.store.ofFlag({ ...page, flagKey });
    const { items, ...next } = pageWithin(
      rows,
      { limit, lengthMax: PAGE_LENGTH_MAX },
      ({ was, became }) => (was?.length ?? 0) + (became?.length ?? 0),
      ({ ref }) => [ref],
    );
    return { proposals: items.map(proposalView), ...next };
  }

  /** @throws ApiError `not_found` */
  get(projectRef: number, flagKey: string, id: string): FlagProposal {
    return proposalView(this.find(projectRef, flagKey, id));
  }

  /**
   * Applies a proposal of somebody else.
   * @throws ApiError `not_found`, `own_proposal`, `conflict` for one that is not open; errors of a save.
   */
  approve(tx: Tx, participant: Participant, flagKey: string, id: string): FlagProposal {
    const row = this.find(participant.projectRef, flagKey, id);
    if (row.proposer === participant.identity)
      throw new ApiError("own_proposal", "You have made this proposal. Somebody else must approve it.");
    assertOpen(row);
    // Before the change, which outdates all open proposals of the flag.
    const decided = this.decide(tx, participant, row, "applied", null);
    const change = row.change === null ? null : (JSON.parse(row.change) as ProposedChange);
    this.flags.apply(tx, participant, flagKey, change, (entry) => {
      tx.audit(entry && { ...entry, summary: `${entry.summary}, as proposed` });
    });
    return decided;
  }

  /** Rejects or withdraws a proposal. @throws ApiError `not_found`, `conflict` for one that is not open. */
  close(
    tx: Tx,
    participant: Participant,
    flagKey: string,
    id: string,
    outcome: { readonly status: "rejected" | "withdrawn"; readonly comment?: string | null },
  ): FlagProposal {
    const row = this.find(participant.projectRef, flagKey, id);
    assertOpen(row);
    tx.audit(aboutProposal(row, outcome.status, outcome.comment));
    return this.decide(tx, participant, row, outcome.status, outcome.comment ?? null);
  }

  private find(projectRef: number, flagKey: string, id: string): ProposalRow {
    const row = this.store.find(projectRef, flagKey, id);
    if (row === null) throw new ApiError("not_found", "The flag has no proposal with this id.");
    return row;
  }

  private decide(
    tx: Tx,
    { actor }: Participant,
    row: ProposalRow,
    status: ProposalStatus,
    decision_comment: string | null,
  ): FlagProposal {
    const decided = { status, decided_by: JSON.stringify(actor), decision_comment, decided_at: tx.now };
    this.store.decide(tx, { ref: row.ref, ...decided });
    return proposalView({ ...row, ...decided });
  }
}

/** @throws ApiError `conflict` */
function assertOpen({ status }: ProposalRow): void {
  if (status === "open") return;
  throw new ApiError(
    "conflict",
    status === "outdated"
      ? "The flag has changed since this change was proposed. Propose it again."
      : `This proposal is already ${status}.`,
  );
}

/** @throws ApiError `validation_error` */
function changeIn({ delete: isDeletion = false, ...fields }: FlagProposalBody): ProposedChange {
  const change = Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => NAMES.includes(name) && value !== undefined),
  );
  const isEmpty = Object.keys(change).length === 0;
  if (isDeletion && !isEmpty) throw invalidField("delete", "cannot be combined with fields of the flag");
  if (!isDeletion && isEmpty) throw invalidField("body", "must have fields of a save, or delete: true");
  return isDeletion ? null : change;
}

function aboutProposal(
  { flag_key, id, status, comment }: Omit<ProposalRow, "ref">,
  what: "proposed" | "rejected" | "withdrawn",
  decisionComment: string | null = null,
): AuditChange {
  const isNew = what === "proposed";
  const reason = isNew ? comment : decisionComment;
  return {
    summary: `Change of flag ${flag_key} ${what}`,
    target: { type: "flag", id: flag_key },
    before: isNew ? null : { status },
    after: {
      proposal_id: id,
      status: isNew ? status : what,
      ...(reason === null ? {} : { comment: reason }),
    },
  };
}

function proposalView(row: Omit<ProposalRow, "ref">): FlagProposal {
  const { id: proposal_id, flag_key, status, base_version, comment, decision_comment } = row;
  return {
    proposal_id,
    flag_key,
    status,
    base_version,
    before: row.was === null ? null : JSON.parse(row.was),
    after: row.became === null ? null : JSON.parse(row.became),
    proposed_by: JSON.parse(row.proposed_by),
    decided_by: row.decided_by === null ? null : JSON.parse(row.decided_by),
    comment,
    decision_comment,
    created_at: isoTime(row.created_at),
    decided_at: isoTimeOrNull(row.decided_at),
  };
}
