import type { FlagChange, FlagDefinition, ScheduledFlagChange } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { HOUR_MS } from "../../core/format.ts";
import { serverNow } from "../../core/now.ts";
import { toast } from "../../core/toasts.ts";
import { Button, CurlButton } from "../../ui/button.tsx";
import { Dialog, Form, openDialog } from "../../ui/dialog.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";
import { localTime, rfcTime } from "../../ui/kinds.ts";
import { Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { DateTime } from "../../ui/time.tsx";
import { nameOf } from "../audit-list.tsx";
import { PROPOSED, proposing, saveFlag } from "./save-flag.ts";

interface Props {
  readonly flag: FlagDefinition;
  /** The changes that are not saved. @throws Error while they are incomplete */
  readonly changes: () => FlagChange;
  readonly onChanged: () => void;
}

const LATER = "The changes above that are not saved";

/** The changes of a flag that apply later. */
export function SchedulePanel({ flag, changes, onChanged }: Props) {
  const { flag_key, scheduled } = flag;
  const first = { at: "2030-01-01T00:00:00Z", set: { enabled: !flag.enabled } };
  const request = { body: { flag_key, enabled: flag.enabled, scheduled: [first] } };
  return (
    <Panel
      title="Scheduled changes"
      actions={
        <>
          <CurlButton request={requestOf("gate.save", request)} />
          <Button
            operation="gate.save"
            onClick={() =>
              openDialog((close) => (
                <ScheduleDialog flag={flag} changes={changes} onChanged={onChanged} onClose={close} />
              ))
            }
          >
            Schedule…
          </Button>
        </>
      }
    >
      {scheduled.length === 0 ? (
        <p class="quiet">None. A scheduled change applies by itself at its time.</p>
      ) : (
        <Table
          label="Scheduled changes"
          rows={scheduled}
          keyOf={({ id }) => id}
          columns={[
            { head: "Time", cell: ({ at }) => <DateTime at={at} /> },
            {
              head: "Change",
              cell: ({ set }) => changeText(set),
              sub: ({ status, error }) => (
                <>
                  {error}
                  <span class="narrow">
                    <Status state={status} />
                  </span>
                </>
              ),
            },
            { head: "By", layout: "wide", cell: ({ by }) => nameOf(by) },
            { head: "Status", layout: "fit wide", cell: ({ status }) => <Status state={status} /> },
            {
              head: "Actions",
              layout: "fit",
              cell: (change) => <CancelButton flag={flag} change={change} onChanged={onChanged} />,
            },
          ]}
        />
      )}
    </Panel>
  );
}

function CancelButton(props: { flag: FlagDefinition; change: ScheduledFlagChange; onChanged: () => void }) {
  const { flag, change, onChanged } = props;
  const { flag_key: flagKey } = flag;
  const isPending = change.status === "pending";
  const cancel = async (): Promise<void> => {
    const params = { flagKey, id: change.id };
    const done = await proposing(
      flagKey,
      () => call("gate.scheduled.cancel", { params }),
      // The others stay.
      () => ({ scheduled: flag.scheduled.filter(({ id }) => id !== change.id) }),
    );
    toast(done === "proposed" ? PROPOSED : isPending ? "Change cancelled" : "Change removed");
    onChanged();
  };
  return (
    <Button operation="gate.scheduled.cancel" onClick={cancel}>
      {isPending ? "Cancel" : "Remove"}
    </Button>
  );
}

function ScheduleDialog({ flag, changes, onChanged, onClose }: Props & { onClose: () => void }) {
  const { flag_key, enabled, version } = flag;
  const unsaved = unsavedOf(changes);
  const options: readonly (readonly [string, string])[] = [
    ...(unsaved === null ? [] : [["unsaved", LATER] as const]),
    ["on", "Switch the flag on"],
    ["off", "Switch the flag off"],
  ];
  return (
    <Dialog title={`Schedule a change of ${flag_key}`} onClose={onClose}>
      <Form
        submit="Schedule"
        operation="gate.save"
        onCancel={onClose}
        onSubmit={async (form) => {
          const what = form.get("set");
          const set = what === "unsaved" && unsaved !== null ? unsaved : { enabled: what === "on" };
          const at = rfcTime(String(form.get("at")));
          const scheduled = [...flag.scheduled, { at, set }];
          const done = await saveFlag({ flag_key, enabled, scheduled, if_version: version });
          toast(done === "saved" ? "Change scheduled" : PROPOSED);
          onChanged();
          onClose();
        }}
      >
        <TextField
          name="at"
          label="Time"
          type="datetime-local"
          value={localTime(serverNow() + HOUR_MS)}
          required
        />
        <SelectField
          name="set"
          label="Change"
          value={unsaved === null ? (enabled ? "off" : "on") : "unsaved"}
          options={options}
        />
      </Form>
    </Dialog>
  );
}

/** Null if there are none, or while they are incomplete. */
function unsavedOf(changes: () => FlagChange): FlagChange | null {
  try {
    const unsaved = changes();
    return Object.keys(unsaved).length === 0 ? null : unsaved;
  } catch {
    return null;
  }
}

/** A change in a few words: the switch, and the names of the other fields. */
function changeText({ enabled, ...fields }: FlagChange): string {
  const names = Object.keys(fields).map((name) => name.replaceAll("_", " "));
  const switched = enabled === undefined ? [] : [enabled === true ? "switch on" : "switch off"];
  return [...switched, ...(names.length === 0 ? [] : [`change ${names.join(", ")}`])].join("; ");
}
