import type { Probe } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { count } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { DataForm } from "../../ui/form.tsx";
import { ListPage } from "../../ui/list.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { Secret } from "../keys/secret.tsx";

const EXAMPLE = { name: "fra", location: "Frankfurt" };

/** Probes, which check monitors from other places. */
export function ProbesPage() {
  const list = useList("monitors.probes.list", "probes", ["pulse"], { keyOf: ({ id }) => id });
  return (
    <ListPage
      title="Probes"
      label="Probes"
      request={requestOf("monitors.probes.list", {})}
      create={["New probe", "monitors.probes.create"]}
      list={list}
      none={{
        icon: "monitors",
        title: "No probes",
        request: requestOf("monitors.probes.create", { body: EXAMPLE }),
        text: "A probe is this program on another machine. It checks monitors from there, and the results are votes on whether a target is down.",
      }}
      columns={columnsOf(list.reload)}
      form={(close) => <NewProbe onClose={close} onDone={list.reload} />}
    />
  );
}

function columnsOf(onChanged: () => void): readonly Column<Probe>[] {
  return [
    { head: "Probe", cell: ({ name }) => name, sub: ({ location }) => location },
    { head: "State", cell: ({ status }) => <Status state={status} />, layout: "fit" },
    { head: "Last seen", cell: ({ last_seen_at }) => <Ago at={last_seen_at} />, layout: "wide" },
    { head: "Version", cell: ({ version }) => version ?? "–", layout: "fit wide" },
    { head: "Results to send", cell: ({ queue }) => count(queue, "result"), layout: "fit wide" },
    {
      head: "Clock",
      cell: ({ clock_offset_ms: ms }) => (ms === null ? "–" : `${ms > 0 ? "+" : ""}${ms} ms`),
      layout: "fit wide",
    },
    {
      head: "Actions",
      width: 10,
      cell: (probe) => (
        <div class="actions">
          <Button
            operation="monitors.probes.update"
            label={`Edit ${probe.name}`}
            onClick={() => openDialog((close) => <EditProbe of={probe} onClose={close} onDone={onChanged} />)}
          >
            Edit…
          </Button>
          <Button
            kind="danger"
            icon="delete"
            operation="monitors.probes.delete"
            label={`Delete ${probe.name}`}
            onClick={() => deleteProbe(probe, onChanged)}
          />
        </div>
      ),
      layout: "fit",
    },
  ];
}

interface FormProps {
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function NewProbe({ onDone, onClose }: FormProps) {
  return (
    <DataForm
      title="New probe"
      submit="Create probe"
      operation="monitors.probes.create"
      params={{}}
      fields={() => [
        { name: "name", placeholder: "fra" },
        { name: "location", placeholder: "Frankfurt" },
      ]}
      onDone={(probe) => {
        onDone();
        onClose();
        openDialog((close) => (
          <Secret title={`Token of ${probe.name}`} secret={probe.token ?? ""} onSaved={close}>
            <p>Store it in a file on the other machine, and start the probe there:</p>
            <Code
              what="Command"
              text={`ninefold probe --url ${location.origin} --token-file ${probe.name}.token`}
            />
          </Secret>
        ));
      }}
      onClose={onClose}
    />
  );
}

function EditProbe({ of: probe, onDone, onClose }: FormProps & { readonly of: Probe }) {
  return (
    <DataForm
      title={`Edit ${probe.name}`}
      submit="Save"
      operation="monitors.probes.update"
      params={{ probe_id: probe.id }}
      of={probe}
      fields={() => [{ name: "location", placeholder: "Frankfurt" }]}
      onDone={() => {
        toast("Probe updated");
        onDone();
        onClose();
      }}
      onClose={onClose}
    />
  );
}

function deleteProbe({ id, name }: Probe, onDone: () => void): void {
  openDialog((close) => (
    <Confirm
      title={`Delete ${name}?`}
      action="Delete probe"
      onConfirm={() => call("monitors.probes.delete", { params: { probe_id: id } }).then(onDone)}
      onClose={close}
    >
      <p>
        The token of <strong>{name}</strong> stops working immediately, and the probe leaves its monitors.
      </p>
    </Confirm>
  ));
}
