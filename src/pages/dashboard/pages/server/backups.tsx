import { useEffect } from "preact/hooks";
import type { BackupPage, BackupPlan } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { bytes, formatNumber } from "../../core/format.ts";
import { useCall } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import { quotedIfNeeded } from "../../core/shell.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Empty, Loaded } from "../../ui/feedback.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago, DateTime } from "../../ui/time.tsx";

/** Polling interval while a backup runs: the server sends no event when it is complete. */
const LOOK_MS = 1_000;
const SHOWN_MAX = 100;

/** The stored backups, for the operator. */
export function BackupsPage() {
  const page = useCall("admin.backups.list", { query: { limit: SHOWN_MAX } }, ["audit"]);
  const running = page.data?.running ?? null;
  useEffect(() => {
    if (running === null) return;
    const timer = setInterval(page.reload, LOOK_MS);
    return () => clearInterval(timer);
  }, [running === null, page.reload]);
  const begin = async (): Promise<void> => {
    await call("admin.backups.create", {});
    toast("Backup started");
    page.reload();
  };
  return (
    <Page
      title="Backups"
      status={page.data === null ? null : <State of={page.data} />}
      request={requestOf("admin.backups.list", {})}
      actions={
        <Button kind="primary" icon="backups" disabled={!page.data?.plan || running !== null} onClick={begin}>
          Back up now
        </Button>
      }
    >
      <Loaded of={page}>
        {(data) => (data.plan === null ? <NoBackups /> : <Backups of={data} plan={data.plan} />)}
      </Loaded>
    </Page>
  );
}

function State({ of: { plan, running } }: { of: BackupPage }) {
  if (running !== null) return <Status state="in progress" tone="busy" />;
  if (plan === null) return <Status state="none" />;
  return plan.overdue ? <Status state="overdue" tone="warn" /> : <Status state="fine" tone="good" />;
}

function NoBackups() {
  return (
    <Empty icon="backups" title="No backup folder">
      <p>
        <a href={href(["settings"])}>Choose a folder in the settings</a> for a verified backup every night;
        the last seven are kept. <code>ninefold backup FILE</code> creates one at any time.
      </p>
    </Empty>
  );
}

function Backups({ of: { backups, failure, cursor }, plan }: { of: BackupPage; plan: BackupPlan }) {
  const [newest] = backups;
  return (
    <div class="stack">
      {failure === null ? null : (
        <div class="problem" role="alert">
          <Icon name="alert" />
          <div>
            <p>
              {failure.name} failed: {failure.message}
            </p>
            <p class="quiet small">
              <Ago at={failure.begun_at} />
            </p>
          </div>
        </div>
      )}
      <Panel>
        <Facts
          of={[
            ["Last backup", <Ago key="l" at={newest?.created_at} />],
            ["Next backup", <DateTime key="n" at={plan.next_at} />],
            ["Schedule (UTC)", <code key="c">{plan.cron}</code>],
            ["Retained", formatNumber(plan.keep)],
            ["Folder", <code key="f">{plan.folder}</code>],
          ]}
        />
      </Panel>
      {backups.length === 0 ? null : (
        <Panel flush>
          <Table
            label="Backups"
            rows={backups}
            keyOf={({ name }) => name}
            columns={[
              { head: "Name", cell: ({ name }) => <code>{name}</code> },
              { head: "Started", cell: ({ created_at }) => <Ago at={created_at} />, layout: "fit wide" },
              { head: "Size", cell: ({ size }) => bytes(size), layout: "end" },
            ]}
          />
          {cursor === undefined ? null : <p class="more quiet">The newest {SHOWN_MAX}.</p>}
        </Panel>
      )}
      {newest === undefined ? null : <HowToRestore file={`${plan.folder}/${newest.name}`} />}
    </div>
  );
}

function HowToRestore({ file }: { file: string }) {
  const status = useCall("admin.status.read", {});
  const folder = status.data?.data_folder ?? "DATA_FOLDER";
  return (
    <Panel title="How to restore">
      <div class="stack">
        <p>
          Stop the server and run this command on its machine. The current database is kept under another
          name; changes since the backup are lost.
        </p>
        <Code
          what="Command"
          text={`ninefold restore ${quotedIfNeeded(file)} --data ${quotedIfNeeded(folder)} --force`}
        />
        <p class="quiet small">
          The backup does not contain <code>master.key</code>, which is required to decrypt it. Store that
          file separately.
        </p>
      </div>
    </Panel>
  );
}
