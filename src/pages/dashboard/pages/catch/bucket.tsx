import { useState } from "preact/hooks";
import type { Bucket } from "../../../../client/generated/api.ts";
import { BASE_URL, call, requestOf } from "../../core/api.ts";
import { useResource } from "../../core/resource.ts";
import { go } from "../../core/route.ts";
import { Button, CopyButton } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Page } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { History } from "../server/audit-list.tsx";
import { BucketEvents } from "./bucket-events.tsx";
import { BucketForm } from "./bucket-form.tsx";
import { BucketSettings } from "./bucket-settings.tsx";
import { TestEvent } from "./test-event.tsx";

type Open = "change" | "settings" | "test" | "delete" | null;

/** A bucket and its events, with details of the selected event. */
export function BucketPage({ id }: { id: string }) {
  const params = { bucket_id: id };
  const [open, setOpen] = useState<Open>(null);
  const close = (): void => setOpen(null);
  const bucket = useResource(`bucket ${id}`, ["catch"], (signal) =>
    call("catch.buckets.get", { params }, signal),
  );
  const { data } = bucket;
  const isLive = data?.state === "live";
  const setState = async (): Promise<void> => {
    await call("catch.buckets.update", { params, body: { state: isLive ? "paused" : "live" } });
    bucket.reload();
  };
  return (
    <Page
      title={data?.name ?? id}
      up={["#/catch", "Catch"]}
      status={data === null ? null : <Status state={data.state} />}
      lead={data === null ? undefined : <Addresses of={data} />}
      request={requestOf("catch.events.list", { params })}
      actions={
        <>
          <Button
            scope="catch:write"
            disabled={data === null}
            kind={isLive ? undefined : "primary"}
            onClick={setState}
          >
            {isLive ? "Pause" : "Resume"}
          </Button>
          <Button scope="catch:write" disabled={data === null} onClick={() => setOpen("change")}>
            Edit…
          </Button>
          <Button scope="catch:write" disabled={data === null} onClick={() => setOpen("settings")}>
            Settings…
          </Button>
          <Button disabled={data === null} onClick={() => setOpen("test")}>
            Send test event…
          </Button>
          <Button
            kind="danger"
            icon="delete"
            scope="catch:write"
            label="Delete…"
            disabled={data === null}
            onClick={() => setOpen("delete")}
          >
            {null}
          </Button>
        </>
      }
    >
      <div class="stack">
        <Loaded of={bucket}>{() => <BucketEvents id={id} />}</Loaded>
        <History type="bucket" id={id} />
      </div>
      {data === null ? null : <Dialogs of={data} open={open} onDone={bucket.reload} onClose={close} />}
    </Page>
  );
}

interface DialogsProps {
  readonly of: Bucket;
  readonly open: Open;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Dialogs of the page. */
function Dialogs({ of: bucket, open, onDone, onClose }: DialogsProps) {
  return (
    <>
      {open === "change" ? <BucketForm of={bucket} onDone={onDone} onClose={onClose} /> : null}
      {open === "settings" ? <BucketSettings of={bucket} onDone={onDone} onClose={onClose} /> : null}
      {open === "test" ? <TestEvent id={bucket.id} onSent={onDone} onClose={onClose} /> : null}
      {open === "delete" ? (
        <Confirm
          title="Delete this bucket?"
          action="Delete bucket"
          typed={bucket.name ?? bucket.id}
          onClose={onClose}
          onConfirm={async () => {
            await call("catch.buckets.delete", { params: { bucket_id: bucket.id } });
            go(["catch"]);
          }}
        >
          <p>All of its events are deleted, and requests to its URL are discarded.</p>
        </Confirm>
      ) : null}
    </>
  );
}

function Addresses({ of: { id, ingest_url, target_url, delivery } }: { of: Bucket }) {
  // The path only: the console knows the server's address.
  const url = BASE_URL + ingest_url.slice(ingest_url.indexOf("/v1/"));
  return (
    <>
      <code>{url}</code> <CopyButton text={url} what="Address" />{" "}
      {delivery === "pull" ? (
        <>
          forwarded by <code>ninefold listen {id}</code>
        </>
      ) : (
        <>
          forwards to <code>{target_url}</code>
        </>
      )}
    </>
  );
}
