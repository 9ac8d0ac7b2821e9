import { useState } from "preact/hooks";
import type { StatusPage, StatusPageSummary } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { useList, useResource } from "../../core/resource.ts";
import { go, href, place, setQuery } from "../../core/route.ts";
import { Button, CopyButton, CurlButton } from "../../ui/button.tsx";
import { Confirm, Dialog, Form } from "../../ui/dialog.tsx";
import { Empty, Loaded, More } from "../../ui/feedback.tsx";
import { TextField, textOf } from "../../ui/field.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { History } from "../server/audit-list.tsx";
import { MonitorViews } from "./monitor-views.tsx";
import { StatusPageEditor } from "./status-page-editor.tsx";

const EXAMPLE = { slug: "acme", title: "Acme" };

/** Status pages, with the settings and preview of the selected page. */
export function StatusPagesPage() {
  const { query, rest } = place.value;
  const [, id] = rest;
  const list = useList("status pages", ["pulse"], async (page, signal) => {
    const { pages, cursor = null } = await call("monitors.pages.list", { query: page }, signal);
    return { items: pages, cursor };
  });
  return (
    <Page
      title="Status pages"
      request={requestOf("monitors.pages.list", {})}
      actions={
        <Button kind="primary" icon="new" scope="pulse:write" onClick={() => setQuery({ new: "1" })}>
          New page
        </Button>
      }
    >
      <MonitorViews view="pages" />
      <div class={id === undefined ? "" : "panes"}>
        <Panel flush>
          <Loaded of={list}>
            {(pages) =>
              pages.length === 0 ? (
                <Empty
                  icon="monitors"
                  title="No status pages yet"
                  request={requestOf("monitors.pages.create", { body: EXAMPLE })}
                >
                  A status page shows the state of your monitors to anyone, without a key.
                </Empty>
              ) : (
                <>
                  <PageTable of={pages} selected={id} />
                  <More of={list} />
                </>
              )
            }
          </Loaded>
        </Panel>
        {id === undefined ? null : <PageView key={id} id={id} />}
      </div>
      {query.has("new") ? <NewPage onClose={() => setQuery({ new: undefined })} /> : null}
    </Page>
  );
}

function PageTable({
  of: pages,
  selected,
}: {
  of: readonly StatusPageSummary[];
  selected: string | undefined;
}) {
  return (
    <Table
      label="Status pages"
      rows={pages}
      keyOf={({ id }) => id}
      href={({ id }) => href(["monitors", "pages", id])}
      selected={selected}
      columns={[
        {
          head: "Page",
          cell: ({ title, slug }) => (
            <>
              {title}
              <span class="sub">/status/{slug}</span>
            </>
          ),
        },
        {
          head: "State",
          cell: ({ published }) => (
            <Status state={published ? "published" : "hidden"} tone={published ? "good" : "idle"} />
          ),
          layout: "fit",
        },
      ]}
    />
  );
}

function NewPage({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="New status page" onClose={onClose}>
      <Form
        submit="Create page"
        onCancel={onClose}
        onSubmit={async (data) => {
          const body = { title: textOf(data, "title") ?? "", slug: textOf(data, "slug") ?? "" };
          const { id } = await call("monitors.pages.create", { body });
          go(["monitors", "pages", id]);
        }}
      >
        <TextField name="title" label="Title" placeholder="Acme" required />
        <TextField
          name="slug"
          label="Slug"
          placeholder="acme"
          mono
          required
          hint="The part of the URL after /status/: a to z, 0 to 9 and -."
        />
      </Form>
    </Dialog>
  );
}

function PageView({ id }: { id: string }) {
  const [isDeleting, setDeleting] = useState(false);
  const params = { page_id: id };
  const page = useResource(`status page ${id}`, [], (signal) =>
    call("monitors.pages.read", { params }, signal),
  );
  return (
    <div class="inspector">
      <Loaded of={page}>
        {(one) => (
          <div class="stack">
            <Panel title={one.title} actions={<PageActions of={one} onDelete={() => setDeleting(true)} />}>
              <StatusPageEditor key={one.updated_at} of={one} onSaved={page.reload} />
            </Panel>
            <Preview of={one} />
            <History type="page" id={id} />
          </div>
        )}
      </Loaded>
      {isDeleting ? (
        <Confirm
          title="Delete this status page?"
          action="Delete page"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await call("monitors.pages.delete", { params });
            go(["monitors", "pages"]);
          }}
        >
          <p>Its URL, badges and feed stop working.</p>
        </Confirm>
      ) : null}
    </div>
  );
}

function PageActions({ of: { id, url }, onDelete }: { of: StatusPage; onDelete: () => void }) {
  return (
    <div class="actions">
      <CurlButton request={requestOf("monitors.pages.read", { params: { page_id: id } })} />
      <CopyButton text={url} what="URL">
        Copy URL
      </CopyButton>
      <Button kind="danger" icon="delete" scope="pulse:write" onClick={onDelete}>
        Delete…
      </Button>
    </div>
  );
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
      title="Preview"
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
