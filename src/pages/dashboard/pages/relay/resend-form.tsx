import { useState } from "preact/hooks";
import { call } from "../../core/api.ts";
import { count } from "../../core/format.ts";
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

/** Resends failed deliveries; shows first how many match. */
export function ResendForm({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [hours, setHours] = useState<string>("24");
  // The time when the dialog was opened, so that the deliveries counted are the deliveries sent.
  const [openedAt] = useState(() => Date.now());
  const since = openedAt - Number(hours) * HOUR_MS;
  const matching = useResource(`resend ${since}`, [], (signal) =>
    call("relay.resends.start", { body: { since, dry_run: true } }, signal),
  );
  return (
    <Dialog title="Resend failed deliveries" onClose={onClose}>
      <Form
        submit="Resend"
        disabled={matching.data === null || matching.data.matched === 0}
        scope="relay:write"
        onCancel={onClose}
        onSubmit={async () => {
          const { matched } = await call("relay.resends.start", { body: { since } });
          toast(`Resending ${count(matched, "delivery", "deliveries")}`);
          onDone();
          onClose();
        }}
      >
        <div class="stack">
          <SelectField name="hours" label="Created" options={SINCE} value={hours} onChange={setHours} />
          <Loaded of={matching}>
            {({ matched, more }) => (
              <p>
                {more === true ? `The oldest ${matched}` : matched} failed deliveries are resent at 10 per
                second with their original ids. Each costs 1 credit.
              </p>
            )}
          </Loaded>
        </div>
      </Form>
    </Dialog>
  );
}
