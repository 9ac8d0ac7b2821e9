import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { call } from "../core/api.ts";
import { useCall } from "../core/resource.ts";
import { href } from "../core/route.ts";
import { mayCall, session } from "../core/session.ts";
import { startShown } from "../core/start.ts";
import { errorToast, toast } from "../core/toasts.ts";
import { Button } from "../ui/button.tsx";
import { Loading, Problem } from "../ui/feedback.tsx";
import { Page, Panel } from "../ui/page.tsx";
import { Status } from "../ui/status.tsx";
import { openMailTest } from "./server/stored-settings.tsx";

const STORED = "ninefold.skipped-steps";
const NEW = { new: "1" };

/** Ids of the steps that were skipped in this browser. */
const skipped = signal<readonly string[]>((localStorage.getItem(STORED) ?? "").split(",").filter(Boolean));

function skip(id: string, on: boolean): void {
  skipped.value = [...skipped.value.filter((step) => step !== id), ...(on ? [id] : [])];
  localStorage.setItem(STORED, skipped.value.join(","));
}

/** Leads through what a new server needs. A step is done when the server shows that it is. */
export function StartPage() {
  const isOperator = session.value?.operator === true;
  return (
    <Page
      title="Get started"
      lead="Each step can be skipped. A step is done when the server shows that it is."
      actions={
        <Button
          onClick={() => {
            startShown.value = !startShown.value;
          }}
        >
          {startShown.value ? "Hide in the sidebar" : "Show in the sidebar"}
        </Button>
      }
    >
      <ol class="stack steps">
        {mayCall("monitors.channels.list") ? <ChannelStep /> : null}
        {mayCall("monitors.list") ? <MonitorStep /> : null}
        {isOperator ? <MailStep /> : null}
        {isOperator ? <BackupStep /> : null}
      </ol>
    </Page>
  );
}

interface StepProps {
  readonly id: string;
  readonly title: string;
  readonly why: string;
  /** Null while it is not known. */
  readonly done: boolean | null;
  /** What shows that it is done. */
  readonly fact: string;
  readonly children: ComponentChildren;
}

function Step({ id, title, why, done, fact, children }: StepProps) {
  const isSkipped = done !== true && skipped.value.includes(id);
  return (
    <li>
      <Panel
        title={title}
        actions={
          done === null ? null : (
            <Status
              state={done ? "done" : isSkipped ? "skipped" : "to do"}
              tone={done ? "good" : isSkipped ? "idle" : "warn"}
            />
          )
        }
      >
        {done === null ? (
          <Loading rows={1} />
        ) : done ? (
          <p class="quiet">{fact}</p>
        ) : isSkipped ? (
          <Button label={`Do this step: ${title}`} onClick={() => skip(id, false)}>
            Do this step
          </Button>
        ) : (
          <div class="stack">
            <p>{why}</p>
            <div class="actions">
              {children}
              <Button kind="quiet" label={`Skip: ${title}`} onClick={() => skip(id, true)}>
                Skip
              </Button>
            </div>
          </div>
        )}
      </Panel>
    </li>
  );
}

function ChannelStep() {
  const read = useCall("monitors.channels.list", { query: { limit: 100 } }, ["pulse"]);
  const channels = read.data?.channels ?? [];
  const sent = channels.find(({ last_sent_at, last_error }) => last_sent_at !== null && last_error === null);
  const [first] = channels;
  const test = async (channel_id: string): Promise<void> => {
    const { status, error } = await call("monitors.channels.test", { params: { channel_id } });
    if (status === "sent") toast("Test sent");
    else errorToast(`The test was not sent: ${error}`);
    read.reload();
  };
  if (read.failure !== null) return <Failed of={read} />;
  return (
    <Step
      id="channel"
      title="1. Alert channel"
      why="Alerts reach you by Slack, Telegram, ntfy, e-mail and others. Create a channel, and send a test."
      done={read.data === null ? null : sent !== undefined}
      fact={`A message was sent to ${sent?.name}.`}
    >
      {first === undefined ? (
        <a class="button primary" href={href(["monitors", "channels"], NEW)}>
          Create a channel
        </a>
      ) : (
        <Button kind="primary" operation="monitors.channels.test" onClick={() => test(first.id)}>
          Send a test to {first.name}
        </Button>
      )}
      {first === undefined ? null : (
        <a class="button" href={href(["monitors", "channels"])}>
          Channels
        </a>
      )}
    </Step>
  );
}

function MonitorStep() {
  const read = useCall("monitors.list", { query: { limit: 1 } }, ["pulse"]);
  const [first] = read.data?.monitors ?? [];
  if (read.failure !== null) return <Failed of={read} />;
  return (
    <Step
      id="monitor"
      title="2. First monitor"
      why="A monitor requests a URL at an interval; a heartbeat expects pings of a cron job."
      done={read.data === null ? null : first !== undefined}
      fact={`${first?.name} is monitored.`}
    >
      <a class="button primary" href={href(["monitors"], NEW)}>
        Create a monitor
      </a>
      <a class="button" href={href(["monitors"], { new: "heartbeat" })}>
        Create a heartbeat
      </a>
    </Step>
  );
}

function MailStep() {
  const read = useCall("admin.status.read", {}, ["audit"]);
  const mail = read.data?.mail;
  if (read.failure !== null) return <Failed of={read} />;
  return (
    <Step
      id="mail"
      title="3. E-mail"
      why={
        mail?.configured === true
          ? `A mail server is set, and has failed: ${mail.last_error}`
          : "Alerts by e-mail and subscribers of status pages need a mail server."
      }
      done={mail === undefined ? null : mail.configured && mail.failing_since === null}
      fact="A mail server is set, and no e-mail fails."
    >
      <a class="button primary" href={href(["settings"])}>
        Set the mail server
      </a>
      {mail?.configured === true ? <Button onClick={openMailTest}>Send a test…</Button> : null}
    </Step>
  );
}

function BackupStep() {
  const read = useCall("admin.backups.list", { query: { limit: 1 } }, ["audit"]);
  const { plan = null, running = null, backups = [] } = read.data ?? {};
  const [newest] = backups;
  const begin = async (): Promise<void> => {
    await call("admin.backups.create", {});
    toast("Backup started");
    read.reload();
  };
  if (read.failure !== null) return <Failed of={read} />;
  return (
    <Step
      id="backup"
      title="4. Backup"
      why={
        plan === null
          ? "Choose a folder, best on another disk. A verified backup is stored in it every night."
          : `Backups are stored in ${plan.folder}. There is none yet.`
      }
      done={read.data === null ? null : newest !== undefined}
      fact={`The newest backup is ${newest?.name}. Keep the file master.key apart from it.`}
    >
      {plan === null ? (
        <a class="button primary" href={href(["settings"])}>
          Choose a folder
        </a>
      ) : (
        <Button kind="primary" disabled={running !== null} onClick={begin}>
          Back up now
        </Button>
      )}
      <Button icon="reload" onClick={read.reload}>
        Check again
      </Button>
    </Step>
  );
}

function Failed({ of: { failure, reload } }: { of: ReturnType<typeof useCall> }) {
  return <li>{failure === null ? null : <Problem failure={failure} retry={reload} />}</li>;
}
