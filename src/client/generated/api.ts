// Written by `bun codegen/main.ts` from test/golden/openapi.json. Change the schemas of the areas instead.

/** The body of `POST /v1/admin/accounts`. */
export interface AccountCreateBody {
  email: string;
  tier: Tier;
  /** Initial credits. Default: the tier's monthly credits. */
  balance?: number | undefined;
}

/** The body of `POST /v1/admin/accounts`, `tier`. */
export type Tier = "free" | "starter" | "pro" | "scale" | "unlimited";

/** The response of `POST /v1/admin/accounts`. */
export interface AccountCreated {
  user_id: string;
  /** The account's key. Only this response contains it. */
  api_key: string;
  email: string;
  tier: Tier;
  balance: number;
}

/** The response of `DELETE /v1/admin/accounts/{user_id}`. */
export interface AccountDeleted {
  user_id: string;
  /** Time of the deletion. */
  deleted_at: string;
}

/** The response of `GET /v1/admin/accounts`. */
export interface AccountPage {
  accounts: Account[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/admin/accounts`, `accounts`, `[]`. */
export interface Account {
  user_id: string;
  email: string;
  tier: Tier;
  balance: number;
  suspended: boolean;
  created_at: string;
}

/** The body of `PATCH /v1/admin/accounts/{user_id}`. */
export interface AccountUpdateBody {
  email?: string | undefined;
  tier?: Tier | undefined;
  balance?: number | undefined;
  suspended?: boolean | undefined;
}

/** The response of `GET /v1/admin/audit`. */
export interface AuditPage {
  entries: AuditEntry[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/admin/audit`, `entries`, `[]`. */
export interface AuditEntry {
  sequence: string;
  at: string;
  /** Name of the operation. */
  action: string;
  summary: string;
  actor: AuditActor;
  project_id: string | null;
  target: AuditTarget;
  /** Changed fields before the change. Null for a creation. */
  before: Record<string, unknown> | null;
  /** Changed fields after the change. Null for a deletion. */
  after: Record<string, unknown> | null;
  /** True if `before` or `after` was shortened: it was too large, or the account had used its daily bytes. */
  truncated?: true;
  ip: string | null;
  user_agent: string | null;
  request_id: string | null;
}

/** The response of `GET /v1/admin/audit`, `entries`, `[]`, `actor`. */
export interface AuditActor extends Actor {
  /** Id of the scheduled change. Only for `schedule`. */
  id?: string;
  by?: Actor;
}

/** A key, a person or the command line. */
export interface Actor {
  type: "key" | "session" | "cli" | "system" | "public" | "portal" | "person" | "schedule";
  /** Id of the managed key. Null for a platform key. */
  key_id: string | null;
  key_name: string | null;
  user_id: string | null;
  /** Id of your customer, for a change through a portal link. Null for others. */
  owner_id: string | null;
  /** Id of the person. Only for `person`. */
  person_id?: string;
  /** E-mail address of the person at that time. */
  email?: string;
  /** Name of the person at that time. */
  name?: string | null;
  /** Number of the person's session. */
  session_id?: number;
}

/** The response of `GET /v1/admin/audit`, `entries`, `[]`, `target`. */
export type AuditTarget = { type: string; id: string };

/** The response of `POST /v1/admin/backups`. */
export type BackupBegun = { name: string; begun_at: string };

/** The response of `GET /v1/admin/backups`. */
export interface BackupPage {
  /** Schedule of the backups. Null for a server without a backup folder. */
  plan: BackupPlan | null;
  /** The backup that is running. Null if none is. */
  running: BackupBegun | null;
  /** The last backup, if it has failed since the server's start. */
  failure: { name: string; begun_at: string; message: string } | null;
  backups: Backup[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/admin/backups`, `plan`, `one of`. */
export interface BackupPlan {
  folder: string;
  /** Cron expression of the schedule, in UTC. */
  cron: string;
  /** Number of backups to keep. */
  keep: number;
  /** Next scheduled time. */
  next_at: string;
  /** Whether two scheduled times have passed since the last backup, or since the server's start if there is none. */
  overdue: boolean;
}

/** The response of `GET /v1/admin/backups`, `backups`, `[]`. */
export interface Backup {
  name: string;
  /** Size in bytes. */
  size: number;
  /** Start of the backup. */
  created_at: string;
}

/** The body of `POST /v1/admin/clock`. */
export interface ClockBody {
  /** Milliseconds by which to advance the clock. */
  advance_ms: number | string;
}

/** The response of `POST /v1/admin/clock`. */
export interface ClockAdvanced {
  /** Time of the test clock, in epoch milliseconds. */
  now: number;
}

/** The response of `GET /v1/admin/history`. */
export interface ServerHistory {
  /** Start of the first step. */
  from: string;
  /** Time of the response. */
  to: string;
  /** Length of a step: a minute for up to six hours, more for more. */
  step_seconds: number;
  /** Whether no problem continues. */
  healthy: boolean;
  /** Times in which the server was not healthy, newest first; at most 20 of a kind. */
  problems: ServerProblem[];
  /** Steps with a measurement, oldest first. While the server is stopped, there are none. */
  points: ServerStep[];
}

/** The response of `GET /v1/admin/history`, `problems`, `[]`. */
export interface ServerProblem {
  /** `errors`: at least 1 % of the requests received a status of 500 or above. `commits`: a change could not be stored. `jobs`: a job was more than a minute late. `event_loop`: the 99th percentile of the event loop's lag was above a second. `disk`: less than 1 GiB was free. `offline`: the server was stopped or suspended. */
  kind: "errors" | "commits" | "jobs" | "event_loop" | "disk" | "offline";
  /** Start of its first minute. */
  since: string;
  /** End of its last minute. Null while it continues. */
  until: string | null;
}

/** The response of `GET /v1/admin/history`, `points`, `[]`. */
export interface ServerStep {
  /** Start of the step. */
  at: string;
  /** Number of completed requests. */
  requests: number;
  /** Number of responses with a status of 500 or above. */
  errors: number;
  /** 99th percentile of the requests' durations in milliseconds, at most 25 % too high; of several minutes, the highest. A request that waits for a lock or for events counts with its wait. Null without a request. */
  p99_ms: number | null;
  /** Number of committed batches of changes. */
  commits: number;
  /** Number of batches that could not be committed. */
  commit_failures: number;
  /** Largest number of jobs that were due and not running. */
  jobs_due: number;
  /** Largest age of an overdue job, in seconds. */
  jobs_overdue_seconds: number;
  /** 99th percentile of the event loop's lag, in milliseconds. */
  event_loop_lag_p99_ms: number;
  /** Largest resident memory of the process, in bytes. */
  memory_bytes: number;
  /** Size of the database file, in bytes. */
  database_bytes: number;
  /** Smallest number of free bytes on the disk of the data folder. Null if the system does not report it. */
  disk_free_bytes: number | null;
}

/** The body of `POST /v1/admin/login-links`. */
export interface LoginLinkBody {
  /** Minutes for which the link is valid. Default 30. */
  minutes?: number | string | undefined;
}

/** The response of `POST /v1/admin/login-links`. */
export interface LoginLink {
  /** URL that opens one session of the calling key, once. */
  url: string;
  expires_at: string;
}

/** The response of `GET /v1/admin/options`. */
export type ServerOptions = { options: ServerOption[] };

/** The response of `GET /v1/admin/options`, `options`, `[]`. */
export interface ServerOption {
  /** Name of the option in the configuration file. */
  name: string;
  /** Value of the option. Secrets are masked. */
  value: string | number | boolean | string[] | null;
  /** Source of the value; `stored`: set with `PATCH /v1/admin/settings`. */
  source: "default" | "stored" | "flag" | "variable" | "file";
}

/** The response of `GET /v1/admin/settings`. */
export type ServerSettings = { settings: ServerSetting[] };

/** The response of `GET /v1/admin/settings`, `settings`, `[]`. */
export interface ServerSetting {
  /** Name of the option. */
  name: string;
  description: string;
  /** Value now. Secrets are masked; of a mail server, the host is shown. */
  value: string | number | boolean | null;
  /** Source of the value; `stored`: set with `PATCH /v1/admin/settings`. */
  source: "default" | "stored" | "flag" | "variable" | "file";
  /** Flag, environment variable or configuration file that sets the value, and wins. Null for a stored value or a default. */
  set_in: string | null;
  /** Whether it can be changed here. */
  editable: boolean;
  /** Whether it is sealed and never shown. */
  secret: boolean;
  /** When a change is effective. */
  effect: "now" | "restart";
  /** Whether the stored value is effective only after a restart. */
  restart_required: boolean;
}

/** The body of `POST /v1/admin/settings/test-mail`. */
export interface MailTestBody {
  /** Recipient of the test. */
  to: string;
}

/** The response of `POST /v1/admin/settings/test-mail`. */
export interface MailTest {
  /** Whether the mail server accepted the e-mail. */
  delivered: boolean;
  /** Status of the mail server's response. Null without one. */
  status: number | null;
  /** Response of the mail server. Null without one. */
  response: string | null;
  /** Why the e-mail was not accepted. Null if it was. */
  error: string | null;
}

/** The body of `PATCH /v1/admin/settings`. */
export interface ServerSettingsBody {
  /** Mail server: `smtp://user:password@host:587`, or `smtps://host:465`. Needs `mail_from`; null for the default. */
  smtp_url?: string | null | undefined;
  /** Sender of e-mails; null for the default. */
  mail_from?: string | null | undefined;
  /** URL at which browsers and senders reach this server; null for the default. */
  public_url?: string | null | undefined;
  /** Color of status pages without their own, in hexadecimal; null for the default. */
  brand_color?: string | null | undefined;
  /** Logo of status pages without their own, as a base64 data URI of a PNG, JPEG, WebP or SVG image, at most 32 KiB; null for none. */
  brand_logo?: string | null | undefined;
  /** Website that status pages without their own link; null for the default. */
  brand_website?: string | null | undefined;
  /** Folder of this machine for scheduled backups; null for the default. */
  backup_dir?: string | null | undefined;
  /** Cron expression of the backups, in UTC; null for the default. */
  backup_cron?: string | null | undefined;
  /** Number of backups to keep; null for the default. */
  backup_keep?: number | null | undefined;
  /** Archive of all changes: `s3://bucket/prefix`; null for the default. */
  archive?: string | null | undefined;
  /** URL of the object store; null for the default. */
  archive_endpoint?: string | null | undefined;
  /** Region of the object store; null for the default. */
  archive_region?: string | null | undefined;
  /** Seconds between two objects of the archive; null for the default. */
  archive_interval?: number | null | undefined;
  /** Days of which the archive can restore any time; null for the default. */
  archive_keep?: number | null | undefined;
  /** Access key of the object store; null for the default. */
  archive_access_key_id?: string | null | undefined;
  /** Secret key of the object store; null for the default. */
  archive_secret_access_key?: string | null | undefined;
}

/** The response of `GET /v1/admin/status`. */
export interface ServerStatus {
  version: string;
  started_at: string;
  data_folder: string;
  /** Size of the database file in bytes. */
  database_bytes: number;
  /** Size of the write-ahead log in bytes. */
  wal_bytes: number;
  /** Free bytes on the disk of the data folder. Null if the system does not report it. */
  disk_free_bytes: number | null;
  /** Resident memory of the process in bytes. */
  rss_bytes: number;
  /** 99th percentile of the event loop's lag in the last minute, in milliseconds. */
  event_loop_lag_p99_ms: number;
  /** Requests per second in the last five seconds. */
  requests_per_second: number;
  /** Number of requests in flight, including this one. */
  requests_in_flight: number;
  jobs: {
    /** Number of jobs that are not running, due now or later. */
    waiting: number;
    /** Number of these jobs that are due now, counted up to 10,000 per kind. */
    due: number;
    /** Number of running jobs. */
    running: number;
    /** Age of the oldest overdue job, in seconds. */
    overdue_seconds: number;
  };
  /** E-mails since the start of the server. */
  mail: {
    /** Whether the server has a mail server. */
    configured: boolean;
    /** Number of e-mails that are not sent yet. */
    queued: number;
    /** Number of e-mails that the mail server accepted. */
    sent: number;
    /** Number of failed attempts. */
    failures: number;
    /** Time of the first failed attempt since the last e-mail was accepted. Null if there was none. */
    failing_since: string | null;
    /** Error of the last attempt. Null if it succeeded. */
    last_error: string | null;
  };
  /** Archive in the object store. Null for a server without one. */
  archive: {
    url: string;
    /** Age of the oldest change that is not archived, in seconds; 0 if all are. */
    lag_seconds: number;
    /** Size of the changes that are not archived, in bytes, before they are merged. */
    bytes_waiting: number;
    /** Time of the last archived change. Null if none was archived since the server's start. */
    archived_at: string | null;
    /** Time of the newest base. Null if there is none yet: nothing can be restored. */
    base_at: string | null;
    /** Error of the last attempt. Null if it succeeded. */
    last_error: string | null;
  } | null;
  /** Cluster that the server leads. Null for a server without a commit log. */
  cluster: {
    cell: string;
    /** Followers of a cluster serve no requests. */
    role: "leader";
    /** Whether the server can confirm now that it leads. */
    confirmed: boolean;
    /** Number of the leader's term. */
    epoch: number;
    /** Last entry of the commit log. */
    entry: number;
    /** Random id of the commit log. */
    log_id: string;
    /** Space that the commit log takes in its engine, in bytes; in etcd, with everything else that it stores. Null before it was read. */
    log_bytes: number | null;
    /** Space that the engine may take, in bytes. Null without a quota. */
    log_bytes_max: number | null;
    /** The other nodes, as they reported last. */
    nodes: {
      node_id: string;
      advertise: string | null;
      /** Entries that are not on the node's disk. */
      lag: number;
      reported_at: string;
    }[];
  } | null;
  /** Gauges of `GET /metrics` without labels, by name. */
  gauges: Record<string, number>;
  /** Counters of `GET /metrics` since the start, summed over their labels, by name. */
  counters: Record<string, number>;
}

/** The body of `POST /v1/catch/buckets`. */
export interface BucketCreateBody {
  /** `paused` (initially) stores events and forwards none; `live` forwards them. */
  state?: "paused" | "live" | undefined;
  /** HTTPS URL that events are forwarded to. Null with `targets`; optional with `delivery: pull`. */
  target_url?: string | null | undefined;
  /** `push` forwards events to `target_url` or `targets`. `pull` stores them until a client fetches and acknowledges them. */
  delivery?: "push" | "pull" | undefined;
  /** Provider whose signatures are verified; it cannot be changed. Without one, Stripe, GitHub, Shopify and Svix are detected by their headers. */
  provider?: string | null | undefined;
  /** Signing secret of the provider, stored encrypted and not returned; null removes it. */
  signing_secret?: string | null | undefined;
  /** Optional name, unique within the project. */
  name?: string | null | undefined;
  /** `mark` (default) stores requests with an invalid signature; `reject` does not, and they are free of charge. */
  verification_mode?: "mark" | "reject" | undefined;
  /** Response to stored requests, as `status`, `content_type` and `body`; null for the default JSON. */
  response?: BucketResponse | null | undefined;
  /** Status of responses to requests with an invalid signature. Default: 200; 401 for `discord`. */
  invalid_status?: 200 | 400 | 401 | 403 | null | undefined;
  /** Status of responses to `rate_limited`, `panic_mode` and `insufficient_balance`. Default: 200; with 429 or 503, providers retry. */
  overload_status?: 200 | 429 | 503 | undefined;
  /** Previous secret, which is also valid until `previous_expires_at`. */
  previous_signing_secret?: string | null | undefined;
  /** End of the validity of the previous secret, as RFC 3339, at most 30 days ahead. */
  previous_expires_at?: string | null | undefined;
  /** Time for which a repeated event ID is detected and free of charge, in hours. Default: 0, disabled. */
  deduplicate_hours?: number | string | undefined;
  /** Retention of events, in hours, at most the tier's; null for the tier's. */
  retention_hours?: number | string | null | undefined;
  /** Methods of requests that are stored; others are `ignored`. Default: POST, PUT, PATCH, DELETE. */
  methods?: readonly ("GET" | "HEAD" | "OPTIONS" | "POST" | "PUT" | "PATCH" | "DELETE")[] | undefined;
  /** Recipe for signatures of a sender without a preset. */
  signature?: BucketSignatureBody | null | undefined;
  /** Challenge that the sender requires before it sends events. */
  challenge?: BucketChallenge | null | undefined;
  /** With the provider `sns`: whether a subscription of the topic is confirmed as soon as its message arrives. Default: false. */
  auto_confirm?: boolean | undefined;
  /** Parts of the request that are forwarded, in addition to the body, to `target_url` and `targets`; null for none. */
  forward?: BucketForward | null | undefined;
  /** Endpoints that receive the events, in place of `target_url`: at most 10, each with a delivery of its own. `[]` for none. */
  targets?: readonly BucketTarget[] | undefined;
  retry_schedule?: readonly (string | number)[] | null | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
}

/** The body of `POST /v1/catch/buckets`, `response`, `one of`. */
export interface BucketResponse {
  status?: number | undefined;
  content_type?: "text/plain" | "application/json" | "application/xml" | "text/xml" | undefined;
  body?: string | null | undefined;
}

/** The body of `POST /v1/catch/buckets`, `signature`, `one of`. */
export interface BucketSignatureBody {
  /** Name of the signature's header. */
  header: string;
  /** For `ed25519` and `ecdsa-p256-sha256` the secret is the public key (raw, SPKI or PEM). With `token` the header is the secret. */
  algorithm: "hmac-sha256" | "hmac-sha1" | "hmac-sha512" | "ed25519" | "ecdsa-p256-sha256" | "token";
  /** Encoding of the signature. Default: `hex`. */
  encoding?: "hex" | "base64" | "base64url" | undefined;
  /** Prefix of each signature, such as `sha256=`. */
  prefix?: string | undefined;
  /** Separator between signatures. Default: a comma. */
  separator?: string | undefined;
  /** Separator of a header that is a list of `k=v`. */
  pairs?: "," | ";" | undefined;
  /** With `pairs`: key of the signature. */
  signature_key?: string | undefined;
  /** With `pairs`: key of the timestamp. */
  timestamp_key?: string | undefined;
  /** Name of the timestamp's header. */
  timestamp_header?: string | undefined;
  /** Format of the timestamp. Default: `unix`. */
  timestamp_format?: "unix" | "unix_ms" | "rfc3339" | undefined;
  /** Tolerance of a signature's timestamp, in seconds; 0 for any age. Default: 300. */
  tolerance_seconds?: number | string | undefined;
  /** Signed content: text that contains `{body}` once, and `{timestamp}`, `{id:<header>}`, `{url}`, `{method}` or `{path}` as needed. */
  template?: string | undefined;
  /** Encoding of the secret. Default: `text`. */
  secret_encoding?: "text" | "base64" | "hex" | "whsec" | undefined;
  /** Source of the event's ID: `header:name`, or a JSON pointer into the body, of up to 8 levels. */
  event_id?: string | undefined;
  /** Source of the event's type, like `event_id`. */
  event_type?: string | undefined;
}

/** The body of `POST /v1/catch/buckets`, `challenge`, `one of`. */
export interface BucketChallenge {
  /** Verify token of `meta`, `strava` and `websub`, as you entered it there. It is not returned. */
  token?: string | undefined;
  /** For other senders: query parameter of a GET request that the bucket returns the value of. */
  query?: string | undefined;
  /** For other senders: JSON pointer to the value in the body of a POST request that the bucket returns. Without `when`, the body must have no other member. */
  pointer?: string | undefined;
  /** With `pointer`: condition on the body that challenges fulfill and events do not, like the `filter` of a target. */
  when?: object | undefined;
  /** For senders of CloudEvents: values of `WebHook-Request-Origin` that may send to the bucket; `*` for any. */
  origins?: readonly string[] | undefined;
  as?: "text" | "json" | undefined;
  /** Name of the member that contains the value, with `as: json`. */
  field?: string | undefined;
}

/** The body of `POST /v1/catch/buckets`, `forward`, `one of`. */
export interface BucketForward {
  /** Whether events are forwarded with the method of their request, in place of POST. GET and HEAD have no body. */
  method?: boolean | undefined;
  /** Whether the path below that of the bucket is appended to the path of the target. */
  path?: boolean | undefined;
  /** Whether the query is appended to that of the target. */
  query?: boolean | undefined;
  /** Names of headers that are forwarded, in addition to the type and encoding of the content and those of the provider; a `*` at the end stands for any rest. Headers that may contain a secret, such as `Authorization`, are forwarded only by their full name; headers of the connection, `X-Svc-*` and `webhook-*` never. */
  headers?: readonly string[] | undefined;
}

/** The body of `POST /v1/catch/buckets`, `targets`, `[]`. */
export type BucketTarget = { endpoint_id: string; filter?: object | null | undefined };

/** The response of `POST /v1/catch/buckets`. */
export interface Bucket {
  id: string;
  name: string | null;
  /** Public URL for the provider, with the origin of this request or `--public-url`. It accepts every method. Null for people with the role `viewer` or `responder`. */
  ingest_url: string | null;
  target_url: string | null;
  provider:
    | "stripe"
    | "github"
    | "shopify"
    | "svix"
    | "custom"
    | "standard"
    | "slack"
    | "twilio"
    | "linear"
    | "lemonsqueezy"
    | "bitbucket"
    | "discord"
    | "paddle"
    | "sendgrid"
    | "square"
    | "zoom"
    | "intercom"
    | "gitlab"
    | "zendesk"
    | "typeform"
    | "meta"
    | "strava"
    | "websub"
    | "microsoft-graph"
    | "x"
    | "dropbox"
    | "adyen"
    | "mailgun"
    | "event-grid"
    | "paypal"
    | "sns"
    | null;
  has_signing_secret: boolean;
  verification_mode: "mark" | "reject";
  response: BucketResponse | null;
  /** Status of responses to requests with an invalid signature. */
  invalid_status: 200 | 400 | 401 | 403;
  /** Status of responses to requests beyond the bucket's limits. */
  overload_status: 200 | 429 | 503;
  /** Time when the previous secret expires. */
  previous_expires_at: string | null;
  deduplicate_hours: number;
  /** Retention of events, in hours; null for the tier's retention. */
  retention_hours: number | null;
  methods: ("GET" | "HEAD" | "OPTIONS" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  signature: BucketSignature | null;
  challenge: {
    has_token: boolean;
    query: string | null;
    as: "text" | "json";
    field: string | null;
    pointer?: string;
    when?: Record<string, unknown>;
    origins?: string[];
  } | null;
  /** Whether subscriptions to a topic of `sns` are confirmed automatically. */
  auto_confirm: boolean;
  /** Parts of the request that are forwarded in addition to the body; null for none. */
  forward: BucketForward | null;
  /** Endpoints that receive the events; empty when `target_url` does. */
  targets: BucketTarget[];
  /** Delay before each retry of a forward; null for the default: `1s`, `5s`, `25s`. */
  retry_schedule: string[] | null;
  /** `paused` (initially) stores events and forwards none; `live` forwards them. */
  state: "paused" | "live";
  delivery: "push" | "pull";
  /** Time as RFC 3339, in UTC. */
  created_at: string;
  /** Time as RFC 3339, in UTC. */
  updated_at: string;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
  /** Salted digests of the secrets, by field. Only keys with `:read` and `:write` of the area receive them. */
  secret_digest?: Record<string, string>;
  /** Number of requests that were too large to be stored; their senders got 413. */
  too_large: number;
  /** Time of the last request that was too large; null if there was none. */
  last_too_large_at: string | null;
  /** Number of stored events by status. */
  events: { pending: number; delivered: number; failed: number };
  /** How to start forwarding; only while the bucket is paused and its `delivery` is `push`. */
  hint?: string;
}

/** The response of `POST /v1/catch/buckets`, `signature`, `one of`. */
export interface BucketSignature {
  /** Name of the signature's header. */
  header: string;
  /** For `ed25519` and `ecdsa-p256-sha256` the secret is the public key (raw, SPKI or PEM). With `token` the header is the secret. */
  algorithm: "hmac-sha256" | "hmac-sha1" | "hmac-sha512" | "ed25519" | "ecdsa-p256-sha256" | "token";
  /** Encoding of the signature. Default: `hex`. */
  encoding?: "hex" | "base64" | "base64url";
  /** Prefix of each signature, such as `sha256=`. */
  prefix?: string;
  /** Separator between signatures. Default: a comma. */
  separator?: string;
  /** Separator of a header that is a list of `k=v`. */
  pairs?: "," | ";";
  /** With `pairs`: key of the signature. */
  signature_key?: string;
  /** With `pairs`: key of the timestamp. */
  timestamp_key?: string;
  /** Name of the timestamp's header. */
  timestamp_header?: string;
  /** Format of the timestamp. Default: `unix`. */
  timestamp_format?: "unix" | "unix_ms" | "rfc3339";
  /** Tolerance of a signature's timestamp, in seconds; 0 for any age. Default: 300. */
  tolerance_seconds?: number;
  /** Signed content: text that contains `{body}` once, and `{timestamp}`, `{id:<header>}`, `{url}`, `{method}` or `{path}` as needed. */
  template?: string;
  /** Encoding of the secret. Default: `text`. */
  secret_encoding?: "text" | "base64" | "hex" | "whsec";
  /** Source of the event's ID: `header:name`, or a JSON pointer into the body, of up to 8 levels. */
  event_id?: string;
  /** Source of the event's type, like `event_id`. */
  event_type?: string;
}

/** The response of `GET /v1/catch/buckets`. */
export type BucketList = { buckets: Bucket[] };

/** The body of `PATCH /v1/catch/buckets/{bucket_id}`. */
export interface BucketUpdateBody {
  /** `paused` (initially) stores events and forwards none; `live` forwards them. */
  state?: "paused" | "live" | undefined;
  /** HTTPS URL that events are forwarded to. Null with `targets`; optional with `delivery: pull`. */
  target_url?: string | null | undefined;
  /** `push` forwards events to `target_url` or `targets`. `pull` stores them until a client fetches and acknowledges them. */
  delivery?: "push" | "pull" | undefined;
  /** Signing secret of the provider, stored encrypted and not returned; null removes it. */
  signing_secret?: string | null | undefined;
  /** Optional name, unique within the project. */
  name?: string | null | undefined;
  /** `mark` (default) stores requests with an invalid signature; `reject` does not, and they are free of charge. */
  verification_mode?: "mark" | "reject" | undefined;
  /** Response to stored requests, as `status`, `content_type` and `body`; null for the default JSON. */
  response?: BucketResponse | null | undefined;
  /** Status of responses to requests with an invalid signature. Default: 200; 401 for `discord`. */
  invalid_status?: 200 | 400 | 401 | 403 | null | undefined;
  /** Status of responses to `rate_limited`, `panic_mode` and `insufficient_balance`. Default: 200; with 429 or 503, providers retry. */
  overload_status?: 200 | 429 | 503 | undefined;
  /** Previous secret, which is also valid until `previous_expires_at`. */
  previous_signing_secret?: string | null | undefined;
  /** End of the validity of the previous secret, as RFC 3339, at most 30 days ahead. */
  previous_expires_at?: string | null | undefined;
  /** Time for which a repeated event ID is detected and free of charge, in hours. Default: 0, disabled. */
  deduplicate_hours?: number | string | undefined;
  /** Retention of events, in hours, at most the tier's; null for the tier's. */
  retention_hours?: number | string | null | undefined;
  /** Methods of requests that are stored; others are `ignored`. Default: POST, PUT, PATCH, DELETE. */
  methods?: readonly ("GET" | "HEAD" | "OPTIONS" | "POST" | "PUT" | "PATCH" | "DELETE")[] | undefined;
  /** Recipe for signatures of a sender without a preset. */
  signature?: BucketSignatureBody | null | undefined;
  /** Challenge that the sender requires before it sends events. */
  challenge?: BucketChallenge | null | undefined;
  /** With the provider `sns`: whether a subscription of the topic is confirmed as soon as its message arrives. Default: false. */
  auto_confirm?: boolean | undefined;
  /** Parts of the request that are forwarded, in addition to the body, to `target_url` and `targets`; null for none. */
  forward?: BucketForward | null | undefined;
  /** Endpoints that receive the events, in place of `target_url`: at most 10, each with a delivery of its own. `[]` for none. */
  targets?: readonly BucketTarget[] | undefined;
  retry_schedule?: readonly (string | number)[] | null | undefined;
}

/** The body of `POST /v1/catch/{bucket_id}/events/{event_id}/ack`. */
export interface EventAckBody {
  result: "delivered" | "failed";
  /** HTTP status with which the event was processed. */
  response_status?: number | undefined;
  /** Reason of the failure. */
  error?: string | undefined;
  duration_ms?: number | string | undefined;
}

/** The response of `POST /v1/catch/{bucket_id}/events/{event_id}/ack`. */
export interface EventItem {
  /** ID of the event. IDs sort by time of receipt. */
  id: string;
  bucket_id: string;
  provider:
    | "stripe"
    | "github"
    | "shopify"
    | "svix"
    | "custom"
    | "standard"
    | "slack"
    | "twilio"
    | "linear"
    | "lemonsqueezy"
    | "bitbucket"
    | "discord"
    | "paddle"
    | "sendgrid"
    | "square"
    | "zoom"
    | "intercom"
    | "gitlab"
    | "zendesk"
    | "typeform"
    | "meta"
    | "strava"
    | "websub"
    | "microsoft-graph"
    | "x"
    | "dropbox"
    | "adyen"
    | "mailgun"
    | "event-grid"
    | "paypal"
    | "sns"
    | null;
  /** Type of the event, as the sender names it; null if unknown. */
  event_type: string | null;
  status: "pending" | "delivered" | "failed";
  verification: "none" | "valid" | "invalid";
  /** Time as RFC 3339, in UTC. */
  received_at: string;
  /** Number of attempts to deliver the event. */
  attempts: number;
  /** HTTP status of the last response; null without a response. */
  response_status: number | null;
  /** Reason why the event is not delivered. */
  error: string | null;
  /** Time as RFC 3339, in UTC. */
  delivered_at: string | null;
  /** Time of the next retry; null if none is scheduled. */
  next_attempt_at: string | null;
  /** Method of the request. Only in lists with `details`. */
  method?: string;
  /** Start of the body, up to 120 characters, with single spaces; null for a body that is not text, or above 64 KiB. Only in lists with `details`. */
  preview?: string | null;
}

/** The response of `POST /v1/catch/{bucket_id}/events/{event_id}/confirm`. */
export type EventConfirmed = { status: "confirmed" };

/** The response of `DELETE /v1/catch/{bucket_id}/events`. */
export type EventsDeleted = { deleted_count: number };

/** The response of `GET /v1/catch/{bucket_id}/events/{event_id}`. */
export interface CaughtEvent {
  /** ID of the event. IDs sort by time of receipt. */
  id: string;
  bucket_id: string;
  provider:
    | "stripe"
    | "github"
    | "shopify"
    | "svix"
    | "custom"
    | "standard"
    | "slack"
    | "twilio"
    | "linear"
    | "lemonsqueezy"
    | "bitbucket"
    | "discord"
    | "paddle"
    | "sendgrid"
    | "square"
    | "zoom"
    | "intercom"
    | "gitlab"
    | "zendesk"
    | "typeform"
    | "meta"
    | "strava"
    | "websub"
    | "microsoft-graph"
    | "x"
    | "dropbox"
    | "adyen"
    | "mailgun"
    | "event-grid"
    | "paypal"
    | "sns"
    | null;
  /** Type of the event, as the sender names it; null if unknown. */
  event_type: string | null;
  status: "pending" | "delivered" | "failed";
  verification: "none" | "valid" | "invalid";
  /** Time as RFC 3339, in UTC. */
  received_at: string;
  /** Number of attempts to deliver the event. */
  attempts: number;
  /** HTTP status of the last response; null without a response. */
  response_status: number | null;
  /** Reason why the event is not delivered. */
  error: string | null;
  /** Time as RFC 3339, in UTC. */
  delivered_at: string | null;
  /** Time of the next retry; null if none is scheduled. */
  next_attempt_at: string | null;
  method: string;
  /** Start of the body, up to 120 characters, with single spaces; null for a body that is not text, or above 64 KiB. Only in lists with `details`. */
  preview?: string | null;
  /** Path of the request after that of the bucket. */
  path: string;
  /** Query of the request, without the question mark. */
  query: string;
  headers: Record<string, string>;
  /** Headers as pairs of name and value, in no particular order. */
  headers_list: string[][];
  /** IP address of the sender, according to `--trust-proxy`; null for events stored by old versions. */
  remote_address: string | null;
  /** Size of the body. */
  size_bytes: number;
  /** SHA-256 of the body, in hexadecimal digits. */
  sha256: string;
  /** ID of the event at the sender; null if unknown. */
  provider_event_id: string | null;
  /** Number of repeats that were accepted and not stored. */
  duplicates: number;
  /** Body of the request: parsed if it is JSON, otherwise as text; null above 1 MiB, see `raw_url`. */
  payload: unknown;
  /** Exact bytes of the body as base64; null above 1 MiB, see `raw_url`. */
  payload_base64: string | null;
  /** Path of the exact bytes of a body above 1 MiB; missing for smaller ones. */
  raw_url?: string;
  /** Deliveries to endpoints, oldest first; empty when the event is forwarded to `target_url`. */
  deliveries: EventDelivery[];
  /** Last 20 attempts to deliver the event, including replays, oldest first. */
  attempt_log: EventAttempt[];
}

/** The response of `GET /v1/catch/{bucket_id}/events/{event_id}`, `deliveries`, `[]`. */
export interface EventDelivery {
  /** ID of the delivery. */
  relay_id: string;
  endpoint_id: string;
  status: "scheduled" | "delivering" | "delivered" | "failed" | "cancelled";
  /** Number of finished attempts. */
  attempts: number;
  /** HTTP status of the last response; null without a response. */
  response_status: number | null;
  /** Error of the last attempt. */
  error: string | null;
  /** Time when the delivery was finished; null before. */
  finished_at: string | null;
}

/** The response of `GET /v1/catch/{bucket_id}/events/{event_id}`, `attempt_log`, `[]`. */
export interface EventAttempt {
  /** Time as RFC 3339, in UTC. */
  at: string;
  kind: "forward" | "replay" | "pull" | "confirm";
  /** Endpoint that the attempt was made to, if the bucket has targets. */
  endpoint_id?: string;
  duration_ms: number;
  response_status: number | null;
  error: string | null;
  /** First 2048 bytes of the response's body as text; null without a response. */
  response_body: string | null;
}

/** The response of `GET /v1/catch/{bucket_id}/events`. */
export interface EventPage {
  events: EventItem[];
  /** Cursor of the next page; null on the last page. */
  cursor: string | null;
  /** Present when older events are not searched yet. Continue with `cursor`. */
  partial?: true;
}

/** The response of `POST /v1/catch/{bucket_id}/events/{event_id}/replay`. */
export interface EventReplayed {
  status: "replayed" | "failed";
  /** HTTP status of the target's response. */
  response_status: number;
}

/** The response of `POST /v1/catch/{bucket_id}/events/{event_id}/replay`. */
export interface EventReplayQueued {
  status: "queued";
  /** New deliveries. */
  deliveries: { relay_id: string; endpoint_id: string }[];
}

/** The response of `POST /v1/in/{bucket_id}`. */
export interface Ingested {
  status:
    | "accepted"
    | "rate_limited"
    | "panic_mode"
    | "insufficient_balance"
    | "too_large"
    | "ignored"
    | "rejected"
    | "duplicate"
    | "loop_detected";
  verification: "none" | "valid" | "invalid";
  /** ID of the event, if it was accepted. */
  event_id?: string;
}

/** The response of `GET /v1/catch/{bucket_id}/replays/{replay_id}`. */
export interface CatchReplay {
  replay_id: string;
  bucket_id: string;
  status: "running" | "done" | "cancelled";
  /** Number of events that match, at most 10,000. */
  matched: number;
  /** Present when more events match. */
  more?: true;
  /** Number of events that the target accepted, for 1 credit each. */
  delivered: number;
  /** Number of events that the target did not accept, free of charge; their status is unchanged. */
  failed: number;
  /** Number of events that were queued for the bucket's endpoints, for 1 credit per delivery; their deliveries are in the events. */
  queued: number;
  /** Number of events not sent because of an invalid signature, and, after the end, those that the replay did not reach. */
  skipped: number;
  /** Reason why the replay stopped early. */
  error: string | null;
  /** Time as RFC 3339, in UTC. */
  created_at: string;
  /** Time as RFC 3339, in UTC. */
  finished_at: string | null;
}

/** The body of `POST /v1/catch/{bucket_id}/replays`. */
export interface CatchReplayBody {
  /** Start of the time of receipt, inclusive, as RFC 3339. */
  since?: string | undefined;
  /** End of the time of receipt, exclusive, as RFC 3339. */
  until?: string | undefined;
  status?: "pending" | "delivered" | "failed" | undefined;
  /** Provider of the events, such as `stripe`. */
  provider?: string | undefined;
  event_type?: string | undefined;
  /** IDs of the events to replay. Replaces the other filters. */
  event_ids?: readonly string[] | undefined;
  /** Target of the bucket: only events that it would accept now and never got are sent, and only to it. */
  endpoint_id?: string | undefined;
  /** Maximum number sent per second. */
  per_second?: number | undefined;
  /** If true, returns only the number of matches. */
  dry_run?: boolean | undefined;
}

/** The response of `POST /v1/catch/{bucket_id}/replays`. */
export interface CatchReplayMatched {
  /** Number of events that match, at most 10,000. */
  matched: number;
  /** Present when more events match. */
  more?: true;
}

/** The response of `POST /v1/catch/{bucket_id}/replays`. */
export interface CatchReplayStarted {
  replay_id: string;
  /** Number of events that match, at most 10,000. */
  matched: number;
  /** Present when more events match. */
  more?: true;
}

/** The response of `GET /v1/catch/{bucket_id}/stream`. */
export interface EventStreamPage {
  events: CaughtEvent[];
  /** Position for the next request: an event's id, or `beginning`. */
  cursor: string;
}

/** The body of `POST /v1/check`. */
export interface CheckBody {
  /** Secret of the key. Required without `checks`. */
  secret?: string | undefined;
  /** The client that sent the key. Stored as `last_used_ip` and `last_used_ua`. */
  meta?:
    | {
        ip?: string | null | undefined;
        /** User agent of the client, cut to 1024 characters. */
        user_agent?: string | null | undefined;
      }
    | null
    | undefined;
  /** What the key must have: each text must be among its scopes, its permissions or those of its roles. A list of which it must have all, or an object with exactly one of `and` and `or`, whose items are texts (1 to 255 characters) and such objects (at most 4 levels and 50 texts). */
  require?:
    | readonly string[]
    | { and?: readonly unknown[] | undefined; or?: readonly unknown[] | undefined; [name: string]: unknown }
    | null
    | undefined;
  /** Number of the key's `uses` that the verification costs, if they are limited. Default 1. */
  cost?: number | null | undefined;
  /** Extra limits of the key to apply, or a different cost for an automatic one. */
  ratelimits?:
    | readonly {
        /** Name of the limit, unique within the key. */
        name: string;
        /** Number of tokens to take, at most the limit. Default 1. */
        cost?: number | null | undefined;
      }[]
    | null
    | undefined;
  deduct?: CheckDeduct | null | undefined;
  hold?: CheckHold | null | undefined;
  /** Keys of the flags to evaluate for the key's owner. */
  flags?: readonly string[] | null | undefined;
  /** Additional evaluation context of the flags: any JSON with at most 8 levels. `targetingKey` defaults to the key's `owner_id`, or its id without an owner. `key` is always set to the key's id, owner, environment and metadata. */
  context?:
    | {
        /** Id of the subject, such as a user; null like none. */
        targetingKey?: string | null | undefined;
        [name: string]: unknown;
      }
    | null
    | undefined;
  /** Checks to run one after another, in place of all other fields. Each has the effects of those before it. */
  checks?: readonly CheckItem[] | undefined;
}

/** Credits to deduct from the meter immediately. */
export interface CheckDeduct {
  amount: number;
  /** Id of the meter; by default the key's `meter_id`, or its `owner_id` if it has none. */
  meter_id?: string | undefined;
}

/** Credits to hold in the meter for a later capture or release. Cannot be combined with `deduct`. */
export interface CheckHold {
  amount: number;
  /** Id of the meter; by default the key's `meter_id`, or its `owner_id` if it has none. */
  meter_id?: string | undefined;
  /** Time until the hold expires, in seconds. */
  ttl_seconds?: number | string | undefined;
  /** Id of the hold, unique in the project. Default: a UUID. */
  hold_id?: string | undefined;
}

/** The body of `POST /v1/check`, `checks`, `[]`. */
export interface CheckItem {
  secret: string;
  /** The client that sent the key. Stored as `last_used_ip` and `last_used_ua`. */
  meta?:
    | {
        ip?: string | null | undefined;
        /** User agent of the client, cut to 1024 characters. */
        user_agent?: string | null | undefined;
      }
    | null
    | undefined;
  /** What the key must have: each text must be among its scopes, its permissions or those of its roles. A list of which it must have all, or an object with exactly one of `and` and `or`, whose items are texts (1 to 255 characters) and such objects (at most 4 levels and 50 texts). */
  require?:
    | readonly string[]
    | { and?: readonly unknown[] | undefined; or?: readonly unknown[] | undefined; [name: string]: unknown }
    | null
    | undefined;
  /** Number of the key's `uses` that the verification costs, if they are limited. Default 1. */
  cost?: number | null | undefined;
  /** Extra limits of the key to apply, or a different cost for an automatic one. */
  ratelimits?:
    | readonly {
        /** Name of the limit, unique within the key. */
        name: string;
        /** Number of tokens to take, at most the limit. Default 1. */
        cost?: number | null | undefined;
      }[]
    | null
    | undefined;
  deduct?: CheckDeduct | null | undefined;
  hold?: CheckHold | null | undefined;
  /** Keys of the flags to evaluate for the key's owner. */
  flags?: readonly string[] | null | undefined;
  /** Additional evaluation context of the flags: any JSON with at most 8 levels. `targetingKey` defaults to the key's `owner_id`, or its id without an owner. `key` is always set to the key's id, owner, environment and metadata. */
  context?:
    | {
        /** Id of the subject, such as a user; null like none. */
        targetingKey?: string | null | undefined;
        [name: string]: unknown;
      }
    | null
    | undefined;
}

/** The response of `POST /v1/check`. */
export interface CheckAnswer {
  allowed: boolean;
  code:
    | "ok"
    | "invalid_key"
    | "revoked"
    | "deleted"
    | "expired"
    | "disabled"
    | "ip_not_allowed"
    | "insufficient_scope"
    | "insufficient_permission"
    | "rate_limited"
    | "usage_exceeded"
    | "no_meter"
    | "insufficient_balance";
  /** HTTP status for your response to the customer. */
  status: number;
  /** Seconds after which a retry can succeed, with `rate_limited` and `usage_exceeded`. Null if it cannot. */
  retry_after_seconds: number | null;
  key_id: string | null;
  owner_id: string | null;
  project_id: string | null;
  name: string | null;
  environment: string | null;
  scopes: string[] | null;
  metadata: Record<string, string> | null;
  /** Number of uses left. Null: unlimited. */
  uses_remaining: number | null;
  /** State of all rate limits of the key. */
  ratelimits: KeyRatelimitState[] | null;
  /** State of the meter; null without a request for credits, and if an earlier check denied the request. */
  meter: CheckMeter | null;
  /** Evaluated flags by key; null if the request is denied. */
  flags: Record<string, CheckFlag> | null;
}

/** The response of `POST /v1/check`, `ratelimits`, `one of`, `[]`. */
export interface KeyRatelimitState {
  name: string;
  limit: number;
  /** Number of whole tokens left. */
  remaining: number;
  /** Time at which the bucket is full again. */
  reset_at: string;
  /** Whether the limit was applied and had too few tokens. */
  exceeded: boolean;
}

/** The response of `POST /v1/check`, `meter`, `one of`. */
export interface CheckMeter {
  meter_id: string;
  balance: number;
  /** Balance minus open holds, in credits. */
  available: number;
  deducted: number;
  hold_id: string | null;
}

/** The response of `POST /v1/check`, `flags`, `one of`, `…`. */
export interface CheckFlag {
  /** Value of the flag; omitted if your own default applies. */
  value?: unknown;
  variant?: string;
  reason?: string;
  /** Set instead of all other fields if the flag does not exist. It does not deny the request. */
  error?: "FLAG_NOT_FOUND";
}

/** The response of `POST /v1/check`. */
export interface CheckAnswers {
  /** Result of each check, in their order. */
  results: CheckAnswer[];
}

/** The response of `GET /v1/gate/config`. */
export type FlagConfig = { flags: (Flag | FlagDefinition)[] };

/** The response of `GET /v1/gate/config`, `flags`, `[]`, `one of`. */
export type Flag = { flag_key: string; enabled: boolean; description?: string };

/** The response of `GET /v1/gate/config`, `flags`, `[]`, `one of`. */
export interface FlagDefinition {
  flag_key: string;
  enabled: boolean;
  description: string | null;
  /** Type of the values. Default: `boolean`. */
  type: "boolean" | "string" | "number" | "object";
  /** Values by name, at most 16 KiB each. Default: `on` true and `off` false; required for other types than `boolean`. */
  variants: Record<string, unknown>;
  default: FlagServe;
  /** Name of the variant that is served while the flag is off. Null serves no value, so that the caller uses its own default. Default: `off`; null if you set `variants`. */
  off_variant: string | null;
  /** Rules in the order in which they are evaluated: `name`, `when` and `serve`. */
  rules: FlagRule[];
  /** Tags by which flags can be listed. */
  tags: string[];
  /** Your own data, 2 KiB as JSON, returned with every evaluation. */
  metadata: Record<string, string | number | boolean>;
  /** Whether the flag is hidden from evaluations by keys without `gate:read`, such as those in browsers. */
  server_only: boolean;
  archived: boolean;
  /** Changes that apply later, and those that could not be applied, in the order of their times. */
  scheduled: ScheduledFlagChange[];
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
  /** Version of the flag: the project's change counter at the flag's last change. */
  version: number;
  /** Creation time; null for flags older than this field. */
  created_at: string | null;
  updated_at: string;
  /** Hour of the last individual evaluation; bulk evaluations are not counted. */
  last_evaluated_at: string | null;
  /** Whether the flag can probably be removed: it is unchanged for 30 days, and one of the reasons in `stale_reason` applies. */
  stale: boolean;
  /** In the last 30 days: `unused`, not individually evaluated; `one_outcome`, it has neither rules nor a split; `one_value`, all individual evaluations had the same variant. Null if it is not stale. */
  stale_reason: "unused" | "one_outcome" | "one_value" | null;
}

/** The body of `POST /v1/gate/{flagKey}/preview`, `definition`, `default`, `one of`. */
export interface FlagServe {
  /** Name of the variant that is served to everyone. */
  variant?: string | undefined;
  /** Variants with weights, instead of `variant`. */
  split?:
    | readonly {
        /** Name of a variant. Null continues with the next rule; in `default` it serves `off_variant`. */
        variant: string | null;
        /** Share of the variant, relative to the sum of all weights. */
        weight: number;
      }[]
    | undefined;
  /** Name of the attribute that is hashed. Default: `targetingKey`. If it is missing, empty or an object, the next rule applies; in `default`, `off_variant`. */
  by?: string | undefined;
  /** Seed of the hash: splits with the same seed assign alike. Default: the flag's key. */
  seed?: string | undefined;
  /** Hash algorithm: MurmurHash3 x86 32 over UTF-8. */
  hash?: "m3" | undefined;
}

/** The body of `POST /v1/gate/{flagKey}/preview`, `definition`, `rules`, `one of`, `[]`. */
export type FlagRule = { name?: string | undefined; when: readonly FlagCondition[]; serve: FlagServe };

/** The body of `POST /v1/gate/{flagKey}/preview`, `definition`, `rules`, `one of`, `[]`, `when`, `[]`. */
export interface FlagCondition {
  /** Name of a context attribute; dots select members of objects. `$now` is the server's time. */
  attribute: string;
  /** Comparison of the attribute with the values. */
  op:
    | "in"
    | "starts_with"
    | "ends_with"
    | "contains"
    | "gt"
    | "gte"
    | "lt"
    | "lte"
    | "before"
    | "after"
    | "semver_eq"
    | "semver_gt"
    | "semver_gte"
    | "semver_lt"
    | "semver_lte"
    | "exists";
  /** Values to compare with; exactly one for numbers, dates and versions, none for `exists`. */
  values?: readonly (string | number | boolean)[] | undefined;
  /** Whether the result is inverted. */
  not?: boolean | undefined;
  /** Whether texts are compared in lower case. */
  ignore_case?: boolean | undefined;
}

/** The response of `GET /v1/gate/config`, `flags`, `[]`, `one of`, `scheduled`, `[]`. */
export interface ScheduledFlagChange {
  id: string;
  /** Time at which the change applies, in the future. */
  at: string;
  set: FlagChange;
  /** `failed` if the flag had changed so that the change no longer fits. */
  status: "pending" | "failed";
  /** Why it failed; null while it is pending. */
  error: string | null;
  by: Actor;
}

/** Fields of a save. Omitted fields stay as they are, null restores the default; `enabled` of a new flag is true. */
export interface FlagChange {
  /** Whether the flag is on. While it is off, `off_variant` is served to everyone. */
  enabled?: boolean | undefined;
  /** Description for people. Omit it to leave it unchanged; null removes it. The same applies to all fields below. */
  description?: string | null | undefined;
  /** Type of the values. Default: `boolean`. */
  type?: "boolean" | "string" | "number" | "object" | null | undefined;
  variants?: Record<string, unknown> | null | undefined;
  /** Result if no rule matches. Default: the variant `on`; required for other types than `boolean`. */
  default?: FlagServe | null | undefined;
  /** Name of the variant that is served while the flag is off. Null serves no value, so that the caller uses its own default. Default: `off`; null if you set `variants`. */
  off_variant?: string | null | undefined;
  rules?: readonly FlagRule[] | null | undefined;
  tags?: readonly string[] | null | undefined;
  metadata?: Record<string, string | number | boolean> | null | undefined;
  /** Whether the flag is hidden from evaluations by keys without `gate:read`, such as those in browsers. */
  server_only?: boolean | null | undefined;
  /** Whether the flag is omitted from lists and never evaluated. */
  archived?: boolean | null | undefined;
}

/** The response of `DELETE /v1/gate/{flagKey}`. */
export type FlagDeleted = { success: true };

/** The response of `GET /v1/gate/{flagKey}`. */
export type FlagEvaluation = { enabled: boolean; flag_key: string };

/** The response of `GET /v1/gate/{flagKey}/evaluations`. */
export interface FlagEvaluations {
  from: string;
  to: string;
  granularity: "hour" | "day";
  /** Hours or days in which the flag was evaluated, oldest first. */
  data: {
    /** Start of the hour or day, UTC. */
    from: string;
    /** Number of individual evaluations. */
    total: number;
    /** Number of evaluations by variant. */
    variants: Record<string, number>;
    /** Number of evaluations without a value. */
    no_value: number;
    /** Number of reads of the switch alone, of a flag whose variant depends on a context. */
    switch_reads: number;
  }[];
}

/** The response of `GET /v1/gate`. */
export type FlagKeys = { flags: string[] };

/** The body of `POST /v1/gate/{flagKey}/preview`. */
export interface FlagPreviewBody {
  /** Evaluation contexts, such as attributes of users: JSON objects with at most 8 levels. */
  contexts: readonly ({
    /** Id of the subject, such as a user; null like none. */
    targetingKey?: string | null | undefined;
    [name: string]: unknown;
  } | null)[];
  definition?: FlagChange | undefined;
}

/** The response of `POST /v1/gate/{flagKey}/preview`. */
export interface FlagPreview {
  /** One result per context, in their order. */
  results: FlagPreviewResult[];
}

/** The response of `POST /v1/gate/{flagKey}/preview`, `results`, `[]`. */
export interface FlagPreviewResult {
  /** Value for this context; null if the caller uses its own default. */
  value: unknown;
  variant: string | null;
  reason: "STATIC" | "DEFAULT" | "TARGETING_MATCH" | "SPLIT" | "DISABLED";
  /** Position in `rules` of the rule that decided, from 0; null if none did. */
  rule: number | null;
}

/** The response of `POST /v1/gate/{flagKey}/proposals/{proposal_id}/approve`. */
export interface FlagProposal {
  proposal_id: string;
  flag_key: string;
  /** `outdated`: the flag has changed in another way since the change was proposed. Propose it again. */
  status: "open" | "applied" | "rejected" | "withdrawn" | "outdated";
  /** Version of the flag when the change was proposed; null if there was no flag. */
  base_version: number | null;
  /** Changed fields before the change; null for a new flag. */
  before: Record<string, unknown> | null;
  /** Changed fields after the change; null for a deletion. */
  after: Record<string, unknown> | null;
  proposed_by: Actor;
  decided_by: Actor | null;
  comment: string | null;
  /** Reason of a rejection. */
  decision_comment: string | null;
  created_at: string;
  /** Time of the decision; null while it is open, and for `outdated`. */
  decided_at: string | null;
}

/** The body of `POST /v1/gate/{flagKey}/proposals`. */
export interface FlagProposalBody extends FlagChange {
  scheduled?: readonly ScheduledFlagBody[] | null | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
  /** Whether the flag is to be deleted. Then no other field of the flag is allowed. */
  delete?: boolean | undefined;
  /** Reason, for those who decide. */
  comment?: string | null | undefined;
}

/** The body of `POST /v1/gate/{flagKey}/proposals`, `scheduled`, `one of`, `[]`. */
export interface ScheduledFlagBody {
  /** Time at which the change applies, in the future. */
  at: string;
  set: FlagChange;
}

/** The response of `GET /v1/gate/config/proposals`. */
export interface FlagProposalPage {
  proposals: FlagProposal[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The body of `POST /v1/gate/{flagKey}/proposals/{proposal_id}/reject`. */
export interface FlagProposalRejectBody {
  /** Reason of the rejection. */
  comment?: string | null | undefined;
}

/** The body of `POST /v1/gate`. */
export interface FlagBody {
  /** Key of the flag, unique within the project; `config` is reserved. */
  flag_key: string;
  /** Whether the flag is on. While it is off, `off_variant` is served to everyone. */
  enabled: boolean;
  /** Description for people. Omit it to leave it unchanged; null removes it. The same applies to all fields below. */
  description?: string | null | undefined;
  /** Type of the values. Default: `boolean`. */
  type?: "boolean" | "string" | "number" | "object" | null | undefined;
  variants?: Record<string, unknown> | null | undefined;
  /** Result if no rule matches. Default: the variant `on`; required for other types than `boolean`. */
  default?: FlagServe | null | undefined;
  /** Name of the variant that is served while the flag is off. Null serves no value, so that the caller uses its own default. Default: `off`; null if you set `variants`. */
  off_variant?: string | null | undefined;
  rules?: readonly FlagRule[] | null | undefined;
  tags?: readonly string[] | null | undefined;
  metadata?: Record<string, string | number | boolean> | null | undefined;
  /** Whether the flag is hidden from evaluations by keys without `gate:read`, such as those in browsers. */
  server_only?: boolean | null | undefined;
  /** Whether the flag is omitted from lists and never evaluated. */
  archived?: boolean | null | undefined;
  scheduled?: readonly ScheduledFlagBody[] | null | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
  /** Expected version of the flag. If the flag has another version, the save is rejected with 409 `conflict`. */
  if_version?: number | null | undefined;
}

/** The response of `POST /v1/gate`. */
export interface FlagSaved {
  success: true;
  flag_key: string;
  /** Version of the flag: the project's change counter at the flag's last change. */
  version: number;
}

/** The body of `POST /v1/keys`. */
export interface KeyCreateBody {
  /** Start of the secret. A key with the prefix `sm` is a Bearer credential of this API. */
  prefix: string;
  /** Name of the key. */
  name: string;
  /** Scopes of the key: of this API for the prefix `sm`, otherwise any texts. */
  scopes: readonly string[];
  /** Tag by which keys can be listed. */
  environment?: string | null | undefined;
  /** Your own data: strings by name, at most 16384 characters as JSON. */
  metadata?: Record<string, string> | null | undefined;
  /** Time at which the key expires. Null: never. */
  expires_at?: string | null | undefined;
  /** Id of your customer who owns the key. */
  owner_id?: string | null | undefined;
  /** Id of the meter that is charged for uses of the key. */
  meter_id?: string | null | undefined;
  /** Whether the key works. False pauses it. Default true. */
  enabled?: boolean | null | undefined;
  /** Rate limits of the key. Those of more than an hour survive a restart; the others are full after it. */
  ratelimits?:
    | readonly {
        /** Name of the limit, unique within the key. */
        name: string;
        /** Number of tokens in a full bucket. */
        limit: number;
        /** Time that an empty bucket takes to fill, in milliseconds. It fills continuously. */
        duration_ms: number | string;
        /** Whether every verification takes a token. If false, only verifications that name the limit do. */
        auto?: boolean | undefined;
        /** `owner`: all keys of the owner in the key's project share one bucket. `key`: each key has its own. */
        shared?: "key" | "owner" | undefined;
      }[]
    | null
    | undefined;
  /** Number of times the key can be used. Null: unlimited. */
  uses?:
    | {
        /** Number of uses left. */
        remaining: number;
        /** Recurring refill of the uses. */
        refill?:
          | {
              /** Period of the refills, at 00:00 UTC. Several missed refills count once. */
              every: "day" | "month";
              /** Number of uses after a refill. A refill does not lower a higher number. */
              amount: number;
              /** Day of the month on which a monthly refill happens; the last day in shorter months. Default 1. Not allowed with `every: day`. */
              day?: number | undefined;
            }
          | null
          | undefined;
      }
    | null
    | undefined;
  /** IP addresses and CIDR ranges from which the key can be used. Empty: any address. */
  allowed_ips?: readonly string[] | null | undefined;
  /** Permissions of the key in addition to its scopes: any texts, with `*` as in scopes. Not for the prefix `sm`. */
  permissions?: readonly string[] | null | undefined;
  /** Names of roles of the key's project, whose permissions the key has; of the default project for a key of the account. Not for the prefix `sm`. */
  roles?: readonly string[] | null | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
}

/** The response of `POST /v1/keys`. */
export interface KeyCreated {
  key_id: string;
  /** Secret of the key. Only this response contains it. */
  secret: string;
  /** Start of the secret. */
  prefix: string;
  name: string;
  scopes: string[];
  environment?: string;
  metadata?: Record<string, string>;
  /** Id of the only project in which the key works. Null for a key of the account. */
  project_id: string | null;
  created_at: string;
  expires_at: string | null;
  owner_id: string | null;
  meter_id: string | null;
  enabled: boolean;
  ratelimits: KeyRatelimit[];
  /** Number of times the key can be used. Null: unlimited. */
  uses: KeyUses | null;
  /** IP addresses and CIDR ranges from which the key can be used. Empty: any address. */
  allowed_ips: string[];
  /** Permissions of the key in addition to its scopes, without those of its roles. */
  permissions: string[];
  /** Names of the key's roles. */
  roles: string[];
  /** Id of the person who created the key. Null for a key. */
  created_by: string | null;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
}

/** The response of `POST /v1/keys`, `ratelimits`, `[]`. */
export interface KeyRatelimit {
  /** Name of the limit, unique within the key. */
  name: string;
  /** Number of tokens in a full bucket. */
  limit: number;
  /** Time that an empty bucket takes to fill, in milliseconds. It fills continuously. */
  duration_ms: number;
  /** Whether every verification takes a token. If false, only verifications that name the limit do. */
  auto: boolean;
  /** `owner`: all keys of the owner in the key's project share one bucket. `key`: each key has its own. */
  shared: "key" | "owner";
}

/** The response of `POST /v1/keys`, `uses`, `one of`. */
export interface KeyUses {
  /** Number of uses left. */
  remaining: number;
  /** Recurring refill of the uses, at 00:00 UTC. Without it, none. */
  refill?: {
    /** Period of the refills, at 00:00 UTC. Several missed refills count once. */
    every: "day" | "month";
    /** Number of uses after a refill. A refill does not lower a higher number. */
    amount: number;
    /** Day of the month on which a monthly refill happens; the last day in shorter months. Default 1. Not allowed with `every: day`. */
    day?: number;
  };
}

/** The response of `GET /v1/keys/{id}`. */
export interface Key extends KeyItem {
  /** Client address of the last valid verification, from its `meta.ip`. */
  last_used_ip?: string;
  /** User agent of the last valid verification, from its `meta.user_agent`. */
  last_used_ua?: string;
}

/** The body of `POST /v1/keys/import`. */
export interface KeysImportBody {
  /** Keys to import. */
  keys: readonly KeyToImport[];
}

/** The body of `POST /v1/keys/import`, `keys`, `[]`. */
export interface KeyToImport {
  /** SHA-256 hash of the whole secret: 64 hex digits, or 44 characters of base64. */
  hash: string;
  /** How the hash is written. Default: as its length says. */
  hash_algorithm?: "sha256-hex" | "sha256-base64" | null | undefined;
  /** Start of the secret, for display and for rotations. Not `sm`. Null: unknown. */
  prefix?: string | null | undefined;
  /** Name of the key. */
  name: string;
  /** Scopes of the key: any texts, or none. */
  scopes?: readonly string[] | null | undefined;
  /** Tag by which keys can be listed. */
  environment?: string | null | undefined;
  /** Your own data: strings by name, at most 16384 characters as JSON. */
  metadata?: Record<string, string> | null | undefined;
  /** Time at which the key expires. Null: never. */
  expires_at?: string | null | undefined;
  /** Id of your customer who owns the key. */
  owner_id?: string | null | undefined;
  /** Id of the meter that is charged for uses of the key. */
  meter_id?: string | null | undefined;
  /** Whether the key works. False pauses it. Default true. */
  enabled?: boolean | null | undefined;
  /** Rate limits of the key. Those of more than an hour survive a restart; the others are full after it. */
  ratelimits?:
    | readonly {
        /** Name of the limit, unique within the key. */
        name: string;
        /** Number of tokens in a full bucket. */
        limit: number;
        /** Time that an empty bucket takes to fill, in milliseconds. It fills continuously. */
        duration_ms: number | string;
        /** Whether every verification takes a token. If false, only verifications that name the limit do. */
        auto?: boolean | undefined;
        /** `owner`: all keys of the owner in the key's project share one bucket. `key`: each key has its own. */
        shared?: "key" | "owner" | undefined;
      }[]
    | null
    | undefined;
  /** Number of times the key can be used. Null: unlimited. */
  uses?:
    | {
        /** Number of uses left. */
        remaining: number;
        /** Recurring refill of the uses. */
        refill?:
          | {
              /** Period of the refills, at 00:00 UTC. Several missed refills count once. */
              every: "day" | "month";
              /** Number of uses after a refill. A refill does not lower a higher number. */
              amount: number;
              /** Day of the month on which a monthly refill happens; the last day in shorter months. Default 1. Not allowed with `every: day`. */
              day?: number | undefined;
            }
          | null
          | undefined;
      }
    | null
    | undefined;
  /** IP addresses and CIDR ranges from which the key can be used. Empty: any address. */
  allowed_ips?: readonly string[] | null | undefined;
  /** Permissions of the key in addition to its scopes: any texts, with `*` as in scopes. Not for the prefix `sm`. */
  permissions?: readonly string[] | null | undefined;
  /** Names of roles of the key's project, whose permissions the key has; of the default project for a key of the account. Not for the prefix `sm`. */
  roles?: readonly string[] | null | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
}

/** The response of `POST /v1/keys/import`. */
export interface KeysImported {
  /** The keys, in the order of the request. */
  keys: {
    /** Position of the key in the request, from 0. */
    index: number;
    key_id: string;
    /** Whether the account already has a key with this hash, which stays unchanged. */
    existing?: true;
  }[];
}

/** The response of `GET /v1/keys`. */
export interface KeyPage {
  keys: KeyItem[];
  has_more: boolean;
  /** Cursor of the next page: the `created_at` of the last item. Null on the last page. */
  next_cursor: string | null;
}

/** The response of `GET /v1/keys`, `keys`, `[]`. */
export interface KeyItem {
  id: string;
  /** Prefix of the secret. */
  masked_secret: string;
  /** Last four characters of the secret. Empty for an imported key. */
  last4: string;
  /** Start of the secret. Null if it is unknown, for an imported key. */
  prefix: string | null;
  name: string;
  scopes: string[];
  environment?: string;
  metadata?: Record<string, string>;
  /** Id of the only project in which the key works. Null for a key of the account. */
  project_id: string | null;
  created_at: string;
  expires_at: string | null;
  owner_id: string | null;
  meter_id: string | null;
  enabled: boolean;
  ratelimits: KeyRatelimit[];
  /** Number of times the key can be used. Null: unlimited. */
  uses: KeyUses | null;
  /** IP addresses and CIDR ranges from which the key can be used. Empty: any address. */
  allowed_ips: string[];
  /** Permissions of the key in addition to its scopes, without those of its roles. */
  permissions: string[];
  /** Names of the key's roles. */
  roles: string[];
  /** Id of the person who created the key. Null for a key. */
  created_by: string | null;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
  revoked_at: string | null;
  last_used_at: string | null;
  /** Whether the key was imported by the hash of its secret. */
  imported?: true;
}

/** The body of `PATCH /v1/keys/{id}`. */
export interface KeyPatchBody {
  /** Name of the key. */
  name?: string | undefined;
  /** Scopes of the key: of this API for the prefix `sm`, otherwise any texts. */
  scopes?: readonly string[] | undefined;
  /** Tag by which keys can be listed. */
  environment?: string | null | undefined;
  /** Your own data: strings by name, at most 16384 characters as JSON. */
  metadata?: Record<string, string> | null | undefined;
  /** Time at which the key expires. Null: never. */
  expires_at?: string | null | undefined;
  /** Id of your customer who owns the key. */
  owner_id?: string | null | undefined;
  /** Id of the meter that is charged for uses of the key. */
  meter_id?: string | null | undefined;
  /** Whether the key works. False pauses it. Default true. */
  enabled?: boolean | null | undefined;
  /** Rate limits of the key. Those of more than an hour survive a restart; the others are full after it. */
  ratelimits?:
    | readonly {
        /** Name of the limit, unique within the key. */
        name: string;
        /** Number of tokens in a full bucket. */
        limit: number;
        /** Time that an empty bucket takes to fill, in milliseconds. It fills continuously. */
        duration_ms: number | string;
        /** Whether every verification takes a token. If false, only verifications that name the limit do. */
        auto?: boolean | undefined;
        /** `owner`: all keys of the owner in the key's project share one bucket. `key`: each key has its own. */
        shared?: "key" | "owner" | undefined;
      }[]
    | null
    | undefined;
  /** Number of times the key can be used. Null: unlimited. */
  uses?:
    | {
        /** Number of uses left. */
        remaining: number;
        /** Recurring refill of the uses. */
        refill?:
          | {
              /** Period of the refills, at 00:00 UTC. Several missed refills count once. */
              every: "day" | "month";
              /** Number of uses after a refill. A refill does not lower a higher number. */
              amount: number;
              /** Day of the month on which a monthly refill happens; the last day in shorter months. Default 1. Not allowed with `every: day`. */
              day?: number | undefined;
            }
          | null
          | undefined;
      }
    | null
    | undefined;
  /** IP addresses and CIDR ranges from which the key can be used. Empty: any address. */
  allowed_ips?: readonly string[] | null | undefined;
  /** Permissions of the key in addition to its scopes: any texts, with `*` as in scopes. Not for the prefix `sm`. */
  permissions?: readonly string[] | null | undefined;
  /** Names of roles of the key's project, whose permissions the key has; of the default project for a key of the account. Not for the prefix `sm`. */
  roles?: readonly string[] | null | undefined;
}

/** The response of `POST /v1/admin/accounts/{user_id}/reset-key`. */
export interface ResetPlatformKey {
  user_id: string;
  /** The new key. Only this response contains it. */
  api_key: string;
  /** Time at which all older platform keys were revoked. */
  reset_at: string;
}

/** The body of `POST /v1/keys/rotate`. */
export interface PlatformKeyRotateBody {
  /** Hours for which older keys continue to work; 0 revokes them immediately. Default: as configured on the server (7 days). */
  grace_hours?: number | string | undefined;
}

/** The response of `POST /v1/keys/rotate`. */
export interface RotatedPlatformKey {
  /** The new key. Only this response contains it. */
  key: string;
  rotated_at: string;
  /** Time at which the old key expires. Keys that were rotated earlier expire then at the latest. */
  expires_at: string;
}

/** The response of `DELETE /v1/keys/{id}`. */
export type KeyRevoked = { key_id: string; revoked_at: string; status: "revoked" };

/** The body of `POST /v1/keys/revoke`. */
export type KeysRevokeBody = { owner_id: string };

/** The response of `POST /v1/keys/revoke`. */
export interface KeysRevoked {
  /** Number of keys that this request revoked. */
  revoked: number;
  /** Whether the owner has more keys. If true, send the request again. */
  more: boolean;
}

/** The response of `GET /v1/keys/roles`. */
export interface KeyRolePage {
  roles: KeyRole[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/keys/roles`, `roles`, `[]`. */
export interface KeyRole {
  /** Name of the role. */
  name: string;
  /** Description of the role; null for none. */
  description: string | null;
  /** Permissions of the keys that have the role: any texts, with `*` as in scopes. */
  permissions: string[];
  /** Time of creation. */
  created_at: string;
  /** Time of the last save. */
  updated_at: string;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
}

/** The body of `PUT /v1/keys/roles/{name}`. */
export interface KeyRoleBody {
  /** Description of the role; null for none. */
  description?: string | null | undefined;
  /** Permissions of the keys that have the role: any texts, with `*` as in scopes. */
  permissions: readonly string[];
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
}

/** The body of `POST /v1/keys/{id}/rotate`. */
export interface KeyRotateBody {
  /** Hours for which the old key continues to work. */
  grace_hours?: number | string | undefined;
}

/** The response of `POST /v1/keys/{id}/rotate`. */
export interface KeyRotated {
  new_key_id: string;
  /** Secret of the new key. Only this response contains it. */
  new_secret: string;
  old_key_id: string;
  /** Time at which the old key expires. */
  old_expires_at: string;
  grace_hours: number;
}

/** The response of `GET /v1/keys/{id}/usage`. */
export interface KeyUsage {
  from: string;
  to: string;
  granularity: "hour" | "day";
  /** Hours or days in which the key was used, oldest first. */
  data: {
    /** Start of the hour or day, UTC. */
    from: string;
    /** Number of verifications and requests. */
    total: number;
    /** Number of valid ones. */
    valid: number;
    /** Number of rejected ones, by `error`. */
    errors: Record<string, number>;
  }[];
}

/** The body of `POST /v1/keys/verify`. */
export interface KeyVerifyBody {
  secret: string;
  /** The client that sent the key. Stored as `last_used_ip` and `last_used_ua`. */
  meta?:
    | {
        ip?: string | null | undefined;
        /** User agent of the client, cut to 1024 characters. */
        user_agent?: string | null | undefined;
      }
    | null
    | undefined;
  /** What the key must have: each text must be among its scopes, its permissions or those of its roles. A list of which it must have all, or an object with exactly one of `and` and `or`, whose items are texts (1 to 255 characters) and such objects (at most 4 levels and 50 texts). */
  require?:
    | readonly string[]
    | { and?: readonly unknown[] | undefined; or?: readonly unknown[] | undefined; [name: string]: unknown }
    | null
    | undefined;
  /** Number of the key's `uses` that the verification costs, if they are limited. Default 1. */
  cost?: number | null | undefined;
  /** Extra limits of the key to apply, or a different cost for an automatic one. */
  ratelimits?:
    | readonly {
        /** Name of the limit, unique within the key. */
        name: string;
        /** Number of tokens to take, at most the limit. Default 1. */
        cost?: number | null | undefined;
      }[]
    | null
    | undefined;
}

/** The response of `POST /v1/keys/verify`. */
export interface KeyVerdict {
  valid: boolean;
  key_id: string | null;
  project_id: string | null;
  scopes: string[] | null;
  /** Names of the key's roles. */
  roles: string[] | null;
  /** Permissions of the key and of its roles, each once. */
  permissions: string[] | null;
  error:
    | "invalid_key"
    | "revoked"
    | "deleted"
    | "expired"
    | "disabled"
    | "ip_not_allowed"
    | "insufficient_scope"
    | "insufficient_permission"
    | "rate_limited"
    | "usage_exceeded"
    | null;
  owner_id: string | null;
  meter_id: string | null;
  name: string | null;
  environment: string | null;
  metadata: Record<string, string> | null;
  expires_at: string | null;
  enabled: boolean | null;
  /** Number of uses left. Null: unlimited. */
  uses_remaining: number | null;
  /** State of all rate limits of the key. */
  ratelimits: KeyRatelimitState[] | null;
  /** Seconds after which a retry can succeed, with `rate_limited` and `usage_exceeded`. Null if it cannot. */
  retry_after_seconds: number | null;
}

/** The body of `POST /v1/latch/{key}/acquire`. */
export interface AcquireBody {
  /** Time until the lock expires if it is not released, in milliseconds. */
  ttl?: number | string | undefined;
  /** Maximum time to wait for the lock, in milliseconds: 0 to try once without waiting, or 1000 to 900000. */
  timeout?: number | string | undefined;
  /** `exclusive`: one holder. `shared`: a read lock, which up to 1,000 requests of this mode hold together. */
  mode?: "exclusive" | "shared" | undefined;
  /** Token for the lock, chosen by you; generated by default. With the token of the current holder, the request returns immediately and restarts the TTL. */
  token?: string | undefined;
}

/** The response of `POST /v1/latch/{key}/acquire`. */
export interface AcquiredLock {
  status: "acquired";
  key: string;
  token: string;
  /** Number that increases with every grant of any lock and is never reused. */
  fencing_token: number;
  /** Time when the lock expires, in epoch milliseconds. */
  expires_at: number;
  /** Whether the token already held the lock. */
  reentrant: boolean;
}

/** The body of `POST /v1/latch/{key}/extend`. */
export interface LockExtendBody {
  token: string;
  /** Time until the lock expires, in milliseconds from now: longer or shorter than before. */
  ttl: number | string;
}

/** The response of `POST /v1/latch/{key}/extend`. */
export interface ExtendedLock {
  status: "extended";
  /** Fencing token of the hold; an extension does not change it. */
  fencing_token: number;
  /** Time when the lock expires, in epoch milliseconds. */
  expires_at: number;
}

/** The body of `POST /v1/latch/{key}/force-release`. */
export type ForceReleaseBody = { fencing_token: number };

/** The response of `POST /v1/latch/{key}/force-release`. */
export type ReleasedLock = { status: "released" };

/** The response of `GET /v1/latch`. */
export interface LockPage {
  locks: HeldLock[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/latch`, `locks`, `[]`. */
export interface HeldLock {
  key: string;
  fencing_token: number;
  /** Time of the grant or the last refresh, in epoch milliseconds; the server's start if that is later. */
  acquired_at: number;
  /** Time when the lock expires, in epoch milliseconds. */
  expires_at: number;
  /** Number of requests waiting for the lock. */
  queue_depth: number;
  mode?: "exclusive" | "shared";
}

/** The body of `POST /v1/latch/{key}/release`. */
export type ReleaseBody = { token: string };

/** The response of `GET /v1/latch/{key}`. */
export interface LockStatus {
  locked: boolean;
  /** Number of requests waiting for the lock. */
  queue_depth: number;
  /** Time until the lock expires, in milliseconds; null when it is free. For a shared lock, the time until its last holder expires. */
  ttl_remaining: number | null;
  mode?: "exclusive" | "shared";
  /** Number of holders. */
  holders?: number;
}

/** The response of `DELETE /v1/meter/{meterId}/alert`. */
export type TermRemoved = { success: true };

/** The response of `GET /v1/meter/alert`. */
export interface MeterAlert {
  /** Id of the meter; null for the project's alert. */
  meter_id: string | null;
  /** Available credits below which the alert is sent. */
  threshold: number;
  /** URL that receives the alert as a signed webhook. */
  webhook_url: string;
}

/** The body of `PUT /v1/meter/alert`. */
export interface AlertBody {
  /** Available credits below which the alert is sent. */
  threshold: number;
  /** URL that receives the alert as a signed webhook. */
  webhook_url: string;
}

/** The response of `GET /v1/meter/{meterId}/balance`. */
export interface MeterState {
  balance: number;
  meter_id: string;
  /** Balance minus open holds, in credits. */
  available: number;
  /** Sum of the open holds, in credits. */
  held: number;
  /** True for a meter with a refill plan; absent for one without. */
  has_plan?: boolean;
  /** The low-balance alert that applies: the meter's own, or the project's. Absent without one. */
  alert?: "meter" | "project";
}

/** The body of `POST /v1/meter/{meterId}/deduct`. */
export interface AmountBody {
  /** Credits; 1 or more. */
  amount: number;
}

/** The response of `POST /v1/meter/{meterId}/deduct`. */
export type MeterBalance = { balance: number; meter_id: string };

/** The response of `GET /v1/meter/{meterId}/history`. */
export interface LedgerPage {
  entries: LedgerEntry[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/meter/{meterId}/history`, `entries`, `[]`. */
export interface LedgerEntry {
  /** Position of the entry; increases with every entry. */
  sequence: number;
  kind: "deduct" | "refill" | "reset" | "grant" | "charge" | "capture";
  /** Change of the balance, signed. */
  amount: number;
  /** The balance after this change. */
  balance_after: number;
  /** Time of the entry (RFC 3339, UTC); of a charge, the start of its hour. */
  at: string;
  /** The request that caused it. */
  request_id: string | null;
  /** Operation of a charge. */
  operation?: string;
  /** Number of requests in a charge. */
  count?: number;
  /** The hold that was captured. */
  hold_id?: string;
}

/** The body of `POST /v1/meter/{meterId}/holds/{hold_id}/capture`. */
export interface CaptureBody {
  /** Credits to deduct; 0 releases the hold. Default: all credits of the hold. */
  amount?: number | undefined;
  /** Whether to release the rest; false keeps it on hold, at most 1000 times. */
  final?: boolean | undefined;
  /** If the amount exceeds the hold: `reject` (default, 400), or `cap`, which also takes available credits and returns the missing rest as `shortfall`. */
  over?: "reject" | "cap" | undefined;
}

/** The response of `POST /v1/meter/{meterId}/holds/{hold_id}/capture`. */
export interface MeterHold {
  hold_id: string;
  balance: number;
  meter_id: string;
  /** Balance minus open holds, in credits. */
  available: number;
  status: "open" | "captured" | "released" | "expired";
  /** Requested credits. */
  requested: number;
  /** Credits on hold, or those when the hold was closed. */
  amount: number;
  /** Credits deducted so far. */
  captured: number;
  /** Credits that a capped capture could not deduct. */
  shortfall?: number;
  created_at: string;
  expires_at: string;
  /** Time when the hold was closed; null while it is open. */
  ended_at: string | null;
  metadata: Record<string, string> | null;
}

/** The body of `POST /v1/meter/{meterId}/holds`. */
export interface HoldBody {
  /** Credits; 1 or more. */
  amount: number;
  /** Time until the hold expires, in seconds. */
  ttl_seconds?: number | string | undefined;
  /** Id of the hold, unique in the project. Default: a UUID. */
  hold_id?: string | undefined;
  /** Whether to hold the available credits, at least 1, if they are less than the amount. */
  at_most?: boolean | undefined;
  /** Your own data: at most 10 strings by name, 1 KiB as JSON. */
  metadata?: Record<string, string> | undefined;
}

/** The body of `POST /v1/meter/{meterId}/holds/{hold_id}/extend`. */
export interface ExtendBody {
  /** Time until the hold expires, in seconds. */
  ttl_seconds: number | string;
}

/** The response of `GET /v1/meter/{meterId}/holds`. */
export interface HoldsPage {
  holds: MeterHold[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/meter`. */
export interface MeterPage {
  meters: MeterItem[];
  /** True for a project with a low-balance alert; absent for one without. */
  has_alert?: boolean;
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/meter`, `meters`, `[]`. */
export interface MeterItem {
  meter_id: string;
  balance: number;
  /** Balance minus open holds, in credits. */
  available: number;
  /** Time of the last change of the balance. */
  updated_at: string;
}

/** The response of `GET /v1/meter/balance`. */
export type OwnBalance = { balance: number; user_id: string };

/** The response of `GET /v1/meter/{meterId}/plan`. */
export interface MeterPlan {
  meter_id: string;
  amount: number;
  /** Period of the refills, which run at 00:00 UTC. */
  every: "day" | "week" | "month";
  /** `raise` sets a lower balance to the amount; `add` adds the amount. */
  mode: "raise" | "add";
  day: number | null;
  /** With `add`: maximum balance to carry over, in credits. A higher balance is reduced first, but not below the held credits. */
  carry_max: number | null;
  /** Time of the next refill. */
  next_at: string;
}

/** The body of `PUT /v1/meter/{meterId}/plan`. */
export interface PlanBody {
  /** Credits; 1 or more. */
  amount: number;
  /** Period of the refills, which run at 00:00 UTC. */
  every: "day" | "week" | "month";
  /** `raise` sets a lower balance to the amount; `add` adds the amount. */
  mode?: "raise" | "add" | undefined;
  /** Day of the month (the last day in shorter months) or of the week. Default: 1. */
  day?: number | undefined;
  /** With `add`: maximum balance to carry over, in credits. A higher balance is reduced first, but not below the held credits. */
  carry_max?: number | undefined;
  /** Whether to make the first refill immediately. */
  start_now?: boolean | undefined;
}

/** The body of `POST /v1/meter/{meterId}/reset`. */
export type ResetBody = { balance: number };

/** The response of `GET /v1/meter/{meterId}/usage`. */
export interface MeterUsage {
  meter_id: string;
  from: string;
  to: string;
  granularity: UsageGranularity;
  data: UsageBucket[];
}

/** The response of `GET /v1/meter/{meterId}/usage`, `granularity`. */
export type UsageGranularity = "hour" | "day" | "month";

/** The response of `GET /v1/meter/{meterId}/usage`, `data`, `[]`. */
export interface UsageBucket extends ProjectUsageBucket {
  /** Balance after the last entry of the bucket. */
  balance: number;
}

/** The response of `GET /v1/meter/usage`. */
export interface ProjectUsage {
  from: string;
  to: string;
  granularity: UsageGranularity;
  data: ProjectUsageBucket[];
}

/** The response of `GET /v1/meter/usage`, `data`, `[]`. */
export interface ProjectUsageBucket {
  from: string;
  to: string;
  /** Deducted credits, including captures. */
  deducted: number;
  /** Added credits, including refills of plans. */
  refilled: number;
  /** Sum of the changes by resets, signed. */
  reset: number;
  /** Number of ledger entries. */
  entries: number;
}

/** The body of `PATCH /v1/pulse/channels/{channel_id}`. */
export interface ChannelPatch {
  /** Name of the channel. */
  name?: string | undefined;
  /** Configuration that the kind requires. Responses show secrets as `[secret]`. */
  config?:
    | {
        /** URL that receives the messages. All kinds except `email`; optional for `telegram`. */
        url?: string | undefined;
        /** Access token, for `telegram` and `gotify`; optional for `ntfy`. */
        token?: string | undefined;
        /** Telegram chat: its number, or `@` and the name of a channel. Only for `telegram`. */
        chat_id?: string | undefined;
        /** Recipients, for `email`: the e-mail address of the account, or addresses of its people. Channels of the operator can use any addresses. */
        to?: readonly string[] | undefined;
      }
    | undefined;
  /** Whether monitors without `channels` use the channel. */
  default?: boolean | undefined;
  /** Events that the channel is notified of. */
  events?:
    | readonly (
        | "monitor.down"
        | "monitor.up"
        | "monitor.degraded"
        | "monitor.recovered"
        | "monitor.certificate"
        | "monitor.domain"
        | "monitor.flapping"
        | "monitor.acknowledged"
        | "monitor.overdue"
        | "monitor.runs_exceeded"
        | "monitor.unknown"
        | "probe.offline"
        | "probe.online"
        | "observer.offline"
        | "maintenance.started"
        | "maintenance.ended"
        | "catch.failed"
      )[]
    | undefined;
  /** Time after which an alert is repeated while a target stays down; `never` by default. */
  remind?: "never" | "1h" | "6h" | "1d" | undefined;
  /** Who else is notified while an outage is neither acknowledged nor over. Channels that were notified also get the recovery. */
  escalate?:
    | readonly {
        /** Time since the alert of this channel, in milliseconds; more than in the step before. */
        after_ms: number | string;
        /** Ids of the channels that are notified in this step, whatever their `events` and `default`. */
        channel_ids: readonly string[];
      }[]
    | undefined;
  quiet_hours?:
    | {
        /** Start of the quiet hours, as `HH:MM`. */
        from: string;
        /** End of the quiet hours, as `HH:MM`; before `from` if they span midnight. */
        to: string;
        /** Time zone of both, as an IANA name. Changes between summer and winter time are followed. */
        time_zone: string;
      }
    | null
    | undefined;
  /** Time for which the alerts of several monitors are collected into one message, in milliseconds, from the first one on. 0: each is sent immediately. */
  group_ms?: number | string | undefined;
}

/** The response of `PATCH /v1/pulse/channels/{channel_id}`. */
export interface Channel {
  id: string;
  name: string;
  kind: "webhook" | "slack" | "discord" | "telegram" | "ntfy" | "gotify" | "apprise" | "email";
  /** Configuration that the kind requires. Responses show secrets as `[secret]`. */
  config: {
    /** URL that receives the messages. All kinds except `email`; optional for `telegram`. */
    url?: string;
    /** Access token, for `telegram` and `gotify`; optional for `ntfy`. */
    token?: string;
    /** Telegram chat: its number, or `@` and the name of a channel. Only for `telegram`. */
    chat_id?: string;
    /** Recipients, for `email`: the e-mail address of the account, or addresses of its people. Channels of the operator can use any addresses. */
    to?: string[];
  };
  /** Whether monitors without `channels` use the channel. */
  default: boolean;
  events: (
    | "monitor.down"
    | "monitor.up"
    | "monitor.degraded"
    | "monitor.recovered"
    | "monitor.certificate"
    | "monitor.domain"
    | "monitor.flapping"
    | "monitor.acknowledged"
    | "monitor.overdue"
    | "monitor.runs_exceeded"
    | "monitor.unknown"
    | "probe.offline"
    | "probe.online"
    | "observer.offline"
    | "maintenance.started"
    | "maintenance.ended"
    | "catch.failed"
  )[];
  /** Time after which an alert is repeated while a target stays down; `never` by default. */
  remind: "never" | "1h" | "6h" | "1d";
  /** Who else is notified while an outage is neither acknowledged nor over. Channels that were notified also get the recovery. */
  escalate: {
    /** Time since the alert of this channel, in milliseconds; more than in the step before. */
    after_ms: number;
    /** Ids of the channels that are notified in this step, whatever their `events` and `default`. */
    channel_ids: string[];
  }[];
  /** Hours of every day in which the channel gets nothing, and its escalation waits. What it missed follows in one message at their end. Null: none. */
  quiet_hours: {
    /** Start of the quiet hours, as `HH:MM`. */
    from: string;
    /** End of the quiet hours, as `HH:MM`; before `from` if they span midnight. */
    to: string;
    /** Time zone of both, as an IANA name. Changes between summer and winter time are followed. */
    time_zone: string;
  } | null;
  /** Time for which the alerts of several monitors are collected into one message, in milliseconds, from the first one on. 0: each is sent immediately. */
  group_ms: number;
  /** Time at which the last message was delivered. Null before the first. */
  last_sent_at: string | null;
  /** Error of the last attempt to deliver a message. Null if it succeeded. */
  last_error: string | null;
  created_at: string;
  updated_at: string;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
  /** Salted digests of the secrets, by field. Only keys with `:read` and `:write` of the area receive them. */
  secret_digest?: Record<string, string>;
}

/** The body of `POST /v1/pulse/channels`. */
export interface ChannelCreateBody {
  /** Name of the channel. */
  name: string;
  kind: "webhook" | "slack" | "discord" | "telegram" | "ntfy" | "gotify" | "apprise" | "email";
  /** Configuration that the kind requires. Responses show secrets as `[secret]`. */
  config: {
    /** URL that receives the messages. All kinds except `email`; optional for `telegram`. */
    url?: string | undefined;
    /** Access token, for `telegram` and `gotify`; optional for `ntfy`. */
    token?: string | undefined;
    /** Telegram chat: its number, or `@` and the name of a channel. Only for `telegram`. */
    chat_id?: string | undefined;
    /** Recipients, for `email`: the e-mail address of the account, or addresses of its people. Channels of the operator can use any addresses. */
    to?: readonly string[] | undefined;
  };
  /** Whether monitors without `channels` use the channel. */
  default?: boolean | undefined;
  /** Events that the channel is notified of. */
  events?:
    | readonly (
        | "monitor.down"
        | "monitor.up"
        | "monitor.degraded"
        | "monitor.recovered"
        | "monitor.certificate"
        | "monitor.domain"
        | "monitor.flapping"
        | "monitor.acknowledged"
        | "monitor.overdue"
        | "monitor.runs_exceeded"
        | "monitor.unknown"
        | "probe.offline"
        | "probe.online"
        | "observer.offline"
        | "maintenance.started"
        | "maintenance.ended"
        | "catch.failed"
      )[]
    | undefined;
  /** Time after which an alert is repeated while a target stays down; `never` by default. */
  remind?: "never" | "1h" | "6h" | "1d" | undefined;
  /** Who else is notified while an outage is neither acknowledged nor over. Channels that were notified also get the recovery. */
  escalate?:
    | readonly {
        /** Time since the alert of this channel, in milliseconds; more than in the step before. */
        after_ms: number | string;
        /** Ids of the channels that are notified in this step, whatever their `events` and `default`. */
        channel_ids: readonly string[];
      }[]
    | undefined;
  quiet_hours?:
    | {
        /** Start of the quiet hours, as `HH:MM`. */
        from: string;
        /** End of the quiet hours, as `HH:MM`; before `from` if they span midnight. */
        to: string;
        /** Time zone of both, as an IANA name. Changes between summer and winter time are followed. */
        time_zone: string;
      }
    | null
    | undefined;
  /** Time for which the alerts of several monitors are collected into one message, in milliseconds, from the first one on. 0: each is sent immediately. */
  group_ms?: number | string | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
}

/** The response of `DELETE /v1/pulse/channels/{channel_id}`. */
export type ChannelDeleted = { deleted: true };

/** The response of `GET /v1/pulse/channels`. */
export interface ChannelPage {
  channels: Channel[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `POST /v1/pulse/channels/{channel_id}/test`. */
export interface ChannelTested {
  status: "sent" | "failed";
  /** Status of the response, for `email` of the mail server; null without a response. */
  response_status: number | null;
  /** Response of the mail server, for `email`; null for other kinds. */
  response: string | null;
  error: string | null;
}

/** The response of `POST /v1/pulse/{monitorId}/check`. */
export interface MonitorStatus {
  monitor_id: string;
  /** `http` requests a URL, `tcp` connects to a port, `dns` looks up records, `icmp` sends packets by ping, `domain` asks when a registered name expires, `heartbeat` waits for pings, `manual` has the state of the incidents that name it. Default `http`; fixed after creation. */
  type: "http" | "tcp" | "dns" | "icmp" | "domain" | "heartbeat" | "manual";
  /** URL that is checked, or that names the target, such as `tcp://db.example.com:5432`; for heartbeats `heartbeat:` and the id. */
  url: string;
  /** Name of the monitor, else the host of its target, else `Heartbeat`. */
  name: string;
  /** Whether the monitor has a `name` of its own; otherwise its host is shown. */
  has_name: boolean;
  method: string;
  body: string | null;
  timeout: number;
  /** Time between checks, in milliseconds; a day for `domain`, and null for heartbeats and manual monitors. */
  interval: number | null;
  consecutive_threshold: number;
  cooldown_ms: number;
  webhook_url: string | null;
  email_alert: boolean;
  notify_recovery: boolean;
  group: string | null;
  retry_interval: number | null;
  down_interval: number | null;
  notify_after_ms: number;
  recovery_threshold: number;
  degraded_ms: number | null;
  notify_degraded: boolean;
  accept_status: string[] | null;
  /** Host of the target; null if the target is a URL. */
  host: string | null;
  /** Port of the host. */
  port: number | null;
  /** Type of the records. */
  record_type: "A" | "AAAA" | "CAA" | "CNAME" | "MX" | "NS" | "PTR" | "SOA" | "SRV" | "TXT" | null;
  /** Value that one of the records must have; null for any. */
  record_value: string | null;
  match: "exact" | "contains" | "set";
  /** Values of all records, with the `match` `set`. */
  record_values: string[] | null;
  /** Name server that is queried; null for those of the machine that checks. */
  resolver: string | null;
  packets: number;
  max_loss_percent: number;
  keyword: string | null;
  keyword_absent: string | null;
  keywords_all: string[] | null;
  keywords_any: string[] | null;
  json_path: string | null;
  json_op: "==" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "exists" | null;
  json_value: string | number | boolean | null;
  probes: string[];
  confirm: "any" | "majority" | "all";
  /** TLS of the port; null for none. */
  tls: "direct" | "starttls-smtp" | "starttls-imap" | "starttls-pop3" | null;
  tls_verify: boolean;
  /** Certificate that checks present, PEM. */
  tls_client_certificate: string | null;
  tls_expiry_days: number;
  /** Ids of the notification channels; null for the project's default channels. */
  channels: string[] | null;
  active: boolean;
  /** Time of creation, Unix seconds. */
  created_at: number;
  /** Time of the last update, Unix seconds. */
  updated_at: number;
  /** Heartbeats only. Name in `ping_slug_url`. */
  slug?: string | null;
  /** Heartbeats only. Time between pings, in milliseconds. Null with a `schedule`. */
  period_ms?: number | null;
  /** Heartbeats only. Cron expression with five fields. Null with a `period_ms`. */
  schedule?: string | null;
  /** Heartbeats only. Time zone of `schedule`, as an IANA name. */
  tz?: string | null;
  /** Heartbeats only. Maximum delay of a ping, and maximum duration of a run without `start_grace_ms`, in milliseconds. */
  grace_ms?: number;
  /** Heartbeats only. Maximum duration of a run from its start, in milliseconds. Null: `grace_ms`. */
  start_grace_ms?: number | null;
  /** Heartbeats only. Runs that may begin in a period. Null: any number. */
  max_runs_per_period?: number | null;
  /** Heartbeats only. Ping URL. It is a secret; only keys with `pulse:write` receive it. */
  ping_url?: string | null;
  /** Heartbeats only. Ping URL with the slug, in projects with a ping key. Only keys with `pulse:write` receive it. */
  ping_slug_url?: string | null;
  /** Heartbeats only. Ping URL with the `push_token`, for heartbeats that have one. Only keys with `pulse:write` receive it. */
  push_url?: string | null;
  /** Heartbeats only. Time of the last ping of any kind. */
  last_ping_at?: string | null;
  /** Heartbeats only. Start of the current run. */
  started_at?: string | null;
  /** Heartbeats only. Time at which the next success is expected. It is missed when the grace has passed as well. */
  expected_at?: string | null;
  /** Heartbeats only. Duration of the last run in milliseconds. Null if its start was not reported. */
  last_duration_ms?: number | null;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
  /** Salted digests of the secrets, by field. Only keys with `:read` and `:write` of the area receive them. */
  secret_digest?: Record<string, string>;
  /** Names of `headers`; their values can be secret. */
  header_names: string[];
  /** Status of the target; `degraded` only for monitors of several probes, of which some see it down, and fewer than needed. */
  status: "up" | "down" | "unknown" | "degraded";
  /** Latency of the last check, in milliseconds; the timeout if it timed out. */
  latency_ms: number | null;
  /** Time of the last check, Unix seconds. */
  last_checked_at: number | null;
  /** Whether the target is up, but slow (three consecutive checks took longer than `degraded_ms`), or down for some probes: see `degraded_reason`. */
  degraded: boolean;
  /** Why it is degraded: `probes` if some probes see it down, `incident` if an open incident says so of a manual monitor; null if it is not degraded. */
  degraded_reason: "probes" | "slow" | "incident" | null;
  /** What each probe sees; empty for monitors that only the server checks. */
  probe_states: {
    name: string;
    status: "up" | "down" | "unknown";
    /** Whether the probe is online. Offline probes do not vote. */
    online: boolean;
    latency_ms: number | null;
    /** Time of its last check, Unix seconds. */
    last_checked_at: number | null;
    error: string | null;
  }[];
  /** Whether it is a heartbeat without a success since it was created or resumed, for longer than its period and grace. Its `status` is `unknown`. */
  overdue: boolean;
  /** Whether the last check failed, but the target is not down yet. */
  failing: boolean;
  /** Certificate seen by the last check (`https`, and `tcp` with `tls`). */
  certificate: {
    /** Expiry of the certificate, or of the intermediate certificate that expires before it, Unix seconds. */
    not_after: number;
    /** Whole days until expiry; negative after it. */
    days_left: number;
    issuer: string;
    /** Name of the intermediate certificate that expires first. Omitted if the target's own certificate does. */
    intermediate?: string;
  } | null;
  /** Only for `icmp`. Packets of the last check; null before one. */
  icmp?: {
    /** Packets sent. */
    sent: number;
    /** Responses. */
    received: number;
    /** Share of the packets without a response, in percent. */
    loss_percent: number;
    /** Shortest round-trip time, in milliseconds; null without a response. */
    min_ms: number | null;
    /** Average round-trip time, in milliseconds; null without a response. */
    avg_ms: number | null;
    /** Longest round-trip time, in milliseconds; null without a response. */
    max_ms: number | null;
  } | null;
  /** Only for `domain`. Registration that the last successful check saw; null before one. */
  domain?: {
    /** End of the registration, Unix seconds. */
    expires_at: number;
    /** Whole days until then; negative after it. */
    days_left: number;
  } | null;
  /** Why the last check failed, or why it could not be made, so that the `status` is `unknown`. If it succeeded, but other probes see the target down, the error of one of them; otherwise null. */
  error: string | null;
  /** Id of the open incident; null while the target is not down. */
  incident_id: string | null;
  depends_on: string | null;
  /** Whether the monitor is flapping: channels are notified once, and again when its status is stable. */
  flapping: boolean;
  /** Whether a maintenance window is open. */
  maintenance: boolean;
  consecutive_failures: number;
  /** Share of the last 24 hours that was up, in percent. Only in lists with `details`. */
  uptime?: number | null;
  /** Share of the time that was up, in percent, of each of the last 24 hours, the current one last; null without checks. Only in lists with `details`. */
  hours?: (number | null)[];
}

/** The body of `POST /v1/pulse`. */
export interface MonitorCreateBody {
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
  /** URL to check. Required for `http`. */
  url?: string | undefined;
  /** Time between checks, in milliseconds; raised to the minimum of the tier, with a `warning`. Required for `http`, `tcp`, `dns` and `icmp`; a `domain` is checked once a day. */
  interval?: number | string | undefined;
  /** `http` requests a URL, `tcp` connects to a port, `dns` looks up records, `icmp` sends packets by ping, `domain` asks when a registered name expires, `heartbeat` waits for pings, `manual` has the state of the incidents that name it. Default `http`; fixed after creation. */
  type?: "http" | "tcp" | "dns" | "icmp" | "domain" | "heartbeat" | "manual" | undefined;
  /** Heartbeats only: name in `ping_slug_url`, unique within the project. */
  slug?: string | undefined;
  /** Heartbeats only: time between pings, in milliseconds. Default 86400000. */
  period_ms?: number | string | undefined;
  /** Heartbeats only, instead of `period_ms`: times of pings, as a cron expression with five fields. */
  schedule?: string | undefined;
  /** Time zone of `schedule`, as an IANA name. Default `UTC`. */
  tz?: string | undefined;
  /** Heartbeats only: maximum delay of a ping, and maximum duration of a run without `start_grace_ms`, in milliseconds. Default 3600000. */
  grace_ms?: number | string | undefined;
  /** Heartbeats only: maximum duration of a run from its start, in milliseconds. A run that starts in time postpones the deadline of its success. Null: `grace_ms`, and nothing is postponed. */
  start_grace_ms?: number | string | null | undefined;
  /** Heartbeats only: runs that may begin in a period, or between two times of the `schedule`. One more is an alert, once per period. Null: any number. */
  max_runs_per_period?: number | null | undefined;
  /** Heartbeats only: UUID of `ping_url`, such as that of a check of Healthchecks. It must not be in use on the server. Default: a new one. */
  ping_id?: string | undefined;
  /** Heartbeats only: token of a push monitor of Uptime Kuma, whose URL `/api/push/{token}` then pings the heartbeat. It must not be in use on the server. */
  push_token?: string | undefined;
  /** HTTP method of checks, in capital letters; `GET` by default. Not `CONNECT` or `TRACE`. */
  method?: string | undefined;
  /** Timeout of a check, in milliseconds; 10000 by default. */
  timeout?: number | string | undefined;
  /** Consecutive failures after which the target is down; 1 by default. */
  consecutive_threshold?: number | undefined;
  /** Time before the alert to `webhook_url` is repeated while the target stays down, in milliseconds; 300000 by default. */
  cooldown_ms?: number | string | undefined;
  /** Whether the e-mail address of the account is notified once per outage. Tiers pro and scale. */
  email_alert?: boolean | undefined;
  /** Whether the webhook and the e-mail also report recovery. */
  notify_recovery?: boolean | undefined;
  /** Group under which the monitor is listed. */
  group?: string | null | undefined;
  /** Time between checks from the first failure until the target is down, in milliseconds; at most `interval`. Null: `interval`. */
  retry_interval?: number | string | null | undefined;
  /** Time between checks while the target is down, in milliseconds; at most `interval`. Null: `interval`. */
  down_interval?: number | string | null | undefined;
  /** Time that a target must be down before anyone is notified, in milliseconds; 0 by default. If it recovers before, nobody is notified of the outage or of the recovery. */
  notify_after_ms?: number | string | undefined;
  /** Consecutive successes after which a target that is down is up; 1 by default. */
  recovery_threshold?: number | undefined;
  /** Latency above which a check is slow, in milliseconds; less than `timeout`. */
  degraded_ms?: number | string | null | undefined;
  /** Whether channels are notified when the target becomes slow, and when its latency is normal again. */
  notify_degraded?: boolean | undefined;
  accept_status?: readonly string[] | null | undefined;
  /** Name or address of the host; for `dns` the name that is looked up. Required for `tcp`, `dns`, `icmp`, and `domain`. */
  host?: string | undefined;
  /** Port of the host. Required for `tcp`. */
  port?: number | undefined;
  /** Type of the records. Required for `dns`. */
  record_type?: "A" | "AAAA" | "CAA" | "CNAME" | "MX" | "NS" | "PTR" | "SOA" | "SRV" | "TXT" | undefined;
  /** Value that one of the records must have, as in a zone file, such as `10 mail.example.com`; null for any. */
  record_value?: string | null | undefined;
  /** How records are compared: one of them is the `record_value` (`exact`, the default), or has it in it (`contains`), or all of them together are the `record_values` (`set`). */
  match?: "exact" | "contains" | "set" | undefined;
  record_values?: readonly string[] | null | undefined;
  /** Name server that is queried, by UDP and, for long responses, by TCP: host, or host and port. Null: those of the machine that checks. */
  resolver?: string | null | undefined;
  /** Packets that a check of an `icmp` monitor sends, 200 ms apart; 3 by default. */
  packets?: number | undefined;
  /** Share of the packets that may be lost, in percent; with more, the target is down. 99 by default: one response is enough. */
  max_loss_percent?: number | undefined;
  /** Text that must appear in the first 64 KiB of the body; for `tcp` in the first 4 KiB that the server sends. */
  keyword?: string | null | undefined;
  /** Text that must not appear in the first 64 KiB of the body. */
  keyword_absent?: string | null | undefined;
  keywords_all?: readonly string[] | null | undefined;
  keywords_any?: readonly string[] | null | undefined;
  /** Path of a value in a JSON response. */
  json_path?: string | null | undefined;
  /** Comparison of the value at `json_path`; `==` by default. */
  json_op?: "==" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "exists" | null | undefined;
  /** Value that the value at `json_path` is compared with. */
  json_value?: string | number | boolean | null | undefined;
  /** Names of the probes that check the target; `local` is this server, and the default. Not for heartbeats. */
  probes?: readonly string[] | undefined;
  /** How many of the probes with a recent result must see the target down before it is down; `majority` by default. */
  confirm?: "any" | "majority" | "all" | undefined;
  tls?: "direct" | "starttls-smtp" | "starttls-imap" | "starttls-pop3" | true | null | undefined;
  /** Whether the target is down if its certificate is not valid; `true` by default. Its expiry is watched in any case. */
  tls_verify?: boolean | undefined;
  /** Certificate that checks present to the server if it requests one, with intermediate certificates, PEM. Requires `tls_client_key`. */
  tls_client_certificate?: string | null | undefined;
  /** Days before expiry of the certificate at which channels are notified; 0 for never, 14 by default. */
  tls_expiry_days?: number | string | undefined;
  channels?: readonly string[] | null | undefined;
  /** Name of the monitor, unique in the project. Without one, the host is shown. */
  name?: string | undefined;
  /** Headers that each check sends. Tiers pro and scale. */
  headers?: Record<string, string> | undefined;
  /** Private key of `tls_client_certificate`, PEM without a passphrase. Stored encrypted, and never shown. */
  tls_client_key?: string | undefined;
  /** Body that checks send, except with the methods `GET` and `HEAD`. */
  body?: string | undefined;
  /** URL that receives alerts as signed webhooks. Tier starter and higher. */
  webhook_url?: string | undefined;
  /** Id of the monitor that this one depends on. While that one fails, failures of this one cause no alerts. */
  depends_on?: string | null | undefined;
}

/** The response of `POST /v1/pulse`. */
export interface Monitor {
  id: string;
  /** `http` requests a URL, `tcp` connects to a port, `dns` looks up records, `icmp` sends packets by ping, `domain` asks when a registered name expires, `heartbeat` waits for pings, `manual` has the state of the incidents that name it. Default `http`; fixed after creation. */
  type: "http" | "tcp" | "dns" | "icmp" | "domain" | "heartbeat" | "manual";
  /** URL that is checked, or that names the target, such as `tcp://db.example.com:5432`; for heartbeats `heartbeat:` and the id. */
  url: string;
  /** Name of the monitor, else the host of its target, else `Heartbeat`. */
  name: string;
  /** Whether the monitor has a `name` of its own; otherwise its host is shown. */
  has_name: boolean;
  method: string;
  body: string | null;
  timeout: number;
  /** Time between checks, in milliseconds; a day for `domain`, and null for heartbeats and manual monitors. */
  interval: number | null;
  consecutive_threshold: number;
  cooldown_ms: number;
  webhook_url: string | null;
  email_alert: boolean;
  notify_recovery: boolean;
  group: string | null;
  retry_interval: number | null;
  down_interval: number | null;
  notify_after_ms: number;
  recovery_threshold: number;
  degraded_ms: number | null;
  notify_degraded: boolean;
  accept_status: string[] | null;
  /** Host of the target; null if the target is a URL. */
  host: string | null;
  /** Port of the host. */
  port: number | null;
  /** Type of the records. */
  record_type: "A" | "AAAA" | "CAA" | "CNAME" | "MX" | "NS" | "PTR" | "SOA" | "SRV" | "TXT" | null;
  /** Value that one of the records must have; null for any. */
  record_value: string | null;
  match: "exact" | "contains" | "set";
  /** Values of all records, with the `match` `set`. */
  record_values: string[] | null;
  /** Name server that is queried; null for those of the machine that checks. */
  resolver: string | null;
  packets: number;
  max_loss_percent: number;
  keyword: string | null;
  keyword_absent: string | null;
  keywords_all: string[] | null;
  keywords_any: string[] | null;
  json_path: string | null;
  json_op: "==" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "exists" | null;
  json_value: string | number | boolean | null;
  probes: string[];
  confirm: "any" | "majority" | "all";
  /** TLS of the port; null for none. */
  tls: "direct" | "starttls-smtp" | "starttls-imap" | "starttls-pop3" | null;
  tls_verify: boolean;
  /** Certificate that checks present, PEM. */
  tls_client_certificate: string | null;
  tls_expiry_days: number;
  /** Ids of the notification channels; null for the project's default channels. */
  channels: string[] | null;
  active: boolean;
  /** Time of creation, Unix seconds. */
  created_at: number;
  /** Time of the last update, Unix seconds. */
  updated_at: number;
  /** Heartbeats only. Name in `ping_slug_url`. */
  slug?: string | null;
  /** Heartbeats only. Time between pings, in milliseconds. Null with a `schedule`. */
  period_ms?: number | null;
  /** Heartbeats only. Cron expression with five fields. Null with a `period_ms`. */
  schedule?: string | null;
  /** Heartbeats only. Time zone of `schedule`, as an IANA name. */
  tz?: string | null;
  /** Heartbeats only. Maximum delay of a ping, and maximum duration of a run without `start_grace_ms`, in milliseconds. */
  grace_ms?: number;
  /** Heartbeats only. Maximum duration of a run from its start, in milliseconds. Null: `grace_ms`. */
  start_grace_ms?: number | null;
  /** Heartbeats only. Runs that may begin in a period. Null: any number. */
  max_runs_per_period?: number | null;
  /** Heartbeats only. Ping URL. It is a secret; only keys with `pulse:write` receive it. */
  ping_url?: string | null;
  /** Heartbeats only. Ping URL with the slug, in projects with a ping key. Only keys with `pulse:write` receive it. */
  ping_slug_url?: string | null;
  /** Heartbeats only. Ping URL with the `push_token`, for heartbeats that have one. Only keys with `pulse:write` receive it. */
  push_url?: string | null;
  /** Heartbeats only. Time of the last ping of any kind. */
  last_ping_at?: string | null;
  /** Heartbeats only. Start of the current run. */
  started_at?: string | null;
  /** Heartbeats only. Time at which the next success is expected. It is missed when the grace has passed as well. */
  expected_at?: string | null;
  /** Heartbeats only. Duration of the last run in milliseconds. Null if its start was not reported. */
  last_duration_ms?: number | null;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
  /** Salted digests of the secrets, by field. Only keys with `:read` and `:write` of the area receive them. */
  secret_digest?: Record<string, string>;
  headers: Record<string, string> | null;
  /** Status of the target; `degraded` only for monitors of several probes, of which some see it down, and fewer than needed. */
  status: "up" | "down" | "unknown" | "degraded";
  /** Latency of the last check, in milliseconds; the timeout if it timed out. */
  latency_ms: number | null;
  /** Time of the last check, Unix seconds. */
  last_checked_at: number | null;
  /** Whether the target is up, but slow (three consecutive checks took longer than `degraded_ms`), or down for some probes: see `degraded_reason`. */
  degraded: boolean;
  /** Why it is degraded: `probes` if some probes see it down, `incident` if an open incident says so of a manual monitor; null if it is not degraded. */
  degraded_reason: "probes" | "slow" | "incident" | null;
  /** What each probe sees; empty for monitors that only the server checks. */
  probe_states: {
    name: string;
    status: "up" | "down" | "unknown";
    /** Whether the probe is online. Offline probes do not vote. */
    online: boolean;
    latency_ms: number | null;
    /** Time of its last check, Unix seconds. */
    last_checked_at: number | null;
    error: string | null;
  }[];
  /** Whether it is a heartbeat without a success since it was created or resumed, for longer than its period and grace. Its `status` is `unknown`. */
  overdue: boolean;
  /** Whether the last check failed, but the target is not down yet. */
  failing: boolean;
  /** Certificate seen by the last check (`https`, and `tcp` with `tls`). */
  certificate: {
    /** Expiry of the certificate, or of the intermediate certificate that expires before it, Unix seconds. */
    not_after: number;
    /** Whole days until expiry; negative after it. */
    days_left: number;
    issuer: string;
    /** Name of the intermediate certificate that expires first. Omitted if the target's own certificate does. */
    intermediate?: string;
  } | null;
  /** Only for `icmp`. Packets of the last check; null before one. */
  icmp?: {
    /** Packets sent. */
    sent: number;
    /** Responses. */
    received: number;
    /** Share of the packets without a response, in percent. */
    loss_percent: number;
    /** Shortest round-trip time, in milliseconds; null without a response. */
    min_ms: number | null;
    /** Average round-trip time, in milliseconds; null without a response. */
    avg_ms: number | null;
    /** Longest round-trip time, in milliseconds; null without a response. */
    max_ms: number | null;
  } | null;
  /** Only for `domain`. Registration that the last successful check saw; null before one. */
  domain?: {
    /** End of the registration, Unix seconds. */
    expires_at: number;
    /** Whole days until then; negative after it. */
    days_left: number;
  } | null;
  /** Why the last check failed, or why it could not be made, so that the `status` is `unknown`. If it succeeded, but other probes see the target down, the error of one of them; otherwise null. */
  error: string | null;
  /** Id of the open incident; null while the target is not down. */
  incident_id: string | null;
  depends_on: string | null;
  /** Whether the monitor is flapping: channels are notified once, and again when its status is stable. */
  flapping: boolean;
  /** Whether a maintenance window is open. */
  maintenance: boolean;
  /** Notice that an interval was raised to the minimum of the tier. */
  warning?: string;
}

/** The response of `DELETE /v1/pulse/{monitorId}`. */
export type MonitorDeleted = { deleted: true };

/** The response of `GET /v1/pulse/{monitorId}/history`. */
export interface MonitorHistory {
  checks: MonitorCheck[];
  uptime: {
    /** Share of the time that was up, in percent; null without checks. */
    "24h": number | null;
    /** Share of the time that was up, in percent; null without checks. */
    "7d": number | null;
    /** Share of the time that was up, in percent; null without checks. */
    "30d": number | null;
    /** Share of the time that was up, in percent; null without checks. */
    "90d": number | null;
  };
  /** Number and duration of outages, which are the incidents of the monitor; the newest 1000 at most. */
  outages: {
    "24h": {
      /** Number of outages. */
      count: number;
      /** Duration of the outages within the range, in milliseconds. */
      duration_ms: number;
    };
    "7d": {
      /** Number of outages. */
      count: number;
      /** Duration of the outages within the range, in milliseconds. */
      duration_ms: number;
    };
    "30d": {
      /** Number of outages. */
      count: number;
      /** Duration of the outages within the range, in milliseconds. */
      duration_ms: number;
    };
    "90d": {
      /** Number of outages. */
      count: number;
      /** Duration of the outages within the range, in milliseconds. */
      duration_ms: number;
    };
  };
  series?: MonitorSeries;
  /** Series of each probe, for monitors of several probes: with the range `24h`, from their last 6000 checks. */
  series_by_probe?: Record<string, MonitorSeries>;
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/pulse/{monitorId}/history`, `checks`, `[]`. */
export interface MonitorCheck {
  /** Time of the check, Unix seconds. */
  checked_at: number;
  /** Result; `unknown` for a check that could not be made, which counts in no uptime. */
  status: "up" | "down" | "unknown";
  latency_ms: number;
  response_status: number | null;
  error: string | null;
  manual: boolean;
  /** Name of the probe that made the check; `local` for the server. */
  probe: string;
  /** Whether the check is ignored because Ninefold was offline. */
  observer_offline: boolean;
  /** Whether the check was made in a maintenance window and does not count in the uptime. */
  maintenance: boolean;
  /** Packets of the check, for `icmp`. */
  icmp?: {
    /** Packets sent. */
    sent: number;
    /** Responses. */
    received: number;
    /** Share of the packets without a response, in percent. */
    loss_percent: number;
    /** Shortest round-trip time, in milliseconds; null without a response. */
    min_ms: number | null;
    /** Average round-trip time, in milliseconds; null without a response. */
    avg_ms: number | null;
    /** Longest round-trip time, in milliseconds; null without a response. */
    max_ms: number | null;
  };
}

/** The response of `GET /v1/pulse/{monitorId}/history`, `series`. */
export interface MonitorSeries {
  /** Start of the first bucket, Unix seconds. */
  from: number;
  /** End of the last bucket, which contains the current time, Unix seconds. */
  to: number;
  /** Length of a bucket, in milliseconds. */
  bucket_ms: number;
  /** Buckets with checks, oldest first. */
  buckets: {
    /** Start of the bucket, Unix seconds. */
    at: number;
    /** Number of checks that count in the uptime. */
    checks: number;
    /** Number of these checks that were up. */
    up: number;
    /** Average latency of the checks that were up, in milliseconds; null if it is not known. */
    latency_ms: number | null;
    /** Latency that 95 % of the checks that were up did not exceed, in milliseconds, within 5 %; null if it is not known. */
    p95_ms: number | null;
  }[];
  /** Latency that 50, 95 and 99 % of the checks of the range that were up did not exceed, in milliseconds, within 5 %; null if it is not known for all of them. */
  latency: { p50_ms: number | null; p95_ms: number | null; p99_ms: number | null };
}

/** The response of `POST /v1/pulse/incidents/{incident_id}/acknowledge`. */
export interface Incident {
  /** Id of the incident. */
  id: string;
  /** `auto` if a monitor opened the incident, `manual` if it was created through the API. */
  kind: "auto" | "manual";
  title: string;
  /** Severity of the incident. */
  impact: "degraded" | "outage";
  /** Progress of work on the incident. */
  status: "investigating" | "identified" | "monitoring" | "resolved";
  /** Error of the check that opened the incident; null for a manual incident. */
  cause: string | null;
  /** Ids of the affected monitors. */
  monitor_ids: string[];
  /** Time at which the incident was opened. */
  started_at: string;
  /** Time of the acknowledgement; null without one. */
  acknowledged_at: string | null;
  /** Name of the person or key that acknowledged the incident, or of the channel whose link did; else the user id. */
  acknowledged_by: string | null;
  /** Time until which nobody is notified again of the outage; null if it was not snoozed. */
  snoozed_until: string | null;
  /** Time of the resolution; null while the incident is open. */
  resolved_at: string | null;
  /** Whether status pages show the incident. */
  public: boolean;
  /** Id of the incident, else of the monitor, that explains this incident; no alert was sent for it. Null if alerts are sent. */
  suppressed_by: string | null;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
  /** Posted updates, oldest first. */
  updates: {
    /** Time of the update. */
    at: string;
    /** Progress of work on the incident. */
    status: "investigating" | "identified" | "monitoring" | "resolved";
    message: string;
    /** Name of the person or key that posted the update, else the user id; null for older updates. Status pages do not show it. */
    author: string | null;
  }[];
  /** Alerts about the incident, and about outages of its monitors at that time; oldest first, at most 100. Only in the response to `GET`. */
  alerts?: {
    /** Time at which the alert was queued. */
    at: string;
    /** Event of the alert. */
    event:
      | "monitor.down"
      | "monitor.up"
      | "monitor.degraded"
      | "monitor.recovered"
      | "monitor.certificate"
      | "monitor.domain"
      | "monitor.flapping"
      | "monitor.acknowledged"
      | "monitor.overdue"
      | "monitor.runs_exceeded"
      | "monitor.unknown"
      | "probe.offline"
      | "probe.online"
      | "observer.offline"
      | "maintenance.started"
      | "maintenance.ended"
      | "catch.failed";
    /** Id of the monitor; null for an alert about a manual incident. */
    monitor_id: string | null;
    /** Names of the notified channels, and the e-mail address of the account if it was notified directly. */
    channels: string[];
  }[];
  /** Checks of the affected monitors whose result differs from the check before, from 30 minutes before the incident until its resolution; oldest first, the newest 50. Only in the response to `GET`. */
  checks?: {
    /** Time of the check. */
    at: string;
    /** Id of the monitor. */
    monitor_id: string;
    /** Result of the check; `degraded` if it took longer than `degraded_ms` of the monitor. */
    status: "up" | "degraded" | "down";
    /** Latency in milliseconds. */
    latency_ms: number;
    /** HTTP status of the response; null without one. */
    response_status: number | null;
    /** Error of a failed check; null if it succeeded. */
    error: string | null;
  }[];
  /** Affected monitors that still exist. Only in the response to `GET`. */
  monitors?: {
    /** Id of the monitor. */
    id: string;
    /** Name of the monitor, else the host of its target. */
    name: string;
    /** State that status pages show for the monitor. */
    state: "up" | "degraded" | "down" | "maintenance" | "overdue" | "paused" | "unknown";
  }[];
  /** What each probe of the monitor that opened the incident sees; once it is resolved, what each saw at the check that opened it. Empty for manual incidents, and for monitors that only the server checks. Only in the response to `GET`. */
  probe_states?: {
    name: string;
    status: "up" | "down" | "unknown";
    /** Whether the probe is online. Offline probes do not vote. */
    online: boolean;
    latency_ms: number | null;
    /** Time of its last check, Unix seconds. */
    last_checked_at: number | null;
    error: string | null;
  }[];
  /** Published status pages that show the incident, or would if it were public, among the newest 5 of the project. Only in the response to `GET`. */
  status_pages?: {
    /** Slug of the status page. */
    slug: string;
    /** Title of the status page. */
    title: string;
    /** Whether the page shows the incident; if not, it would if the incident were public. */
    shown: boolean;
    /** Title of the incident on the page. */
    incident_title: string;
    /** Names of the affected monitors on the page; empty for none. */
    affected: string;
    /** Number of confirmed e-mail subscribers of the page. */
    subscribers: number;
  }[];
}

/** The body of `PATCH /v1/pulse/incidents/{incident_id}`. */
export interface IncidentPatch {
  /** Title of the incident. */
  title?: string | undefined;
  /** Severity of the incident. */
  impact?: "degraded" | "outage" | undefined;
  /** Ids of the affected monitors. An automatic incident has the monitor that opened it. */
  monitor_ids?: readonly string[] | undefined;
  /** Whether status pages show the incident. */
  public?: boolean | undefined;
}

/** The body of `POST /v1/pulse/incidents`. */
export interface IncidentCreateBody {
  /** Title of the incident. */
  title: string;
  /** Text of the update, shown on status pages as plain text with links. */
  message?: string | undefined;
  /** Severity of the incident. */
  impact?: "degraded" | "outage" | undefined;
  /** Ids of the affected monitors. An automatic incident has the monitor that opened it. */
  monitor_ids?: readonly string[] | undefined;
  /** Whether status pages show the incident. */
  public?: boolean | undefined;
  /** Time at which an incident of the past began, now by default. With it, nobody is notified of the creation. */
  started_at?: string | undefined;
  /** Time at which an incident of the past was resolved. It is open by default. */
  resolved_at?: string | undefined;
  /** Updates of an incident of the past, oldest first, in place of `message`. The first one with the status `resolved` resolves it. */
  updates?:
    | readonly {
        /** Time of the update. */
        at: string;
        /** Progress of work on the incident. */
        status: "investigating" | "identified" | "monitoring" | "resolved";
        /** Text of the update, shown on status pages as plain text with links. */
        message?: string | undefined;
      }[]
    | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
}

/** The response of `GET /v1/pulse/incidents`. */
export interface IncidentPage {
  incidents: IncidentSummary[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/pulse/incidents`, `incidents`, `[]`. */
export interface IncidentSummary {
  /** Id of the incident. */
  id: string;
  /** `auto` if a monitor opened the incident, `manual` if it was created through the API. */
  kind: "auto" | "manual";
  title: string;
  /** Severity of the incident. */
  impact: "degraded" | "outage";
  /** Progress of work on the incident. */
  status: "investigating" | "identified" | "monitoring" | "resolved";
  /** Error of the check that opened the incident; null for a manual incident. */
  cause: string | null;
  /** Ids of the affected monitors. */
  monitor_ids: string[];
  /** Time at which the incident was opened. */
  started_at: string;
  /** Time of the acknowledgement; null without one. */
  acknowledged_at: string | null;
  /** Name of the person or key that acknowledged the incident, or of the channel whose link did; else the user id. */
  acknowledged_by: string | null;
  /** Time until which nobody is notified again of the outage; null if it was not snoozed. */
  snoozed_until: string | null;
  /** Time of the resolution; null while the incident is open. */
  resolved_at: string | null;
  /** Whether status pages show the incident. */
  public: boolean;
  /** Id of the incident, else of the monitor, that explains this incident; no alert was sent for it. Null if alerts are sent. */
  suppressed_by: string | null;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
  /** Number of posted updates. */
  updates_count: number;
}

/** The body of `POST /v1/pulse/incidents/{incident_id}/snooze`. */
export interface IncidentSnoozeBody {
  /** Time for which nobody is notified again, in milliseconds. */
  for_ms?: number | string | undefined;
}

/** The body of `POST /v1/pulse/incidents/{incident_id}/updates`. */
export interface IncidentUpdateBody {
  /** Progress of work on the incident. */
  status: "investigating" | "identified" | "monitoring" | "resolved";
  /** Text of the update, shown on status pages as plain text with links. */
  message?: string | undefined;
}

/** The response of `GET /v1/pulse`. */
export interface MonitorPage {
  monitors: MonitorStatus[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The body of `POST /v1/pulse/maintenance`. */
export interface MaintenanceCreateBody {
  /** Title of the maintenance. */
  title: string;
  /** Details, as plain text. */
  message?: string | undefined;
  /** Ids of the monitors that cause no alerts during the window; empty for an announcement. */
  monitor_ids?: readonly string[] | undefined;
  /** Whether status pages show the maintenance. */
  public?: boolean | undefined;
  /** Start of the window, RFC 3339. */
  starts_at?: string | undefined;
  /** End of the window, RFC 3339. */
  ends_at?: string | undefined;
  /** Cron expression for the start of each window, instead of `starts_at` and `ends_at`. */
  schedule?: string | undefined;
  /** Time zone of `schedule`; `UTC` by default. */
  tz?: string | undefined;
  /** Duration of each window of `schedule`, in milliseconds. */
  duration_ms?: number | string | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
}

/** The response of `POST /v1/pulse/maintenance`. */
export interface Maintenance {
  id: string;
  title: string;
  message: string;
  monitor_ids: string[];
  status: "scheduled" | "active" | "ended";
  /** Start of the window. With `schedule`: of the current or next window, or of the last one if no other follows. */
  starts_at: string;
  ends_at: string;
  schedule: string | null;
  tz: string | null;
  duration_ms: number | null;
  public: boolean;
  created_at: string;
  updated_at: string;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
}

/** The response of `GET /v1/pulse/maintenance`. */
export interface MaintenancePage {
  maintenance: Maintenance[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The body of `PATCH /v1/pulse/maintenance/{maintenance_id}`. */
export interface MaintenanceUpdateBody {
  /** Title of the maintenance. */
  title?: string | undefined;
  /** Details, as plain text. */
  message?: string | undefined;
  /** Ids of the monitors that cause no alerts during the window; empty for an announcement. */
  monitor_ids?: readonly string[] | undefined;
  /** Whether status pages show the maintenance. */
  public?: boolean | undefined;
  /** Start of the window, RFC 3339. */
  starts_at?: string | undefined;
  /** End of the window, RFC 3339. */
  ends_at?: string | undefined;
  /** Cron expression for the start of each window, instead of `starts_at` and `ends_at`. */
  schedule?: string | undefined;
  /** Time zone of `schedule`; `UTC` by default. */
  tz?: string | undefined;
  /** Duration of each window of `schedule`, in milliseconds. */
  duration_ms?: number | string | undefined;
}

/** The body of `POST /v1/pulse/pages`. */
export interface StatusPageCreateBody {
  /** Last part of the page's path, `/status/{slug}`; unique on the server. */
  slug: string;
  /** Title of the page. */
  title: string;
  /** Text below the title, as plain text with links. */
  description?: string | undefined;
  /** Groups of monitors, in the order in which the page shows them. */
  groups?:
    | readonly {
        /** Heading of the group; empty for none. */
        name: string;
        /** Ids of the monitors, in the order in which the page shows them. */
        monitor_ids: readonly string[];
      }[]
    | undefined;
  /** Color of the page's icon, in hexadecimal; null for the default. */
  color?: string | null | undefined;
  /** Icon of the page, as a base64 data URI of a PNG, JPEG, WebP or SVG image, at most 32 KiB; null for the first letter of the title. */
  logo?: string | null | undefined;
  /** URL of your website, linked in the page's header. */
  website_url?: string | null | undefined;
  /** Whether the page shows the latency of each monitor, except heartbeats. */
  show_latency?: boolean | undefined;
  /** Whether the page shows the URL of each monitor, and the host of a monitor without a name. */
  show_urls?: boolean | undefined;
  /** Incidents on the page. `manual`: manual incidents that are public. `outages`: also the outages of the page's monitors, with their duration. `all`: also the automatic incidents of these outages, with their updates. */
  publish_incidents?: "none" | "manual" | "outages" | "all" | undefined;
  /** Text at the end of the page, as plain text with links. */
  footer?: string | undefined;
  /** Whether search engines may index the page. */
  index?: boolean | undefined;
  /** Whether the page is public; otherwise its address responds with 404. */
  published?: boolean | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
}

/** The response of `POST /v1/pulse/pages`. */
export interface StatusPage extends StatusPageSummary {
  /** Groups of monitors, in the order in which the page shows them. */
  groups: {
    /** Heading of the group; empty for none. */
    name: string;
    /** Ids of the monitors, in the order in which the page shows them. */
    monitor_ids: string[];
  }[];
  /** Icon of the page, as a base64 data URI of a PNG, JPEG, WebP or SVG image, at most 32 KiB; null for the first letter of the title. */
  logo: string | null;
}

/** The response of `DELETE /v1/pulse/pages/{page_id}`. */
export type StatusPageDeleted = { deleted: true };

/** The response of `GET /v1/pulse/pages`. */
export interface StatusPageList {
  pages: StatusPageSummary[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/pulse/pages`, `pages`, `[]`. */
export interface StatusPageSummary {
  /** Id of the page. */
  id: string;
  /** Last part of the page's path, `/status/{slug}`; unique on the server. */
  slug: string;
  /** Public URL of the page. */
  url: string;
  /** Title of the page. */
  title: string;
  /** Text below the title, as plain text with links. */
  description: string;
  /** Color of the page's icon, in hexadecimal; null for the default. */
  color: string | null;
  /** URL of your website, linked in the page's header. */
  website_url: string | null;
  /** Whether the page shows the latency of each monitor, except heartbeats. */
  show_latency: boolean;
  /** Whether the page shows the URL of each monitor, and the host of a monitor without a name. */
  show_urls: boolean;
  /** Incidents on the page. `manual`: manual incidents that are public. `outages`: also the outages of the page's monitors, with their duration. `all`: also the automatic incidents of these outages, with their updates. */
  publish_incidents: "none" | "manual" | "outages" | "all";
  /** Text at the end of the page, as plain text with links. */
  footer: string;
  /** Whether search engines may index the page. */
  index: boolean;
  /** Whether the page is public; otherwise its address responds with 404. */
  published: boolean;
  /** Time of creation. */
  created_at: string;
  /** Time of the last update. */
  updated_at: string;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
}

/** The body of `POST /v1/pulse/pages/{page_id}/subscribers/import`. */
export interface StatusPageSubscribersImportBody {
  /** Subscribers of another status page. */
  subscribers: readonly {
    /** E-mail address, whose owner has confirmed it elsewhere. */
    email: string;
    /** Time of that confirmation, now by default. */
    confirmed_at?: string | undefined;
  }[];
}

/** The response of `POST /v1/pulse/pages/{page_id}/subscribers/import`. */
export interface StatusPageSubscribersImported {
  /** Number of new subscribers. */
  imported: number;
  /** Number of addresses that had subscribed already. */
  known: number;
  /** Addresses that were not imported. */
  rejected: {
    /** Position in `subscribers`, from 0. */
    index: number;
    /** `page_full`: the page has the maximum number of subscribers. `unsubscribed`: its owner has unsubscribed from this page, and can only subscribe again themselves. */
    reason: "invalid_address" | "page_full" | "unsubscribed";
  }[];
}

/** The body of `PATCH /v1/pulse/pages/{page_id}`. */
export interface StatusPageUpdateBody {
  /** Last part of the page's path, `/status/{slug}`; unique on the server. */
  slug?: string | undefined;
  /** Title of the page. */
  title?: string | undefined;
  /** Text below the title, as plain text with links. */
  description?: string | undefined;
  /** Groups of monitors, in the order in which the page shows them. */
  groups?:
    | readonly {
        /** Heading of the group; empty for none. */
        name: string;
        /** Ids of the monitors, in the order in which the page shows them. */
        monitor_ids: readonly string[];
      }[]
    | undefined;
  /** Color of the page's icon, in hexadecimal; null for the default. */
  color?: string | null | undefined;
  /** Icon of the page, as a base64 data URI of a PNG, JPEG, WebP or SVG image, at most 32 KiB; null for the first letter of the title. */
  logo?: string | null | undefined;
  /** URL of your website, linked in the page's header. */
  website_url?: string | null | undefined;
  /** Whether the page shows the latency of each monitor, except heartbeats. */
  show_latency?: boolean | undefined;
  /** Whether the page shows the URL of each monitor, and the host of a monitor without a name. */
  show_urls?: boolean | undefined;
  /** Incidents on the page. `manual`: manual incidents that are public. `outages`: also the outages of the page's monitors, with their duration. `all`: also the automatic incidents of these outages, with their updates. */
  publish_incidents?: "none" | "manual" | "outages" | "all" | undefined;
  /** Text at the end of the page, as plain text with links. */
  footer?: string | undefined;
  /** Whether search engines may index the page. */
  index?: boolean | undefined;
  /** Whether the page is public; otherwise its address responds with 404. */
  published?: boolean | undefined;
}

/** The response of `POST /v1/pulse/ping-key`. */
export interface PingKey {
  /** Key in the ping URLs of the project, before the slug. The previous key stops working. */
  ping_key: string;
}

/** The response of `GET /v1/pulse/{monitorId}/pings`. */
export type HeartbeatPings = { pings: HeartbeatPing[] };

/** The response of `GET /v1/pulse/{monitorId}/pings`, `pings`, `[]`. */
export interface HeartbeatPing {
  at: string;
  kind: "success" | "fail" | "start" | "log";
  /** Exit status of the run, if the ping has one. */
  exit: number | null;
  /** Milliseconds since the start of the run, if the start was reported. */
  duration_ms: number | null;
  /** Id of the run, if the ping has one. */
  rid: string | null;
  ip: string | null;
  /** First 10000 bytes of the body. */
  body: string | null;
}

/** The body of `POST /v1/pulse/probes`. */
export interface ProbeCreateBody {
  /** Name of the probe, unique in the project. It cannot be changed. */
  name: string;
  /** Where the probe is, for people. */
  location?: string | null | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
}

/** The response of `POST /v1/pulse/probes`. */
export interface Probe {
  id: string;
  name: string;
  location: string | null;
  /** `new` before its first request, `offline` after 2 minutes without one. */
  status: "new" | "online" | "offline";
  /** Time of its last request; null before the first. */
  last_seen_at: string | null;
  /** Version of its executable. */
  version: string | null;
  /** Number of results that it still has to send. */
  queue: number;
  /** Difference of its clock from the server's, in milliseconds. Results do not depend on it: their times are the server's. */
  clock_offset_ms: number | null;
  /** Token of the probe. Only in the response to its creation. */
  token?: string;
  created_at: string;
  updated_at: string;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
}

/** The response of `DELETE /v1/pulse/probes/{probe_id}`. */
export type ProbeDeleted = { deleted: true };

/** The response of `GET /v1/pulse/probes`. */
export interface ProbePage {
  probes: Probe[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The body of `PATCH /v1/pulse/probes/{probe_id}`. */
export interface ProbePatch {
  /** Where the probe is, for people. */
  location?: string | null | undefined;
}

/** The response of `GET /api/push/{token}`. */
export type PushAccepted = { ok: true };

/** The body of `PUT /v1/pulse/{monitorId}`. */
export interface MonitorUpdateBody {
  /** URL to check. Required for `http`. */
  url?: string | undefined;
  /** Time between checks, in milliseconds; raised to the minimum of the tier, with a `warning`. Required for `http`, `tcp`, `dns` and `icmp`; a `domain` is checked once a day. */
  interval?: number | string | undefined;
  /** `http` requests a URL, `tcp` connects to a port, `dns` looks up records, `icmp` sends packets by ping, `domain` asks when a registered name expires, `heartbeat` waits for pings, `manual` has the state of the incidents that name it. Default `http`; fixed after creation. */
  type?: "http" | "tcp" | "dns" | "icmp" | "domain" | "heartbeat" | "manual" | undefined;
  /** Heartbeats only: name in `ping_slug_url`, unique within the project. */
  slug?: string | null | undefined;
  /** Heartbeats only: time between pings, in milliseconds. Default 86400000. */
  period_ms?: number | string | undefined;
  /** Heartbeats only, instead of `period_ms`: times of pings, as a cron expression with five fields. */
  schedule?: string | undefined;
  /** Time zone of `schedule`, as an IANA name. Default `UTC`. */
  tz?: string | undefined;
  /** Heartbeats only: maximum delay of a ping, and maximum duration of a run without `start_grace_ms`, in milliseconds. Default 3600000. */
  grace_ms?: number | string | undefined;
  /** Heartbeats only: maximum duration of a run from its start, in milliseconds. A run that starts in time postpones the deadline of its success. Null: `grace_ms`, and nothing is postponed. */
  start_grace_ms?: number | string | null | undefined;
  /** Heartbeats only: runs that may begin in a period, or between two times of the `schedule`. One more is an alert, once per period. Null: any number. */
  max_runs_per_period?: number | null | undefined;
  /** HTTP method of checks, in capital letters; `GET` by default. Not `CONNECT` or `TRACE`. */
  method?: string | undefined;
  /** Timeout of a check, in milliseconds; 10000 by default. */
  timeout?: number | string | undefined;
  /** Consecutive failures after which the target is down; 1 by default. */
  consecutive_threshold?: number | undefined;
  /** Time before the alert to `webhook_url` is repeated while the target stays down, in milliseconds; 300000 by default. */
  cooldown_ms?: number | string | undefined;
  /** Whether the e-mail address of the account is notified once per outage. Tiers pro and scale. */
  email_alert?: boolean | undefined;
  /** Whether the webhook and the e-mail also report recovery. */
  notify_recovery?: boolean | undefined;
  /** Group under which the monitor is listed. */
  group?: string | null | undefined;
  /** Time between checks from the first failure until the target is down, in milliseconds; at most `interval`. Null: `interval`. */
  retry_interval?: number | string | null | undefined;
  /** Time between checks while the target is down, in milliseconds; at most `interval`. Null: `interval`. */
  down_interval?: number | string | null | undefined;
  /** Time that a target must be down before anyone is notified, in milliseconds; 0 by default. If it recovers before, nobody is notified of the outage or of the recovery. */
  notify_after_ms?: number | string | undefined;
  /** Consecutive successes after which a target that is down is up; 1 by default. */
  recovery_threshold?: number | undefined;
  /** Latency above which a check is slow, in milliseconds; less than `timeout`. */
  degraded_ms?: number | string | null | undefined;
  /** Whether channels are notified when the target becomes slow, and when its latency is normal again. */
  notify_degraded?: boolean | undefined;
  accept_status?: readonly string[] | null | undefined;
  /** Name or address of the host; for `dns` the name that is looked up. Required for `tcp`, `dns`, `icmp`, and `domain`. */
  host?: string | undefined;
  /** Port of the host. Required for `tcp`. */
  port?: number | undefined;
  /** Type of the records. Required for `dns`. */
  record_type?: "A" | "AAAA" | "CAA" | "CNAME" | "MX" | "NS" | "PTR" | "SOA" | "SRV" | "TXT" | undefined;
  /** Value that one of the records must have, as in a zone file, such as `10 mail.example.com`; null for any. */
  record_value?: string | null | undefined;
  /** How records are compared: one of them is the `record_value` (`exact`, the default), or has it in it (`contains`), or all of them together are the `record_values` (`set`). */
  match?: "exact" | "contains" | "set" | undefined;
  record_values?: readonly string[] | null | undefined;
  /** Name server that is queried, by UDP and, for long responses, by TCP: host, or host and port. Null: those of the machine that checks. */
  resolver?: string | null | undefined;
  /** Packets that a check of an `icmp` monitor sends, 200 ms apart; 3 by default. */
  packets?: number | undefined;
  /** Share of the packets that may be lost, in percent; with more, the target is down. 99 by default: one response is enough. */
  max_loss_percent?: number | undefined;
  /** Text that must appear in the first 64 KiB of the body; for `tcp` in the first 4 KiB that the server sends. */
  keyword?: string | null | undefined;
  /** Text that must not appear in the first 64 KiB of the body. */
  keyword_absent?: string | null | undefined;
  keywords_all?: readonly string[] | null | undefined;
  keywords_any?: readonly string[] | null | undefined;
  /** Path of a value in a JSON response. */
  json_path?: string | null | undefined;
  /** Comparison of the value at `json_path`; `==` by default. */
  json_op?: "==" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "exists" | null | undefined;
  /** Value that the value at `json_path` is compared with. */
  json_value?: string | number | boolean | null | undefined;
  /** Names of the probes that check the target; `local` is this server, and the default. Not for heartbeats. */
  probes?: readonly string[] | undefined;
  /** How many of the probes with a recent result must see the target down before it is down; `majority` by default. */
  confirm?: "any" | "majority" | "all" | undefined;
  tls?: "direct" | "starttls-smtp" | "starttls-imap" | "starttls-pop3" | true | null | undefined;
  /** Whether the target is down if its certificate is not valid; `true` by default. Its expiry is watched in any case. */
  tls_verify?: boolean | undefined;
  /** Certificate that checks present to the server if it requests one, with intermediate certificates, PEM. Requires `tls_client_key`. */
  tls_client_certificate?: string | null | undefined;
  /** Days before expiry of the certificate at which channels are notified; 0 for never, 14 by default. */
  tls_expiry_days?: number | string | undefined;
  channels?: readonly string[] | null | undefined;
  /** Name of the monitor, unique in the project. Without one, the host is shown. */
  name?: string | null | undefined;
  headers?: Record<string, string> | null | undefined;
  /** Private key of `tls_client_certificate`, PEM without a passphrase. Stored encrypted, and never shown. */
  tls_client_key?: string | null | undefined;
  /** Body that checks send, except with the methods `GET` and `HEAD`. */
  body?: string | null | undefined;
  /** URL that receives alerts as signed webhooks. Tier starter and higher. */
  webhook_url?: string | null | undefined;
  /** Id of the monitor that this one depends on. While that one fails, failures of this one cause no alerts. */
  depends_on?: string | null | undefined;
  /** Whether the monitor is active: checked, or waiting for pings. */
  active?: boolean | undefined;
}

/** The body of `POST /ofrep/v1/evaluate/flags`. */
export interface EvaluationBody {
  /** Evaluation context, such as attributes of a user: any JSON object with at most 8 levels. */
  context?:
    | {
        /** Id of the subject, such as a user; null like none. */
        targetingKey?: string | null | undefined;
        [name: string]: unknown;
      }
    | null
    | undefined;
}

/** The response of `POST /ofrep/v1/evaluate/flags`. */
export interface Evaluations {
  flags: Evaluation[];
  /** Streams that notify of changes. Omitted for browser sessions. */
  eventStreams?: FlagEventStream[];
}

/** The response of `POST /ofrep/v1/evaluate/flags`, `flags`, `[]`. */
export interface Evaluation {
  key: string;
  /** Value of the flag; omitted if the caller uses its own default. */
  value?: unknown;
  variant?: string;
  reason: "STATIC" | "DEFAULT" | "TARGETING_MATCH" | "SPLIT" | "DISABLED";
  metadata: Record<string, string | number | boolean>;
}

/** The response of `POST /ofrep/v1/evaluate/flags`, `eventStreams`, `[]`. */
export interface FlagEventStream {
  type: "sse";
  /** URL of the stream, if `public_url` is configured. */
  url?: string;
  endpoint?: { requestUri: string };
  inactivityDelaySec: number;
}

/** The response of `GET /openapi.json`. */
export type OpenApiDocument = { openapi: string; [name: string]: unknown };

/** The response of `GET /v1/overview`. */
export interface Overview {
  meter?: { balance: number; monthly_credits: number; meters: number };
  projects?: { total: number };
  keys?: { total: number; ending_soon: number };
  gate?: { total: number; on: number };
  latch?: { held: number; waiting: number };
  pulse?: {
    total: number;
    up: number;
    down: number;
    overdue: number;
    /** Newest open incidents. With `details`. */
    incidents?: {
      id: string;
      title: string;
      /** Type of the monitor that opened the incident; null for a manual incident. */
      monitor_type: "http" | "tcp" | "dns" | "icmp" | "domain" | "heartbeat" | "manual" | null;
      /** Error of the check that opened the incident. */
      cause: string | null;
      status: string;
      public: boolean;
      started_at: string;
      acknowledged_at: string | null;
      /** Time of the last posted update; null without one. */
      updated_at: string | null;
    }[];
    /** Monitors with the lowest uptime, worst first. With `details`. */
    worst?: {
      monitor_id: string;
      name: string;
      status: "up" | "down" | "unknown" | "degraded" | "overdue";
      /** Share of the last 24 hours that was up, in percent. */
      uptime: number | null;
      /** Share of the time that was up, in percent, of each of the last 24 hours, the current one last; null without checks. */
      hours: (number | null)[];
    }[];
    /** Notification channels whose last message could not be delivered. With `details`. */
    channels_failing?: { id: string; name: string; error: string }[];
  };
  relay?: {
    scheduled: number;
    failed: number;
    /** Due time of the oldest delivery that is being retried. */
    retrying_since: string | null;
    /** Targets with the most failed deliveries in the last 24 hours. With `details`. */
    failing?: {
      /** Null for deliveries to a URL without an endpoint. */
      endpoint_id: string | null;
      /** Name of the endpoint. */
      name: string | null;
      target_url: string;
      /** Failed deliveries in the last 24 hours, of the newest 1,000. */
      failed: number;
      /** Time of the first of them. */
      since: string;
      /** HTTP status of the last one; null without a response. */
      response_status: number | null;
      /** Error of the last one. */
      error: string | null;
    }[];
  };
  catch?: {
    pending: number;
    failed: number;
    failed_24h: number;
    delivered: number;
    /** Time of receipt of the oldest event that a live bucket has not delivered. */
    pending_since: string | null;
    /** Buckets with the most failed events. With `details`. */
    failing?: {
      bucket_id: string;
      name: string | null;
      /** Number of failed events. */
      failed: number;
    }[];
  };
  witness?: {
    receipts: number;
    buffered: number;
    /** Creation time of the oldest receipt that has not been copied to the storage. */
    buffered_since: string | null;
  };
  /** State of the backups, for the operator only. */
  backups?: {
    /** Whether the server has scheduled backups. */
    scheduled: boolean;
    /** Start of the last backup. Null if there is none. */
    last_at: string | null;
    /** Whether two scheduled times have passed since the last backup. */
    overdue: boolean;
  };
  /** State of outgoing e-mails, for the operator only. */
  mail?: {
    /** Whether the server has a mail server. */
    configured: boolean;
    /** Time since which attempts to send e-mails fail. Null if they do not. */
    failing_since: string | null;
  };
  /** Time of the server, in epoch milliseconds. */
  at: number;
  /** Number of open incidents of the project. */
  incidents_open: number;
  /** Latest entries of the audit log. */
  recent: AuditEntry[];
}

/** The body of `POST /v1/people`. */
export interface PersonCreateBody {
  /** Unique in the account, regardless of case. */
  email: string;
  /** Name of the person. */
  name?: string | undefined;
  /** Role for the account. Null if `projects` is a list. Nobody grants a role above their own. */
  role?: "viewer" | "responder" | "editor" | "admin" | "owner" | null | undefined;
  /** `all`, the default, or the only projects in which the person has a role. */
  projects?: "all" | readonly PersonProject[] | undefined;
}

/** The body of `POST /v1/people`, `projects`, `one of`, `[]`. */
export type PersonProject = { project_id: string; role: "viewer" | "responder" | "editor" | "admin" };

/** The response of `POST /v1/people`. */
export interface PersonInvited extends Person {
  /** Link of the invitation, if it was not sent by e-mail. It is valid for 7 days, once. */
  invitation_url: string | null;
}

/** The response of `POST /v1/people`, `identities`, `[]`. */
export interface PersonIdentity {
  identity_id: string;
  issuer: string;
  created_at: string;
  last_used_at: string | null;
}

/** The response of `DELETE /v1/people/{person_id}`. */
export interface PersonDeleted {
  deleted_at: string;
  /** Ids of up to 1,000 keys that the person created and that are not revoked before this request. */
  keys: string[];
}

/** The response of `DELETE /v1/people/{person_id}/identities/{identity_id}`. */
export interface Person {
  person_id: string;
  email: string;
  name: string | null;
  /** Role for the account. Null if `projects` is a list. */
  role: "viewer" | "responder" | "editor" | "admin" | "owner" | null;
  /** `all`, or the projects in which the person has a role. */
  projects: "all" | PersonProject[];
  /** `invited` until the first login. */
  status: "invited" | "active" | "disabled";
  /** Ways in which the person can log in: `passkey`, `oidc`. */
  login_methods: ("key" | "link" | "invitation" | "passkey" | "oidc" | "header" | "email")[];
  /** Identities at OpenID Connect providers. At most one per issuer. */
  identities: PersonIdentity[];
  /** Whether the configuration file sets role and projects. */
  from_file: boolean;
  /** Who invited the person. Null for a key. */
  invited_by: string | null;
  /** Time at which the open invitation expires. Null without one. */
  invitation_expires_at: string | null;
  created_at: string;
  /** Time of the last request, within five minutes. */
  last_seen_at: string | null;
}

/** The response of `POST /v1/people/{person_id}/invitation`. */
export interface Invitation {
  person_id: string;
  /** Link of the invitation, if it was not sent by e-mail. It is valid for 7 days, once. */
  invitation_url: string | null;
  expires_at: string;
}

/** The response of `GET /v1/people`. */
export interface PeoplePage {
  people: Person[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The body of `POST /v1/people/me/passkeys`. */
export interface PasskeyCreateBody {
  credential: RegistrationCredential;
  /** Name of the passkey. */
  name?: string | undefined;
}

/** The credential, as `toJSON()` of the browser returns it. */
export interface RegistrationCredential {
  id: string;
  rawId: string;
  type: "public-key";
  clientExtensionResults?: object | undefined;
  authenticatorAttachment?: string | undefined;
  response: {
    clientDataJSON: string;
    attestationObject: string;
    transports?: readonly string[] | undefined;
    [name: string]: unknown;
  };
  [name: string]: unknown;
}

/** The response of `POST /v1/people/me/passkeys`. */
export interface Passkey {
  passkey_id: string;
  name: string;
  /** Host for which it was made. */
  relying_party: string;
  /** Whether it works at the server's present host. False after a change of `public_url`. */
  usable: boolean;
  created_at: string;
  last_used_at: string | null;
}

/** The response of `DELETE /v1/people/me/passkeys/{passkey_id}`. */
export type PasskeyDeleted = { deleted_at: string };

/** The response of `GET /v1/people/me/passkeys`. */
export type PasskeyList = { passkeys: Passkey[] };

/** The response of `POST /v1/people/me/passkeys/options`. */
export interface PasskeyOptions {
  /** Options for the browser, in the JSON form of WebAuthn: for `PublicKeyCredential.parseCreationOptionsFromJSON` or `parseRequestOptionsFromJSON`. */
  options: Record<string, unknown>;
}

/** The body of `PATCH /v1/people/me/passkeys/{passkey_id}`. */
export interface PasskeyPatchBody {
  /** Name of the passkey. */
  name: string;
}

/** The response of `GET /v1/people/me`. */
export interface Me extends Person {
  /** Number of the current session. */
  session_id: number;
  /** Time of the login, or of the last step-up. */
  authenticated_at: string;
}

/** The response of `DELETE /v1/people/me/sessions/{session_id}`. */
export interface PersonSessionsEnded {
  /** Number of sessions that were ended. */
  ended: number;
}

/** The response of `GET /v1/people/me/sessions`. */
export interface PersonSessions {
  /** At most 20, newest first. */
  sessions: PersonSessionItem[];
}

/** The response of `GET /v1/people/me/sessions`, `sessions`, `[]`. */
export interface PersonSessionItem {
  session_id: number;
  /** Whether it is the session of this request. */
  current: boolean;
  method: "key" | "link" | "invitation" | "passkey" | "oidc" | "header" | "email";
  created_at: string;
  last_used_at: string;
  expires_at: string;
  ip: string | null;
  user_agent: string | null;
}

/** The body of `PATCH /v1/people/me`. */
export interface MePatchBody {
  /** Your name; null removes it. */
  name?: string | null | undefined;
}

/** The response of `GET /v1/people/roles`. */
export interface Roles {
  /** The roles, each with everything that the ones before it may do. */
  roles: RoleFacts[];
  operations: RoleOperation[];
}

/** The response of `GET /v1/people/roles`, `roles`, `[]`. */
export type RoleFacts = { role: "viewer" | "responder" | "editor" | "admin" | "owner"; description: string };

/** The response of `GET /v1/people/roles`, `operations`, `[]`. */
export interface RoleOperation {
  operation: string;
  method: string;
  path: string;
  /** Least role that may call it. Null: only keys may. */
  role: "viewer" | "responder" | "editor" | "admin" | "owner" | null;
  /** Whether it requires a login within the last 15 minutes. */
  step_up: boolean;
  /** Whether people with roles in single projects are rejected. */
  account: boolean;
}

/** The body of `PATCH /v1/people/{person_id}`. */
export interface PersonPatchBody {
  /** Name of the person; null removes it. */
  name?: string | null | undefined;
  /** Role for the account. Null if `projects` is a list. Nobody grants a role above their own. */
  role?: "viewer" | "responder" | "editor" | "admin" | "owner" | null | undefined;
  /** `all`, the default, or the only projects in which the person has a role. */
  projects?: "all" | readonly PersonProject[] | undefined;
  /** Whether the person cannot log in. Disabling ends their sessions immediately. */
  disabled?: boolean | undefined;
}

/** The response of `GET /v1/ping`. */
export type Pong = { pong: true };

/** The body of `POST /v1/probe/results`. */
export interface ProbeResultsBody {
  /** At most 500 results. */
  results: readonly {
    /** Identifies the result: a second one with it is rejected. */
    result_id: string;
    monitor_id: string;
    /** Time since the start of the check, in milliseconds, by the monotonic clock of the probe: 0 to 7 days. */
    age_ms: number;
    /** `unknown` if the probe could not check, such as without `ping`: it does not vote then. */
    status: "up" | "down" | "unknown";
    /** Latency of the check, in milliseconds. Null, if nothing was measured, counts as 0. */
    latency_ms?: number | null | undefined;
    response_status?: number | null | undefined;
    /** Why the target is down, or why it could not be checked. */
    error?: string | null | undefined;
    /** Whether the probe itself was offline, so that the result is no vote. */
    observer_offline?: boolean | undefined;
    /** Packets of the check, for `icmp`. */
    icmp?:
      | {
          /** Packets sent. */
          sent: number;
          /** Responses. */
          received: number;
          /** Share of the packets without a response, in percent. */
          loss_percent: number;
          /** Shortest round-trip time, in milliseconds; null without a response. */
          min_ms: number | null;
          /** Average round-trip time, in milliseconds; null without a response. */
          avg_ms: number | null;
          /** Longest round-trip time, in milliseconds; null without a response. */
          max_ms: number | null;
        }
      | undefined;
    certificate?:
      | {
          /** Expiry, Unix seconds. */
          not_after: number;
          issuer: string;
          intermediate?: string | undefined;
        }
      | undefined;
  }[];
  /** Identifies the process of the probe, for `sent_ms`. */
  run?: string | undefined;
  /** Time of the request by the monotonic clock of the process, in milliseconds: shows how long it was on its way. */
  sent_ms?: number | undefined;
}

/** The response of `POST /v1/probe/results`. */
export interface ProbeResultsAccepted {
  /** Number of results that were stored. */
  accepted: number;
  /** Results that were not stored. They are not to be sent again. */
  rejected: { index: number; reason: "duplicate" | "unknown_monitor" | "age" }[];
}

/** The response of `GET /v1/probe/work`. */
export interface ProbeWork {
  /** Position for the next request. */
  cursor: string;
  /** Whether `monitors` begin a new list: monitors of earlier responses are dropped. */
  reset: boolean;
  /** Whether the list ends with this response. */
  complete: boolean;
  /** Monitors to check at their intervals. */
  monitors: {
    monitor_id: string;
    /** `http` requests a URL, `tcp` connects to a port, `dns` looks up records, `icmp` sends packets by ping, `domain` asks when a registered name expires, `heartbeat` waits for pings, `manual` has the state of the incidents that name it. Default `http`; fixed after creation. */
    type: "http" | "tcp" | "dns" | "icmp" | "domain" | "heartbeat" | "manual";
    url: string;
    method: string;
    headers: Record<string, string> | null;
    body: string | null;
    timeout: number;
    interval: number;
    consecutive_threshold: number;
    /** Host of the target; null if the target is a URL. */
    host: string | null;
    /** Port of the host. */
    port: number | null;
    /** Type of the records. */
    record_type: "A" | "AAAA" | "CAA" | "CNAME" | "MX" | "NS" | "PTR" | "SOA" | "SRV" | "TXT" | null;
    /** Value that one of the records must have; null for any. */
    record_value: string | null;
    /** Values of all records, with the `match` `set`. */
    record_values: string[] | null;
    match: "exact" | "contains" | "set";
    /** Name server that is queried; null for those of the machine that checks. */
    resolver: string | null;
    retry_interval: number | null;
    down_interval: number | null;
    accept_status: string[] | null;
    keyword: string | null;
    keyword_absent: string | null;
    keywords_all: string[] | null;
    keywords_any: string[] | null;
    /** TLS of the port; null for none. */
    tls: "direct" | "starttls-smtp" | "starttls-imap" | "starttls-pop3" | null;
    tls_verify: boolean;
    /** Certificate that checks present, PEM. */
    tls_client_certificate: string | null;
    /** Key of the client certificate. */
    tls_client_key: string | null;
    json_path: string | null;
    json_op: "==" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "exists" | null;
    json_value: string | number | boolean | null;
    packets: number;
    max_loss_percent: number;
  }[];
  /** Monitors to check once, now. */
  due: string[];
  /** Whether the probe checks at the intervals itself; otherwise only what is `due`, under a test clock. */
  scheduled: boolean;
}

/** The body of `POST /v1/projects`. */
export interface ProjectCreateBody {
  name: string;
  description?: string | null | undefined;
  /** Time zone of times in texts for people: alerts, e-mails and status pages. An IANA name; `UTC` by default. JSON, stored errors and bars stay in UTC. */
  time_zone?: string | undefined;
}

/** The response of `POST /v1/projects`. */
export interface Project extends ProjectItem {
  updated_at: string;
}

/** The response of `DELETE /v1/projects/{id}`. */
export type ProjectDeleted = { success: true; deleted_at: string };

/** The response of `GET /v1/projects`. */
export interface ProjectPage {
  projects: ProjectItem[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/projects`, `projects`, `[]`. */
export interface ProjectItem {
  /** Id of the project: `proj_` and 20 letters and digits. */
  id: string;
  name: string;
  /** URL-safe name, derived from `name`. It never changes. */
  slug: string;
  description: string | null;
  /** Time zone of times in texts for people. */
  time_zone: string;
  /** Whether changes of flags are proposals that somebody else must approve. */
  review: boolean;
  created_at: string;
}

/** The response of `GET /v1/projects/{id}/overview`. */
export interface ProjectOverview {
  project_id: string;
  project_name: string;
  /** Number of resources by kind, each counted up to 10000: keys that are not revoked, pending relays, held locks, and all of the other kinds. */
  resources: {
    meters: number;
    keys: number;
    flags: number;
    locks: number;
    monitors: number;
    relays: number;
    buckets: number;
    chains: number;
  };
  usage: {
    /** The account's credit balance. */
    meter_balance: number;
    /** Time of the last change in the project. Null if there was none. */
    last_activity: string | null;
  };
}

/** The body of `PATCH /v1/projects/{id}`. */
export interface ProjectUpdateBody {
  name?: string | undefined;
  description?: string | null | undefined;
  /** Time zone of times in texts for people: alerts, e-mails and status pages. An IANA name; `UTC` by default. JSON, stored errors and bars stay in UTC. */
  time_zone?: string | undefined;
  /** Whether changes of flags are proposals that somebody else must approve. Switching it off requires the scope `*`. */
  review?: boolean | undefined;
}

/** The response of `GET /v1/relay/{relay_id}/body`. */
export interface RelaySentBody {
  /** Body of the request; null when it is not stored any more, or is not UTF-8. */
  body: string | null;
  /** Body as base64, when it is not UTF-8. Replaces `body`. */
  body_base64?: string;
  /** Size of the body; null when it is not stored any more. */
  size_bytes: number | null;
}

/** The response of `DELETE /v1/relay/{relay_id}`. */
export type RelayCancelled = { relay_id: string; status: "cancelled" };

/** The body of `PATCH /v1/relay/endpoints/{endpoint_id}`. */
export interface RelayEndpointPatch {
  /** URL that receives the messages. A change also applies to pending deliveries. */
  url?: string | undefined;
  /** Types of messages that the endpoint receives. `a.*` matches every type that starts with `a.`. Empty: all types except `ninefold.*`. */
  event_types?: readonly string[] | undefined;
  /** The message goes to endpoints that share a channel with it, or have none. */
  channels?: readonly string[] | undefined;
  filter?: object | null | undefined;
  /** Description for people. */
  description?: string | null | undefined;
  /** Format of the body: an object with `type`, `timestamp` and `data` (`envelope`), or the payload alone (`raw`). */
  format?: "envelope" | "raw" | undefined;
  template?: object | readonly unknown[] | null | undefined;
  signature?: RelaySignature | null | undefined;
  /** Delay before each retry, such as `5m`: at most `24h` each and `7d` in total; `[]` for no retries. Default: `1s`, `5s`, `25s`; to endpoints, the Standard Webhooks schedule. */
  retry_schedule?: readonly (string | number)[] | undefined;
  /** Timeout of an attempt, in milliseconds. Default: 15000. */
  timeout_ms?: number | string | undefined;
  /** Maximum attempts per second; further deliveries wait. Null (default) for no limit. */
  max_per_second?: number | null | undefined;
  /** Maximum concurrent attempts. Default: 16; with 1 the endpoint receives its deliveries in order. */
  max_concurrency?: number | undefined;
  /** JSON pointer to the text or number in the payload that orders messages: those with the same value are sent one after another. `order_key` of a message wins. */
  order_by?: string | null | undefined;
  /** Time after its first attempt for which an unfinished delivery holds the others of its order key, in milliseconds. Default: 3600000. */
  order_wait_ms?: number | string | undefined;
  /** Hours of continuous failure after which the endpoint is disabled; 0 for never. Default: 120. */
  disable_after_hours?: number | string | undefined;
  /** Whether the account receives an e-mail when the endpoint is disabled. Default: true. */
  notify_email?: boolean | undefined;
  /** Whether the log of attempts stores responses. Default: true. */
  keep_responses?: boolean | undefined;
  /** Optional name, unique within the project. */
  name?: string | null | undefined;
  /** Id of your customer to whom the endpoint belongs: it receives only messages with this `owner_id`. It cannot be changed. */
  owner_id?: string | null | undefined;
  /** Your own data: strings by name, at most 16384 characters as JSON. */
  metadata?: Record<string, string> | null | undefined;
  /** Request headers: at most 50, each at most 4096 printable ASCII characters; stored encrypted. `X-Svc-*`, `X-Ninefold-Hops`, `webhook-*`, `Host`, `Content-Length` and headers of the connection are ignored, and named in `warnings`. */
  headers?: Record<string, string> | undefined;
  /** `paused` holds deliveries back until the endpoint is `live`. `live` also enables a disabled endpoint. */
  state?: "live" | "paused" | undefined;
  /** New signing secret, in the form that `signature` needs. For 24 hours, messages are also signed with the old one. */
  secret?: string | undefined;
}

/** Signature of the messages; null for `standard`. */
export interface RelaySignature {
  /** `standard` and `ed25519` sign by Standard Webhooks, with a shared secret or a private key. The others sign as the receiver knows it from another sender, with the text of `secret` as the key. */
  scheme: "standard" | "hmac-sha256-hex" | "hmac-sha256-base64" | "stripe" | "ed25519";
  /** Header of the signature. Required for `hmac-*` and `stripe`. */
  header?: string | undefined;
  /** Text before the signature. Only for `hmac-*`. */
  prefix?: string | undefined;
  /** Header of the time in epoch seconds. With it, `<time>.<body>` is signed in place of the body. Only for `hmac-*`. */
  timestamp_header?: string | undefined;
  /** Secret that signs for the grace time after a rotation. Default: `new`. Only for `hmac-*`, whose receivers read one signature. */
  grace?: "new" | "old" | undefined;
}

/** The response of `PATCH /v1/relay/endpoints/{endpoint_id}`. */
export interface RelayEndpointItem extends PortalEndpoint {
  /** Optional name, unique within the project. */
  name: string | null;
  /** Id of your customer to whom the endpoint belongs: it receives only messages with this `owner_id`. It cannot be changed. */
  owner_id: string | null;
  metadata: Record<string, string>;
  /** The message goes to endpoints that share a channel with it, or have none. */
  channels: string[];
  filter: Record<string, unknown> | null;
  /** Format of the body: an object with `type`, `timestamp` and `data` (`envelope`), or the payload alone (`raw`). */
  format: "envelope" | "raw";
  /** Delay before each retry, such as `5m`: at most `24h` each and `7d` in total; `[]` for no retries. Default: `1s`, `5s`, `25s`; to endpoints, the Standard Webhooks schedule. */
  retry_schedule: string[];
  /** Timeout of an attempt, in milliseconds. Default: 15000. */
  timeout_ms: number;
  /** Maximum attempts per second; further deliveries wait. Null (default) for no limit. */
  max_per_second: number | null;
  /** Maximum concurrent attempts. Default: 16; with 1 the endpoint receives its deliveries in order. */
  max_concurrency: number;
  /** Time after its first attempt for which an unfinished delivery holds the others of its order key, in milliseconds. Default: 3600000. */
  order_wait_ms: number;
  /** Hours of continuous failure after which the endpoint is disabled; 0 for never. Default: 120. */
  disable_after_hours: number;
  /** Whether the account receives an e-mail when the endpoint is disabled. Default: true. */
  notify_email: boolean;
  /** Whether the log of attempts stores responses. Default: true. */
  keep_responses: boolean;
  /** Headers of every request, with `[secret]` in place of values that may be secret. */
  headers: Record<string, string>;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
  /** Salted digests of the secrets, by field. Only keys with `:read` and `:write` of the area receive them. */
  secret_digest?: Record<string, string>;
}

/** The body of `POST /v1/relay/endpoints`. */
export interface RelayEndpointBody {
  /** URL that receives the messages. A change also applies to pending deliveries. */
  url: string;
  /** Types of messages that the endpoint receives. `a.*` matches every type that starts with `a.`. Empty: all types except `ninefold.*`. */
  event_types?: readonly string[] | undefined;
  /** The message goes to endpoints that share a channel with it, or have none. */
  channels?: readonly string[] | undefined;
  filter?: object | null | undefined;
  /** Description for people. */
  description?: string | null | undefined;
  /** Format of the body: an object with `type`, `timestamp` and `data` (`envelope`), or the payload alone (`raw`). */
  format?: "envelope" | "raw" | undefined;
  template?: object | readonly unknown[] | null | undefined;
  signature?: RelaySignature | null | undefined;
  /** Delay before each retry, such as `5m`: at most `24h` each and `7d` in total; `[]` for no retries. Default: `1s`, `5s`, `25s`; to endpoints, the Standard Webhooks schedule. */
  retry_schedule?: readonly (string | number)[] | undefined;
  /** Timeout of an attempt, in milliseconds. Default: 15000. */
  timeout_ms?: number | string | undefined;
  /** Maximum attempts per second; further deliveries wait. Null (default) for no limit. */
  max_per_second?: number | null | undefined;
  /** Maximum concurrent attempts. Default: 16; with 1 the endpoint receives its deliveries in order. */
  max_concurrency?: number | undefined;
  /** JSON pointer to the text or number in the payload that orders messages: those with the same value are sent one after another. `order_key` of a message wins. */
  order_by?: string | null | undefined;
  /** Time after its first attempt for which an unfinished delivery holds the others of its order key, in milliseconds. Default: 3600000. */
  order_wait_ms?: number | string | undefined;
  /** Hours of continuous failure after which the endpoint is disabled; 0 for never. Default: 120. */
  disable_after_hours?: number | string | undefined;
  /** Whether the account receives an e-mail when the endpoint is disabled. Default: true. */
  notify_email?: boolean | undefined;
  /** Whether the log of attempts stores responses. Default: true. */
  keep_responses?: boolean | undefined;
  /** Optional name, unique within the project. */
  name?: string | null | undefined;
  /** Id of your customer to whom the endpoint belongs: it receives only messages with this `owner_id`. It cannot be changed. */
  owner_id?: string | null | undefined;
  /** Your own data: strings by name, at most 16384 characters as JSON. */
  metadata?: Record<string, string> | null | undefined;
  /** Request headers: at most 50, each at most 4096 printable ASCII characters; stored encrypted. `X-Svc-*`, `X-Ninefold-Hops`, `webhook-*`, `Host`, `Content-Length` and headers of the connection are ignored, and named in `warnings`. */
  headers?: Record<string, string> | undefined;
  /** `paused` holds deliveries back until the endpoint is `live`. `live` also enables a disabled endpoint. */
  state?: "live" | "paused" | undefined;
  /** Secret to use: `whsec_` and the base64 of 24 to 64 bytes; with a `signature` of `hmac-*` or `stripe`, 8 to 256 printable characters; with `ed25519`, `whsk_` and the base64 of 32 bytes. Default: a generated one. */
  secret?: string | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
}

/** The response of `POST /v1/relay/endpoints`. */
export interface RelayEndpointCreated extends RelayEndpointItem {
  /** Signing secret; omitted with a `signature` of `ed25519`, whose private key is never returned. */
  secret?: string;
}

/** The response of `GET /v1/relay/endpoints`. */
export interface RelayEndpointPage {
  endpoints: RelayEndpointItem[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The body of `POST /v1/relay/endpoints/{endpoint_id}/preview`. */
export interface RelayPreviewBody {
  /** Type of the event: letters, digits, `_`, `.` and `-`; must not start with `ninefold.`. */
  event_type?: string | undefined;
  /** Payload of the previewed message. Requires `event_type`. */
  payload?: object | undefined;
  /** Message to preview, in place of `event_type` and `payload`. */
  message_id?: string | undefined;
  /** Template to try; null for `format`. Default: that of the endpoint. */
  template?: object | readonly unknown[] | null | undefined;
}

/** The response of `POST /v1/relay/endpoints/{endpoint_id}/preview`. */
export interface RelayPreview {
  /** Body that the endpoint would receive. */
  body: string;
}

/** The response of `GET /v1/relay/endpoints/{endpoint_id}`. */
export interface RelayEndpoint extends RelayEndpointItem {
  /** Number of deliveries, each counted up to 10,000. */
  counts: { waiting: number; delivered_24h: number; failed_24h: number };
  /** `resend_id` of the recovery that sends the endpoint what it missed, while it is running. */
  recovery_id?: string;
}

/** The body of `POST /v1/relay/endpoints/{endpoint_id}/recover`. */
export interface RelayRecoverBody {
  /** Earliest time at which the messages were accepted, in epoch milliseconds. Messages of more than 7 days ago are not sent: whether they were delivered is not stored any more. */
  since: number;
  /** Time before which the messages were accepted, in epoch milliseconds. Default: now. */
  until?: number | undefined;
  /** Maximum number sent per second. */
  per_second?: number | undefined;
  /** If true, returns only the number of matches. */
  dry_run?: boolean | undefined;
}

/** The response of `POST /v1/relay/endpoints/{endpoint_id}/recover`. */
export interface RelayResendMatched {
  /** Number of deliveries that match, at most 10,000. */
  matched: number;
  /** Present when more deliveries match. */
  more?: true;
}

/** The response of `POST /v1/relay/endpoints/{endpoint_id}/recover`. */
export interface RelayResendStarted {
  resend_id: string;
  /** Number of deliveries that match, at most 10,000. */
  matched: number;
  /** Present when more deliveries match. */
  more?: true;
}

/** The body of `POST /v1/relay/endpoints/{endpoint_id}/secret/rotate`. */
export interface RelayEndpointSecretRotateBody {
  /** Time for which deliveries are also signed with the old secret, in hours. */
  grace_hours?: number | string | undefined;
  /** Secret to use: `whsec_` and the base64 of 24 to 64 bytes; with a `signature` of `hmac-*` or `stripe`, 8 to 256 printable characters; with `ed25519`, `whsk_` and the base64 of 32 bytes. Default: a generated one. */
  secret?: string | undefined;
}

/** The response of `POST /v1/relay/endpoints/{endpoint_id}/secret/rotate`. */
export interface RelayEndpointSecretRotated {
  /** Signing secret; omitted with a `signature` of `ed25519`, whose private key is never returned. */
  secret?: string;
  /** Public key that verifies the messages, with a `signature` of `ed25519`. */
  public_key: string | null;
  /** Time when the previous secret expires, in epoch milliseconds. */
  previous_expires_at: number;
}

/** The body of `POST /v1/relay/endpoints/{endpoint_id}/test`. */
export interface RelayEndpointTestBody {
  /** Type of the event: letters, digits, `_`, `.` and `-`; must not start with `ninefold.`. */
  event_type?: string | undefined;
  payload?: object | undefined;
}

/** The response of `POST /v1/relay/endpoints/{endpoint_id}/test`. */
export type RelayEndpointTested = { message_id: string; relay_id: string };

/** The body of `POST /v1/relay/event-types/import`. */
export interface RelayEventTypesImportBody {
  /** OpenAPI document (3.1) whose `webhooks` are imported. */
  openapi: object;
  /** Whether to return what would happen, and change nothing. Default: false. */
  dry_run?: boolean | undefined;
}

/** The response of `POST /v1/relay/event-types/import`. */
export interface RelayEventTypesImported {
  /** Names of the types that were created. */
  created: string[];
  /** Names of the types that were changed. */
  updated: string[];
  /** Names of the types that were the same. */
  unchanged: string[];
  /** Webhooks that were not imported, and why. */
  skipped: { name: string; reason: string }[];
}

/** The response of `GET /v1/relay/event-types`. */
export interface RelayEventTypePage {
  event_types: RelayEventType[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/relay/event-types`, `event_types`, `[]`. */
export interface RelayEventType extends PortalEventType {
  /** Whether messages that do not fit the schema are rejected; otherwise they are reported. Default: false. */
  enforce: boolean;
  /** Whether the type is archived: its messages are not checked. */
  archived: boolean;
  /** Number of messages in the last 24 hours that did not fit the schema and were sent, by full hours. */
  invalid_24h: number;
  /** Time of creation, in epoch milliseconds. */
  created_at: number;
  /** Time of the last update, in epoch milliseconds. */
  updated_at: number;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
}

/** The body of `PUT /v1/relay/event-types/{name}`. */
export interface RelayEventTypeBody {
  /** Description for your customers; null for none. */
  description?: string | null | undefined;
  /** JSON Schema (2020-12) of the payloads; null for none. `format` is a note; `pattern`, `patternProperties`, `$dynamicRef`, `$id` and references to other documents are rejected. */
  schema?: object | null | undefined;
  /** Payload for documentation and test events; null for none. */
  example?: object | null | undefined;
  /** Whether messages that do not fit the schema are rejected; otherwise they are reported. Default: false. */
  enforce?: boolean | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
}

/** The response of `GET /v1/relay`. */
export interface RelayPage {
  deliveries: RelayItem[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/relay`, `deliveries`, `[]`. */
export interface RelayItem {
  /** ID of the delivery, also sent as `X-Svc-Delivery-Id` and `webhook-id`. */
  relay_id: string;
  /** Origin: a request or schedule, a monitor (`pulse`), a message or an inbound event to an endpoint, or the outcome of a delivery (`callback`). */
  kind: "scheduled" | "pulse" | "endpoint" | "callback";
  /** Type of the event; null for scheduled deliveries. */
  event: string | null;
  /** Monitor that sent the notification; null for others. */
  monitor_id: string | null;
  /** Schedule that created the delivery; null for others. */
  schedule_id: string | null;
  /** Endpoint that receives a message or an inbound event; null for others. */
  endpoint_id: string | null;
  /** Message that is delivered; null for others. */
  message_id: string | null;
  /** Bucket of the inbound event that is delivered; null for others. */
  bucket_id: string | null;
  /** Inbound event that is delivered; null for others. */
  event_id: string | null;
  /** Delivery whose outcome a callback contains; null for others. */
  callback_of: string | null;
  /** Earlier delivery with the same order key that must be finished first; null if the delivery waits for none. */
  waiting_for: string | null;
  /** URL of the request; of a callback, the origin and `/[secret]` if the rest may be a secret. */
  target_url: string;
  method: string;
  status: "scheduled" | "delivering" | "delivered" | "failed" | "cancelled";
  /** Number of finished attempts. */
  attempts: number;
  /** HTTP status of the last response; null without a response. */
  response_status: number | null;
  /** Error of the last attempt. */
  error: string | null;
  /** Time of the first attempt, in epoch milliseconds. */
  scheduled_for: number;
  /** Time of the next attempt, in epoch milliseconds; null when the delivery is finished, during an attempt, and when it is not known. In the past while the delivery waits for its endpoint, which is paused or failing. */
  next_attempt_at: number | null;
  /** Time when the delivery was finished, in epoch milliseconds; null before. */
  finished_at: number | null;
  /** Time of creation, in epoch milliseconds. */
  created_at: number;
}

/** The body of `POST /v1/relay/messages/batch`. */
export type RelayMessagesBody = { messages: readonly RelayMessageBody[] };

/** The body of `POST /v1/relay/messages/batch`, `messages`, `[]`. */
export interface RelayMessageBody {
  /** Type of the event: letters, digits, `_`, `.` and `-`; must not start with `ninefold.`. */
  event_type: string;
  payload: object;
  /** Id of the customer to whose endpoints the message goes. Without it, the message goes to endpoints without an owner. */
  owner_id?: string | undefined;
  /** The message goes to endpoints that share a channel with it, or have none. */
  channels?: readonly string[] | undefined;
  /** ID of the message, chosen by you and sent as `webhook-id`. Sending the same ID again creates nothing. */
  message_id?: string | undefined;
  /** Key of the order: an endpoint receives messages with the same key one after another, as they were accepted. */
  order_key?: string | undefined;
  /** Delay before the first attempt, from `0s` (immediately) to `30d`. Required unless `at` is given. */
  delay?: string | number | undefined;
  /** Time of the first attempt, in epoch milliseconds, at most 30 days ahead; a past time means now. Replaces `delay`. */
  at?: number | undefined;
  /** Key that creates only one delivery: for `deduplicate_hours`, further requests with it return the first delivery, free of charge. */
  deduplication_id?: string | undefined;
}

/** The response of `POST /v1/relay/messages/batch`. */
export interface RelayMessagesSent {
  messages: {
    /** ID of the message, also sent as `webhook-id`. */
    message_id: string;
    /** One delivery for each endpoint that receives the message. */
    deliveries: { relay_id: string; endpoint_id: string }[];
    /** Warning about a payload that receivers may reject because of its size. */
    warning?: string;
    /** What of the payload does not fit the schema of its event type, at most 5 errors; omitted for nothing. */
    schema_errors?: {
      /** Place in the message. */
      field: string;
      /** What is wrong there. */
      message: string;
    }[];
    /** Present when the message was sent before; this request sent nothing. */
    deduplicated?: true;
  }[];
}

/** The response of `GET /v1/relay/messages`. */
export interface RelayMessagePage {
  messages: RelayMessageItem[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/relay/messages`, `messages`, `[]`. */
export interface RelayMessageItem {
  /** ID of the message, also sent as `webhook-id`. */
  message_id: string;
  /** Type of the event: letters, digits, `_`, `.` and `-`; must not start with `ninefold.`. */
  event_type: string;
  /** Customer to whose endpoints the message goes; null for none. */
  owner_id: string | null;
  /** The message goes to endpoints that share a channel with it, or have none. */
  channels: string[];
  /** Key of the order that the message was sent with; null for none. */
  order_key: string | null;
  /** Time of the first attempts, in epoch milliseconds. */
  scheduled_for: number;
  /** Time of creation, in epoch milliseconds. */
  created_at: number;
}

/** The response of `GET /v1/relay/messages/{message_id}`. */
export interface RelayMessage extends RelayMessageItem {
  /** Payload of the message; null when its retention is over. */
  payload: Record<string, unknown> | null;
  /** What of the payload does not fit the schema of its event type, at most 5 errors; omitted for nothing. */
  schema_errors?: {
    /** Place in the message. */
    field: string;
    /** What is wrong there. */
    message: string;
  }[];
  deliveries: {
    /** ID of the delivery, also sent as `X-Svc-Delivery-Id` and `webhook-id`. */
    relay_id: string;
    endpoint_id: string;
    status: "scheduled" | "delivering" | "delivered" | "failed" | "cancelled";
    /** Number of finished attempts. */
    attempts: number;
    /** HTTP status of the last response; null without a response. */
    response_status: number | null;
    /** Error of the last attempt. */
    error: string | null;
    /** Time when the delivery was finished, in epoch milliseconds; null before. */
    finished_at: number | null;
  }[];
}

/** The body of `POST /v1/relay/messages/{message_id}/resend`. */
export interface RelayMessageResendBody {
  /** Endpoint to send to, whether its delivery failed or not, or it has none. Default: all endpoints where it failed. */
  endpoint_id?: string | undefined;
}

/** The response of `POST /v1/relay/messages/{message_id}/resend`. */
export interface RelayMessageResent {
  /** Number of deliveries resent. */
  resent: number;
}

/** The response of `POST /v1/relay/messages`. */
export interface RelayMessageDeduplicated {
  /** ID of the message, also sent as `webhook-id`. */
  message_id: string;
  /** One delivery for each endpoint that receives the message. */
  deliveries: { relay_id: string; endpoint_id: string }[];
  /** Warning about a payload that receivers may reject because of its size. */
  warning?: string;
  /** What of the payload does not fit the schema of its event type, at most 5 errors; omitted for nothing. */
  schema_errors?: {
    /** Place in the message. */
    field: string;
    /** What is wrong there. */
    message: string;
  }[];
  deduplicated: true;
}

/** The response of `POST /v1/relay/messages`. */
export interface RelayMessageSent {
  /** ID of the message, also sent as `webhook-id`. */
  message_id: string;
  /** One delivery for each endpoint that receives the message. */
  deliveries: { relay_id: string; endpoint_id: string }[];
  /** Warning about a payload that receivers may reject because of its size. */
  warning?: string;
  /** What of the payload does not fit the schema of its event type, at most 5 errors; omitted for nothing. */
  schema_errors?: {
    /** Place in the message. */
    field: string;
    /** What is wrong there. */
    message: string;
  }[];
}

/** The body of `POST /v1/relay/portal`. */
export interface PortalLinkBody {
  /** Id of the customer who manages its endpoints with the link. */
  owner_id: string;
  /** Lifetime of the link, from `1m` to `7d`. Default: `24h`; at most that of your key. */
  expires_in?: string | number | undefined;
  /** Event types that the page offers to choose from. Default: the customer enters them. */
  event_types?: readonly string[] | undefined;
}

/** The response of `POST /v1/relay/portal`. */
export interface PortalLinkCreated {
  /** Address of the page, with the token of the link in its fragment. */
  url: string;
  /** Time at which the link expires, in epoch milliseconds. */
  expires_at: number;
}

/** The response of `GET /v1/relay/portal/deliveries`. */
export interface PortalDeliveryPage {
  deliveries: PortalDeliveryItem[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/relay/portal/deliveries`, `deliveries`, `[]`. */
export interface PortalDeliveryItem {
  /** ID of the delivery, also sent as `X-Svc-Delivery-Id` and `webhook-id`. */
  relay_id: string;
  endpoint_id: string;
  /** ID of the message, also sent as `webhook-id`. */
  message_id: string;
  /** Type of the event. */
  event_type: string;
  /** URL of the request; of a callback, the origin and `/[secret]` if the rest may be a secret. */
  url: string;
  status: "scheduled" | "delivering" | "delivered" | "failed" | "cancelled";
  /** Number of finished attempts. */
  attempts: number;
  /** HTTP status of the last response; null without a response. */
  response_status: number | null;
  /** Error of the last attempt. */
  error: string | null;
  /** Time of the first attempt, in epoch milliseconds. */
  scheduled_for: number;
  /** Time of the next attempt, in epoch milliseconds; null when the delivery is finished, during an attempt, and when it is not known. In the past while the delivery waits for its endpoint, which is paused or failing. */
  next_attempt_at: number | null;
  /** Time when the delivery was finished, in epoch milliseconds; null before. */
  finished_at: number | null;
  /** Time of creation, in epoch milliseconds. */
  created_at: number;
}

/** The response of `GET /v1/relay/portal/deliveries/{relay_id}`. */
export interface PortalDelivery extends PortalDeliveryItem {
  /** Payload of the message; null when its retention is over. */
  payload: Record<string, unknown> | null;
  attempt_log: RelayAttempt[];
}

/** The response of `GET /v1/relay/portal/deliveries/{relay_id}`, `attempt_log`, `[]`. */
export interface RelayAttempt {
  /** Number of the attempt, from 1. */
  attempt: number;
  /** Start of the attempt, in epoch milliseconds. */
  started_at: number;
  /** Duration of the attempt, in milliseconds. */
  duration_ms: number;
  /** HTTP status of the response; null without a response. */
  response_status: number | null;
  /** Error of the attempt; null on success. */
  error: string | null;
  /** Headers of the request, with `[secret]` in place of values that may be secret. */
  request_headers: Record<string, string> | null;
  /** Headers of the response, at most 4 KiB; null without a response. */
  response_headers: Record<string, string> | null;
  /** First 4 KiB of the response's body. */
  response_body: string | null;
  /** First 4 KiB of the response's body as base64, when it is not UTF-8. Replaces `response_body`. */
  response_body_base64?: string;
  /** IP address of the server that responded. */
  remote_address: string | null;
}

/** The response of `POST /v1/relay/portal/deliveries/{relay_id}/resend`. */
export type RelayResent = { relay_id: string; status: "scheduled" };

/** The body of `PATCH /v1/relay/portal/endpoints/{endpoint_id}`. */
export interface PortalEndpointPatch {
  /** URL that receives the messages. A change also applies to pending deliveries. */
  url?: string | undefined;
  /** Description for people. */
  description?: string | null | undefined;
  /** Types of messages that the endpoint receives. `a.*` matches every type that starts with `a.`. Empty: all types except `ninefold.*`. */
  event_types?: readonly string[] | undefined;
  /** `paused` holds deliveries back until the endpoint is `live`. `live` also enables a disabled endpoint. */
  state?: "live" | "paused" | undefined;
}

/** The response of `PATCH /v1/relay/portal/endpoints/{endpoint_id}`. */
export interface PortalEndpoint {
  endpoint_id: string;
  /** URL that receives the messages. A change also applies to pending deliveries. */
  url: string;
  /** Description for people. */
  description: string | null;
  /** Types of messages that the endpoint receives. `a.*` matches every type that starts with `a.`. Empty: all types except `ninefold.*`. */
  event_types: string[];
  state: "live" | "paused" | "disabled";
  /** JSON pointer to the text or number in the payload that orders messages: those with the same value are sent one after another. `order_key` of a message wins. */
  order_by: string | null;
  template: Record<string, unknown> | unknown[] | null;
  signature: RelaySignature | null;
  /** Public key that verifies the messages, with a `signature` of `ed25519`. */
  public_key: string | null;
  health: {
    /** State of the circuit breaker. While it is open, only single probes are sent. */
    breaker: "closed" | "open";
    /** Failed attempts since the last success. */
    consecutive_failures: number;
    /** Time of the first of these failures, in epoch milliseconds. */
    failing_since: number | null;
    /** Time of the next probe while the breaker is open, in epoch milliseconds. */
    next_probe_at: number | null;
    /** Reason why the endpoint was disabled. */
    disabled_reason: string | null;
  };
  /** Time of creation, in epoch milliseconds. */
  created_at: number;
  /** Time of the last update, in epoch milliseconds. */
  updated_at: number;
}

/** The body of `POST /v1/relay/portal/endpoints`. */
export interface PortalEndpointBody {
  /** URL that receives the messages. A change also applies to pending deliveries. */
  url: string;
  /** Description for people. */
  description?: string | null | undefined;
  /** Types of messages that the endpoint receives. `a.*` matches every type that starts with `a.`. Empty: all types except `ninefold.*`. */
  event_types?: readonly string[] | undefined;
  /** `paused` holds deliveries back until the endpoint is `live`. `live` also enables a disabled endpoint. */
  state?: "live" | "paused" | undefined;
}

/** The response of `POST /v1/relay/portal/endpoints`. */
export interface PortalEndpointCreated extends PortalEndpoint {
  /** Signing secret; omitted with a `signature` of `ed25519`, whose private key is never returned. */
  secret?: string;
}

/** The response of `GET /v1/relay/portal/endpoints`. */
export interface PortalEndpointPage {
  endpoints: PortalEndpoint[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/relay/portal/endpoints/{endpoint_id}`. */
export interface PortalEndpointRead extends PortalEndpoint {
  /** Number of deliveries, each counted up to 10,000. */
  counts: { waiting: number; delivered_24h: number; failed_24h: number };
  /** `resend_id` of the recovery that the customer started for this endpoint, while it is running. */
  recovery_id?: string;
}

/** The body of `POST /v1/relay/portal/endpoints/{endpoint_id}/recover`. */
export interface PortalRecoverBody {
  /** Earliest time at which the messages were accepted, in epoch milliseconds. Messages of more than 7 days ago are not sent: whether they were delivered is not stored any more. */
  since: number;
  /** Time before which the messages were accepted, in epoch milliseconds. Default: now. */
  until?: number | undefined;
  /** Maximum number sent per second. */
  per_second?: number | undefined;
  /** If true, returns only the number of matches. */
  dry_run?: boolean | undefined;
}

/** The response of `POST /v1/relay/portal/endpoints/{endpoint_id}/secret`. */
export interface RelayEndpointSecret {
  /** Signing secret; omitted with a `signature` of `ed25519`, whose private key is never returned. */
  secret?: string;
  /** Public key that verifies the messages, with a `signature` of `ed25519`. */
  public_key: string | null;
  /** Time of creation, in epoch milliseconds. */
  created_at: number;
  /** Older secrets that deliveries are also signed with, newest first. */
  previous: {
    /** Time when the secret expires, in epoch milliseconds. */
    expires_at: number;
  }[];
}

/** The body of `POST /v1/relay/portal/endpoints/{endpoint_id}/secret/rotate`. */
export interface PortalRotateBody {
  /** Time for which deliveries are also signed with the old secret, in hours. */
  grace_hours?: number | string | undefined;
  /** Secret to use: `whsec_` and the base64 of 24 to 64 bytes; with a `signature` of `hmac-*` or `stripe`, 8 to 256 printable characters; with `ed25519`, `whsk_` and the base64 of 32 bytes. Default: a generated one. */
  secret?: string | undefined;
}

/** The body of `POST /v1/relay/portal/endpoints/{endpoint_id}/test`. */
export interface PortalTestBody {
  /** Type of the event: letters, digits, `_`, `.` and `-`; must not start with `ninefold.`. */
  event_type?: string | undefined;
}

/** The response of `GET /v1/relay/portal/event-types`. */
export interface PortalEventTypePage {
  event_types: PortalEventType[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/relay/portal/event-types`, `event_types`, `[]`. */
export interface PortalEventType {
  /** Name of the type: that of its messages. */
  name: string;
  /** Description for your customers; null for none. */
  description: string | null;
  /** JSON Schema (2020-12) of the payloads; null for none. `format` is a note; `pattern`, `patternProperties`, `$dynamicRef`, `$id` and references to other documents are rejected. */
  schema: Record<string, unknown> | null;
  /** Payload for documentation and test events; null for none. */
  example: Record<string, unknown> | null;
}

/** The response of `GET /v1/relay/portal`. */
export interface PortalLink {
  owner_id: string;
  /** Time at which the link expires, in epoch milliseconds. */
  expires_at: number;
  /** Event types that the page offers; empty if the customer enters them. */
  event_types: string[];
  /** Maximum number of endpoints. */
  endpoints_max: number;
}

/** The response of `GET /v1/relay/portal/resends/{resend_id}`. */
export interface PortalResend {
  resend_id: string;
  status: "running" | "done" | "cancelled";
  /** Number of deliveries that match, at most 10,000. */
  matched: number;
  /** Present when more deliveries match. */
  more?: true;
  /** Number of deliveries resent. */
  resent: number;
  /** Number of matches that were not sent, once the resend is finished: another request had sent them, their payload is deleted, or the resend was stopped. */
  skipped: number;
  /** Reason why the resend stopped early. */
  error: string | null;
  /** Time of creation, in epoch milliseconds. */
  created_at: number;
  /** Time when the resend was finished, in epoch milliseconds; null before. */
  finished_at: number | null;
}

/** The body of `POST /v1/relay/portal/revoke`. */
export type PortalLinksRevokeBody = { owner_id: string };

/** The response of `POST /v1/relay/portal/revoke`. */
export interface PortalLinksRevoked {
  /** Number of links that this request revoked. */
  revoked: number;
}

/** The response of `GET /v1/relay/{relay_id}`. */
export interface Relay extends RelayItem {
  /** Delay before each retry; null for the default. */
  retry_schedule: string[] | null;
  /** Timeout of an attempt, in milliseconds; null for the default. */
  timeout_ms: number | null;
  /** URL that receives the outcome: its origin and `/[secret]` if its path or query may contain a secret; null for none. */
  callback_url: string | null;
  /** URL that receives the outcome of a failed delivery, likewise; null for none. */
  failure_callback_url: string | null;
  attempt_log: RelayAttempt[];
}

/** The response of `GET /v1/relay/resends/{resend_id}`. */
export interface RelayResend {
  resend_id: string;
  /** Present when it sends an endpoint the messages that it missed. */
  kind?: "recover";
  status: "running" | "done" | "cancelled";
  /** Number of deliveries that match, at most 10,000. */
  matched: number;
  /** Present when more deliveries match. */
  more?: true;
  /** Number of deliveries resent. */
  resent: number;
  /** Number of matches that were not sent, once the resend is finished: another request had sent them, their payload is deleted, or the resend was stopped. */
  skipped: number;
  /** Reason why the resend stopped early. */
  error: string | null;
  /** Time of creation, in epoch milliseconds. */
  created_at: number;
  /** Time when the resend was finished, in epoch milliseconds; null before. */
  finished_at: number | null;
}

/** The body of `POST /v1/relay/resend`. */
export interface RelayResendBody {
  status?: "failed" | undefined;
  /** IDs of the deliveries to resend. Replaces the other filters. */
  relay_ids?: readonly string[] | undefined;
  /** Only deliveries to this endpoint. */
  endpoint_id?: string | undefined;
  /** Returns only events of this type, such as `monitor.down`. */
  event_type?: string | undefined;
  /** Start of the creation time, inclusive, in epoch milliseconds. */
  since?: number | undefined;
  /** End of the creation time, exclusive, in epoch milliseconds. */
  until?: number | undefined;
  /** `pulse` includes only alerts: messages to notification channels, and alerts of meters. `deliveries` omits them. */
  filter?: "pulse" | "deliveries" | undefined;
  /** Only deliveries that failed for this reason. */
  error?: "timeout" | "network" | "http" | "blocked" | "disabled" | undefined;
  /** Only deliveries whose last response has this HTTP status, or a status of this class. */
  response_status?: string | undefined;
  /** Only deliveries to exactly this URL. */
  target_url?: string | undefined;
  /** Maximum number sent per second. */
  per_second?: number | undefined;
  /** If true, returns only the number of matches. */
  dry_run?: boolean | undefined;
}

/** The body of `POST /v1/relay`. */
export interface RelayBody {
  /** URL of the request: `http` or `https`, at most 2048 characters. */
  target_url: string;
  /** HTTP method of the request. */
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Delay before the first attempt, from `0s` (immediately) to `30d`. Required unless `at` is given. */
  delay?: string | number | undefined;
  /** Time of the first attempt, in epoch milliseconds, at most 30 days ahead; a past time means now. Replaces `delay`. */
  at?: number | undefined;
  /** JSON body of the request, `{}` by default. Not sent with GET. */
  payload?: object | undefined;
  /** Body as base64, at most 750000 bytes when decoded. Replaces `payload`; set `Content-Type` in `headers`. */
  body_base64?: string | undefined;
  /** Request headers: at most 50, each at most 4096 printable ASCII characters; stored encrypted. `X-Svc-*`, `X-Ninefold-Hops`, `webhook-*`, `Host`, `Content-Length` and headers of the connection are ignored, and named in `warnings`. */
  headers?: Record<string, string> | undefined;
  /** Delay before each retry, such as `5m`: at most `24h` each and `7d` in total; `[]` for no retries. Default: `1s`, `5s`, `25s`; to endpoints, the Standard Webhooks schedule. */
  retry_schedule?: readonly (string | number)[] | undefined;
  /** Timeout of an attempt, in milliseconds. Default: 15000. */
  timeout_ms?: number | string | undefined;
  /** Key that creates only one delivery: for `deduplicate_hours`, further requests with it return the first delivery, free of charge. */
  deduplication_id?: string | undefined;
  /** `content` creates only one delivery of the same method, `target_url` and body within `deduplicate_hours`. Replaces `deduplication_id`. */
  deduplication?: "content" | undefined;
  /** Hours for which `deduplication_id` or `deduplication` creates no second delivery. Default: 24. */
  deduplicate_hours?: number | string | undefined;
  /** URL that receives the outcome of the delivery, once it is delivered or has failed, as a signed message. */
  callback_url?: string | undefined;
  /** URL that receives the outcome of a failed delivery, in place of `callback_url`. */
  failure_callback_url?: string | undefined;
}

/** The response of `POST /v1/relay`. */
export interface RelayDeduplicated {
  relay_id: string;
  /** Time of the first attempt, in epoch milliseconds. */
  scheduled_for: number;
  status: "scheduled" | "delivering" | "delivered" | "failed" | "cancelled";
  deduplicated: true;
}

/** The response of `POST /v1/relay`. */
export interface RelayScheduled {
  relay_id: string;
  /** Time of the first attempt, in epoch milliseconds. */
  scheduled_for: number;
  status: "scheduled";
}

/** The body of `POST /v1/relay/schedules`. */
export interface ScheduleBody {
  /** Optional name, unique within the project. */
  name?: string | null | undefined;
  /** Cron expression: minute, hour, day of the month, month, day of the week; or `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`. Accepts names (`MON-FRI`), steps (`5/15`), `L` for the last day of the month and `MON#1` for the first Monday. */
  cron: string;
  /** IANA time zone of `cron`. Default: `UTC`. */
  time_zone?: string | undefined;
  /** URL that each run is sent to. Required unless `event_type` is given. */
  target_url?: string | undefined;
  /** HTTP method of each run. Default: `POST`. */
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | undefined;
  /** Type of the message that each run sends to all matching endpoints. Replaces `target_url`. */
  event_type?: string | undefined;
  /** JSON body of each run, `{}` by default. Not sent with GET. */
  payload?: object | undefined;
  /** Request headers, with the same reserved names as in `POST /v1/relay`. */
  headers?: Record<string, string> | undefined;
  /** `paused` stops the runs until the schedule is `live`. */
  state?: "live" | "paused" | undefined;
  /** Handling of times that passed more than a minute ago while the server was down: one run for all of them (`once`, default), or none (`skip`). */
  missed?: "once" | "skip" | undefined;
  /** `skip` omits a run while the previous one, including its retries, is not finished. Default: `allow`. */
  overlap?: "allow" | "skip" | undefined;
  /** Earliest time of a run, in epoch milliseconds. */
  starts_at?: number | null | undefined;
  /** Latest time of a run, in epoch milliseconds. */
  ends_at?: number | null | undefined;
  /** Delay before each retry of a run, as in `POST /v1/relay`; null for the default. */
  retry_schedule?: readonly (string | number)[] | null | undefined;
  /** URL that receives the outcome of each run with a `target_url`; null for none. */
  callback_url?: string | null | undefined;
  /** URL that receives the outcome of a failed run, in place of `callback_url`; null for none. */
  failure_callback_url?: string | null | undefined;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply" | undefined;
}

/** The response of `POST /v1/relay/schedules`. */
export interface Schedule extends ScheduleItem {
  /** JSON body of each run, `{}` by default. Not sent with GET. */
  payload: Record<string, unknown>;
  /** Times of the next 5 runs, in epoch milliseconds. */
  next_runs: number[];
}

/** The response of `GET /v1/relay/schedules`. */
export interface SchedulePage {
  schedules: ScheduleItem[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The response of `GET /v1/relay/schedules`, `schedules`, `[]`. */
export interface ScheduleItem {
  schedule_id: string;
  name: string | null;
  /** Cron expression: minute, hour, day of the month, month, day of the week; or `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`. Accepts names (`MON-FRI`), steps (`5/15`), `L` for the last day of the month and `MON#1` for the first Monday. */
  cron: string;
  /** IANA time zone of `cron`. Default: `UTC`. */
  time_zone: string;
  target_url: string | null;
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  event_type: string | null;
  /** Request headers, with `[secret]` in place of values that may be secret. */
  headers: Record<string, string>;
  state: "live" | "paused";
  missed: "once" | "skip";
  overlap: "allow" | "skip";
  /** Earliest time of a run, in epoch milliseconds. */
  starts_at: number | null;
  /** Latest time of a run, in epoch milliseconds. */
  ends_at: number | null;
  /** Delay before each retry; null for the default. */
  retry_schedule: string[] | null;
  /** URL that receives the outcome: its origin and `/[secret]` if its path or query may contain a secret; null for none. */
  callback_url: string | null;
  /** URL that receives the outcome of a failed delivery, likewise; null for none. */
  failure_callback_url: string | null;
  /** Time of the next run, in epoch milliseconds; null while paused, or after the last run. */
  next_run_at: number | null;
  /** Time of the last run, in epoch milliseconds. */
  last_run_at: number | null;
  /** Delivery of the last run. */
  last_relay_id: string | null;
  /** Message of the last run. */
  last_message_id: string | null;
  /** Number of runs. */
  runs: number;
  /** Number of times without a run: missed, without credits, while the previous run was not finished, or because the payload does not fit the enforced schema of its event type. */
  skipped: number;
  /** What of the payload did not fit the enforced schema of its event type, if that was why the last run was skipped. */
  last_error: string | null;
  /** Time of creation, in epoch milliseconds. */
  created_at: number;
  /** Time of the last update, in epoch milliseconds. */
  updated_at: number;
  /** `apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete. */
  managed_by?: "apply";
  /** Salted digests of the secrets, by field. Only keys with `:read` and `:write` of the area receive them. */
  secret_digest?: Record<string, string>;
}

/** The response of `POST /v1/relay/schedules/{schedule_id}/run`. */
export interface ScheduleRun {
  /** Delivery of the run, for a schedule with `target_url`. */
  relay_id?: string;
  /** Message of the run, for a schedule with `event_type`. */
  message_id?: string;
}

/** The body of `PATCH /v1/relay/schedules/{schedule_id}`. */
export interface ScheduleUpdateBody {
  /** Optional name, unique within the project. */
  name?: string | null | undefined;
  /** Cron expression: minute, hour, day of the month, month, day of the week; or `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`. Accepts names (`MON-FRI`), steps (`5/15`), `L` for the last day of the month and `MON#1` for the first Monday. */
  cron?: string | undefined;
  /** IANA time zone of `cron`. Default: `UTC`. */
  time_zone?: string | undefined;
  /** URL that each run is sent to. Required unless `event_type` is given. */
  target_url?: string | undefined;
  /** HTTP method of each run. Default: `POST`. */
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | undefined;
  /** Type of the message that each run sends to all matching endpoints. Replaces `target_url`. */
  event_type?: string | undefined;
  /** JSON body of each run, `{}` by default. Not sent with GET. */
  payload?: object | undefined;
  /** Request headers, with the same reserved names as in `POST /v1/relay`. */
  headers?: Record<string, string> | undefined;
  /** `paused` stops the runs until the schedule is `live`. */
  state?: "live" | "paused" | undefined;
  /** Handling of times that passed more than a minute ago while the server was down: one run for all of them (`once`, default), or none (`skip`). */
  missed?: "once" | "skip" | undefined;
  /** `skip` omits a run while the previous one, including its retries, is not finished. Default: `allow`. */
  overlap?: "allow" | "skip" | undefined;
  /** Earliest time of a run, in epoch milliseconds. */
  starts_at?: number | null | undefined;
  /** Latest time of a run, in epoch milliseconds. */
  ends_at?: number | null | undefined;
  /** Delay before each retry of a run, as in `POST /v1/relay`; null for the default. */
  retry_schedule?: readonly (string | number)[] | null | undefined;
  /** URL that receives the outcome of each run with a `target_url`; null for none. */
  callback_url?: string | null | undefined;
  /** URL that receives the outcome of a failed run, in place of `callback_url`; null for none. */
  failure_callback_url?: string | null | undefined;
}

/** The response of `POST /v1/relay/secret`. */
export interface RelaySecret {
  secret: string;
  /** Time of creation, in epoch milliseconds. */
  created_at: number;
  /** Older secrets that deliveries are also signed with, newest first. */
  previous: {
    /** Time when the secret expires, in epoch milliseconds. */
    expires_at: number;
  }[];
}

/** The body of `POST /v1/relay/secret/rotate`. */
export interface RelaySecretRotateBody {
  /** Time for which deliveries are also signed with the old secret, in hours. */
  grace_hours?: number | string | undefined;
  /** Secret to use: `whsec_` and the base64 of 24 to 64 bytes. Default: a generated one. */
  secret?: string | undefined;
}

/** The response of `POST /v1/relay/secret/rotate`. */
export interface RelaySecretRotated {
  secret: string;
  /** Time when the previous secret expires, in epoch milliseconds. */
  previous_expires_at: number;
}

/** The response of `GET /v1/relay/stats`. */
export interface RelayStats {
  /** Number of matching deliveries of each status. */
  counts: { scheduled: number; delivering: number; delivered: number; failed: number; cancelled: number };
  /** Number of matching alerts; `counts` omits them with `filter=deliveries`. */
  alerts: number;
  /** Present when a status has older deliveries that were not counted. */
  more?: true;
  /** Time of creation of the oldest counted delivery, in epoch milliseconds; null without one. */
  oldest_at: number | null;
  /** Deliveries created in each of 48 equal intervals from `since` to `until`. Default: the last 7 days. */
  points: {
    /** Start of the interval, in epoch milliseconds. */
    at: number;
    delivered: number;
    failed: number;
  }[];
}

/** The body of `POST /v1/session`. */
export interface SessionBody {
  /** A key of this API. */
  key?: string | undefined;
  /** The token of a login link, which follows `#/setup/`. Alternative to `key`. */
  link?: string | undefined;
  /** The token of a login link that was sent by e-mail, which follows `#/login/`. Only in the browser that requested it. Alternative to `key`. */
  email_link?: string | undefined;
  /** Logs in the person whom the header of a trusted proxy names. Alternative to `key`. */
  proxy?: true | undefined;
}

/** The response of `POST /v1/session`. */
export interface Session {
  user_id: string;
  email: string;
  tier: "free" | "starter" | "pro" | "scale" | "unlimited";
  /** Whether the session can use the operator's endpoints. */
  operator: boolean;
  /** Id of the session's managed key. Null for a platform key. */
  key_id: string | null;
  key_name: string | null;
  scopes: string[];
  /** Id of the only project of the session's key. Null for a key of the account. */
  project_id: string | null;
  /** Time at which the session expires. It also expires after 24 hours without a request. */
  expires_at: string;
  /** Version of the server. */
  version: string;
  /** Number of the session. Only for a person. */
  session_id?: number;
  /** How the person logged in. */
  method?: "key" | "link" | "invitation" | "passkey" | "oidc" | "header" | "email";
  /** Time of the person's last login, including one that confirmed a session. */
  authenticated_at?: string;
  person?: SessionPerson;
  /** Other accounts that this login opens: see `POST /v1/session/account`. */
  accounts?: { user_id: string; email: string }[];
}

/** The response of `POST /v1/session`, `person`. */
export interface SessionPerson {
  person_id: string;
  email: string;
  name: string | null;
  /** Role for the account. Null if `projects` is a list. */
  role: "viewer" | "responder" | "editor" | "admin" | "owner" | null;
  /** `all`, or the projects in which the person has a role. */
  projects: "all" | { project_id: string; role: "viewer" | "responder" | "editor" | "admin" | "owner" }[];
}

/** The body of `POST /v1/session/email`. */
export interface EmailLinkBody {
  /** Address that the link is sent to. */
  email: string;
}

/** The response of `POST /v1/session/email`. */
export interface EmailLinkRequested {
  /** Time until which a link that was sent is valid. */
  expires_at: string;
}

/** The body of `POST /v1/session/invitation/accept`. */
export interface InvitationAcceptBody {
  /** Token of the invitation, which follows `#/invitation/`. */
  token: string;
  credential: RegistrationCredential;
  /** Name of the person. */
  name?: string | undefined;
}

/** The body of `POST /v1/session/invitation`. */
export interface InvitationBody {
  /** Token of the invitation, which follows `#/invitation/`. */
  token: string;
}

/** The response of `POST /v1/session/invitation`. */
export interface InvitationView {
  email: string;
  name: string | null;
  /** E-mail address of the account. */
  account: string;
  /** Role for the account. Null if `projects` is a list. */
  role: "viewer" | "responder" | "editor" | "admin" | "owner" | null;
  expires_at: string;
  /** Options of the passkey. Null at an address where passkeys do not work: see `passkeys_unavailable`. */
  options: Record<string, unknown> | null;
  /** Why passkeys do not work at this address. Null if they do. */
  passkeys_unavailable: string | null;
}

/** The body of `POST /v1/session/passkey`. */
export type PasskeyLoginBody = { credential: LoginCredential };

/** The credential, as `toJSON()` of the browser returns it. */
export interface LoginCredential {
  id: string;
  rawId: string;
  type: "public-key";
  clientExtensionResults?: object | undefined;
  authenticatorAttachment?: string | undefined;
  response: {
    clientDataJSON: string;
    authenticatorData: string;
    signature: string;
    userHandle?: string | null | undefined;
    [name: string]: unknown;
  };
  [name: string]: unknown;
}

/** The response of `GET /v1/session`. */
export type CurrentSession = { session: Session | null; login: LoginMethods };

/** The response of `GET /v1/session`, `login`. */
export interface LoginMethods {
  /** Ways to log in, in the order in which the login page offers them. */
  methods: {
    type: "passkey" | "oidc" | "header" | "email" | "key";
    /** Text of the button. */
    name?: string;
    /** Where the button leads, from the server's origin. */
    url?: string;
  }[];
}

/** The body of `POST /v1/session/account`. */
export interface SessionAccountBody {
  /** Account of `session.accounts`. */
  user_id: string;
}

/** The response of `DELETE /v1/sessions`. */
export interface SessionsEnded {
  /** Number of sessions that were ended. */
  ended: number;
}

/** The body of `POST /v1/signup`. */
export type SignupBody = { email: string; tier: "free" | "pro" };

/** The response of `POST /v1/signup`. */
export interface SignedUp {
  user_id: string;
  /** The account's key (tier free). With the tier pro it is sent by e-mail. */
  api_key?: string;
}

/** The response of `GET /status/{page}/groups/{group}`. */
export interface PublicGroup {
  /** Position of the group on the page, from 1; part of the path of its JSON and badge. */
  number: number;
  /** Heading of the group; empty for none. */
  name: string;
  /** Current status. */
  status: "up" | "degraded" | "down" | "maintenance" | "overdue" | "paused" | "unknown";
  /** Current status of the group's monitors as text. */
  sentence: string;
  /** Time of the latest check of the group's monitors; null before the first check. */
  checked_at: string | null;
  /** First day of `uptime_by_day`, a date in UTC. */
  first_day: string;
  monitors: PublicMonitor[];
}

/** The response of `GET /status/{page}/groups/{group}`, `monitors`, `[]`. */
export interface PublicMonitor {
  /** Position on the page, from 1; part of the path of its badges. */
  number: number;
  /** Name of the monitor on the page. */
  name: string;
  /** Current status. */
  status: "up" | "degraded" | "down" | "maintenance" | "overdue" | "paused" | "unknown";
  /** Percentage of successful checks in the last 90 days; null without checks. */
  uptime_90d: number | null;
  /** Monitored URL, if the page shows URLs. */
  url?: string;
  /** Latency of the latest check in milliseconds, if the page shows latencies. */
  latency_ms?: number;
  /** Percentage of successful checks for each of 90 days, starting with `first_day`; null for a day without checks. Null from the 251st monitor on. */
  uptime_by_day: (number | null)[] | null;
}

/** The response of `GET /status/{page}/groups/{group}/badge.json`. */
export interface BadgeData {
  schemaVersion: 1;
  label: string;
  message: string;
  color: string;
  /** True if the metric has no data. */
  isError?: true;
}

/** The body of `POST /v1/witness/accept-fork`. */
export interface ForkAcceptBody {
  /** Id of the chain. */
  chain_id: string;
}

/** The response of `POST /v1/witness/accept-fork`. */
export interface ForkAccepted {
  chain_id: string;
  /** Position of the receipt that declares the fork. */
  sequence_id: string;
}

/** The response of `GET /v1/witness/receipts/{sequence_id}/bundle`. */
export interface ReceiptBundle {
  type: "ninefold-bundle/v1";
  receipt: Receipt;
  inclusion: {
    /** Position in the tree, from 0. */
    leaf_index: number;
    /** Number of receipts in the tree. */
    tree_size: number;
    leaf_hash: string;
    /** Hashes of the proof (RFC 6962), base64. */
    hashes: string[];
  };
  /** Signed note with the checkpoint (c2sp.org/tlog-checkpoint). */
  checkpoint: string;
  public_key: PublicKey;
}

/** The response of `GET /v1/witness/receipts/{sequence_id}/bundle`, `receipt`. */
export interface Receipt {
  version: 1;
  /** Position in the chain, from 1. */
  sequence_id: string;
  content_hash: string;
  prev_hash: string;
  chain_hash: string;
  signature: string;
  /** Time when the receipt was created, in milliseconds since the epoch. */
  timestamp: number;
  public_key: PublicKey;
  /** Absent if only its hash was sent, or if it was deleted. */
  log?: Record<string, unknown>;
  /** Note that was sent with the hash. No hash covers it. */
  note?: string;
  /** Time when the text of the log was deleted. */
  redacted_at?: string;
  storage_status?: "delivered" | "buffered";
  storage_location?: string;
}

/** Ed25519 public key as a JSON Web Key (RFC 8037). */
export type PublicKey = { kty: "OKP"; crv: "Ed25519"; x: string };

/** The response of `GET /v1/witness/checkpoint`. */
export interface Checkpoint {
  origin: string;
  /** Number of receipts that it covers. */
  size: number;
  /** Root of the Merkle tree over these receipts. */
  root_hash: string;
  signed_at: string;
  /** Public key in the form that tools for signed notes read: `<origin>+<key id>+<key>`. */
  vkey: string;
  /** Witnesses that have confirmed that the chain only grew. */
  cosignatures: {
    /** Name of the witness. */
    name: string;
    signed_at: string;
  }[];
  /** Signed note with the checkpoint (c2sp.org/tlog-checkpoint). */
  note: string;
}

/** The response of `GET /v1/witness/config`. */
export interface ReceiptStorage {
  endpoint: string;
  bucket: string;
  region: string;
  prefix: string;
  /** Access key id, masked. */
  accessKeyId: string;
  /** Number of receipts pending delivery. */
  buffered: number;
  /** Error of the last delivery; null when no receipt is buffered. */
  last_error: string | null;
  /** Salted digests of the secrets, by field. Only keys with `:read` and `:write` of the area receive them. */
  secret_digest?: Record<string, string>;
}

/** The body of `POST /v1/witness/config`. */
export interface StorageBody {
  /** URL of the S3-compatible server. Objects are addressed path style. */
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** Folders before `witness/receipts/` in object names. Chains that share a bucket need different prefixes. */
  prefix?: string | undefined;
}

/** The response of `POST /v1/witness/config`. */
export type StorageConfigured = { success: true; configured: true };

/** The response of `GET /v1/witness/index`. */
export interface ReceiptIndex {
  /** JSON Pointers (RFC 6901) to the values of logs that are indexed from now on. */
  fields: string[];
  /** Days after which the texts of logs are deleted; 0: never. */
  retain_days: number;
}

/** The body of `PUT /v1/witness/index`. */
export interface ReceiptIndexBody {
  /** JSON Pointers (RFC 6901) to the values of logs that are indexed from now on. */
  fields?: readonly string[] | undefined;
  /** Days after which the texts of logs are deleted; 0: never. */
  retain_days?: number | string | undefined;
}

/** The body of `POST /v1/witness/sys/init`. */
export interface ChainInitBody {
  /** Name of the chain in its checkpoints, such as `example.com/audit`: a URL without scheme. `ninefold/<chain_id>` by default. It cannot be changed. */
  origin?: string | undefined;
}

/** The response of `POST /v1/witness/sys/init`. */
export type ChainExists = { success: false; chain_id: string };

/** The response of `POST /v1/witness/sys/init`. */
export type ChainCreated = { success: true; publicKey: PublicKey; createdAt: string; chain_id: string };

/** The body of `POST /v1/witness/log`. */
export interface LogBody {
  /** Entry to log. Send numbers that JSON parsers cannot represent exactly as strings. Required without `content_hash`. */
  log?: object | undefined;
  /** SHA-256 of what the receipt is for, instead of `log`. For a JSON log, hash the UTF-8 of `JSON.stringify(log)`. */
  content_hash?: string | undefined;
  /** Note on the `content_hash`, such as the name of a file. No hash covers it. */
  note?: string | undefined;
  /** Adds the member `$salt` with 22 random characters to the log, so that a deleted log cannot be guessed from its hash. */
  salt?: boolean | undefined;
}

/** The response of `GET /v1/witness/peer`. */
export interface PeerIdentity {
  /** Name of this server as a witness. */
  name: string;
  /** Verifier key of the witness: `<name>+<key id>+<key>`. */
  vkey: string;
}

/** The response of `GET /v1/witness/proofs/consistency`. */
export interface ConsistencyProof {
  /** Size of the older tree. */
  from: number;
  /** Size of the newer tree. */
  to: number;
  /** Hashes of the proof (RFC 6962), base64. */
  hashes: string[];
  /** Signed note with the checkpoint (c2sp.org/tlog-checkpoint). */
  checkpoint: string;
}

/** The response of `GET /v1/witness/proofs/inclusion`. */
export interface InclusionProof {
  /** Position in the tree, from 0. */
  leaf_index: number;
  /** Number of receipts in the tree. */
  tree_size: number;
  leaf_hash: string;
  /** Hashes of the proof (RFC 6962), base64. */
  hashes: string[];
  /** Signed note with the checkpoint (c2sp.org/tlog-checkpoint). */
  checkpoint: string;
}

/** The response of `GET /v1/witness/receipts`. */
export interface ReceiptPage {
  receipts: Receipt[];
  /** Pass it as `cursor` to get the next page. Absent on the last one. */
  cursor?: string;
}

/** The body of `POST /v1/witness/receipts/{sequence_id}/redact`. */
export interface RedactBody {
  /** Why the text is deleted. It is logged in the chain, so do not name a person. */
  reason: string;
}

/** The response of `POST /v1/witness/receipts/{sequence_id}/redact`. */
export interface ReceiptRedacted {
  receipt: Receipt;
  /** Position of the receipt that logs the redaction; null if the chain's signing key was lost in a restore. */
  declared_by: string | null;
}

/** The body of `PUT /v1/witness/tlog`. */
export interface TlogBody {
  /** Whether checkpoint, tiles and entries can be read without a key. */
  public: boolean;
}

/** The response of `PUT /v1/witness/tlog`. */
export interface Tlog {
  public: boolean;
  /** Path of the log: `<path>/checkpoint` and `<path>/tile/…` (c2sp.org/tlog-tiles). */
  path: string;
}

/** The body of `POST /v1/witness/verify`. */
export interface ReceiptVerifyBody {
  /** Receipt as the server returned it. */
  receipt: unknown;
  /** Log of a receipt without one, to compare it with the hash. */
  log?: unknown | undefined;
}

/** The response of `POST /v1/witness/verify`. */
export interface ReceiptVerdict {
  valid: boolean;
  checks: {
    signature_valid: boolean;
    /** Null if there is no log to compare with: neither in the receipt nor next to it. */
    content_hash_matches: boolean | null;
    chain_link_valid: boolean;
  };
  metadata: { sequence_id: string | null; timestamp: number | null; public_key: PublicKey | null };
  errors?: string[];
}

/** The response of `GET /v1/witness/witnesses`. */
export type WitnessList = { witnesses: Witness[] };

/** The response of `GET /v1/witness/witnesses`, `witnesses`, `[]`. */
export interface Witness {
  name: string;
  /** URL that `/add-checkpoint` is added to: the submission prefix of the witness. */
  url: string;
  /** Verifier key of the witness: `<name>+<key id>+<key>`. */
  vkey: string;
  /** Size of the last checkpoint of the present origin that it has cosigned; 0 if none. */
  cosigned_size: number;
  /** Time of its last cosignature. */
  cosigned_at: string | null;
  /** Error of the last submission; null after a cosignature. */
  last_error: string | null;
}

/** The body of `PUT /v1/witness/witnesses`. */
export interface WitnessesBody {
  /** At most 8; an empty list removes all. */
  witnesses: readonly {
    /** Name in lists and messages. Default: the name in the key. */
    name?: string | undefined;
    /** URL that `/add-checkpoint` is added to: the submission prefix of the witness. */
    url: string;
    /** Verifier key of the witness: `<name>+<key id>+<key>`. */
    vkey: string;
  }[];
}

/** Every code of the API's errors. */
export type ErrorCode =
  | "bucket_limit_exceeded"
  | "bucket_name_taken"
  | "bucket_paused"
  | "catch.bucket_not_found"
  | "catch.confirmation_failed"
  | "catch.event_not_found"
  | "catch.loop_detected"
  | "catch.provider_unsupported"
  | "catch.replay_failed"
  | "catch.signature_invalid"
  | "channel_limit_exceeded"
  | "conflict"
  | "deleted"
  | "disabled"
  | "endpoint_in_use"
  | "endpoint_limit_exceeded"
  | "endpoint_name_taken"
  | "event_type_limit_exceeded"
  | "expired"
  | "flag_not_found"
  | "forbidden"
  | "gate.evaluation_failed"
  | "gate.feature_not_found"
  | "gate.rule_invalid"
  | "incident_limit_exceeded"
  | "incident_update_limit_exceeded"
  | "insufficient_balance"
  | "insufficient_permission"
  | "insufficient_scope"
  | "internal_error"
  | "invalid_key"
  | "invalid_request"
  | "ip_not_allowed"
  | "key_limit_exceeded"
  | "login_required"
  | "maintenance_limit_exceeded"
  | "method_not_allowed"
  | "monitor_limit_exceeded"
  | "monitor_name_taken"
  | "monitor_slug_taken"
  | "no_meter"
  | "not_found"
  | "not_leader"
  | "notary.fork_detected"
  | "notary.inconsistent"
  | "own_proposal"
  | "page_limit_exceeded"
  | "page_slug_taken"
  | "people_limit_exceeded"
  | "ping_id_taken"
  | "probe_in_use"
  | "probe_limit_exceeded"
  | "probe_name_taken"
  | "probe_offline"
  | "probe_version_unsupported"
  | "project_limit_exceeded"
  | "proposal_limit_exceeded"
  | "rate_limit_exceeded"
  | "rate_limited"
  | "read_only"
  | "request_too_large"
  | "review_required"
  | "revoked"
  | "role_in_use"
  | "role_limit_exceeded"
  | "schedule_limit_exceeded"
  | "schedule_name_taken"
  | "service_unavailable"
  | "timeout"
  | "unauthorized"
  | "unconfirmed"
  | "usage_exceeded"
  | "validation_error";

/** Additional fields of errors with some codes. */
export interface KnownExtras {
  /** With `insufficient_balance`: the balance. */
  balance?: number;
  /** With `insufficient_balance` of a meter: the balance without held credits. */
  available?: number;
  /** With `insufficient_balance`: the account, for an account balance. */
  user_id?: string;
  /** With `insufficient_balance`: the meter, for a meter balance. */
  meter_id?: string;
  /** With `not_leader`: URL of the node that leads; null if none does, or it has none. */
  leader?: string | null;
  /** With `not_leader`: `none`, nothing was changed. With `unconfirmed`: `unknown`. */
  outcome?: "none" | "unknown";
  /** With `service_unavailable`: the request took effect, but its outcome could not be stored. */
  carried_out?: true;
  /** With `bucket_name_taken`: ID of the bucket that has the name. With `endpoint_in_use`: ID of a bucket that delivers to the endpoint. */
  bucket_id?: string;
  /** With `endpoint_name_taken`: ID of the endpoint that has the name. */
  endpoint_id?: string;
  /** OFREP: error code of the protocol. */
  errorCode?: "PARSE_ERROR" | "INVALID_CONTEXT" | "FLAG_NOT_FOUND" | "GENERAL";
  /** OFREP: same text as `error.message`. */
  errorDetails?: string;
  /** With `conflict` for a reset: credits in open holds. */
  held?: number;
  /** OFREP: key of the requested flag. */
  key?: string;
  /** With `login_required`: how the person can log in again: `passkey`, `oidc`. */
  methods?: string[];
  /** With `monitor_name_taken` and `monitor_slug_taken`: the id of the monitor that uses the name or slug. */
  monitor_id?: string;
  /** Pushes: reason, as Uptime Kuma responds. */
  msg?: string;
  /** Pushes: false, as Uptime Kuma responds. */
  ok?: boolean;
  /** With `schedule_name_taken`: ID of the schedule that has the name. */
  schedule_id?: string;
  /** With `conflict` for a hold that is no longer open: its status. */
  status?: "captured" | "released" | "expired";
  /** With `conflict` for a flag: its current version; null if the flag does not exist. */
  version?: number | null;
}

/** A body that is sent as it is. */
export type AnyBody = string | Uint8Array;

/** The method and path of an operation, with the types of its parameters, body and response. */
export type Route<Result, Params extends string = never, Body = undefined, Query = undefined> = string & {
  params: Record<Params, string>;
  query: Query;
  body: Body;
  answer: Result;
};

/** Which page of a list. */
export type PageQuery = {
  /** How many items to return at most. */
  limit?: number | undefined;
  /** `cursor` from the previous response. */
  cursor?: string | undefined;
};

/** A list: its response is one of its pages. */
type List<Page, Params extends string = never, More = unknown> = Route<
  Page,
  Params,
  undefined,
  PageQuery & More
>;

/** Every operation, by its name. */
export const OPERATIONS = {
  "admin.accounts.create": "POST /v1/admin/accounts" as Route<AccountCreated, never, AccountCreateBody>,
  "admin.accounts.delete": "DELETE /v1/admin/accounts/{user_id}" as Route<AccountDeleted, "user_id">,
  "admin.accounts.export": "GET /v1/admin/accounts/{user_id}/export" as Route<string, "user_id">,
  "admin.accounts.list": "GET /v1/admin/accounts" as List<AccountPage>,
  "admin.accounts.update": "PATCH /v1/admin/accounts/{user_id}" as Route<
    Account,
    "user_id",
    AccountUpdateBody
  >,
  "admin.audit.export": "GET /v1/admin/audit/export" as Route<
    string,
    never,
    undefined,
    {
      /** Id of an account: its own changes, and changes of the account by the operator. */
      user_id?: string | undefined;
      format?: "jsonl" | "csv" | undefined;
      /** Start of the range, inclusive (RFC 3339). */
      from?: string | undefined;
      /** End of the range, exclusive (RFC 3339). */
      to?: string | undefined;
    }
  >,
  "admin.audit.list": "GET /v1/admin/audit" as List<
    AuditPage,
    never,
    {
      /** Id of an account: its own changes, and changes of the account by the operator. */
      user_id?: string | undefined;
      /** Operation, such as `gate.save`, or all operations of an area: `gate.*`. */
      action?: string | undefined;
      /** Id of a key or a person, a `user_id`, or a type of actor: `key`, `person`, `session`, `cli`, `system`, `public`, `portal`, `schedule`. */
      actor?: string | undefined;
      /** Type of the changed object, such as `flag`. */
      target_type?: string | undefined;
      /** Id of the changed object, such as `new-checkout`. */
      target_id?: string | undefined;
      /** Id of the project of the changes. */
      project_id?: string | undefined;
      /** Start of the range, inclusive (RFC 3339). */
      from?: string | undefined;
      /** End of the range, exclusive (RFC 3339). */
      to?: string | undefined;
    }
  >,
  "admin.audit.read": "GET /v1/admin/audit/{sequence}" as Route<AuditEntry, "sequence">,
  "admin.backups.create": "POST /v1/admin/backups" as Route<BackupBegun>,
  "admin.backups.list": "GET /v1/admin/backups" as List<BackupPage>,
  "admin.clock.advance": "POST /v1/admin/clock" as Route<ClockAdvanced, never, ClockBody>,
  "admin.clock.read": "GET /v1/admin/clock" as Route<ClockAdvanced>,
  "admin.history.read": "GET /v1/admin/history" as Route<
    ServerHistory,
    never,
    undefined,
    {
      /** Number of hours until now; 24 by default. */
      hours?: number | undefined;
    }
  >,
  "admin.login_links.create": "POST /v1/admin/login-links" as Route<LoginLink, never, LoginLinkBody>,
  "admin.options.list": "GET /v1/admin/options" as Route<ServerOptions>,
  "admin.settings.read": "GET /v1/admin/settings" as Route<ServerSettings>,
  "admin.settings.test_mail": "POST /v1/admin/settings/test-mail" as Route<MailTest, never, MailTestBody>,
  "admin.settings.update": "PATCH /v1/admin/settings" as Route<ServerSettings, never, ServerSettingsBody>,
  "admin.status.read": "GET /v1/admin/status" as Route<ServerStatus>,
  "audit.export": "GET /v1/audit/export" as Route<
    string,
    never,
    undefined,
    {
      format?: "jsonl" | "csv" | undefined;
      /** Start of the range, inclusive (RFC 3339). */
      from?: string | undefined;
      /** End of the range, exclusive (RFC 3339). */
      to?: string | undefined;
    }
  >,
  "audit.list": "GET /v1/audit" as List<
    AuditPage,
    never,
    {
      /** Operation, such as `gate.save`, or all operations of an area: `gate.*`. */
      action?: string | undefined;
      /** Id of a key or a person, a `user_id`, or a type of actor: `key`, `person`, `session`, `cli`, `system`, `public`, `portal`, `schedule`. */
      actor?: string | undefined;
      /** Type of the changed object, such as `flag`. */
      target_type?: string | undefined;
      /** Id of the changed object, such as `new-checkout`. */
      target_id?: string | undefined;
      /** Id of the project of the changes. */
      project_id?: string | undefined;
      /** Start of the range, inclusive (RFC 3339). */
      from?: string | undefined;
      /** End of the range, exclusive (RFC 3339). */
      to?: string | undefined;
    }
  >,
  "audit.read": "GET /v1/audit/{sequence}" as Route<AuditEntry, "sequence">,
  "catch.buckets.create": "POST /v1/catch/buckets" as Route<Bucket, never, BucketCreateBody>,
  "catch.buckets.delete": "DELETE /v1/catch/buckets/{bucket_id}" as Route<undefined, "bucket_id">,
  "catch.buckets.get": "GET /v1/catch/buckets/{bucket_id}" as Route<Bucket, "bucket_id">,
  "catch.buckets.list": "GET /v1/catch/buckets" as Route<
    BucketList,
    never,
    undefined,
    {
      /** Returns only the bucket with exactly this name. */
      name?: string | undefined;
    }
  >,
  "catch.buckets.update": "PATCH /v1/catch/buckets/{bucket_id}" as Route<
    Bucket,
    "bucket_id",
    BucketUpdateBody
  >,
  "catch.events.ack": "POST /v1/catch/{bucket_id}/events/{event_id}/ack" as Route<
    EventItem,
    "bucket_id" | "event_id",
    EventAckBody
  >,
  "catch.events.confirm": "POST /v1/catch/{bucket_id}/events/{event_id}/confirm" as Route<
    EventConfirmed,
    "bucket_id" | "event_id"
  >,
  "catch.events.delete": "DELETE /v1/catch/{bucket_id}/events" as Route<
    EventsDeleted,
    "bucket_id",
    undefined,
    {
      /** Time before which received events are deleted, as ISO 8601 with an offset or Z. */
      before: string;
    }
  >,
  "catch.events.export": "GET /v1/catch/{bucket_id}/events/export" as Route<
    string,
    "bucket_id",
    undefined,
    {
      /** Start of the time of receipt, inclusive, as RFC 3339. */
      since?: string | undefined;
      /** End of the time of receipt, exclusive, as RFC 3339. */
      until?: string | undefined;
      /** `X-Next-Cursor` of the previous page. */
      cursor?: string | undefined;
    }
  >,
  "catch.events.get": "GET /v1/catch/{bucket_id}/events/{event_id}" as Route<
    CaughtEvent,
    "bucket_id" | "event_id"
  >,
  "catch.events.list": "GET /v1/catch/{bucket_id}/events" as List<
    EventPage,
    "bucket_id",
    {
      /** Provider of the events, such as `stripe`. */
      provider?: string | undefined;
      status?: "pending" | "delivered" | "failed" | undefined;
      event_type?: string | undefined;
      verification?: "none" | "valid" | "invalid" | undefined;
      /** Start of the time of receipt, inclusive, as RFC 3339. */
      since?: string | undefined;
      /** End of the time of receipt, exclusive, as RFC 3339. */
      until?: string | undefined;
      /** Text that must appear in a header or in the body, case-insensitive. */
      q?: string | undefined;
      /** Whether to add `method` and `preview` to each event. */
      details?: boolean | undefined;
    }
  >,
  "catch.events.raw": "GET /v1/catch/{bucket_id}/events/{event_id}/raw" as Route<
    string,
    "bucket_id" | "event_id"
  >,
  "catch.events.replay": "POST /v1/catch/{bucket_id}/events/{event_id}/replay" as Route<
    EventReplayed | EventReplayQueued,
    "bucket_id" | "event_id"
  >,
  "catch.in": "POST /v1/in/{bucket_id}" as Route<Ingested, "bucket_id", AnyBody>,
  "catch.ingest": "POST /v1/catch/{bucket_id}" as Route<Ingested, "bucket_id", AnyBody>,
  "catch.replays.get": "GET /v1/catch/{bucket_id}/replays/{replay_id}" as Route<
    CatchReplay,
    "bucket_id" | "replay_id"
  >,
  "catch.replays.start": "POST /v1/catch/{bucket_id}/replays" as Route<
    CatchReplayMatched | CatchReplayStarted,
    "bucket_id",
    CatchReplayBody
  >,
  "catch.replays.stop": "DELETE /v1/catch/{bucket_id}/replays/{replay_id}" as Route<
    CatchReplay,
    "bucket_id" | "replay_id"
  >,
  "catch.stream": "GET /v1/catch/{bucket_id}/stream" as Route<
    EventStreamPage,
    "bucket_id",
    undefined,
    {
      /** Position after which events are returned: an event's id, `beginning`, or `now` for new events. Then the `cursor` of the last response. */
      after: string;
      /** Longest wait for an event, in milliseconds, when there is none. */
      wait_ms?: number | string | undefined;
      /** Maximum number of events to return. */
      limit?: number | undefined;
      /** Provider of the events, such as `stripe`. */
      provider?: string | undefined;
      event_type?: string | undefined;
      verification?: "none" | "valid" | "invalid" | undefined;
    }
  >,
  "changes.stream": "GET /v1/changes" as Route<string>,
  check: "POST /v1/check" as Route<CheckAnswer | CheckAnswers, never, CheckBody>,
  "check.http": "GET /v1/check/http" as Route<
    CheckAnswer,
    never,
    undefined,
    {
      /** Scope or permission that the key must have. Repeatable. Or one combination of them as JSON, such as `{"or":["orders:read","admin"]}`. */
      require?: readonly string[] | undefined;
      /** Number of the key's `uses` that the verification costs, if they are limited. Default 1. */
      cost?: number | undefined;
      /** Rate limit of the key, as `name` or `name:cost`. Repeatable. */
      ratelimit?: readonly string[] | undefined;
      /** Number of credits to deduct. */
      deduct?: number | undefined;
      /** Meter for `deduct`; by default the key's `meter_id`, or its `owner_id` if it has none. */
      meter?: string | undefined;
      /** Flag to evaluate. Repeatable. */
      flag?: readonly string[] | undefined;
      /** Name of the header with the client's key; by default `authorization` with a Bearer token. */
      header?: string | undefined;
      /** `403` replaces the statuses 402 and 429 by 403, for nginx; `X-Check-Status` has the original status. */
      deny?: "exact" | "403" | undefined;
    }
  >,
  "gate.config": "GET /v1/gate/config" as Route<
    FlagConfig,
    never,
    undefined,
    {
      /** Whether to return only stale flags. */
      stale?: boolean | undefined;
      /** Whether to return complete definitions. */
      full?: boolean | undefined;
      /** Returns only flags with this tag. */
      tag?: string | undefined;
      /** Whether to include archived flags. */
      archived?: boolean | undefined;
    }
  >,
  "gate.definition": "GET /v1/gate/{flagKey}/definition" as Route<FlagDefinition, "flagKey">,
  "gate.delete": "DELETE /v1/gate/{flagKey}" as Route<FlagDeleted, "flagKey">,
  "gate.evaluate": "GET /v1/gate/{flagKey}" as Route<FlagEvaluation, "flagKey">,
  "gate.evaluations": "GET /v1/gate/{flagKey}/evaluations" as Route<
    FlagEvaluations,
    "flagKey",
    undefined,
    {
      /** Start of the range, rounded down to the hour or day (UTC). Default: 24 hours before `to`. */
      from?: string | undefined;
      /** End of the range, exclusive. Default: now. */
      to?: string | undefined;
      granularity?: "hour" | "day" | undefined;
    }
  >,
  "gate.list": "GET /v1/gate" as Route<
    FlagKeys,
    never,
    undefined,
    {
      /** Whether to return only stale flags. */
      stale?: boolean | undefined;
    }
  >,
  "gate.preview": "POST /v1/gate/{flagKey}/preview" as Route<FlagPreview, "flagKey", FlagPreviewBody>,
  "gate.proposals.approve": "POST /v1/gate/{flagKey}/proposals/{proposal_id}/approve" as Route<
    FlagProposal,
    "flagKey" | "proposal_id"
  >,
  "gate.proposals.create": "POST /v1/gate/{flagKey}/proposals" as Route<
    FlagProposal,
    "flagKey",
    FlagProposalBody
  >,
  "gate.proposals.list": "GET /v1/gate/config/proposals" as List<
    FlagProposalPage,
    never,
    {
      /** Returns only proposals with this status. */
      status?: "open" | "applied" | "rejected" | "withdrawn" | "outdated" | undefined;
    }
  >,
  "gate.proposals.list_of_flag": "GET /v1/gate/{flagKey}/proposals" as List<
    FlagProposalPage,
    "flagKey",
    {
      /** Returns only proposals with this status. */
      status?: "open" | "applied" | "rejected" | "withdrawn" | "outdated" | undefined;
    }
  >,
  "gate.proposals.read": "GET /v1/gate/{flagKey}/proposals/{proposal_id}" as Route<
    FlagProposal,
    "flagKey" | "proposal_id"
  >,
  "gate.proposals.reject": "POST /v1/gate/{flagKey}/proposals/{proposal_id}/reject" as Route<
    FlagProposal,
    "flagKey" | "proposal_id",
    FlagProposalRejectBody
  >,
  "gate.proposals.withdraw": "DELETE /v1/gate/{flagKey}/proposals/{proposal_id}" as Route<
    FlagProposal,
    "flagKey" | "proposal_id"
  >,
  "gate.save": "POST /v1/gate" as Route<FlagSaved, never, FlagBody>,
  "gate.scheduled.cancel": "DELETE /v1/gate/{flagKey}/scheduled/{id}" as Route<FlagSaved, "flagKey" | "id">,
  "keys.create": "POST /v1/keys" as Route<KeyCreated, never, KeyCreateBody>,
  "keys.get": "GET /v1/keys/{id}" as Route<Key, "id">,
  "keys.import": "POST /v1/keys/import" as Route<KeysImported, never, KeysImportBody>,
  "keys.list": "GET /v1/keys" as List<
    KeyPage,
    never,
    {
      owner_id?: string | undefined;
      environment?: string | undefined;
      /** Only keys that this person created. */
      created_by?: string | undefined;
    }
  >,
  "keys.patch": "PATCH /v1/keys/{id}" as Route<Key, "id", KeyPatchBody>,
  "keys.platform.reset": "POST /v1/admin/accounts/{user_id}/reset-key" as Route<ResetPlatformKey, "user_id">,
  "keys.platform.rotate": "POST /v1/keys/rotate" as Route<RotatedPlatformKey, never, PlatformKeyRotateBody>,
  "keys.revoke": "DELETE /v1/keys/{id}" as Route<KeyRevoked, "id">,
  "keys.revoke_owned": "POST /v1/keys/revoke" as Route<KeysRevoked, never, KeysRevokeBody>,
  "keys.roles.delete": "DELETE /v1/keys/roles/{name}" as Route<undefined, "name">,
  "keys.roles.list": "GET /v1/keys/roles" as List<KeyRolePage>,
  "keys.roles.read": "GET /v1/keys/roles/{name}" as Route<KeyRole, "name">,
  "keys.roles.save": "PUT /v1/keys/roles/{name}" as Route<KeyRole, "name", KeyRoleBody>,
  "keys.rotate": "POST /v1/keys/{id}/rotate" as Route<KeyRotated, "id", KeyRotateBody>,
  "keys.usage": "GET /v1/keys/{id}/usage" as Route<
    KeyUsage,
    "id",
    undefined,
    {
      /** Start of the range, rounded down to the hour or day (UTC). Default: 24 hours before `to`. */
      from?: string | undefined;
      /** End of the range, exclusive. Default: now. */
      to?: string | undefined;
      granularity?: "hour" | "day" | undefined;
    }
  >,
  "keys.verify": "POST /v1/keys/verify" as Route<KeyVerdict, never, KeyVerifyBody>,
  "latch.acquire": "POST /v1/latch/{key}/acquire" as Route<AcquiredLock, "key", AcquireBody>,
  "latch.extend": "POST /v1/latch/{key}/extend" as Route<ExtendedLock, "key", LockExtendBody>,
  "latch.force": "POST /v1/latch/{key}/force-release" as Route<ReleasedLock, "key", ForceReleaseBody>,
  "latch.list": "GET /v1/latch" as List<LockPage>,
  "latch.release": "POST /v1/latch/{key}/release" as Route<ReleasedLock, "key", ReleaseBody>,
  "latch.status": "GET /v1/latch/{key}" as Route<LockStatus, "key">,
  "meter.alert.delete": "DELETE /v1/meter/{meterId}/alert" as Route<TermRemoved, "meterId">,
  "meter.alert.project.delete": "DELETE /v1/meter/alert" as Route<TermRemoved>,
  "meter.alert.project.read": "GET /v1/meter/alert" as Route<MeterAlert>,
  "meter.alert.project.set": "PUT /v1/meter/alert" as Route<MeterAlert, never, AlertBody>,
  "meter.alert.read": "GET /v1/meter/{meterId}/alert" as Route<MeterAlert, "meterId">,
  "meter.alert.set": "PUT /v1/meter/{meterId}/alert" as Route<MeterAlert, "meterId", AlertBody>,
  "meter.balance": "GET /v1/meter/{meterId}/balance" as Route<MeterState, "meterId">,
  "meter.deduct": "POST /v1/meter/{meterId}/deduct" as Route<MeterBalance, "meterId", AmountBody>,
  "meter.history": "GET /v1/meter/{meterId}/history" as List<LedgerPage, "meterId">,
  "meter.holds.capture": "POST /v1/meter/{meterId}/holds/{hold_id}/capture" as Route<
    MeterHold,
    "meterId" | "hold_id",
    CaptureBody
  >,
  "meter.holds.create": "POST /v1/meter/{meterId}/holds" as Route<MeterHold, "meterId", HoldBody>,
  "meter.holds.extend": "POST /v1/meter/{meterId}/holds/{hold_id}/extend" as Route<
    MeterHold,
    "meterId" | "hold_id",
    ExtendBody
  >,
  "meter.holds.list": "GET /v1/meter/{meterId}/holds" as List<
    HoldsPage,
    "meterId",
    { status?: "open" | "captured" | "released" | "expired" | undefined }
  >,
  "meter.holds.read": "GET /v1/meter/{meterId}/holds/{hold_id}" as Route<MeterHold, "meterId" | "hold_id">,
  "meter.holds.release": "POST /v1/meter/{meterId}/holds/{hold_id}/release" as Route<
    MeterHold,
    "meterId" | "hold_id"
  >,
  "meter.list": "GET /v1/meter" as List<
    MeterPage,
    never,
    {
      /** Returns only meters with an id that starts with this text. */
      prefix?: string | undefined;
    }
  >,
  "meter.own.balance": "GET /v1/meter/balance" as Route<OwnBalance>,
  "meter.own.deduct": "POST /v1/meter/deduct" as Route<OwnBalance, never, AmountBody>,
  "meter.own.history": "GET /v1/meter/history" as List<LedgerPage>,
  "meter.own.refill": "POST /v1/meter/refill" as Route<OwnBalance, never, AmountBody>,
  "meter.plan.delete": "DELETE /v1/meter/{meterId}/plan" as Route<TermRemoved, "meterId">,
  "meter.plan.read": "GET /v1/meter/{meterId}/plan" as Route<MeterPlan, "meterId">,
  "meter.plan.set": "PUT /v1/meter/{meterId}/plan" as Route<MeterPlan, "meterId", PlanBody>,
  "meter.refill": "POST /v1/meter/{meterId}/refill" as Route<MeterBalance, "meterId", AmountBody>,
  "meter.reset": "POST /v1/meter/{meterId}/reset" as Route<MeterBalance, "meterId", ResetBody>,
  "meter.usage": "GET /v1/meter/{meterId}/usage" as Route<
    MeterUsage,
    "meterId",
    undefined,
    {
      /** Start of the range, RFC 3339, rounded down to a bucket. Default: 30 days before `to`. */
      from?: string | undefined;
      /** End of the range (exclusive), RFC 3339, rounded up to a bucket. Default: now. */
      to?: string | undefined;
      granularity?: "hour" | "day" | "month" | undefined;
    }
  >,
  "meter.usage.project": "GET /v1/meter/usage" as Route<
    ProjectUsage,
    never,
    undefined,
    {
      /** Start of the range, RFC 3339, rounded down to a bucket. Default: 30 days before `to`. */
      from?: string | undefined;
      /** End of the range (exclusive), RFC 3339, rounded up to a bucket. Default: now. */
      to?: string | undefined;
      granularity?: "hour" | "day" | "month" | undefined;
    }
  >,
  "monitors.channels.change": "PATCH /v1/pulse/channels/{channel_id}" as Route<
    Channel,
    "channel_id",
    ChannelPatch
  >,
  "monitors.channels.create": "POST /v1/pulse/channels" as Route<Channel, never, ChannelCreateBody>,
  "monitors.channels.delete": "DELETE /v1/pulse/channels/{channel_id}" as Route<ChannelDeleted, "channel_id">,
  "monitors.channels.list": "GET /v1/pulse/channels" as List<ChannelPage>,
  "monitors.channels.read": "GET /v1/pulse/channels/{channel_id}" as Route<Channel, "channel_id">,
  "monitors.channels.test": "POST /v1/pulse/channels/{channel_id}/test" as Route<ChannelTested, "channel_id">,
  "monitors.check": "POST /v1/pulse/{monitorId}/check" as Route<
    MonitorStatus,
    "monitorId",
    undefined,
    {
      /** Name of the probe that makes the check, or `local`. */
      probe?: string | undefined;
    }
  >,
  "monitors.create": "POST /v1/pulse" as Route<Monitor, never, MonitorCreateBody>,
  "monitors.delete": "DELETE /v1/pulse/{monitorId}" as Route<MonitorDeleted, "monitorId">,
  "monitors.history": "GET /v1/pulse/{monitorId}/history" as List<
    MonitorHistory,
    "monitorId",
    {
      /** Range of `series`; without it, there is no `series`. */
      range?: "24h" | "7d" | "30d" | "90d" | undefined;
      /** Returns only checks of the probe with this name, or of the server (`local`). */
      probe?: string | undefined;
    }
  >,
  "monitors.incidents.acknowledge": "POST /v1/pulse/incidents/{incident_id}/acknowledge" as Route<
    Incident,
    "incident_id"
  >,
  "monitors.incidents.change": "PATCH /v1/pulse/incidents/{incident_id}" as Route<
    Incident,
    "incident_id",
    IncidentPatch
  >,
  "monitors.incidents.create": "POST /v1/pulse/incidents" as Route<Incident, never, IncidentCreateBody>,
  "monitors.incidents.list": "GET /v1/pulse/incidents" as List<
    IncidentPage,
    never,
    {
      /** Returns only incidents with this status. */
      status?: "open" | "resolved" | undefined;
      /** Returns only incidents of the monitor with this id. */
      monitor_id?: string | undefined;
      /** `manual`: returns only manual incidents. Not together with `monitor_id`. */
      kind?: "manual" | undefined;
    }
  >,
  "monitors.incidents.read": "GET /v1/pulse/incidents/{incident_id}" as Route<Incident, "incident_id">,
  "monitors.incidents.snooze": "POST /v1/pulse/incidents/{incident_id}/snooze" as Route<
    Incident,
    "incident_id",
    IncidentSnoozeBody
  >,
  "monitors.incidents.update": "POST /v1/pulse/incidents/{incident_id}/updates" as Route<
    Incident,
    "incident_id",
    IncidentUpdateBody
  >,
  "monitors.links.read": "GET /alerts/{token}" as Route<string, "token">,
  "monitors.links.use": "POST /alerts/{token}" as Route<string, "token", AnyBody>,
  "monitors.list": "GET /v1/pulse" as List<
    MonitorPage,
    never,
    {
      status?: "up" | "down" | "unknown" | "degraded" | "overdue" | undefined;
      /** Returns only active monitors (`true`) or only paused ones (`false`). */
      active?: boolean | undefined;
      /** Returns only the monitor with exactly this `name`. */
      name?: string | undefined;
      /** Whether to add `uptime` and `hours` of the last day to each monitor. */
      details?: boolean | undefined;
    }
  >,
  "monitors.maintenance.create": "POST /v1/pulse/maintenance" as Route<
    Maintenance,
    never,
    MaintenanceCreateBody
  >,
  "monitors.maintenance.delete": "DELETE /v1/pulse/maintenance/{maintenance_id}" as Route<
    MonitorDeleted,
    "maintenance_id"
  >,
  "monitors.maintenance.list": "GET /v1/pulse/maintenance" as List<
    MaintenancePage,
    never,
    { status?: "scheduled" | "active" | "ended" | undefined }
  >,
  "monitors.maintenance.read": "GET /v1/pulse/maintenance/{maintenance_id}" as Route<
    Maintenance,
    "maintenance_id"
  >,
  "monitors.maintenance.update": "PATCH /v1/pulse/maintenance/{maintenance_id}" as Route<
    Maintenance,
    "maintenance_id",
    MaintenanceUpdateBody
  >,
  "monitors.pages.create": "POST /v1/pulse/pages" as Route<StatusPage, never, StatusPageCreateBody>,
  "monitors.pages.delete": "DELETE /v1/pulse/pages/{page_id}" as Route<StatusPageDeleted, "page_id">,
  "monitors.pages.list": "GET /v1/pulse/pages" as List<StatusPageList>,
  "monitors.pages.read": "GET /v1/pulse/pages/{page_id}" as Route<StatusPage, "page_id">,
  "monitors.pages.subscribers.import": "POST /v1/pulse/pages/{page_id}/subscribers/import" as Route<
    StatusPageSubscribersImported,
    "page_id",
    StatusPageSubscribersImportBody
  >,
  "monitors.pages.update": "PATCH /v1/pulse/pages/{page_id}" as Route<
    StatusPage,
    "page_id",
    StatusPageUpdateBody
  >,
  "monitors.ping": "POST /ping/{check}" as Route<string, "check", AnyBody>,
  "monitors.ping_key": "POST /v1/pulse/ping-key" as Route<PingKey>,
  "monitors.pings": "GET /v1/pulse/{monitorId}/pings" as Route<HeartbeatPings, "monitorId">,
  "monitors.probes.create": "POST /v1/pulse/probes" as Route<Probe, never, ProbeCreateBody>,
  "monitors.probes.delete": "DELETE /v1/pulse/probes/{probe_id}" as Route<ProbeDeleted, "probe_id">,
  "monitors.probes.list": "GET /v1/pulse/probes" as List<ProbePage>,
  "monitors.probes.read": "GET /v1/pulse/probes/{probe_id}" as Route<Probe, "probe_id">,
  "monitors.probes.update": "PATCH /v1/pulse/probes/{probe_id}" as Route<Probe, "probe_id", ProbePatch>,
  "monitors.push": "GET /api/push/{token}" as Route<PushAccepted, "token", AnyBody>,
  "monitors.read": "GET /v1/pulse/{monitorId}" as Route<MonitorStatus, "monitorId">,
  "monitors.update": "PUT /v1/pulse/{monitorId}" as Route<Monitor, "monitorId", MonitorUpdateBody>,
  "ofrep.bulk": "POST /ofrep/v1/evaluate/flags" as Route<Evaluations, never, EvaluationBody>,
  "ofrep.evaluate": "POST /ofrep/v1/evaluate/flags/{key}" as Route<Evaluation, "key", EvaluationBody>,
  "ofrep.events": "GET /ofrep/v1/events" as Route<
    string,
    never,
    undefined,
    {
      /** Token from `eventStreams` of a bulk evaluation. */
      token?: string | undefined;
      /** Alternative to the header `Last-Event-ID`, which takes precedence. */
      lastEventId?: string | undefined;
    }
  >,
  "openapi.read": "GET /openapi.json" as Route<OpenApiDocument>,
  "overview.read": "GET /v1/overview" as Route<
    Overview,
    never,
    undefined,
    {
      /** Whether to add what needs attention: open incidents, the monitors with the lowest uptime, and where deliveries and events fail. */
      details?: boolean | undefined;
    }
  >,
  "people.create": "POST /v1/people" as Route<PersonInvited, never, PersonCreateBody>,
  "people.delete": "DELETE /v1/people/{person_id}" as Route<
    PersonDeleted,
    "person_id",
    undefined,
    {
      /** Whether keys that the person created are revoked. By default they continue to work. */
      revoke_keys?: "true" | "false" | undefined;
    }
  >,
  "people.identities.delete": "DELETE /v1/people/{person_id}/identities/{identity_id}" as Route<
    Person,
    "person_id" | "identity_id"
  >,
  "people.invitation.create": "POST /v1/people/{person_id}/invitation" as Route<Invitation, "person_id">,
  "people.list": "GET /v1/people" as List<
    PeoplePage,
    never,
    {
      /** Only people with this status. */
      status?: "invited" | "active" | "disabled" | undefined;
      /** Only people with this role for the account. */
      role?: "viewer" | "responder" | "editor" | "admin" | "owner" | undefined;
    }
  >,
  "people.me.passkeys.create": "POST /v1/people/me/passkeys" as Route<Passkey, never, PasskeyCreateBody>,
  "people.me.passkeys.delete": "DELETE /v1/people/me/passkeys/{passkey_id}" as Route<
    PasskeyDeleted,
    "passkey_id"
  >,
  "people.me.passkeys.list": "GET /v1/people/me/passkeys" as Route<PasskeyList>,
  "people.me.passkeys.options": "POST /v1/people/me/passkeys/options" as Route<PasskeyOptions>,
  "people.me.passkeys.update": "PATCH /v1/people/me/passkeys/{passkey_id}" as Route<
    Passkey,
    "passkey_id",
    PasskeyPatchBody
  >,
  "people.me.read": "GET /v1/people/me" as Route<Me>,
  "people.me.sessions.end": "DELETE /v1/people/me/sessions/{session_id}" as Route<
    PersonSessionsEnded,
    "session_id"
  >,
  "people.me.sessions.end_others": "DELETE /v1/people/me/sessions" as Route<PersonSessionsEnded>,
  "people.me.sessions.list": "GET /v1/people/me/sessions" as Route<PersonSessions>,
  "people.me.update": "PATCH /v1/people/me" as Route<Person, never, MePatchBody>,
  "people.read": "GET /v1/people/{person_id}" as Route<Person, "person_id">,
  "people.roles": "GET /v1/people/roles" as Route<Roles>,
  "people.sessions.end": "DELETE /v1/people/{person_id}/sessions" as Route<PersonSessionsEnded, "person_id">,
  "people.update": "PATCH /v1/people/{person_id}" as Route<
    Person,
    "person_id",
    PersonPatchBody,
    {
      /** Whether keys that the person created are revoked. By default they continue to work. */
      revoke_keys?: "true" | "false" | undefined;
    }
  >,
  ping: "GET /v1/ping" as Route<Pong>,
  "probe.results.create": "POST /v1/probe/results" as Route<ProbeResultsAccepted, never, ProbeResultsBody>,
  "probe.work.read": "GET /v1/probe/work" as Route<
    ProbeWork,
    never,
    undefined,
    {
      /** The `cursor` of the last response; omitted at the start. */
      after?: string | undefined;
      /** Longest wait for a change, in milliseconds. */
      wait_ms?: number | string | undefined;
      /** Version of the probe. */
      version?: string | undefined;
      /** Number of results that the probe still has to send. */
      queue?: number | undefined;
      /** Time of the probe's clock, Unix milliseconds. */
      time_ms?: number | undefined;
      /** Identifies the process of the probe, for `sent_ms`. */
      run?: string | undefined;
      /** Time of the request by the monotonic clock of the process, in milliseconds: shows how long it was on its way. */
      sent_ms?: number | undefined;
    }
  >,
  "projects.create": "POST /v1/projects" as Route<Project, never, ProjectCreateBody>,
  "projects.delete": "DELETE /v1/projects/{id}" as Route<ProjectDeleted, "id">,
  "projects.get": "GET /v1/projects/{id}" as Route<Project, "id">,
  "projects.keys.create": "POST /v1/projects/{id}/keys" as Route<KeyCreated, "id", KeyCreateBody>,
  "projects.list": "GET /v1/projects" as List<ProjectPage>,
  "projects.overview": "GET /v1/projects/{id}/overview" as Route<ProjectOverview, "id">,
  "projects.update": "PATCH /v1/projects/{id}" as Route<Project, "id", ProjectUpdateBody>,
  "relay.body": "GET /v1/relay/{relay_id}/body" as Route<RelaySentBody, "relay_id">,
  "relay.cancel": "DELETE /v1/relay/{relay_id}" as Route<RelayCancelled, "relay_id">,
  "relay.endpoints.change": "PATCH /v1/relay/endpoints/{endpoint_id}" as Route<
    RelayEndpointItem,
    "endpoint_id",
    RelayEndpointPatch
  >,
  "relay.endpoints.create": "POST /v1/relay/endpoints" as Route<
    RelayEndpointCreated,
    never,
    RelayEndpointBody
  >,
  "relay.endpoints.delete": "DELETE /v1/relay/endpoints/{endpoint_id}" as Route<undefined, "endpoint_id">,
  "relay.endpoints.list": "GET /v1/relay/endpoints" as List<
    RelayEndpointPage,
    never,
    {
      /** Returns only the endpoint with exactly this name. */
      name?: string | undefined;
      /** Only endpoints of this customer. */
      owner_id?: string | undefined;
      state?: "live" | "paused" | "disabled" | undefined;
    }
  >,
  "relay.endpoints.preview": "POST /v1/relay/endpoints/{endpoint_id}/preview" as Route<
    RelayPreview,
    "endpoint_id",
    RelayPreviewBody
  >,
  "relay.endpoints.read": "GET /v1/relay/endpoints/{endpoint_id}" as Route<RelayEndpoint, "endpoint_id">,
  "relay.endpoints.recover": "POST /v1/relay/endpoints/{endpoint_id}/recover" as Route<
    RelayResendMatched | RelayResendStarted,
    "endpoint_id",
    RelayRecoverBody
  >,
  "relay.endpoints.secret.rotate": "POST /v1/relay/endpoints/{endpoint_id}/secret/rotate" as Route<
    RelayEndpointSecretRotated,
    "endpoint_id",
    RelayEndpointSecretRotateBody
  >,
  "relay.endpoints.test": "POST /v1/relay/endpoints/{endpoint_id}/test" as Route<
    RelayEndpointTested,
    "endpoint_id",
    RelayEndpointTestBody
  >,
  "relay.event_types.delete": "DELETE /v1/relay/event-types/{name}" as Route<undefined, "name">,
  "relay.event_types.import": "POST /v1/relay/event-types/import" as Route<
    RelayEventTypesImported,
    never,
    RelayEventTypesImportBody
  >,
  "relay.event_types.list": "GET /v1/relay/event-types" as List<
    RelayEventTypePage,
    never,
    {
      /** Whether to list the archived types, in place of the others. */
      archived?: boolean | undefined;
    }
  >,
  "relay.event_types.read": "GET /v1/relay/event-types/{name}" as Route<RelayEventType, "name">,
  "relay.event_types.save": "PUT /v1/relay/event-types/{name}" as Route<
    RelayEventType,
    "name",
    RelayEventTypeBody
  >,
  "relay.list": "GET /v1/relay" as List<
    RelayPage,
    never,
    {
      status?: "scheduled" | "delivering" | "delivered" | "failed" | "cancelled" | undefined;
      /** Only deliveries to this endpoint. */
      endpoint_id?: string | undefined;
      /** Only deliveries of this message. */
      message_id?: string | undefined;
      /** Only deliveries of messages to this customer. */
      owner_id?: string | undefined;
      /** Returns only events of this type, such as `monitor.down`. */
      event_type?: string | undefined;
      /** Start of the creation time, inclusive, in epoch milliseconds. */
      since?: number | undefined;
      /** End of the creation time, exclusive, in epoch milliseconds. */
      until?: number | undefined;
      /** `pulse` includes only alerts: messages to notification channels, and alerts of meters. `deliveries` omits them. */
      filter?: "pulse" | "deliveries" | undefined;
      /** Only deliveries that failed for this reason. */
      error?: "timeout" | "network" | "http" | "blocked" | "disabled" | undefined;
      /** Only deliveries whose last response has this HTTP status, or a status of this class. */
      response_status?: string | undefined;
      /** Only deliveries to exactly this URL. */
      target_url?: string | undefined;
      /** Only deliveries of this schedule's runs. */
      schedule_id?: string | undefined;
      /** Text in the URL, the id, the event type or the body, in upper or lower case. A page can end before it is full: continue with its `cursor`. */
      q?: string | undefined;
    }
  >,
  "relay.messages.batch": "POST /v1/relay/messages/batch" as Route<
    RelayMessagesSent,
    never,
    RelayMessagesBody
  >,
  "relay.messages.list": "GET /v1/relay/messages" as List<
    RelayMessagePage,
    never,
    {
      /** Only messages to this customer. */
      owner_id?: string | undefined;
      /** Returns only events of this type, such as `monitor.down`. */
      event_type?: string | undefined;
      /** Start of the creation time, inclusive, in epoch milliseconds. */
      since?: number | undefined;
      /** End of the creation time, exclusive, in epoch milliseconds. */
      until?: number | undefined;
    }
  >,
  "relay.messages.read": "GET /v1/relay/messages/{message_id}" as Route<RelayMessage, "message_id">,
  "relay.messages.resend": "POST /v1/relay/messages/{message_id}/resend" as Route<
    RelayMessageResent,
    "message_id",
    RelayMessageResendBody
  >,
  "relay.messages.send": "POST /v1/relay/messages" as Route<
    RelayMessageDeduplicated | RelayMessageSent,
    never,
    RelayMessageBody
  >,
  "relay.portal.create": "POST /v1/relay/portal" as Route<PortalLinkCreated, never, PortalLinkBody>,
  "relay.portal.deliveries.body": "GET /v1/relay/portal/deliveries/{relay_id}/body" as Route<
    RelaySentBody,
    "relay_id"
  >,
  "relay.portal.deliveries.list": "GET /v1/relay/portal/deliveries" as List<
    PortalDeliveryPage,
    never,
    {
      /** Only deliveries to this endpoint. */
      endpoint_id?: string | undefined;
      status?: "scheduled" | "delivering" | "delivered" | "failed" | "cancelled" | undefined;
    }
  >,
  "relay.portal.deliveries.read": "GET /v1/relay/portal/deliveries/{relay_id}" as Route<
    PortalDelivery,
    "relay_id"
  >,
  "relay.portal.deliveries.resend": "POST /v1/relay/portal/deliveries/{relay_id}/resend" as Route<
    RelayResent,
    "relay_id"
  >,
  "relay.portal.endpoints.change": "PATCH /v1/relay/portal/endpoints/{endpoint_id}" as Route<
    PortalEndpoint,
    "endpoint_id",
    PortalEndpointPatch
  >,
  "relay.portal.endpoints.create": "POST /v1/relay/portal/endpoints" as Route<
    PortalEndpointCreated,
    never,
    PortalEndpointBody
  >,
  "relay.portal.endpoints.delete": "DELETE /v1/relay/portal/endpoints/{endpoint_id}" as Route<
    undefined,
    "endpoint_id"
  >,
  "relay.portal.endpoints.list": "GET /v1/relay/portal/endpoints" as List<PortalEndpointPage>,
  "relay.portal.endpoints.read": "GET /v1/relay/portal/endpoints/{endpoint_id}" as Route<
    PortalEndpointRead,
    "endpoint_id"
  >,
  "relay.portal.endpoints.recover": "POST /v1/relay/portal/endpoints/{endpoint_id}/recover" as Route<
    RelayResendMatched | RelayResendStarted,
    "endpoint_id",
    PortalRecoverBody
  >,
  "relay.portal.endpoints.secret.reveal": "POST /v1/relay/portal/endpoints/{endpoint_id}/secret" as Route<
    RelayEndpointSecret,
    "endpoint_id"
  >,
  "relay.portal.endpoints.secret.rotate":
    "POST /v1/relay/portal/endpoints/{endpoint_id}/secret/rotate" as Route<
      RelayEndpointSecretRotated,
      "endpoint_id",
      PortalRotateBody
    >,
  "relay.portal.endpoints.test": "POST /v1/relay/portal/endpoints/{endpoint_id}/test" as Route<
    RelayEndpointTested,
    "endpoint_id",
    PortalTestBody
  >,
  "relay.portal.event_types.list": "GET /v1/relay/portal/event-types" as List<PortalEventTypePage>,
  "relay.portal.read": "GET /v1/relay/portal" as Route<PortalLink>,
  "relay.portal.resends.read": "GET /v1/relay/portal/resends/{resend_id}" as Route<PortalResend, "resend_id">,
  "relay.portal.resends.stop": "DELETE /v1/relay/portal/resends/{resend_id}" as Route<
    PortalResend,
    "resend_id"
  >,
  "relay.portal.revoke": "POST /v1/relay/portal/revoke" as Route<
    PortalLinksRevoked,
    never,
    PortalLinksRevokeBody
  >,
  "relay.read": "GET /v1/relay/{relay_id}" as Route<Relay, "relay_id">,
  "relay.resend": "POST /v1/relay/{relay_id}/resend" as Route<RelayResent, "relay_id">,
  "relay.resends.read": "GET /v1/relay/resends/{resend_id}" as Route<RelayResend, "resend_id">,
  "relay.resends.start": "POST /v1/relay/resend" as Route<
    RelayResendMatched | RelayResendStarted,
    never,
    RelayResendBody
  >,
  "relay.resends.stop": "DELETE /v1/relay/resends/{resend_id}" as Route<RelayResend, "resend_id">,
  "relay.schedule": "POST /v1/relay" as Route<RelayDeduplicated | RelayScheduled, never, RelayBody>,
  "relay.schedules.create": "POST /v1/relay/schedules" as Route<Schedule, never, ScheduleBody>,
  "relay.schedules.delete": "DELETE /v1/relay/schedules/{schedule_id}" as Route<undefined, "schedule_id">,
  "relay.schedules.list": "GET /v1/relay/schedules" as List<
    SchedulePage,
    never,
    {
      /** Returns only the schedule with exactly this name. */
      name?: string | undefined;
    }
  >,
  "relay.schedules.read": "GET /v1/relay/schedules/{schedule_id}" as Route<Schedule, "schedule_id">,
  "relay.schedules.run": "POST /v1/relay/schedules/{schedule_id}/run" as Route<ScheduleRun, "schedule_id">,
  "relay.schedules.update": "PATCH /v1/relay/schedules/{schedule_id}" as Route<
    Schedule,
    "schedule_id",
    ScheduleUpdateBody
  >,
  "relay.secret.reveal": "POST /v1/relay/secret" as Route<RelaySecret>,
  "relay.secret.rotate": "POST /v1/relay/secret/rotate" as Route<
    RelaySecretRotated,
    never,
    RelaySecretRotateBody
  >,
  "relay.stats": "GET /v1/relay/stats" as Route<
    RelayStats,
    never,
    undefined,
    {
      /** Only deliveries to this endpoint. */
      endpoint_id?: string | undefined;
      /** Only deliveries of this message. */
      message_id?: string | undefined;
      /** Returns only events of this type, such as `monitor.down`. */
      event_type?: string | undefined;
      /** Start of the creation time, inclusive, in epoch milliseconds. */
      since?: number | undefined;
      /** End of the creation time, exclusive, in epoch milliseconds. */
      until?: number | undefined;
      /** `pulse` includes only alerts: messages to notification channels, and alerts of meters. `deliveries` omits them. */
      filter?: "pulse" | "deliveries" | undefined;
      /** Only deliveries that failed for this reason. */
      error?: "timeout" | "network" | "http" | "blocked" | "disabled" | undefined;
      /** Only deliveries whose last response has this HTTP status, or a status of this class. */
      response_status?: string | undefined;
      /** Only deliveries to exactly this URL. */
      target_url?: string | undefined;
    }
  >,
  "session.create": "POST /v1/session" as Route<Session, never, SessionBody>,
  "session.email.create": "POST /v1/session/email" as Route<EmailLinkRequested, never, EmailLinkBody>,
  "session.end": "DELETE /v1/session" as Route<undefined>,
  "session.invitation.accept": "POST /v1/session/invitation/accept" as Route<
    Session,
    never,
    InvitationAcceptBody
  >,
  "session.invitation.read": "POST /v1/session/invitation" as Route<InvitationView, never, InvitationBody>,
  "session.passkey.create": "POST /v1/session/passkey" as Route<Session, never, PasskeyLoginBody>,
  "session.passkey.options": "POST /v1/session/passkey/options" as Route<PasskeyOptions>,
  "session.read": "GET /v1/session" as Route<CurrentSession>,
  "session.switch": "POST /v1/session/account" as Route<Session, never, SessionAccountBody>,
  "sessions.end": "DELETE /v1/sessions" as Route<SessionsEnded>,
  signup: "POST /v1/signup" as Route<SignedUp, never, SignupBody>,
  "status.badge": "GET /status/{page}/badge/{badge}" as Route<
    string,
    "page" | "badge",
    undefined,
    {
      /** Style of the image, by default `flat`. */
      style?: "flat" | "flat-square" | "for-the-badge" | undefined;
      /** Text on the left side, by default the name of the monitor and the metric, the title of the page, or the name of the group. */
      label?: string | undefined;
      /** Metric of the badge, by default `status`. `latency` requires that the page shows latencies. */
      metric?:
        | "status"
        | "uptime-24h"
        | "uptime-7d"
        | "uptime-30d"
        | "uptime-90d"
        | "latency"
        | "cert"
        | "domain"
        | undefined;
    }
  >,
  "status.calendar": "GET /status/{page}/maintenance.ics" as Route<string, "page">,
  "status.feed": "GET /status/{page}/feed.atom" as Route<string, "page">,
  "status.group": "GET /status/{page}/groups/{group}" as Route<string | PublicGroup, "page" | "group">,
  "status.group_badge": "GET /status/{page}/groups/{group}/badge.svg" as Route<
    string,
    "page" | "group",
    undefined,
    {
      /** Style of the image, by default `flat`. */
      style?: "flat" | "flat-square" | "for-the-badge" | undefined;
      /** Text on the left side, by default the name of the monitor and the metric, the title of the page, or the name of the group. */
      label?: string | undefined;
    }
  >,
  "status.group_badge_data": "GET /status/{page}/groups/{group}/badge.json" as Route<
    string | BadgeData,
    "page" | "group",
    undefined,
    {
      /** Style of the image, by default `flat`. */
      style?: "flat" | "flat-square" | "for-the-badge" | undefined;
      /** Text on the left side, by default the name of the monitor and the metric, the title of the page, or the name of the group. */
      label?: string | undefined;
    }
  >,
  "status.icon": "GET /status/{page}/icon" as Route<string, "page">,
  "status.incident": "GET /status/{page}/incidents/{incident}" as Route<
    string,
    "page" | "incident",
    undefined,
    {
      /** Time zone of the times in the texts of the page, an IANA name; that of the project by default, and for an unknown name. Bars and JSON stay in UTC. */
      tz?: string | undefined;
    }
  >,
  "status.page": "GET /status/{page}" as Route<
    string,
    "page",
    undefined,
    {
      /** Time zone of the times in the texts of the page, an IANA name; that of the project by default, and for an unknown name. Bars and JSON stay in UTC. */
      tz?: string | undefined;
    }
  >,
  "status.page_badge": "GET /status/{page}/badge.svg" as Route<
    string,
    "page",
    undefined,
    {
      /** Style of the image, by default `flat`. */
      style?: "flat" | "flat-square" | "for-the-badge" | undefined;
      /** Text on the left side, by default the name of the monitor and the metric, the title of the page, or the name of the group. */
      label?: string | undefined;
    }
  >,
  "status.page_badge_data": "GET /status/{page}/badge.json" as Route<
    string | BadgeData,
    "page",
    undefined,
    {
      /** Style of the image, by default `flat`. */
      style?: "flat" | "flat-square" | "for-the-badge" | undefined;
      /** Text on the left side, by default the name of the monitor and the metric, the title of the page, or the name of the group. */
      label?: string | undefined;
    }
  >,
  "status.subscribe": "POST /status/{page}/subscribe" as Route<string, "page", AnyBody>,
  "status.subscribe_form": "GET /status/{page}/subscribe" as Route<string, "page">,
  "status.subscription": "GET /status/{page}/subscription" as Route<
    string,
    "page",
    undefined,
    {
      /** Token of the link in an e-mail. */
      token?: string | undefined;
    }
  >,
  "status.subscription_change": "POST /status/{page}/subscription" as Route<
    string,
    "page",
    AnyBody,
    {
      /** Token of the link in an e-mail. */
      token?: string | undefined;
    }
  >,
  "witness.accept_fork": "POST /v1/witness/accept-fork" as Route<ForkAccepted, never, ForkAcceptBody>,
  "witness.bundle": "GET /v1/witness/receipts/{sequence_id}/bundle" as Route<
    ReceiptBundle,
    "sequence_id",
    undefined,
    {
      /** `json` (default), or `tlog-proof`: a text (c2sp.org/tlog-proof). */
      format?: "json" | "tlog-proof" | undefined;
    }
  >,
  "witness.checkpoint": "GET /v1/witness/checkpoint" as Route<
    Checkpoint,
    never,
    undefined,
    {
      /** `note` (default): the signed note, as `text/plain`. */
      format?: "note" | "json" | undefined;
    }
  >,
  "witness.config.read": "GET /v1/witness/config" as Route<ReceiptStorage>,
  "witness.config.set": "POST /v1/witness/config" as Route<StorageConfigured, never, StorageBody>,
  "witness.export": "GET /v1/witness/export" as Route<
    string,
    never,
    undefined,
    {
      /** Position of the first receipt; 1 by default. */
      from?: number | undefined;
      /** Maximum number of receipts; 10000 by default. */
      limit?: number | undefined;
    }
  >,
  "witness.index.read": "GET /v1/witness/index" as Route<ReceiptIndex>,
  "witness.index.set": "PUT /v1/witness/index" as Route<ReceiptIndex, never, ReceiptIndexBody>,
  "witness.init": "POST /v1/witness/sys/init" as Route<ChainExists | ChainCreated, never, ChainInitBody>,
  "witness.log": "POST /v1/witness/log" as Route<Receipt, never, LogBody>,
  "witness.peer.add": "POST /v1/witness/peer/add-checkpoint" as Route<string, never, AnyBody>,
  "witness.peer.checkpoint": "GET /v1/witness/peer/{origin}/checkpoint" as Route<string, "origin">,
  "witness.peer.read": "GET /v1/witness/peer" as Route<PeerIdentity>,
  "witness.proofs.consistency": "GET /v1/witness/proofs/consistency" as Route<
    ConsistencyProof,
    never,
    undefined,
    {
      /** Size of the older tree. */
      from: number;
      /** Size of the newer tree; by default that of the newest checkpoint. */
      to?: number | undefined;
    }
  >,
  "witness.proofs.inclusion": "GET /v1/witness/proofs/inclusion" as Route<
    InclusionProof,
    never,
    undefined,
    {
      sequence_id: string;
      /** Size of the tree; by default that of the newest checkpoint. */
      size?: number | undefined;
    }
  >,
  "witness.pubkey": "GET /v1/witness/pubkey/{chainId}" as Route<PublicKey, "chainId">,
  "witness.receipts.list": "GET /v1/witness/receipts" as List<
    ReceiptPage,
    never,
    {
      /** Returns only receipts whose log has `value` here: an indexed JSON Pointer. */
      field?: string | undefined;
      /** Text form of the value: `42` finds the number and the text. */
      value?: string | undefined;
      /** Start of the time of the receipts, inclusive, in epoch milliseconds. */
      since?: number | undefined;
      /** End of the time of the receipts, exclusive, in epoch milliseconds. */
      until?: number | undefined;
    }
  >,
  "witness.receipts.read": "GET /v1/witness/receipts/{sequence_id}" as Route<Receipt, "sequence_id">,
  "witness.receipts.redact": "POST /v1/witness/receipts/{sequence_id}/redact" as Route<
    ReceiptRedacted,
    "sequence_id",
    RedactBody
  >,
  "witness.tlog.checkpoint": "GET /v1/witness/tlog/{chainId}/checkpoint" as Route<string, "chainId">,
  "witness.tlog.set": "PUT /v1/witness/tlog" as Route<Tlog, never, TlogBody>,
  "witness.tlog.tile": "GET /v1/witness/tlog/{chainId}/tile/{tile}" as Route<string, "chainId" | "tile">,
  "witness.verify": "POST /v1/witness/verify" as Route<ReceiptVerdict, never, ReceiptVerifyBody>,
  "witness.witnesses.read": "GET /v1/witness/witnesses" as Route<WitnessList>,
  "witness.witnesses.set": "PUT /v1/witness/witnesses" as Route<WitnessList, never, WitnessesBody>,
};

/** The parameters, body and response of each operation. */
export type Operations = typeof OPERATIONS;

/** Operations that take no key. */
export const PUBLIC: readonly string[] = [
  "catch.in",
  "catch.ingest",
  "monitors.links.read",
  "monitors.links.use",
  "monitors.ping",
  "monitors.push",
  "ofrep.events",
  "openapi.read",
  "ping",
  "probe.results.create",
  "probe.work.read",
  "session.create",
  "session.email.create",
  "session.invitation.accept",
  "session.invitation.read",
  "session.passkey.create",
  "session.passkey.options",
  "session.read",
  "session.switch",
  "signup",
  "status.badge",
  "status.calendar",
  "status.feed",
  "status.group",
  "status.group_badge",
  "status.group_badge_data",
  "status.icon",
  "status.incident",
  "status.page",
  "status.page_badge",
  "status.page_badge_data",
  "status.subscribe",
  "status.subscribe_form",
  "status.subscription",
  "status.subscription_change",
  "witness.peer.add",
  "witness.peer.checkpoint",
  "witness.peer.read",
  "witness.pubkey",
  "witness.tlog.checkpoint",
  "witness.tlog.tile",
];

/** Changes that take no `Idempotency-Key`, though they take a key. */
export const WITHOUT_IDEMPOTENCY_KEY: readonly string[] = [
  "gate.preview",
  "latch.acquire",
  "ofrep.bulk",
  "ofrep.evaluate",
  "people.me.passkeys.create",
  "people.me.passkeys.options",
  "relay.portal.deliveries.resend",
  "relay.portal.endpoints.change",
  "relay.portal.endpoints.create",
  "relay.portal.endpoints.delete",
  "relay.portal.endpoints.recover",
  "relay.portal.endpoints.secret.reveal",
  "relay.portal.endpoints.secret.rotate",
  "relay.portal.endpoints.test",
  "relay.portal.resends.stop",
  "session.end",
];
