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

/** Replays many events of a bucket; says first how many they are. */
export function ReplayForm({ bucket: bucket_id, onClose, onDone }: ReplayFormProps) {
  const [hours, setHours] = useState<string>("24");
  const [which, setWhich] = useState<string>("failed");
  // Of the dialog's beginning: what is counted is what is sent.
  const [openedAt] = useState(() => Date.now());
  const since = new Date(openedAt - Number(hours) * HOUR_MS).toISOString();
  const status = WHICH.find(([one]) => one === which)?.[0] ?? "failed";
  const params = { bucket_id };
  const count = useResource(`replay ${bucket_id} ${since} ${status}`, [], (signal) =>
    call("catch.replays.start", { params, body: { since, status, dry_run: true } }, signal),
  );
  return (
    <Dialog title="Replay many" onClose={onClose}>
      <Form
        submit="Replay"
        disabled={count.data === null || count.data.matched === 0}
        scope="catch:write"
        onCancel={onClose}
        onSubmit={async () => {
          const { matched } = await call("catch.replays.start", { params, body: { since, status } });
          toast(`${matched} ${matched === 1 ? "event is" : "events are"} replayed`);
          onDone();
          onClose();
        }}
      >
        <div class="stack">
          <div class="two">
            <SelectField name="status" label="State" options={WHICH} value={which} onChange={setWhich} />
            <SelectField name="hours" label="Received in" options={SINCE} value={hours} onChange={setHours} />
          </div>
          <Loaded of={count}>
            {({ matched, more }) => (
              <p>
                {more === true ? `The oldest ${matched}` : matched} match, 10 a second, 1 credit for each that
                the target takes. The bucket must be live.
              </p>
            )}
          </Loaded>
        </div>
      </Form>
    </Dialog>
  );
}
