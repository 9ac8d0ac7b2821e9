import { type Static, Type } from "@sinclair/typebox";
import { dateTime, integer, NextCursor, named, oneOf, orNull, text } from "../../kernel/data/schema.ts";
import { EMAIL_LENGTH_MAX, EMAIL_PATTERN } from "../../kernel/mail/address.ts";

/** Default number of backups per page. */
export const BACKUPS_LIMIT = 50;

const NAME = "ninefold-20261121T030000Z.db";
const Name = Type.String({ examples: [NAME] });

/** The schedule of backups. */
const BackupPlan = named("BackupPlan", {
  folder: Type.String({ examples: ["/mnt/backups"] }),
  cron: Type.String({ description: "Cron expression of the schedule, in UTC.", examples: ["0 3 * * *"] }),
  keep: Type.Integer({ description: "Number of backups to keep.", examples: [7] }),
  next_at: dateTime({ description: "Next scheduled time." }),
  overdue: Type.Boolean({
    description:
      "Whether two scheduled times have passed since the last backup, or since the server's start if there is none.",
  }),
});

/** A backup that is running or has failed. */
export const BackupBegun = named("BackupBegun", { name: Name, begun_at: dateTime() });
export type BackupBegun = Static<typeof BackupBegun>;

export const BackupPage = named("BackupPage", {
  plan: orNull(BackupPlan, {
    description: "Schedule of the backups. Null for a server without a backup folder.",
  }),
  running: orNull(BackupBegun, { description: "The backup that is running. Null if none is." }),
  failure: orNull(
    Type.Object({
      name: Name,
      begun_at: dateTime(),
      message: Type.String({ examples: ["the disk is full"] }),
    }),
    { description: "The last backup, if it has failed since the server's start." },
  ),
  backups: Type.Array(
    named("Backup", {
      name: Name,
      size: Type.Integer({ description: "Size in bytes.", examples: [1_002_201_088] }),
      created_at: dateTime({ description: "Start of the backup." }),
    }),
  ),
  cursor: NextCursor,
});
export type BackupPage = Static<typeof BackupPage>;

const Totals = (description: string, example: Readonly<Record<string, number>>) =>
  Type.Record(Type.String(), Type.Number(), { description, examples: [example] });

export const ServerStatus = named("ServerStatus", {
  version: Type.String({ examples: ["1.0.0"] }),
  started_at: dateTime(),
  data_folder: Type.String({ examples: ["/var/lib/ninefold"] }),
  database_bytes: Type.Integer({
    description: "Size of the database file in bytes.",
    examples: [1_002_201_088],
  }),
  wal_bytes: Type.Integer({
    description: "Size of the write-ahead log in bytes.",
    examples: [4_120_032],
  }),
  disk_free_bytes: orNull(Type.Integer({ examples: [1_002_201_088] }), {
    description: "Free bytes on the disk of the data folder. Null if the system does not report it.",
  }),
  rss_bytes: Type.Integer({
    description: "Resident memory of the process in bytes.",
    examples: [82_837_504],
  }),
  event_loop_lag_p99_ms: Type.Number({
    description: "99th percentile of the event loop's lag in the last minute, in milliseconds.",
    examples: [1.4],
  }),
  requests_per_second: Type.Number({
    description: "Requests per second in the last five seconds.",
    examples: [120.5],
  }),
  requests_in_flight: Type.Integer({
    description: "Number of requests in flight, including this one.",
    examples: [3],
  }),
  jobs: Type.Object({
    waiting: Type.Integer({
      description: "Number of jobs that are not running, due now or later.",
      examples: [40],
    }),
    due: Type.Integer({
      description: "Number of these jobs that are due now, counted up to 10,000 per kind.",
      examples: [2],
    }),
    running: Type.Integer({ description: "Number of running jobs.", examples: [1] }),
    overdue_seconds: Type.Number({
      description: "Age of the oldest overdue job, in seconds.",
      examples: [0.2],
    }),
  }),
  mail: Type.Object(
    {
      configured: Type.Boolean({ description: "Whether the server has a mail server.", examples: [true] }),
      queued: Type.Integer({ description: "Number of e-mails that are not sent yet.", examples: [0] }),
      sent: Type.Integer({ description: "Number of e-mails that the mail server accepted.", examples: [12] }),
      failures: Type.Integer({ description: "Number of failed attempts.", examples: [0] }),
      failing_since: orNull(dateTime(), {
        description:
          "Time of the first failed attempt since the last e-mail was accepted. Null if there was none.",
        examples: [null],
      }),
      last_error: orNull(Type.String(), {
        description: "Error of the last attempt. Null if it succeeded.",
        examples: [null],
      }),
    },
    { description: "E-mails since the start of the server." },
  ),
  archive: orNull(
    Type.Object({
      url: Type.String({ examples: ["s3://backups/ninefold"] }),
      lag_seconds: Type.Number({
        description: "Age of the oldest change that is not archived, in seconds; 0 if all are.",
        examples: [0.4],
      }),
      bytes_waiting: Type.Integer({
        description: "Size of the changes that are not archived, in bytes, before they are merged.",
        examples: [812_416],
      }),
      archived_at: orNull(dateTime(), {
        description: "Time of the last archived change. Null if none was archived since the server's start.",
      }),
      base_at: orNull(dateTime(), {
        description: "Time of the newest base. Null if there is none yet: nothing can be restored.",
      }),
      last_error: orNull(Type.String(), {
        description: "Error of the last attempt. Null if it succeeded.",
        examples: [null],
      }),
    }),
    { description: "Archive in the object store. Null for a server without one.", examples: [null] },
  ),
  cluster: orNull(
    Type.Object({
      cell: Type.String({ examples: ["main"] }),
      role: oneOf(["leader"], { description: "Followers of a cluster serve no requests." }),
      confirmed: Type.Boolean({
        description: "Whether the server can confirm now that it leads.",
        examples: [true],
      }),
      epoch: Type.Integer({ description: "Number of the leader's term.", examples: [3] }),
      entry: Type.Integer({ description: "Last entry of the commit log.", examples: [41_200] }),
      log_id: Type.String({
        description: "Random id of the commit log.",
        examples: ["5f0c7c1f0f1d4a0b8f3a1c2d3e4f5a6b"],
      }),
      log_bytes: orNull(
        Type.Integer({
          description:
            "Space that the commit log takes in its engine, in bytes; in etcd, with everything else that it stores. Null before it was read.",
          examples: [8_400_000],
        }),
      ),
      log_bytes_max: orNull(
        Type.Integer({
          description: "Space that the engine may take, in bytes. Null without a quota.",
          examples: [2_147_483_648],
        }),
      ),
      nodes: Type.Array(
        Type.Object({
          node_id: Type.String(),
          advertise: orNull(Type.String({ examples: ["https://n2.internal:9909"] })),
          lag: Type.Integer({ description: "Entries that are not on the node's disk.", examples: [0] }),
          reported_at: dateTime(),
        }),
        { description: "The other nodes, as they reported last." },
      ),
    }),
    {
      description: "Cluster that the server leads. Null for a server without a commit log.",
      examples: [null],
    },
  ),
  gauges: Totals("Gauges of `GET /metrics` without labels, by name.", { ninefold_writer_queue_units: 0 }),
  counters: Totals("Counters of `GET /metrics` since the start, summed over their labels, by name.", {
    ninefold_relay_deliveries_total: 1200,
  }),
});
export type ServerStatus = Static<typeof ServerStatus>;

const SOURCES = ["default", "stored", "flag", "variable", "file"] as const;
const SOURCE_DESCRIPTION = "Source of the value; `stored`: set with `PATCH /v1/admin/settings`.";

export const ServerOptions = named("ServerOptions", {
  options: Type.Array(
    named("ServerOption", {
      name: Type.String({ description: "Name of the option in the configuration file.", examples: ["port"] }),
      value: Type.Union(
        [Type.String(), Type.Number(), Type.Boolean(), Type.Array(Type.String()), Type.Null()],
        { description: "Value of the option. Secrets are masked.", examples: [9909] },
      ),
      source: oneOf(SOURCES, { description: SOURCE_DESCRIPTION }),
    }),
  ),
});
export type ServerOptions = Static<typeof ServerOptions>;

/** Hours of measurements: a week is stored. */
const HISTORY_HOURS_MAX = 168;
/** Hours of a response by default. */
export const HISTORY_HOURS = 24;

/** Query of the measurements. */
export const HistoryQuery = Type.Object({
  hours: Type.Optional(
    integer({
      min: 1,
      max: HISTORY_HOURS_MAX,
      description: `Number of hours until now; ${HISTORY_HOURS} by default.`,
      examples: [24],
    }),
  ),
});

const count = (description: string, example: number) => Type.Integer({ description, examples: [example] });

export const ServerHistory = named("ServerHistory", {
  from: dateTime({ description: "Start of the first step." }),
  to: dateTime({ description: "Time of the response." }),
  step_seconds: Type.Integer({
    description: "Length of a step: a minute for up to six hours, more for more.",
    examples: [240],
  }),
  healthy: Type.Boolean({ description: "Whether no problem continues.", examples: [true] }),
  problems: Type.Array(
    named("ServerProblem", {
      kind: oneOf(["errors", "commits", "jobs", "event_loop", "disk", "offline"], {
        description:
          "`errors`: at least 1 % of the requests received a status of 500 or above. `commits`: a change could not be stored. `jobs`: a job was more than a minute late. `event_loop`: the 99th percentile of the event loop's lag was above a second. `disk`: less than 1 GiB was free. `offline`: the server was stopped or suspended.",
        examples: ["disk"],
      }),
      since: dateTime({ description: "Start of its first minute." }),
      until: orNull(dateTime(), { description: "End of its last minute. Null while it continues." }),
    }),
    { description: "Times in which the server was not healthy, newest first; at most 20 of a kind." },
  ),
  points: Type.Array(
    named("ServerStep", {
      at: dateTime({ description: "Start of the step." }),
      requests: count("Number of completed requests.", 1200),
      errors: count("Number of responses with a status of 500 or above.", 0),
      p99_ms: orNull(Type.Number({ examples: [4.2] }), {
        description:
          "99th percentile of the requests' durations in milliseconds, at most 25 % too high; of several minutes, the highest. A request that waits for a lock or for events counts with its wait. Null without a request.",
      }),
      commits: count("Number of committed batches of changes.", 300),
      commit_failures: count("Number of batches that could not be committed.", 0),
      jobs_due: count("Largest number of jobs that were due and not running.", 0),
      jobs_overdue_seconds: Type.Number({
        description: "Largest age of an overdue job, in seconds.",
        examples: [0],
      }),
      event_loop_lag_p99_ms: Type.Number({
        description: "99th percentile of the event loop's lag, in milliseconds.",
        examples: [1.4],
      }),
      memory_bytes: count("Largest resident memory of the process, in bytes.", 82_837_504),
      database_bytes: count("Size of the database file, in bytes.", 1_002_201_088),
      disk_free_bytes: orNull(Type.Integer({ examples: [1_002_201_088] }), {
        description:
          "Smallest number of free bytes on the disk of the data folder. Null if the system does not report it.",
      }),
    }),
    { description: "Steps with a measurement, oldest first. While the server is stopped, there are none." },
  ),
});
export type ServerHistory = Static<typeof ServerHistory>;

const ServerSetting = named("ServerSetting", {
  name: Type.String({ description: "Name of the option.", examples: ["public_url"] }),
  description: Type.String({ examples: ["Where browsers and senders reach this server"] }),
  value: Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()], {
    description: "Value now. Secrets are masked; of a mail server, the host is shown.",
    examples: ["https://ninefold.example.com"],
  }),
  source: oneOf(SOURCES, { description: SOURCE_DESCRIPTION, examples: ["stored"] }),
  set_in: orNull(Type.String({ examples: [null] }), {
    description:
      "Flag, environment variable or configuration file that sets the value, and wins. Null for a stored value or a default.",
  }),
  editable: Type.Boolean({ description: "Whether it can be changed here.", examples: [true] }),
  secret: Type.Boolean({ description: "Whether it is sealed and never shown.", examples: [false] }),
  effect: oneOf(["now", "restart"], { description: "When a change is effective.", examples: ["now"] }),
  restart_required: Type.Boolean({
    description: "Whether the stored value is effective only after a restart.",
    examples: [false],
  }),
});
export type ServerSetting = Static<typeof ServerSetting>;

export const ServerSettings = named("ServerSettings", { settings: Type.Array(ServerSetting) });
export type ServerSettings = Static<typeof ServerSettings>;

/** Longest text of a setting: no URL or folder is longer. */
const SETTING_LENGTH_MAX = 2_000;

const settingText = (description: string, example: string, notes: { readonly writeOnly?: true } = {}) =>
  Type.Optional(
    orNull(text({ min: 1, max: SETTING_LENGTH_MAX, ...notes }), {
      description: `${description}; null for the default.`,
      examples: [example],
    }),
  );
const settingNumber = (min: number, max: number, description: string, example: number) =>
  Type.Optional(
    orNull(integer({ min, max }), {
      description: `${description}; null for the default.`,
      examples: [example],
    }),
  );

/** Characters of a logo of 32 KiB in base64, with its prefix. */
const BRAND_LOGO_LENGTH_MAX = 44_000;

/** Body of a change of the settings. */
export const ServerSettingsBody = Type.Object(
  {
    smtp_url: settingText(
      "Mail server: `smtp://user:password@host:587`, or `smtps://host:465`. Needs `mail_from`",
      "smtp://user:password@mail.example.com:587",
      { writeOnly: true },
    ),
    mail_from: settingText("Sender of e-mails", "Ninefold <ninefold@example.com>"),
    public_url: settingText(
      "URL at which browsers and senders reach this server",
      "https://ninefold.example.com",
    ),
    brand_color: Type.Optional(
      orNull(Type.String({ pattern: "^#[0-9a-fA-F]{6}$", errorMessage: "must be a color such as #0f766e" }), {
        description: "Color of status pages without their own, in hexadecimal; null for the default.",
        examples: ["#0f766e"],
      }),
    ),
    brand_logo: Type.Optional(
      orNull(Type.String({ maxLength: BRAND_LOGO_LENGTH_MAX, errorMessage: "must be at most 32 KiB" }), {
        description:
          "Logo of status pages without their own, as a base64 data URI of a PNG, JPEG, WebP or SVG image, at most 32 KiB; null for none.",
        examples: [null],
      }),
    ),
    brand_website: settingText("Website that status pages without their own link", "https://acme.example"),
    backup_dir: settingText("Folder of this machine for scheduled backups", "/var/backups/ninefold"),
    backup_cron: settingText("Cron expression of the backups, in UTC", "0 3 * * *"),
    backup_keep: settingNumber(1, 10_000, "Number of backups to keep", 7),
    archive: settingText("Archive of all changes: `s3://bucket/prefix`", "s3://backups/ninefold"),
    archive_endpoint: settingText("URL of the object store", "https://s3.example.com"),
    archive_region: settingText("Region of the object store", "eu-central-1"),
    archive_interval: settingNumber(1, 3_600, "Seconds between two objects of the archive", 1),
    archive_keep: settingNumber(1, 3_650, "Days of which the archive can restore any time", 7),
    archive_access_key_id: settingText("Access key of the object store", "AKIAEXAMPLE", { writeOnly: true }),
    archive_secret_access_key: settingText("Secret key of the object store", "secret", { writeOnly: true }),
  },
  { $id: "ServerSettingsBody" },
);
export type ServerSettingsBody = Static<typeof ServerSettingsBody>;

/** Body of a test of the mail server. */
export const MailTestBody = Type.Object(
  {
    to: Type.String({
      maxLength: EMAIL_LENGTH_MAX,
      pattern: EMAIL_PATTERN,
      errorMessage: "must be an e-mail address",
      description: "Recipient of the test.",
      examples: ["ada@example.com"],
    }),
  },
  { $id: "MailTestBody" },
);

export const MailTest = named("MailTest", {
  delivered: Type.Boolean({ description: "Whether the mail server accepted the e-mail.", examples: [true] }),
  status: orNull(Type.Integer({ examples: [250] }), {
    description: "Status of the mail server's response. Null without one.",
  }),
  response: orNull(Type.String({ examples: ["250 2.0.0 Ok: queued"] }), {
    description: "Response of the mail server. Null without one.",
  }),
  error: orNull(Type.String({ examples: [null] }), {
    description: "Why the e-mail was not accepted. Null if it was.",
  }),
});
export type MailTest = Static<typeof MailTest>;
