import { useState } from "preact/hooks";
import type { HeldLock } from "../../../client/generated/api.ts";
import { call, requestOf } from "../core/api.ts";
import { span } from "../core/format.ts";
import { now } from "../core/now.ts";
import { useList } from "../core/resource.ts";
import { toast } from "../core/toasts.ts";
import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Empty, Loaded, More } from "../ui/feedback.tsx";
import { Page, Panel } from "../ui/page.tsx";
import { Table } from "../ui/table.tsx";
import { Ago } from "../ui/time.tsx";

/** The locks that are held. */
export function LocksPage() {
  const [forced, setForced] = useState<HeldLock | null>(null);
  const list = useList("locks", ["latch"], async (query, signal) => {
    const page = await call("latch.list", { query }, signal);
    return { items: page.locks, cursor: page.cursor ?? null };
  });
  return (
    <Page title="Locks" lead="Locks that are currently held." request={requestOf("latch.list", {})}>
      <Loaded of={list} missing={<NoLocks />}>
        {(locks) =>
          locks.length === 0 ? (
            <NoLocks />
          ) : (
            <Panel flush>
              <LockTable locks={locks} onForce={setForced} />
              <More of={list} />
            </Panel>
          )
        }
      </Loaded>
      {forced === null ? null : (
        <ForceRelease of={forced} onDone={list.reload} onClose={() => setForced(null)} />
      )}
    </Page>
  );
}

function NoLocks() {
  const request = requestOf("latch.acquire", {
    params: { key: "invoice:42" },
    body: { ttl: 30_000, timeout: 10_000 },
  });
  return (
    <Empty icon="locks" title="No locks held" request={request}>
      A lock lets one program at a time work on something while the others wait.
    </Empty>
  );
}

function LockTable({ locks, onForce }: { locks: readonly HeldLock[]; onForce: (lock: HeldLock) => void }) {
  return (
    <Table
      label="Locks"
      rows={locks}
      keyOf={({ key }) => key}
      columns={[
        { head: "Key", cell: ({ key }) => <strong>{key}</strong> },
        { head: "Fencing token", cell: ({ fencing_token }) => fencing_token, layout: "end wide" },
        { head: "Held since", cell: ({ acquired_at }) => <Ago at={acquired_at} />, layout: "wide" },
        { head: "Expires", cell: (lock) => <TimeLeft of={lock} />, layout: "fit" },
        { head: "Waiting", cell: ({ queue_depth }) => queue_depth, layout: "end wide" },
        {
          head: "Action",
          layout: "fit",
          cell: (lock) => (
            <Button scope="latch:write" onClick={() => onForce(lock)}>
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

function ForceRelease({
  of: { key, fencing_token },
  onDone,
  onClose,
}: {
  of: HeldLock;
  onDone: () => void;
  onClose: () => void;
}) {
  return (
    <Confirm
      title={`Release ${key}?`}
      action="Release"
      onClose={onClose}
      onConfirm={async () => {
        await call("latch.force", { params: { key }, body: { fencing_token } });
        toast(`${key} released`);
        onDone();
      }}
    >
      <p>
        The program that holds <strong>{key}</strong> is not notified and continues. Its writes are safe only
        where the fencing token {fencing_token} is checked.
      </p>
    </Confirm>
  );
}
