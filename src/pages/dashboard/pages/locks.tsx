import type { HeldLock } from "../../../client/generated/api.ts";
import { call, requestOf } from "../core/api.ts";
import { span } from "../core/format.ts";
import { useList } from "../core/lists.ts";
import { now } from "../core/now.ts";
import { Button } from "../ui/button.tsx";
import { Confirm, openDialog } from "../ui/dialog.tsx";
import { ListPage } from "../ui/list.tsx";
import { Ago } from "../ui/time.tsx";

/** The locks that are held. */
export function LocksPage() {
  const list = useList("latch.list", "locks", ["latch"], {
    keyOf: ({ key, fencing_token }) => `${key} ${fencing_token}`,
  });
  return (
    <ListPage
      title="Locks"
      label="Locks"
      lead="Locks that are currently held."
      request={requestOf("latch.list", {})}
      list={list}
      none={{
        icon: "locks",
        title: "No locks held",
        request: requestOf("latch.acquire", {
          params: { key: "invoice:42" },
          body: { ttl: 30_000, timeout: 10_000 },
        }),
        text: "A lock lets one program at a time work on something while the others wait.",
      }}
      columns={[
        { head: "Key", cell: ({ key }) => <strong>{key}</strong> },
        { head: "Fencing token", cell: ({ fencing_token }) => fencing_token, layout: "end wide" },
        { head: "Mode", cell: ({ mode }) => mode, layout: "wide" },
        { head: "Held since", cell: ({ acquired_at }) => <Ago at={acquired_at} />, layout: "wide" },
        { head: "Expires", cell: (lock) => <TimeLeft of={lock} />, layout: "fit" },
        { head: "Waiting", cell: ({ queue_depth }) => queue_depth, layout: "end wide" },
        {
          head: "Action",
          width: 8,
          layout: "fit",
          cell: (lock) => (
            <Button operation="latch.force" onClick={() => forceRelease(lock, list.reload)}>
              Release…
            </Button>
          ),
        },
      ]}
    />
  );
}

function TimeLeft({ of: { acquired_at, expires_at } }: { of: HeldLock }) {
  const left = Math.max(0, expires_at - now.value);
  const share = Math.min(1, left / Math.max(1, expires_at - acquired_at));
  return (
    <>
      in {span(left)}
      <span class="gauge" aria-hidden="true">
        <span style={{ width: `${Math.round(share * 100)}%` }} />
      </span>
    </>
  );
}

function forceRelease({ key, fencing_token }: HeldLock, onDone: () => void): void {
  openDialog((close) => (
    <Confirm
      title={`Release ${key}?`}
      action="Release"
      onConfirm={() => call("latch.force", { params: { key }, body: { fencing_token } }).then(onDone)}
      done={`${key} released`}
      onClose={close}
    >
      <p>
        The program that holds <strong>{key}</strong> is not notified and continues. Its writes are safe only
        where the fencing token {fencing_token} is checked.
      </p>
    </Confirm>
  ));
}
