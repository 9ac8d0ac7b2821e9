import { call, requestOf } from "../core/api.ts";
import { bytes } from "../core/format.ts";
import { useResource } from "../core/resource.ts";
import { toast } from "../core/toasts.ts";
import { Button } from "../ui/button.tsx";
import { Empty, Loaded } from "../ui/feedback.tsx";
import { Page, Panel } from "../ui/page.tsx";
import { Table } from "../ui/table.tsx";
import { Ago } from "../ui/time.tsx";

/** The copies that there are, and how to go back to one. */
export function BackupsPage() {
  const list = useResource("backups", ["backups"], (signal) => call("admin.backups.list", {}, signal));
  const begin = async (): Promise<void> => {
    await call("admin.backups.create", {});
    toast("A backup has begun");
    list.reload();
  };
  return (
    <Page
      title="Backups"
      request={requestOf("admin.backups.list", {})}
      actions={
        <Button kind="primary" icon="backups" onClick={begin}>
          Back up now
        </Button>
      }
    >
      <div class="stack">
        <Loaded of={list} missing={<NoBackups />}>
          {({ backups }) =>
            backups.length === 0 ? (
              <NoBackups />
            ) : (
              <Panel flush>
                <Table
                  label="Backups"
                  rows={backups}
                  keyOf={({ name }) => name}
                  columns={[
                    { head: "File", cell: ({ name }) => <code>{name}</code> },
                    { head: "Made", cell: ({ created_at }) => <Ago at={created_at} />, look: "fit" },
                    { head: "Size", cell: ({ size }) => bytes(size), look: "end fit" },
                  ]}
                />
              </Panel>
            )
          }
        </Loaded>
        <Panel title="Going back to one">
          <div class="prose">
            <p>
              Stop the server, restore the file into an empty data folder, start again. The master key must be
              the one that the backup was made with.
            </p>
            <div class="curl">
              <pre>ninefold restore FILE --data FOLDER</pre>
            </div>
          </div>
        </Panel>
      </div>
    </Page>
  );
}

function NoBackups() {
  return (
    <Empty icon="backups" title="No backups yet">
      Start the server with <code>--backup-dir FOLDER</code> and it makes one every night.
    </Empty>
  );
}
