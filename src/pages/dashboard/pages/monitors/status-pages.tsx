import type { StatusPage, StatusPageSummary } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { useList } from "../../core/lists.ts";
import { useCall } from "../../core/resource.ts";
import { go, href, place } from "../../core/route.ts";
import { Button, CopyButton, CurlButton } from "../../ui/button.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { DataForm } from "../../ui/form.tsx";
import { ListPage } from "../../ui/list.tsx";
import { Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { History } from "../audit-list.tsx";
import { StatusPageEditor } from "./status-page-editor.tsx";

const EXAMPLE = { slug: "acme", title: "Acme" };

/** Status pages, with the settings and preview of the selected page. */
export function StatusPagesPage() {
  const [, id] = place.value.rest;
  const list = useList("monitors.pages.list", "pages", ["pulse"], { keyOf: ({ id }) => id });
  return (
    <ListPage
      title="Status pages"
      label="Status pages"
      request={requestOf("monitors.pages.list", {})}
      create={["New page", "monitors.pages.create"]}
      list={list}
      none={{
        icon: "monitors",
        title: "No status pages yet",
        request: requestOf("monitors.pages.create", { body: EXAMPLE }),
        text: "A status page shows the state of your monitors to anyone, without a key.",
      }}
      href={({ id }) => href(["monitors", "pages", id])}
      columns={COLUMNS}
      selected={id}
      detail={(id) => <PageView key={id} id={id} />}
      form={(close) => <NewPage onClose={close} />}
    />
  );
}

const COLUMNS: readonly Column<StatusPageSummary>[] = [
  {
    head: "Page",
    cell: ({ title }) => title,
    sub: ({ slug }) => `/status/${slug}`,
  },
  {
    head: "State",
    cell: ({ published }) => (
      <Status state={published ? "published" : "hidden"} tone={published ? "good" : "idle"} />
    ),
    layout: "fit",
  },
];

function NewPage({ onClose }: { onClose: () => void }) {
  return (
    <DataForm
      title="New status page"
      submit="Create page"
      operation="monitors.pages.create"
      fields={[
        { name: "title", placeholder: "Acme" },
        {
          name: "slug",
          placeholder: "acme",
          mono: true,
          hint: "The part of the URL after /status/: a to z, 0 to 9 and -.",
        },
      ]}
      onDone={({ id }) => go(["monitors", "pages", id])}
      onClose={onClose}
    />
  );
}

function PageView({ id }: { id: string }) {
  const page = useCall("monitors.pages.read", { params: { page_id: id } });
  return (
    <div class="inspector">
      <Loaded of={page}>
        {(loaded) => (
          <div class="stack">
            <div class="beside">
              <Panel title={loaded.title} actions={<PageActions of={loaded} />}>
                <StatusPageEditor key={loaded.updated_at} of={loaded} onSaved={page.reload} />
              </Panel>
              <Preview of={loaded} />
            </div>
            <History type="page" id={id} />
          </div>
        )}
      </Loaded>
    </div>
  );
}

function PageActions({ of: { id, url } }: { of: StatusPage }) {
  return (
    <div class="actions">
      <CurlButton request={requestOf("monitors.pages.read", { params: { page_id: id } })} />
      <CopyButton text={url} what="URL">
        Copy URL
      </CopyButton>
      <Button kind="danger" icon="delete" operation="monitors.pages.delete" onClick={() => deletePage(id)}>
        Delete…
      </Button>
    </div>
  );
}

function deletePage(page_id: string): void {
  openDialog((close) => (
    <Confirm
      title="Delete this status page?"
      action="Delete page"
      onConfirm={async () => {
        await call("monitors.pages.delete", { params: { page_id } });
        go(["monitors", "pages"]);
      }}
      onClose={close}
    >
      <p>Its URL, badges and feed stop working.</p>
    </Confirm>
  ));
}

/** The status page itself. The query makes the browser load the saved version instead of a cached one. */
function Preview({ of: { slug, title, published, updated_at } }: { of: StatusPage }) {
  if (!published)
    return (
      <Panel title="Preview">
        <p class="quiet">The page is not published.</p>
      </Panel>
    );
  const address = `../status/${slug}`;
  return (
    <Panel
      title="Saved page"
      flush
      actions={
        <a href={address} target="_blank" rel="noopener noreferrer">
          Open
        </a>
      }
    >
      <iframe
        class="preview"
        title={`Status page ${title}`}
        sandbox="allow-same-origin"
        src={`${address}?saved=${encodeURIComponent(updated_at)}`}
      />
    </Panel>
  );
}
