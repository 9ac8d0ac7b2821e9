import type { Receipt } from "../../../client/generated/api.ts";
import { call, requestOf } from "../core/api.ts";
import { count } from "../core/format.ts";
import { useList, useResource } from "../core/resource.ts";
import { href, place, setQuery } from "../core/route.ts";
import { toast } from "../core/toasts.ts";
import { Button, CopyButton } from "../ui/button.tsx";
import { Code, pretty } from "../ui/code.tsx";
import { Empty, Loaded, More } from "../ui/feedback.tsx";
import { Choice } from "../ui/field.tsx";
import { Facts, Page, Panel } from "../ui/page.tsx";
import { Status } from "../ui/status.tsx";
import { Table } from "../ui/table.tsx";
import { Ago, DateTime } from "../ui/time.tsx";
import { VerifyPanel } from "./keys/verify.tsx";

const VIEWS = [
  ["receipts", "Receipts"],
  ["verify", "Verify"],
] as const;

/** The chain of receipts, and the verification of receipts. */
export function NotaryPage() {
  const { query } = place.value;
  const view = VIEWS.find(([name]) => name === query.get("view"))?.[0] ?? "receipts";
  return (
    <Page title="Notary" request={requestOf("witness.receipts.list", {})}>
      <div class="toolbar">
        <Choice label="View" options={VIEWS} value={view} onChange={(name) => setQuery({ view: name })} />
      </div>
      {view === "verify" ? <VerifyPanel /> : <Receipts />}
    </Page>
  );
}

const EXAMPLE = { log: { event: "invoice.paid", invoice: 42 } };

async function beginChain(): Promise<void> {
  const { chain_id } = await call("witness.init", {});
  toast(`Chain ${chain_id} created`);
}

function NoReceipts() {
  return (
    <Empty icon="notary" title="No receipts yet" request={requestOf("witness.log", { body: EXAMPLE })}>
      The notary signs each log and links it to the one before, so that later changes are detected. Create a
      chain, then log:
      <p class="more">
        <Button scope="witness:write" onClick={beginChain}>
          Create chain
        </Button>
      </p>
    </Empty>
  );
}

function Receipts() {
  const [sequence] = place.value.rest;
  const list = useList("receipts", ["witness"], async (query, signal) => {
    const page = await call("witness.receipts.list", { query }, signal);
    return { items: page.receipts, cursor: page.cursor ?? null };
  });
  return (
    <Loaded of={list} missing={<NoReceipts />}>
      {(receipts) => {
        const selected = receipts.find(({ sequence_id }) => sequence_id === sequence);
        const [head] = receipts;
        if (head === undefined) return <NoReceipts />;
        return (
          <div class="stack">
            <Panel>
              <Facts
                of={[
                  ["Head", `receipt ${head.sequence_id}`],
                  [
                    "Chain hash",
                    <code key="h" class="long">
                      {head.chain_hash}
                    </code>,
                  ],
                  [
                    "Public key",
                    <>
                      <code class="long">{head.public_key.x}</code>{" "}
                      <CopyButton text={JSON.stringify(head.public_key)} what="Public key" />
                    </>,
                  ],
                ]}
              />
            </Panel>
            {/* Without storage there is no state to read. */}
            {head.storage_status === undefined ? null : <Storage />}
            <div class={selected === undefined ? "" : "panes"}>
              <Panel flush>
                <ReceiptTable of={receipts} selected={sequence} />
                <More of={list} />
              </Panel>
              {selected === undefined ? null : <ReceiptView of={selected} />}
            </div>
          </div>
        );
      }}
    </Loaded>
  );
}

function ReceiptTable({ of: receipts, selected }: { of: readonly Receipt[]; selected: string | undefined }) {
  return (
    <Table
      label="Receipts"
      rows={receipts}
      keyOf={({ sequence_id }) => sequence_id}
      href={({ sequence_id }) => href(["notary", sequence_id])}
      selected={selected}
      columns={[
        {
          head: "Receipt",
          cell: ({ sequence_id, log }) => (
            <>
              {sequence_id}
              <span class="sub">
                <code>{shortened(JSON.stringify(log))}</code>
              </span>
            </>
          ),
        },
        { head: "Signed", cell: ({ timestamp }) => <Ago at={timestamp} />, layout: "fit wide" },
        {
          head: "Storage",
          cell: ({ storage_status }) => <Status state={storage_status ?? "here"} />,
          layout: "fit",
        },
      ]}
    />
  );
}

/** The storage that receipts are copied to, and its state. */
function Storage() {
  const { data } = useResource("witness storage", ["witness"], (signal) =>
    call("witness.config.read", {}, signal),
  );
  if (data === null) return null;
  return (
    <Panel title="Storage">
      <Facts
        of={[
          ["State", <Status key="s" state={data.buffered > 0 ? "buffered" : "delivered"} />],
          ["Waiting", count(data.buffered, "receipt")],
          ["Last error", data.last_error ?? "–"],
          ["Server", data.endpoint],
          ["Bucket", `${data.bucket}/${data.prefix}`],
        ]}
      />
    </Panel>
  );
}

const SHOWN_LOG = 120;

function shortened(text: string): string {
  return text.length > SHOWN_LOG ? `${text.slice(0, SHOWN_LOG)}…` : text;
}

function ReceiptView({ of: receipt }: { of: Receipt }) {
  return (
    <div class="inspector stack">
      <Panel title={`Receipt ${receipt.sequence_id}`} actions={<DateTime at={receipt.timestamp} />}>
        <Code what="Receipt" text={pretty(receipt)} />
      </Panel>
    </div>
  );
}
