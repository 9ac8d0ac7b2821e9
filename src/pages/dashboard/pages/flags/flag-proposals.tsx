import { useState } from "preact/hooks";
import type { FlagProposal } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { useCall } from "../../core/resource.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/field.tsx";
import { Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { nameOf } from "../audit-list.tsx";
import { changedFields } from "../server/audit-diff.ts";

type Part = "open" | "all";

const PARTS: readonly (readonly [Part, string])[] = [
  ["open", "Open"],
  ["all", "All"],
];

interface Props {
  readonly flagKey: string;
  readonly onChanged: () => void;
}

/** The proposed changes of a flag, with their difference and the decision. */
export function Proposals({ flagKey, onChanged }: Props) {
  const [part, setPart] = useState<Part>("open");
  const status = part === "open" ? { status: "open" as const } : {};
  // No pages: a project has at most as many open ones, and new ones must not be held back.
  const list = useCall(
    "gate.proposals.list_of_flag",
    { params: { flagKey }, query: { ...status, limit: 100 } },
    ["gate"],
  );
  const proposals = list.data?.proposals ?? [];
  if (proposals.length === 0 && part === "open" && list.data !== null) return null;
  const changed = (): void => {
    list.reload();
    onChanged();
  };
  return (
    <Panel
      title="Proposals"
      actions={<Choice label="Proposals" options={PARTS} value={part} onChange={setPart} />}
    >
      <Table
        label="Proposals"
        rows={proposals}
        keyOf={({ proposal_id }) => proposal_id}
        columns={[
          {
            head: "Change",
            cell: (proposal) => <Difference of={proposal} />,
            sub: ({ comment, proposed_by, created_at, status }) => (
              <>
                {comment}
                <span class="narrow">
                  {comment === null ? null : <br />}
                  {nameOf(proposed_by)}, <Ago at={created_at} />
                  <br />
                  <Status state={status} />
                </span>
              </>
            ),
          },
          {
            head: "By",
            layout: "wide",
            cell: ({ proposed_by }) => nameOf(proposed_by),
            sub: ({ created_at }) => <Ago at={created_at} />,
          },
          {
            head: "Status",
            layout: "fit wide",
            cell: ({ status }) => <Status state={status} />,
            sub: ({ decided_by }) => (decided_by === null ? null : nameOf(decided_by)),
          },
          {
            head: "Decision",
            layout: "fit",
            cell: (proposal) =>
              proposal.status === "open" ? <Decision of={proposal} onChanged={changed} /> : "–",
          },
        ]}
      />
    </Panel>
  );
}

function Difference({ of: { before, after } }: { of: FlagProposal }) {
  if (after === null) return <>Delete the flag</>;
  return (
    <dl class="facts">
      {changedFields(before, after).map(({ name, parts }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {parts.map(({ value, removed, added }) =>
              removed ? <del>{value}</del> : added ? <ins>{value}</ins> : value,
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Decision({ of: proposal, onChanged }: { of: FlagProposal; onChanged: () => void }) {
  const params = { flagKey: proposal.flag_key, proposal_id: proposal.proposal_id };
  const decide = async (decision: Promise<FlagProposal>): Promise<void> => {
    const { status } = await decision;
    toast(`Proposal ${status}`);
    onChanged();
  };
  return (
    <span class="line">
      <Button
        operation="gate.proposals.approve"
        onClick={() => decide(call("gate.proposals.approve", { params }))}
      >
        Approve
      </Button>
      <Button
        operation="gate.proposals.reject"
        onClick={() => decide(call("gate.proposals.reject", { params, body: {} }))}
      >
        Reject
      </Button>
      <Button
        operation="gate.proposals.withdraw"
        onClick={() => decide(call("gate.proposals.withdraw", { params }))}
      >
        Withdraw
      </Button>
    </span>
  );
}
