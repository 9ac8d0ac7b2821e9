// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.

import type {
  AccountCreated,
  AccountPage,
  AcquiredLock,
  BucketList,
  CaughtEvent,
  ChainCreated,
  ChainExists,
  ClockAdvanced,
  EventPage,
  EventReplayed,
  EventsDeleted,
  FlagConfig,
  FlagDeleted,
  FlagEvaluation,
  FlagKeys,
  FlagSaved,
  Ingested,
  Key,
  KeyCreated,
  KeyPage,
  KeyRevoked,
  KeyRotated,
  KeyVerdict,
  LedgerPage,
  LockStatus,
  MeterBalance,
  Monitor,
  MonitorDeleted,
  MonitorHistory,
  MonitorPage,
  OpenApiDocument,
  OwnBalance,
  Pong,
  Project,
  ProjectDeleted,
  ProjectOverview,
  ProjectPage,
  ReceiptPage,
  ReceiptStorage,
  ReceiptVerdict,
  Relay,
  RelayCancelled,
  RelayPage,
  RelayScheduled,
  ReleasedLock,
  ResetPlatformKey,
  RotatedPlatformKey,
  SignedUp,
  StorageConfigured,
} from "./answers.ts";
import type {
  AccountCreateBody,
  AccountUpdateBody,
  AcquireBody,
  AmountBody,
  BucketCreateBody,
  BucketUpdateBody,
  ClockBody,
  FlagBody,
  KeyCreateBody,
  KeyRotateBody,
  KeyVerifyBody,
  LogBody,
  MonitorCreateBody,
  MonitorUpdateBody,
  PlatformKeyRotateBody,
  ProjectCreateBody,
  ProjectUpdateBody,
  ReceiptVerifyBody,
  RelayBody,
  ReleaseBody,
  ResetBody,
  SignupBody,
  StorageBody,
} from "./bodies.ts";
import type { Account, Bucket, MonitorStatus, PublicKey, Receipt } from "./parts.ts";
/** A body that is sent as it is. */
export type AnyBody = string | Uint8Array;

/** The method and path of an operation, and what the compiler alone knows of what goes there and comes back. */
export type Route<Answer, Params extends string = never, Body = undefined, Query = undefined> = string & {
  params: Record<Params, string>;
  query: Query;
  body: Body;
  answer: Answer;
};

/** Which page of a list. */
export type PageQuery = {
  /** How many items to return at most. */
  limit?: number | undefined;
  /** The `cursor` of the page before. */
  cursor?: string | undefined;
};

/** A list: its answer is one of its pages. */
type List<Page, Params extends string = never, More = unknown> = Route<
  Page,
  Params,
  undefined,
  PageQuery & More
>;

/** Every operation, by its name. */
export const OPERATIONS = {
  "admin.accounts.create": "POST /v1/admin/accounts" as Route<AccountCreated, never, AccountCreateBody>,
  "admin.accounts.list": "GET /v1/admin/accounts" as List<AccountPage>,
  "admin.accounts.update": "PATCH /v1/admin/accounts/{user_id}" as Route<
    Account,
    "user_id",
    AccountUpdateBody
  >,
  "admin.clock.advance": "POST /v1/admin/clock" as Route<ClockAdvanced, never, ClockBody>,
  "catch.buckets.create": "POST /v1/catch/buckets" as Route<Bucket, never, BucketCreateBody>,
  "catch.buckets.delete": "DELETE /v1/catch/buckets/{bucket_id}" as Route<undefined, "bucket_id">,
  "catch.buckets.get": "GET /v1/catch/buckets/{bucket_id}" as Route<Bucket, "bucket_id">,
  "catch.buckets.list": "GET /v1/catch/buckets" as Route<BucketList>,
  "catch.buckets.update": "PATCH /v1/catch/buckets/{bucket_id}" as Route<
    Bucket,
    "bucket_id",
    BucketUpdateBody
  >,
  "catch.events.delete": "DELETE /v1/catch/{bucket_id}/events" as Route<
    EventsDeleted,
    "bucket_id",
    undefined,
    {
      /** Events received before this time are deleted. ISO 8601, with an offset or Z. */
      before: string;
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
      /** One of stripe, github, shopify, svix. */
      provider?: string | undefined;
      status?: "pending" | "delivered" | "failed" | undefined;
    }
  >,
  "catch.events.replay": "POST /v1/catch/{bucket_id}/events/{event_id}/replay" as Route<
    EventReplayed,
    "bucket_id" | "event_id"
  >,
  "catch.ingest": "POST /v1/catch/{bucket_id}" as Route<Ingested, "bucket_id", AnyBody>,
  "gate.config": "GET /v1/gate/config" as Route<FlagConfig>,
  "gate.delete": "DELETE /v1/gate/{flagKey}" as Route<FlagDeleted, "flagKey">,
  "gate.evaluate": "GET /v1/gate/{flagKey}" as Route<FlagEvaluation, "flagKey">,
  "gate.list": "GET /v1/gate" as Route<FlagKeys>,
  "gate.save": "POST /v1/gate" as Route<FlagSaved, never, FlagBody>,
  "keys.create": "POST /v1/keys" as Route<KeyCreated, never, KeyCreateBody>,
  "keys.get": "GET /v1/keys/{id}" as Route<Key, "id">,
  "keys.list": "GET /v1/keys" as List<KeyPage>,
  "keys.platform.reset": "POST /v1/admin/accounts/{user_id}/reset-key" as Route<ResetPlatformKey, "user_id">,
  "keys.platform.rotate": "POST /v1/keys/rotate" as Route<RotatedPlatformKey, never, PlatformKeyRotateBody>,
  "keys.revoke": "DELETE /v1/keys/{id}" as Route<KeyRevoked, "id">,
  "keys.rotate": "POST /v1/keys/{id}/rotate" as Route<KeyRotated, "id", KeyRotateBody>,
  "keys.verify": "POST /v1/keys/verify" as Route<KeyVerdict, never, KeyVerifyBody>,
  "latch.acquire": "POST /v1/latch/{key}/acquire" as Route<AcquiredLock, "key", AcquireBody>,
  "latch.release": "POST /v1/latch/{key}/release" as Route<ReleasedLock, "key", ReleaseBody>,
  "latch.status": "GET /v1/latch/{key}" as Route<LockStatus, "key">,
  "meter.balance": "GET /v1/meter/{meterId}/balance" as Route<MeterBalance, "meterId">,
  "meter.deduct": "POST /v1/meter/{meterId}/deduct" as Route<MeterBalance, "meterId", AmountBody>,
  "meter.history": "GET /v1/meter/{meterId}/history" as List<LedgerPage, "meterId">,
  "meter.own.balance": "GET /v1/meter/balance" as Route<OwnBalance>,
  "meter.own.deduct": "POST /v1/meter/deduct" as Route<OwnBalance, never, AmountBody>,
  "meter.own.history": "GET /v1/meter/history" as List<LedgerPage>,
  "meter.own.refill": "POST /v1/meter/refill" as Route<OwnBalance, never, AmountBody>,
  "meter.refill": "POST /v1/meter/{meterId}/refill" as Route<MeterBalance, "meterId", AmountBody>,
  "meter.reset": "POST /v1/meter/{meterId}/reset" as Route<MeterBalance, "meterId", ResetBody>,
  "monitors.check": "POST /v1/pulse/{monitorId}/check" as Route<MonitorStatus, "monitorId">,
  "monitors.create": "POST /v1/pulse" as Route<Monitor, never, MonitorCreateBody>,
  "monitors.delete": "DELETE /v1/pulse/{monitorId}" as Route<MonitorDeleted, "monitorId">,
  "monitors.history": "GET /v1/pulse/{monitorId}/history" as List<MonitorHistory, "monitorId">,
  "monitors.list": "GET /v1/pulse" as List<
    MonitorPage,
    never,
    { status?: "up" | "down" | "unknown" | undefined }
  >,
  "monitors.read": "GET /v1/pulse/{monitorId}" as Route<MonitorStatus, "monitorId">,
  "monitors.update": "PUT /v1/pulse/{monitorId}" as Route<Monitor, "monitorId", MonitorUpdateBody>,
  "openapi.read": "GET /openapi.json" as Route<OpenApiDocument>,
  ping: "GET /v1/ping" as Route<Pong>,
  "projects.create": "POST /v1/projects" as Route<Project, never, ProjectCreateBody>,
  "projects.delete": "DELETE /v1/projects/{id}" as Route<ProjectDeleted, "id">,
  "projects.get": "GET /v1/projects/{id}" as Route<Project, "id">,
  "projects.keys.create": "POST /v1/projects/{id}/keys" as Route<KeyCreated, "id", KeyCreateBody>,
  "projects.list": "GET /v1/projects" as List<ProjectPage>,
  "projects.overview": "GET /v1/projects/{id}/overview" as Route<ProjectOverview, "id">,
  "projects.update": "PATCH /v1/projects/{id}" as Route<Project, "id", ProjectUpdateBody>,
  "relay.cancel": "DELETE /v1/relay/{relay_id}" as Route<RelayCancelled, "relay_id">,
  "relay.list": "GET /v1/relay" as List<
    RelayPage,
    never,
    {
      /** `pulse`: only notifications of monitors. */
      filter?: "pulse" | undefined;
      status?: "scheduled" | "delivering" | "delivered" | "failed" | "cancelled" | undefined;
    }
  >,
  "relay.read": "GET /v1/relay/{relay_id}" as Route<Relay, "relay_id">,
  "relay.schedule": "POST /v1/relay" as Route<RelayScheduled, never, RelayBody>,
  signup: "POST /v1/signup" as Route<SignedUp, never, SignupBody>,
  "witness.config.read": "GET /v1/witness/config" as Route<ReceiptStorage>,
  "witness.config.set": "POST /v1/witness/config" as Route<StorageConfigured, never, StorageBody>,
  "witness.init": "POST /v1/witness/sys/init" as Route<ChainExists | ChainCreated>,
  "witness.log": "POST /v1/witness/log" as Route<Receipt, never, LogBody>,
  "witness.pubkey": "GET /v1/witness/pubkey/{chainId}" as Route<PublicKey, "chainId">,
  "witness.receipts.list": "GET /v1/witness/receipts" as List<ReceiptPage>,
  "witness.receipts.read": "GET /v1/witness/receipts/{sequence_id}" as Route<Receipt, "sequence_id">,
  "witness.verify": "POST /v1/witness/verify" as Route<ReceiptVerdict, never, ReceiptVerifyBody>,
};

/** What each operation takes and answers. */
export type Operations = typeof OPERATIONS;

/** Operations that take no key. */
export const PUBLIC: readonly string[] = ["catch.ingest", "openapi.read", "ping", "signup", "witness.pubkey"];

/** Changes that take no `Idempotency-Key`, though they take a key. */
export const WITHOUT_IDEMPOTENCY_KEY: readonly string[] = ["latch.acquire"];
