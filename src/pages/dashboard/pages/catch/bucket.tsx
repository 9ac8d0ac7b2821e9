import type { Bucket } from "../../../../client/generated/api.ts";
import { BASE_URL, call, requestOf } from "../../core/api.ts";
import { count } from "../../core/format.ts";
import { useCall } from "../../core/resource.ts";
import { go, href } from "../../core/route.ts";
import { Button, CopyButton } from "../../ui/button.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Page } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { History } from "../audit-list.tsx";
import { BucketEvents } from "./bucket-events.tsx";
import { BucketForm } from "./bucket-form.tsx";
import { TestEvent } from "./test-event.tsx";

/** A bucket and its events, with details of the selected event. */
export function BucketPage({ id }: { id: string }) {
  const params = { bucket_id: id };
  const bucket = useCall("catch.buckets.get", { params }, ["catch"]);
  const { data } = bucket;
  return (
    <Page
      title={data?.name ?? id}
      up={[href(["catch"]), "Catch"]}
      status={data === null ? null : <Status state={data.state} />}
      lead={data === null ? undefined : <Addresses of={data} />}
      request={requestOf("catch.events.list", { params })}
      actions={data === null ? null : <Actions of={data} onDone={bucket.reload} />}
    >
      <div class="stack">
        <Loaded of={bucket}>{(loaded) => <BucketEvents of={loaded} />}</Loaded>
        <History type="bucket" id={id} />
      </div>
    </Page>
  );
}

function Actions({ of, onDone }: { of: Bucket; onDone: () => void }) {
  const { id, name, state } = of;
  const params = { bucket_id: id };
  const isLive = state === "live";
  const setState = async (): Promise<void> => {
    await call("catch.buckets.update", { params, body: { state: isLive ? "paused" : "live" } });
    onDone();
  };
  const deleteBucket = (onClose: () => void) => (
    <Confirm
      title="Delete this bucket?"
      action="Delete bucket"
      typed={name ?? id}
      onClose={onClose}
      onConfirm={async () => {
        await call("catch.buckets.delete", { params });
        go(["catch"]);
      }}
    >
      <p>All of its events are deleted, and requests to its URL are discarded.</p>
    </Confirm>
  );
  return (
    <>
      <Button operation="catch.buckets.update" kind={isLive ? undefined : "primary"} onClick={setState}>
        {isLive ? "Pause" : "Resume"}
      </Button>
      <Button
        operation="catch.buckets.update"
        onClick={() => openDialog((onClose) => <BucketForm of={of} onDone={onDone} onClose={onClose} />)}
      >
        Edit…
      </Button>
      <Button
        reason={of.ingest_url === null ? "Your role does not show the address of the bucket" : undefined}
        onClick={() => openDialog((onClose) => <TestEvent id={id} onSent={onDone} onClose={onClose} />)}
      >
        Send test event…
      </Button>
      <Button
        kind="danger"
        icon="delete"
        operation="catch.buckets.delete"
        label="Delete…"
        onClick={() => openDialog(deleteBucket)}
      />
    </>
  );
}

function Addresses({ of: { id, ingest_url, target_url, targets, delivery } }: { of: Bucket }) {
  // The path only: the console knows the server's address.
  const url = ingest_url && BASE_URL + ingest_url.slice(ingest_url.indexOf("/v1/"));
  return (
    <>
      {url === null ? (
        "Your role does not show the address; it "
      ) : (
        <>
          <code>{url}</code> <CopyButton text={url} what="Address" />{" "}
        </>
      )}
      {delivery === "pull" ? (
        <>
          forwarded by <code>ninefold listen {id}</code>
        </>
      ) : targets.length > 0 ? (
        <>delivers to {count(targets.length, "endpoint")}</>
      ) : (
        <>
          forwards to <code>{target_url}</code>
        </>
      )}
    </>
  );
}
