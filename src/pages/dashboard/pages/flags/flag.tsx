import type { FlagDefinition } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { HOUR_MS, instant } from "../../core/format.ts";
import { minute } from "../../core/now.ts";
import { useCall } from "../../core/resource.ts";
import { go, href } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { Empty, Loaded } from "../../ui/feedback.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Ago } from "../../ui/time.tsx";
import { History } from "../audit-list.tsx";
import { FlagEditor } from "./flag-editor.tsx";
import { Evaluations } from "./flag-evaluations.tsx";
import { Proposals } from "./flag-proposals.tsx";
import { FlagSwitch } from "./flag-switch.tsx";
import { PROPOSED, proposing, saveFlag } from "./save-flag.ts";

/** A flag. */
export function FlagPage({ id }: { id: string }) {
  const params = { flagKey: id };
  const definition = useCall("gate.definition", { params }, ["gate"]);
  const { data: flag, reload } = definition;
  return (
    <Page
      title={id}
      up={[href(["flags"]), "Flags"]}
      status={flag === null ? null : <FlagSwitch flag={flag} onChanged={reload} />}
      request={requestOf("gate.definition", { params })}
      actions={
        <>
          {flag === null ? null : <ArchiveButton flag={flag} onChanged={reload} />}
          <Button
            kind="danger"
            operation="gate.delete"
            disabled={flag === null}
            onClick={() => deleteFlag(id)}
          >
            Delete…
          </Button>
        </>
      }
    >
      <div class="stack">
        <Loaded
          of={definition}
          missing={
            <Empty icon="flags" title="Flag not found">
              It may have been deleted.
            </Empty>
          }
        >
          {(known) => (
            <>
              <State of={known} />
              <Evaluations id={id} />
              <FlagEditor flag={known} onChanged={reload} />
            </>
          )}
        </Loaded>
        <Proposals flagKey={id} onChanged={reload} />
        <History type="flag" id={id} />
      </div>
    </Page>
  );
}

const STALE_REASONS: Readonly<Record<NonNullable<FlagDefinition["stale_reason"]>, string>> = {
  unused: "not evaluated for 30 days",
  one_outcome: "it has only one outcome",
  one_value: "all evaluations of 30 days had the same value",
};

function State({ of: flag }: { of: FlagDefinition }) {
  const { version, created_at, updated_at, last_evaluated_at, stale_reason, archived } = flag;
  const state = archived
    ? "archived: excluded from evaluations"
    : stale_reason === null
      ? "in use"
      : `stale, ${STALE_REASONS[stale_reason]}: consider removing it`;
  return (
    <Panel>
      <Facts
        of={[
          ["State", state],
          ["Version", version],
          ["Created", created_at === null ? "–" : <Ago at={created_at} />],
          ["Updated", <Ago key="changed" at={updated_at} />],
          ["Last evaluated", <LastEvaluated key="e" at={last_evaluated_at} />],
        ]}
      />
    </Panel>
  );
}

/** The server stores the hour only, so an age in minutes would be wrong. */
function LastEvaluated({ at }: { at: string | null }) {
  if (at === null) return "never individually";
  return minute.value - instant(at) < HOUR_MS ? "in the last hour" : <Ago at={at} />;
}

function ArchiveButton({ flag, onChanged }: { flag: FlagDefinition; onChanged: () => void }) {
  const { flag_key, enabled, archived } = flag;
  const change = async (): Promise<void> => {
    const done = await saveFlag({ flag_key, enabled, archived: !archived });
    toast(done === "proposed" ? PROPOSED : archived ? `${flag_key} restored` : `${flag_key} archived`);
    onChanged();
  };
  return (
    <Button operation="gate.save" onClick={change}>
      {archived ? "Restore" : "Archive"}
    </Button>
  );
}

function deleteFlag(id: string): void {
  openDialog((close) => (
    <Confirm
      title={`Delete ${id}?`}
      action="Delete flag"
      onConfirm={async () => {
        const done = await proposing(
          id,
          () => call("gate.delete", { params: { flagKey: id } }),
          () => ({ delete: true }),
        );
        if (done === "saved") go(["flags"]);
        toast(done === "saved" ? `${id} deleted` : PROPOSED);
      }}
      onClose={close}
    >
      <p>
        Evaluations of <strong>{id}</strong> will return “not found”. To keep its definition, archive it
        instead.
      </p>
    </Confirm>
  ));
}
