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
const WHICH = [
  ["failed", "failed"],
  ["pending", "pending"],
  ["delivered", "delivered"],
] as const;

interface ReplayFormProps {
  readonly bucket: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Replays many events of a bucket; shows first how many match. */
export function ReplayForm({ bucket: bucket_id, onClose, onDone }: ReplayFormProps) {
  const [hours, setHours] = useState<string>("24");
  const [which, setWhich] = useState<string>("failed");
  // The time when the dialog was opened, so that the events counted are the events sent.
  const [openedAt] = useState(() => Date.now());
  const since = new Date(openedAt - Number(hours) * HOUR_MS).toISOString();
  const status = WHICH.find(([one]) => one === which)?.[0] ?? "failed";
  const params = { bucket_id };
  const matching = useResource(`replay ${bucket_id} ${since} ${status}`, [], (signal) =>
    call("catch.replays.start", { params, body: { since, status, dry_run: true } }, signal),
  );
  return (
    <Dialog title="Replay events" onClose={onClose}>
      <Form
        submit="Replay"
        disabled={matching.data === null || matching.data.matched === 0}
        scope="catch:write"
        onCancel={onClose}
        onSubmit={async () => {
          const { matched } = await call("catch.replays.start", { params, body: { since, status } });
          toast(`Replaying ${count(matched, "event")}`);
          onDone();
          onClose();
        }}
      >
        <div class="stack">
          <div class="two">
            <SelectField name="status" label="State" options={WHICH} value={which} onChange={setWhich} />
            <SelectField name="hours" label="Received" options={SINCE} value={hours} onChange={setHours} />
          </div>
          <Loaded of={matching}>
            {({ matched, more }) => (
              <p>
                {more === true ? `The oldest ${matched}` : matched} matching events are replayed at 10 per
                second. Each successful delivery costs 1 credit. The bucket must be live.
              </p>
            )}
          </Loaded>
        </div>
      </Form>
    </Dialog>
  );
}
