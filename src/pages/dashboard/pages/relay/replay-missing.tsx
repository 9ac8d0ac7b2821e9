import { useEffect, useState } from "preact/hooks";
import type { RelayEndpoint } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { count, DAY_MS, formatNumber } from "../../core/format.ts";
import { serverNow } from "../../core/now.ts";
import { useResource } from "../../core/resource.ts";
import { place, setQuery } from "../../core/route.ts";
import { RATES, Running } from "../../ui/bulk.tsx";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";
import { localTime } from "../../ui/kinds.ts";

/** Sends an endpoint the messages of a time that it missed. The dialog counts them before the start. */
export function ReplayMissing({ of: endpoint, onClose }: { of: RelayEndpoint; onClose: () => void }) {
  const [from] = useState(() => localTime(serverNow() - DAY_MS));
  const [since, setSince] = useState(from);
  const [until, setUntil] = useState("");
  const params = { endpoint_id: endpoint.endpoint_id };
  const ofTime = {
    since: Date.parse(since),
    ...(until === "" ? {} : { until: Date.parse(until) }),
  };
  const key = since === "" ? null : `missing ${endpoint.endpoint_id} ${since} ${until}`;
  const missing = useResource(key, [], (signal) =>
    call("relay.endpoints.recover", { params, body: { ...ofTime, dry_run: true } }, signal),
  );
  const { data, failure, fresh } = missing;
  const isLive = endpoint.state === "live";
  const isCounted = fresh && failure === null && data !== null;
  const more = data?.more === true ? "+" : "";
  return (
    <Dialog title="Replay missing messages" onClose={onClose}>
      <Form
        submit={isCounted ? `Replay ${count(data.matched, "message")}` : "Replay"}
        operation="relay.endpoints.recover"
        disabled={!isLive || !isCounted || data.matched === 0}
        onCancel={onClose}
        onSubmit={async (form) => {
          const body = { ...ofTime, per_second: Number(form.get("per_second")) };
          const started = await call("relay.endpoints.recover", { params, body });
          if ("resend_id" in started) setQuery({ run: started.resend_id });
          onClose();
        }}
      >
        <p class="prose">
          Sends every message that matches this endpoint and was not delivered to it: it was disabled, was
          created later, or the delivery failed. Each costs 1 credit.
        </p>
        <TextField
          name="since"
          label="Since"
          type="datetime-local"
          value={from}
          required
          onInput={setSince}
          hint="Messages of the last 7 days can be replayed."
        />
        <TextField
          name="until"
          label="Until"
          type="datetime-local"
          onInput={setUntil}
          hint="Leave empty for now."
        />
        <SelectField name="per_second" label="Rate" value="10" options={RATES} />
        <p class="note" role="status">
          {!isLive
            ? "Enable the endpoint first: while it is paused or disabled, nothing is replayed."
            : failure !== null
              ? failure.message
              : isCounted
                ? `${formatNumber(data.matched)}${more} ${data.matched === 1 ? "message" : "messages"} missing`
                : since === ""
                  ? "Enter a time."
                  : "Counting…"}
        </p>
      </Form>
    </Dialog>
  );
}

/** The progress of the run that the address names, or that is running: its end is shown until it is closed. */
export function ReplayProgress({
  running,
  onDone,
}: {
  readonly running: string | undefined;
  readonly onDone: () => void;
}) {
  const run = place.value.query.get("run");
  useEffect(() => {
    if (running !== undefined && place.value.query.get("run") === null) setQuery({ run: running });
  }, [running]);
  if (run === null) return null;
  return (
    <Running
      key={run}
      id={run}
      verb="Replay"
      operation="relay.resends.stop"
      read={async (resend_id, signal) => {
        const read = await call("relay.resends.read", { params: { resend_id } }, signal);
        const outcome = read.skipped === 0 ? "" : ` · ${formatNumber(read.skipped)} skipped`;
        return { ...read, sent: read.resent, outcome };
      }}
      stop={(resend_id) => call("relay.resends.stop", { params: { resend_id } })}
      onDone={onDone}
    />
  );
}
