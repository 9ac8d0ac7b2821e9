import type { ComponentType } from "preact";
import type { RelayItem } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { useList } from "../../core/resource.ts";
import { href, place, setQuery } from "../../core/route.ts";
import { lazy } from "../../shell/lazy.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/feedback.tsx";
import { Choice } from "../../ui/field.tsx";
import { ListPane } from "../../ui/list-pane.tsx";
import { Page } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { Delivery } from "./delivery.tsx";
import { RelayForm } from "./relay-form.tsx";
import { RelayViews } from "./relay-views.tsx";
import { ResendForm } from "./resend-form.tsx";
import { SigningSecret } from "./signing-secret.tsx";

const STATES = [
  ["", "All"],
  ["scheduled", "Scheduled"],
  ["delivering", "Delivering"],
  ["delivered", "Delivered"],
  ["failed", "Failed"],
  ["cancelled", "Cancelled"],
] as const;

type State = (typeof STATES)[number][0];

const EXAMPLE = {
  target_url: "https://example.com/hook",
  method: "POST",
  delay: "10s",
  payload: { hello: "world" },
  headers: {},
} as const;

const LISTS: Readonly<Record<string, ComponentType>> = {
  endpoints: lazy(async () => (await import("./endpoints.tsx")).EndpointsPage),
  messages: lazy(async () => (await import("./messages.tsx")).MessagesPage),
  schedules: lazy(async () => (await import("./schedules.tsx")).SchedulesPage),
};

/** Deliveries, endpoints, messages or schedules, with details of the selected item. */
export function RelayPage() {
  const List = LISTS[place.value.rest[0] ?? ""] ?? DeliveriesPage;
  return <List />;
}

function DeliveriesPage() {
  const { query, rest } = place.value;
  const [id] = rest;
  const status = STATES.find(([state]) => state === query.get("status"))?.[0] ?? "";
  const list = useList(`relay ${status}`, ["relay"], async (page, signal) => {
    const found = await call(
      "relay.list",
      { query: { ...page, ...(status === "" ? {} : { status }) } },
      signal,
    );
    return { items: found.deliveries, cursor: found.cursor ?? null };
  });
  return (
    <Page
      title="Relay"
      request={requestOf("relay.list", {})}
      actions={
        <>
          <OpenButton name="secret">Signing secret</OpenButton>
          <Button kind="primary" icon="new" scope="relay:write" onClick={() => setQuery({ new: "1" })}>
            Schedule
          </Button>
        </>
      }
    >
      <RelayViews view="deliveries" />
      <div class="toolbar">
        <Choice<State>
          label="State"
          options={STATES}
          value={status}
          onChange={(one) => setQuery({ status: one })}
        />
        {status === "failed" ? <OpenButton name="resend">Resend failed</OpenButton> : null}
      </div>
      <ListPane
        list={list}
        label="Deliveries"
        empty={
          <Empty
            icon="relay"
            title="No deliveries here"
            request={requestOf("relay.schedule", { body: EXAMPLE })}
          >
            A delivery is a signed HTTP request that the server sends at a chosen time and retries until it
            succeeds.
          </Empty>
        }
        keyOf={({ relay_id }) => relay_id}
        href={({ relay_id }) => href(["relay", relay_id], Object.fromEntries(query))}
        columns={COLUMNS}
        narrow={NARROW}
        selected={id}
        detail={(one) => <Delivery key={one} id={one} />}
      />
      <Dialogs query={query} onDone={list.reload} />
    </Page>
  );
}

/** Dialogs that change many deliveries. */
function OpenButton({ name, children }: { name: string; children: string }) {
  return (
    <Button scope="relay:write" onClick={() => setQuery({ [name]: "1" })}>
      {children}
    </Button>
  );
}

/** The open dialog. */
function Dialogs({ query, onDone }: { query: URLSearchParams; onDone: () => void }) {
  const close = (name: string) => () => setQuery({ [name]: undefined });
  if (query.has("new")) return <RelayForm onClose={close("new")} onDone={onDone} />;
  if (query.has("resend")) return <ResendForm onClose={close("resend")} onDone={onDone} />;
  return query.has("secret") ? <SigningSecret onClose={close("secret")} /> : null;
}

function originOf(kind: RelayItem["kind"], event: string | null): string | null {
  if (kind === "pulse") return `alert of a monitor: ${event}`;
  return kind === "endpoint" ? `message: ${event}` : null;
}

/** Columns next to the details of a delivery. */
const NARROW = ["Target", "State"];

const COLUMNS: readonly Column<RelayItem>[] = [
  {
    head: "Target",
    cell: ({ method, target_url, kind, event, scheduled_for }) => (
      <>
        <code>{method}</code> {target_url}
        <span class="sub">{originOf(kind, event)}</span>
        <span class="narrow">
          <span class="sub">
            due <Ago at={scheduled_for} />
          </span>
        </span>
      </>
    ),
  },
  { head: "Due", cell: ({ scheduled_for }) => <Ago at={scheduled_for} />, layout: "wide" },
  { head: "Attempts", cell: ({ attempts }) => attempts, layout: "wide end" },
  {
    head: "Response",
    cell: ({ response_status, error }) => response_status ?? (error === null ? "–" : "none"),
    layout: "wide end",
  },
  { head: "State", cell: ({ status }) => <Status state={status} />, layout: "fit" },
];
