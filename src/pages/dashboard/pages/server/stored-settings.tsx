import type { ServerSetting } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { useCall } from "../../core/resource.ts";
import { session } from "../../core/session.ts";
import { errorToast, toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import type { RowOf } from "../../ui/data-form.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { DataForm } from "../../ui/form.tsx";
import { SECRET } from "../../ui/kinds.ts";
import { Facts, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { ColorField, LogoField } from "../monitors/brand-fields.tsx";

type Name = keyof typeof LABELS;

const LABELS = {
  smtp_url: "Mail server",
  mail_from: "Sender",
  public_url: "Public URL",
  brand_color: "Color",
  brand_logo: "Logo",
  brand_website: "Website",
  backup_dir: "Folder",
  backup_cron: "Schedule (UTC)",
  backup_keep: "Backups to keep",
  archive: "Archive",
  archive_endpoint: "Object store",
  archive_region: "Region",
  archive_interval: "Interval (seconds)",
  archive_keep: "Keep (days)",
  archive_access_key_id: "Access key",
  archive_secret_access_key: "Secret key",
} as const;

interface Section {
  readonly title: string;
  readonly names: readonly Name[];
  readonly text: string;
}

const SECTIONS: readonly Section[] = [
  {
    title: "E-mail",
    names: ["smtp_url", "mail_from"],
    text: "For alerts by e-mail, subscribers of status pages and sign-up. Effective immediately.",
  },
  {
    title: "Public URL",
    names: ["public_url"],
    text: "Links in alerts, ingest URLs of buckets and subscriptions begin with it. Effective immediately.",
  },
  {
    title: "Brand",
    names: ["brand_website", "brand_logo", "brand_color"],
    text: "For status pages that have no website, logo or color of their own.",
  },
  {
    title: "Scheduled backups",
    names: ["backup_dir", "backup_cron", "backup_keep"],
    text: "Each backup is verified. The folder is on the machine of the server. Effective immediately.",
  },
  {
    title: "Archive",
    names: [
      "archive",
      "archive_endpoint",
      "archive_region",
      "archive_access_key_id",
      "archive_secret_access_key",
      "archive_interval",
      "archive_keep",
    ],
    text: "Every change is copied to an object store within seconds. Effective after a restart of the server.",
  },
];

/** The settings that the operator can store in the database, without a configuration file. */
export function StoredSettings() {
  const read = useCall("admin.settings.read", {}, ["audit"]);
  return (
    <Loaded of={read}>
      {({ settings }) =>
        SECTIONS.map((section) => (
          <SectionPanel
            // Saved values are what the form starts from.
            key={`${section.title} ${JSON.stringify(settings.map(({ value }) => value))}`}
            of={section}
            settings={settings.filter(({ name }) => section.names.some((shown) => shown === name))}
            onSaved={read.reload}
          />
        ))
      }
    </Loaded>
  );
}

interface SectionProps {
  readonly of: Section;
  readonly settings: readonly ServerSetting[];
  readonly onSaved: () => void;
}

function SectionPanel({ of: { title, names, text }, settings, onSaved }: SectionProps) {
  const fixed = settings.filter(({ editable }) => !editable);
  const free = names.filter((name) => settings.some((setting) => setting.name === name && setting.editable));
  const stored = settings.filter(({ source }) => source === "stored").map(({ name }) => name);
  const values = Object.fromEntries(settings.map(({ name, value, secret }) => [name, secret ? null : value]));
  return (
    <Panel
      title={title}
      actions={
        <div class="actions">
          {settings.some(({ restart_required }) => restart_required) ? (
            <Status state="effective after a restart" tone="warn" />
          ) : null}
          {title === "E-mail" && settings.every(({ value }) => value !== null) ? (
            <Button onClick={openMailTest}>Send a test…</Button>
          ) : null}
          {stored.length === 0 ? null : (
            <Button
              kind="danger"
              label={`Remove the stored settings: ${title}`}
              onClick={() => remove(title, stored, onSaved)}
            >
              Remove…
            </Button>
          )}
        </div>
      }
    >
      <div class="stack">
        <p class="quiet">{text}</p>
        {fixed.length === 0 ? null : (
          <Facts
            of={fixed.map(({ name, value, set_in }) => [
              LABELS[name as Name],
              <span key={name}>
                <code class="long">{String(value ?? "–")}</code> <span class="quiet">set in {set_in}</span>
              </span>,
            ])}
          />
        )}
        {free.length === 0 ? null : (
          <DataForm
            submit="Save"
            operation="admin.settings.update"
            of={values}
            fields={fieldsOf(free, settings)}
            done="Settings saved"
            onDone={onSaved}
          />
        )}
      </div>
    </Panel>
  );
}

function fieldsOf(
  names: readonly Name[],
  settings: readonly ServerSetting[],
): readonly RowOf<"admin.settings.update">[] {
  const fields = names.map((name) => {
    const setting = settings.find((setting) => setting.name === name);
    const label = LABELS[name];
    if (name === "brand_logo") return { name, label, control: LogoField };
    if (name === "brand_color") return { name, label, control: ColorField };
    if (setting?.secret !== true) return { name, label };
    const now = setting.value === null ? undefined : `Now ${setting.value}. Leave empty to keep it.`;
    return { name, label, kind: SECRET, required: false, ...(now === undefined ? {} : { hint: now }) };
  });
  const [first, ...rest] = fields;
  if (first === undefined || rest.length === 0) return fields;
  // Two next to each other: the first one is the longest.
  const pairs = Array.from({ length: Math.ceil(rest.length / 2) }, (_, at) => rest.slice(2 * at, 2 * at + 2));
  return [first, ...pairs];
}

function remove(title: string, names: readonly string[], onRemoved: () => void): void {
  openDialog((close) => (
    <Confirm
      title={`Remove the stored settings: ${title}?`}
      action="Remove settings"
      onConfirm={async () => {
        const body = Object.fromEntries(names.map((name) => [name, null]));
        await call("admin.settings.update", { body });
        onRemoved();
      }}
      onClose={close}
    >
      <p>The defaults apply: {names.map((name) => LABELS[name as Name]).join(", ")}.</p>
    </Confirm>
  ));
}

/** Opens the form that sends a test e-mail. */
export function openMailTest(): void {
  openDialog((close) => (
    <DataForm
      title="Send a test e-mail"
      submit="Send test"
      operation="admin.settings.test_mail"
      start={{ to: session.value?.email ?? "" }}
      fields={[{ name: "to", label: "Recipient" }]}
      onDone={({ delivered, response, error }) => {
        if (delivered) toast(`The mail server accepted the e-mail: ${response ?? "OK"}`);
        else errorToast(`The e-mail was not sent: ${error ?? "unknown error"}`);
        if (delivered) close();
      }}
      onClose={close}
    />
  ));
}
