import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, orNull } from "../../kernel/data/schema.ts";
import { NextCursor } from "../../kernel/http/requests/pagination.ts";

/** Backups on a page, unless said otherwise. */
export const BACKUPS_LIMIT = 50;

const DateTime = Type.String({ format: "date-time" });
const NAME = "ninefold-20261121T030000Z.db";
const Name = Type.String({ examples: [NAME] });
const Bytes = Type.Integer({ examples: [1_002_201_088] });

/** When scheduled backups are made. */
const BackupPlan = named("BackupPlan", {
  folder: Type.String({ examples: ["/mnt/backups"] }),
  cron: Type.String({ description: "In UTC.", examples: ["0 3 * * *"] }),
  keep: Type.Integer({ description: "How many are kept.", examples: [7] }),
  next_at: DateTime,
  overdue: Type.Boolean({
    description:
      "Whether two times have passed since the last backup, or where there is none since the start.",
  }),
});

/** A backup under way. */
export const BackupBegun = named("BackupBegun", { name: Name, begun_at: DateTime });
export type BackupBegun = Static<typeof BackupBegun>;

/** A page of backups, newest first. */
export const BackupPage = named("BackupPage", {
  plan: orNull(BackupPlan, { description: "Null for a server without a folder for backups." }),
  running: orNull(BackupBegun),
  failure: orNull(
    Type.Object({
      name: Name,
      begun_at: DateTime,
      message: Type.String({ examples: ["the disk is full"] }),
    }),
    { description: "The last one, if it failed since the server was started." },
  ),
  backups: Type.Array(
    named("Backup", {
      name: Name,
      size: Type.Integer({ description: "Bytes.", examples: [1_002_201_088] }),
      created_at: Type.String({ format: "date-time", description: "When it was begun." }),
    }),
  ),
  cursor: NextCursor,
});
export type BackupPage = Static<typeof BackupPage>;

const Totals = (description: string, example: Readonly<Record<string, number>>) =>
  Type.Record(Type.String(), Type.Number(), { description, examples: [example] });

/** How the server is. */
export const ServerStatus = named("ServerStatus", {
  version: Type.String({ examples: ["1.0.0"] }),
  started_at: DateTime,
  data_folder: Type.String({ examples: ["/var/lib/ninefold"] }),
  database_bytes: Bytes,
  wal_bytes: Type.Integer({ description: "Of the write-ahead log.", examples: [4_120_032] }),
  disk_free_bytes: orNull(Bytes, {
    description: "On the disk of the data folder; null where the system does not say.",
  }),
  rss_bytes: Type.Integer({ description: "Memory of the process.", examples: [82_837_504] }),
  event_loop_lag_p99_ms: Type.Number({ description: "Of the last minute.", examples: [1.4] }),
  requests_per_second: Type.Number({ description: "Of the last five seconds.", examples: [120.5] }),
  requests_in_flight: Type.Integer({ description: "This one included.", examples: [3] }),
  jobs: Type.Object({
    waiting: Type.Integer({ description: "Due now or later.", examples: [40] }),
    due: Type.Integer({ description: "Of these, due; of each kind counted to 10,000.", examples: [2] }),
    running: Type.Integer({ examples: [1] }),
    overdue_seconds: Type.Number({
      description: "How long the one has waited that is overdue for longest.",
      examples: [0.2],
    }),
  }),
  gauges: Totals("Of `GET /metrics`, those without labels.", { ninefold_writer_queue_units: 0 }),
  counters: Totals("Of `GET /metrics`, summed over their labels, since the start.", {
    ninefold_relay_deliveries_total: 1200,
  }),
});
export type ServerStatus = Static<typeof ServerStatus>;

/** The options of the server. */
export const ServerOptions = named("ServerOptions", {
  options: Type.Array(
    named("ServerOption", {
      name: Type.String({ description: "As in the configuration file.", examples: ["port"] }),
      value: Type.Union(
        [Type.String(), Type.Number(), Type.Boolean(), Type.Array(Type.String()), Type.Null()],
        { description: "Secrets are masked.", examples: [9909] },
      ),
      source: oneOf(["default", "flag", "variable", "file"]),
    }),
  ),
});
export type ServerOptions = Static<typeof ServerOptions>;
