import type { Receipt, ReceiptIndex } from "../../../client/generated/api.ts";
import { call, requestOf } from "../core/api.ts";
import { download } from "../core/download.ts";
import { count } from "../core/format.ts";
import { type List, useList } from "../core/lists.ts";
import { useCall } from "../core/resource.ts";
import { href, place, setQuery } from "../core/route.ts";
import { toast } from "../core/toasts.ts";
import { Button, CopyButton } from "../ui/button.tsx";
import { Code, pretty } from "../ui/code.tsx";
import { openDialog } from "../ui/dialog.tsx";
import { Empty, Loaded } from "../ui/feedback.tsx";
import { Choice } from "../ui/field.tsx";
import { DataForm } from "../ui/form.tsx";
import { LINES } from "../ui/kinds.ts";
import { type Filter, Filters, filterValue, ListView } from "../ui/list.tsx";
import { Facts, longFact, Page, Panel } from "../ui/page.tsx";
import { Status } from "../ui/status.tsx";
import type { Column } from "../ui/table.tsx";
import { Ago, DateTime } from "../ui/time.tsx";
import { VerifyPanel } from "./keys/verify.tsx";
import { Witnesses } from "./notary-witnesses.tsx";

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
  const { chain_id } = await call("witness.init", { body: {} });
  toast(`Chain ${chain_id} created`);
}

function NoReceipts() {
  return (
    <Empty icon="notary" title="No receipts yet" request={requestOf("witness.log", { body: EXAMPLE })}>
      The notary signs each log and links it to the one before, so that later changes are detected. Create a
      chain, then log:
      <p class="more">
        <Button operation="witness.init" onClick={beginChain}>
          Create chain
        </Button>
      </p>
    </Empty>
  );
}

function Receipts() {
  const [sequence] = place.value.rest;
  const settings = useCall("witness.index.read", {}, ["witness"]);
  const fields = settings.data?.fields ?? [];
  const filters: readonly Filter[] = [
    {
      name: "field",
      label: "Field",
      asSelect: true,
      options: fields.map((field) => [field, field] as const),
    },
    { name: "value", label: "Value" },
  ];
  const [field, value] = filters.map(filterValue);
  const search = fields.length > 0 && value ? { field, value } : null;
  const list = useList("witness.receipts.list", "receipts", ["witness"], {
    keyOf: ({ sequence_id }) => sequence_id,
    query: search ?? {},
  });
  return (
    <>
      {settings.data === null ? null : (
        <Filters of={fields.length > 0 ? filters : []}>
          <Button operation="witness.index.set" onClick={() => openIndex(settings.data, settings.reload)}>
            Index and retention…
          </Button>
        </Filters>
      )}
      <ReceiptList list={list} sequence={sequence} isSearch={search !== null} />
    </>
  );
}

function openIndex(settings: ReceiptIndex | null, onDone: () => void): void {
  openDialog((close) => (
    <DataForm
      title="Index and retention"
      submit="Save"
      operation="witness.index.set"
      of={settings}
      fields={[
        {
          name: "fields",
          label: "Indexed fields",
          kind: LINES,
          hint: "JSON Pointers, such as /invoice, one per line. Receipts logged from now on can be found by them.",
        },
        {
          name: "retain_days",
          label: "Delete the texts of logs after (days)",
          hint: "0: never. Hashes and checkpoints are always kept.",
        },
      ]}
      done="Index and retention saved"
      onDone={onDone}
      onClose={close}
    />
  ));
}

interface ReceiptListProps {
  readonly list: List<Receipt>;
  readonly sequence: string | undefined;
  readonly isSearch: boolean;
}

function ReceiptList({ list, sequence, isSearch }: ReceiptListProps) {
  const empty = isSearch ? <Empty icon="notary" title="No receipt has this value" /> : <NoReceipts />;
  return (
    <Loaded of={list} missing={empty}>
      {(receipts) => {
        const selected = receipts.find(({ sequence_id }) => sequence_id === sequence);
        const [head] = receipts;
        if (head === undefined) return empty;
        return (
          <div class="stack">
            <Panel>
              <Facts
                of={[
                  ["Head", `receipt ${head.sequence_id}`],
                  longFact("Chain hash", head.chain_hash),
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
            <Checkpoint />
            <Witnesses />
            {/* Without storage there is no state to read. */}
            {head.storage_status === undefined ? null : <Storage />}
            <ListView
              list={list}
              label="Receipts"
              href={({ sequence_id }) => href(["notary", sequence_id])}
              columns={COLUMNS}
              selected={selected?.sequence_id}
              detail={() =>
                selected === undefined ? null : <ReceiptView of={selected} onRedacted={list.reload} />
              }
            />
          </div>
        );
      }}
    </Loaded>
  );
}

const COLUMNS: readonly Column<Receipt>[] = [
  {
    head: "Receipt",
    cell: ({ sequence_id }) => sequence_id,
    sub: (receipt) => <code>{shortened(contentOf(receipt))}</code>,
  },
  { head: "Signed", cell: ({ timestamp }) => <Ago at={timestamp} />, layout: "fit wide" },
  {
    head: "Storage",
    cell: ({ storage_status }) => <Status state={storage_status ?? "here"} />,
    layout: "fit",
  },
];

/** The newest checkpoint, or why none is signed: a fork, or a tree that is not complete. */
function Checkpoint() {
  const found = useCall("witness.checkpoint", { query: { format: "json" } }, ["witness"]);
  return (
    <Loaded of={found}>
      {({ origin, size, root_hash, signed_at, vkey, note, cosignatures }) => (
        <Panel
          title="Checkpoint"
          actions={
            <>
              <CopyButton text={note} what="Checkpoint" /> <CopyButton text={vkey} what="Verifier key" />
            </>
          }
        >
          <Facts
            of={[
              ["Covers", count(size, "receipt")],
              ["Signed", <Ago key="s" at={signed_at} />],
              ["Origin", origin],
              longFact("Root hash", root_hash),
              ["Witnesses", cosignatures.map(({ name }) => name).join(", ") || "–"],
            ]}
          />
        </Panel>
      )}
    </Loaded>
  );
}

/** The storage that receipts are copied to, and its state. */
function Storage() {
  const { data } = useCall("witness.config.read", {}, ["witness"]);
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

/** The log of a receipt, or what stands for it. */
function contentOf({ log, note, redacted_at }: Receipt): string {
  if (log !== undefined) return JSON.stringify(log);
  if (redacted_at !== undefined) return "Text deleted";
  return note === undefined ? "Hash only" : `Hash only: ${note}`;
}

function openRedaction({ sequence_id }: Receipt, onDone: () => void): void {
  openDialog((close) => (
    <DataForm
      title={`Delete the text of receipt ${sequence_id}?`}
      submit="Delete text"
      operation="witness.receipts.redact"
      params={{ sequence_id }}
      fields={[
        <p key="about">
          This cannot be undone. The hashes stay, so the chain remains valid. The reason is logged in the
          chain. Backups made before still contain the text.
        </p>,
        { name: "reason", label: "Reason" },
      ]}
      done={`Text of receipt ${sequence_id} deleted`}
      onDone={() => {
        close();
        onDone();
      }}
      onClose={close}
    />
  ));
}

function shortened(text: string): string {
  return text.length > SHOWN_LOG ? `${text.slice(0, SHOWN_LOG)}…` : text;
}

function downloadBundle({ sequence_id }: Receipt): Promise<void> {
  return download(`/v1/witness/receipts/${sequence_id}/bundle`, `receipt-${sequence_id}.bundle.json`);
}

function ReceiptView({ of: receipt, onRedacted }: { of: Receipt; onRedacted: () => void }) {
  return (
    <div class="inspector stack">
      <Panel
        title={`Receipt ${receipt.sequence_id}`}
        actions={
          <>
            <DateTime at={receipt.timestamp} />
            <Button onClick={() => downloadBundle(receipt)}>Download bundle</Button>
            {receipt.redacted_at === undefined ? (
              <Button operation="witness.receipts.redact" onClick={() => openRedaction(receipt, onRedacted)}>
                Redact…
              </Button>
            ) : (
              <span>
                Text deleted <Ago at={receipt.redacted_at} />
              </span>
            )}
          </>
        }
      >
        <Code what="Receipt" text={pretty(receipt)} />
      </Panel>
    </div>
  );
}
