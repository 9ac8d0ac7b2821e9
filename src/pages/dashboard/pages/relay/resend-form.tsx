import { useState } from "preact/hooks";
import { call } from "../../core/api.ts";
import { useResource } from "../../core/resource.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { SelectField } from "../../ui/field.tsx";

const HOUR_MS = 3_600_000;
const SINCE = [
  ["1", "the last hour"],
  ["24", "the last 24 hours"],
  ["168", "the last 7 days"],
] as const;

/** Sends failed deliveries again; says first how many they are. */
export function ResendForm({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [hours, setHours] = useState<string>("24");
  // Of the dialog's beginning: what is counted is what is sent.
  const [openedAt] = useState(() => Date.now());
  const since = openedAt - Number(hours) * HOUR_MS;
  const count = useResource(`resend ${since}`, [], (signal) =>
    call("relay.resends.start", { body: { since, dry_run: true } }, signal),
  );
  return (
    <Dialog title="Send failed deliveries again" onClose={onClose}>
      <Form
        submit="Send again"
        disabled={count.data === null || count.data.matched === 0}
        scope="relay:write"
        onCancel={onClose}
        onSubmit={async () => {
          const { matched } = await call("relay.resends.start", { body: { since } });
          toast(`${matched} ${matched === 1 ? "delivery is" : "deliveries are"} sent again`);
          onDone();
          onClose();
        }}
      >
        <div class="stack">
          <SelectField name="hours" label="Created in" options={SINCE} value={hours} onChange={setHours} />
          <Loaded of={count}>
            {({ matched, more }) => (
              <p>
                {more === true ? `The oldest ${matched}` : matched} failed, 10 a second, 1 credit each. Each
                comes under the id that it had.
              </p>
            )}
          </Loaded>
        </div>
      </Form>
    </Dialog>
  );
}
