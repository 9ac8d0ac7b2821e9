import type { Witness } from "../../../client/generated/api.ts";
import { count } from "../core/format.ts";
import { useCall } from "../core/resource.ts";
import { Button } from "../ui/button.tsx";
import { openDialog } from "../ui/dialog.tsx";
import { DataForm } from "../ui/form.tsx";
import type { Kind } from "../ui/kinds.ts";
import { Facts, Panel } from "../ui/page.tsx";
import { Ago } from "../ui/time.tsx";

/** Witnesses, one per line: URL, verifier key, and optionally a name. @throws Error for a line without a key */
const WITNESSES: Kind = {
  show: (value) =>
    ((value ?? []) as Witness[]).map(({ url, vkey, name }) => `${url} ${vkey} ${name}`).join("\n"),
  read: (text) =>
    text
      .split("\n")
      .map((line) => line.split(/\s+/).filter((word) => word !== ""))
      .filter((words) => words.length > 0)
      .map(([url = "", vkey, ...name]) => {
        if (vkey === undefined) throw new Error(`"${url}" has no verifier key. Use the form URL key name.`);
        return { url, vkey, ...(name.length > 0 && { name: name.join(" ") }) };
      }),
  input: { placeholder: "https://witness.example/v1/witness/peer witness.example+84c42f62+BBOY…" },
  rows: 4,
  mono: true,
  hint: "One per line: URL, verifier key and, if you like, a name. At most 8.",
};

function edit(witnesses: readonly Witness[]): void {
  openDialog((close) => (
    <DataForm
      title="Witnesses of the chain"
      submit="Save witnesses"
      operation="witness.witnesses.set"
      start={{ witnesses }}
      fields={[{ name: "witnesses", kind: WITNESSES, required: false }]}
      // An empty list removes all.
      adapt={(body) => ({ witnesses: [], ...body })}
      done="Witnesses saved"
      onDone={close}
      onClose={close}
    />
  ));
}

/** The witnesses of the chain, with what they have cosigned, and a form to change them. */
export function Witnesses() {
  const { data, fresh } = useCall("witness.witnesses.read", {}, ["witness"]);
  if (data === null) return null;
  const { witnesses } = data;
  return (
    <Panel
      title="Witnesses"
      actions={
        <Button operation="witness.witnesses.set" disabled={!fresh} onClick={() => edit(witnesses)}>
          Edit…
        </Button>
      }
    >
      {witnesses.length === 0 ? (
        <p class="quiet">None. A witness confirms that the chain only grew.</p>
      ) : (
        <Facts of={witnesses.map((witness) => [witness.name, <State key={witness.vkey} of={witness} />])} />
      )}
    </Panel>
  );
}

function State({ of: { cosigned_size, cosigned_at, last_error } }: { of: Witness }) {
  return (
    <>
      {cosigned_at === null ? "Nothing cosigned yet" : `Cosigned ${count(cosigned_size, "receipt")} `}
      {cosigned_at === null ? null : <Ago at={cosigned_at} />}
      {last_error === null ? null : <p class="problem">{last_error}</p>}
    </>
  );
}
