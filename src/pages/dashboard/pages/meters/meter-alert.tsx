import type { MeterAlert, MeterState } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { useCall, useResource } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, openDialog } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { DataForm } from "../../ui/form.tsx";
import { Panel } from "../../ui/page.tsx";

interface MeterAlertProps {
  readonly id: string;
  readonly meter: MeterState | null;
  readonly onChange: () => void;
}

/** The low-balance alert of a meter. The alert is read after each read of a meter that has its own. */
export function LowBalanceAlert({ id, meter, onChange }: MeterAlertProps) {
  const input = meter?.alert === "meter" ? { params: { meterId: id } } : null;
  const { data: alert, fresh } = useCall("meter.alert.read", input, [], meter);
  const isKnown = meter !== null && (input === null || fresh);
  const edit = (): void =>
    openDialog((close) => <AlertForm id={id} of={alert} onDone={onChange} onClose={close} />);
  return (
    <Panel
      title="Low-balance alert"
      actions={
        <Button operation="meter.alert.set" disabled={!isKnown} onClick={edit}>
          {alert === null ? "Set alert…" : "Edit…"}
        </Button>
      }
    >
      {alert !== null ? (
        <p>
          Below {formatNumber(alert.threshold)} available credits, to{" "}
          <code class="long">{alert.webhook_url}</code>
        </p>
      ) : meter?.alert === "project" ? (
        <p>
          <a href={href(["meters"], { alert: "1" })}>The project’s alert</a> applies.
        </p>
      ) : (
        <p class="quiet">No alert.</p>
      )}
    </Panel>
  );
}

/** Edits the project's alert, which applies to meters without their own. */
export function ProjectAlert({ onClose }: { onClose: () => void }) {
  const read = useResource("project alert", [], async (signal) => {
    const { has_alert } = await call("meter.list", { query: { limit: 1 } }, signal);
    return { alert: has_alert === true ? await call("meter.alert.project.read", {}, signal) : null };
  });
  if (read.data === null || !read.fresh)
    return (
      <Dialog title={PROJECT_TITLE} onClose={onClose}>
        <Loaded of={{ ...read, data: null }}>{() => null}</Loaded>
      </Dialog>
    );
  return <AlertForm id={null} of={read.data.alert} onDone={() => undefined} onClose={onClose} />;
}

const PROJECT_TITLE = "Alert of the project";

interface AlertFormProps {
  /** Null for the project. */
  readonly id: string | null;
  readonly of: MeterAlert | null;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function AlertForm({ id, of, onDone, onClose }: AlertFormProps) {
  const params = { meterId: id ?? "" };
  const finish = (message: string): void => {
    toast(message);
    onDone();
    onClose();
  };
  const remove = async (): Promise<void> => {
    await (id === null ? call("meter.alert.project.delete", {}) : call("meter.alert.delete", { params }));
    finish("Alert deleted");
  };
  return (
    <DataForm
      title={id === null ? PROJECT_TITLE : `Alert of ${id}`}
      submit="Save alert"
      operation={id === null ? "meter.alert.project.set" : "meter.alert.set"}
      params={params}
      start={{ threshold: 100, ...of }}
      fields={[
        {
          name: "threshold",
          label: "Below",
          hint: "Available credits. Sent once each time they fall below.",
        },
        "webhook_url",
        id === null ? (
          <p key="who" class="quiet">
            Applies to all meters without their own alert.
          </p>
        ) : null,
        of === null ? null : (
          <Button key="delete" kind="danger" operation="meter.alert.delete" onClick={remove}>
            Delete alert
          </Button>
        ),
      ]}
      onDone={() => finish("Alert saved")}
      onClose={onClose}
    />
  );
}
