// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.

import type {
  Bucket,
  BucketCreateBody,
  BucketList,
  BucketUpdateBody,
  CaughtEvent,
  EventPage,
  EventReplayed,
  EventsDeleted,
  Ingested,
} from "./catch.ts";
import type { FlagBody, FlagConfig, FlagDeleted, FlagEvaluation, FlagKeys, FlagSaved } from "./flags.ts";
import type {
  Key,
  KeyCreateBody,
  KeyCreated,
  KeyPage,
  KeyRevoked,
  KeyRotateBody,
  KeyRotated,
  KeyVerdict,
  KeyVerifyBody,
  PlatformKeyRotateBody,
  RotatedPlatformKey,
} from "./keys.ts";
import type { AcquireBody, AcquiredLock, LockStatus, ReleaseBody, ReleasedLock } from "./locks.ts";
import type { AmountBody, LedgerPage, MeterBalance, OwnBalance, ResetBody } from "./meter.ts";
import type {
  Monitor,
  MonitorCreateBody,
  MonitorDeleted,
  MonitorHistory,
  MonitorPage,
  MonitorStatus,
  MonitorUpdateBody,
} from "./monitors.ts";
import type {
  ChainCreated,
  ChainExists,
  LogBody,
  PublicKey,
  Receipt,
  ReceiptPage,
  ReceiptStorage,
  ReceiptVerdict,
  ReceiptVerifyBody,
  StorageBody,
  StorageConfigured,
} from "./notary.ts";
import type {
  Account,
  AccountCreateBody,
  AccountCreated,
  AccountPage,
  AccountUpdateBody,
  ClockAdvanced,
  ClockBody,
  ResetPlatformKey,
} from "./operator.ts";
import type {
  Project,
  ProjectCreateBody,
  ProjectDeleted,
  ProjectOverview,
  ProjectPage,
  ProjectUpdateBody,
} from "./projects.ts";
import type { Relay, RelayBody, RelayCancelled, RelayPage, RelayScheduled } from "./relay.ts";
import type { SignedUp, SignupBody } from "./signup.ts";
import type { OpenApiDocument, Pong } from "./system.ts";
/** A body that is sent as it is. */
export type AnyBody = string | Uint8Array;

/** An operation: the names of its path's parameters, its query, its body, its answer. */
export interface Operation<Params extends string, Query, Body, Answer> {
  params: Record<Params, string>;
  query: Query;
  body: Body;
  answer: Answer;
}

/** What each operation takes and answers. */
export interface Operations {
  "admin.accounts.create": Operation<never, undefined, AccountCreateBody, AccountCreated>;
  "admin.accounts.list": Operation<
    never,
    {
      /** How many items to return at most. */
      limit?: number | undefined;
      /** The `cursor` of the page before. */
      cursor?: string | undefined;
    },
    undefined,
    AccountPage
  >;
  "admin.accounts.update": Operation<"user_id", undefined, AccountUpdateBody, Account>;
  "admin.clock.advance": Operation<never, undefined, ClockBody, ClockAdvanced>;
  "catch.buckets.create": Operation<never, undefined, BucketCreateBody, Bucket>;
  "catch.buckets.delete": Operation<"bucket_id", undefined, undefined, undefined>;
  "catch.buckets.get": Operation<"bucket_id", undefined, undefined, Bucket>;
  "catch.buckets.list": Operation<never, undefined, undefined, BucketList>;
  "catch.buckets.update": Operation<"bucket_id", undefined, BucketUpdateBody, Bucket>;
  "catch.events.delete": Operation<
    "bucket_id",
    {
      /** Events received before this time are deleted. ISO 8601, with an offset or Z. */
      before: string;
    },
    undefined,
    EventsDeleted
  >;
  "catch.events.get": Operation<"bucket_id" | "event_id", undefined, undefined, CaughtEvent>;
  "catch.events.list": Operation<
    "bucket_id",
    {
      /** How many items to return at most. */
      limit?: number | undefined;
      /** The `cursor` of the page before. */
      cursor?: string | undefined;
      /** One of stripe, github, shopify, svix. */
      provider?: string | undefined;
      status?: "pending" | "delivered" | "failed" | undefined;
    },
    undefined,
    EventPage
  >;
  "catch.events.replay": Operation<"bucket_id" | "event_id", undefined, undefined, EventReplayed>;
  "catch.ingest": Operation<"bucket_id", undefined, AnyBody, Ingested>;
  "gate.config": Operation<never, undefined, undefined, FlagConfig>;
  "gate.delete": Operation<"flagKey", undefined, undefined, FlagDeleted>;
  "gate.evaluate": Operation<"flagKey", undefined, undefined, FlagEvaluation>;
  "gate.list": Operation<never, undefined, undefined, FlagKeys>;
  "gate.save": Operation<never, undefined, FlagBody, FlagSaved>;
  "keys.create": Operation<never, undefined, KeyCreateBody, KeyCreated>;
  "keys.get": Operation<"id", undefined, undefined, Key>;
  "keys.list": Operation<
    never,
    {
      /** How many items to return at most. */
      limit?: number | undefined;
      /** The `cursor` of the page before. */
      cursor?: string | undefined;
    },
    undefined,
    KeyPage
  >;
  "keys.platform.reset": Operation<"user_id", undefined, undefined, ResetPlatformKey>;
  "keys.platform.rotate": Operation<never, undefined, PlatformKeyRotateBody, RotatedPlatformKey>;
  "keys.revoke": Operation<"id", undefined, undefined, KeyRevoked>;
  "keys.rotate": Operation<"id", undefined, KeyRotateBody, KeyRotated>;
  "keys.verify": Operation<never, undefined, KeyVerifyBody, KeyVerdict>;
  "latch.acquire": Operation<"key", undefined, AcquireBody, AcquiredLock>;
  "latch.release": Operation<"key", undefined, ReleaseBody, ReleasedLock>;
  "latch.status": Operation<"key", undefined, undefined, LockStatus>;
  "meter.balance": Operation<"meterId", undefined, undefined, MeterBalance>;
  "meter.deduct": Operation<"meterId", undefined, AmountBody, MeterBalance>;
  "meter.history": Operation<
    "meterId",
    {
      /** How many items to return at most. */
      limit?: number | undefined;
      /** The `cursor` of the page before. */
      cursor?: string | undefined;
    },
    undefined,
    LedgerPage
  >;
  "meter.own.balance": Operation<never, undefined, undefined, OwnBalance>;
  "meter.own.deduct": Operation<never, undefined, AmountBody, OwnBalance>;
  "meter.own.history": Operation<
    never,
    {
      /** How many items to return at most. */
      limit?: number | undefined;
      /** The `cursor` of the page before. */
      cursor?: string | undefined;
    },
    undefined,
    LedgerPage
  >;
  "meter.own.refill": Operation<never, undefined, AmountBody, OwnBalance>;
  "meter.refill": Operation<"meterId", undefined, AmountBody, MeterBalance>;
  "meter.reset": Operation<"meterId", undefined, ResetBody, MeterBalance>;
  "monitors.check": Operation<"monitorId", undefined, undefined, MonitorStatus>;
  "monitors.create": Operation<never, undefined, MonitorCreateBody, Monitor>;
  "monitors.delete": Operation<"monitorId", undefined, undefined, MonitorDeleted>;
  "monitors.history": Operation<
    "monitorId",
    {
      /** How many items to return at most. */
      limit?: number | undefined;
      /** The `cursor` of the page before. */
      cursor?: string | undefined;
    },
    undefined,
    MonitorHistory
  >;
  "monitors.list": Operation<
    never,
    {
      status?: "up" | "down" | "unknown" | undefined;
      /** How many items to return at most. */
      limit?: number | undefined;
      /** The `cursor` of the page before. */
      cursor?: string | undefined;
    },
    undefined,
    MonitorPage
  >;
  "monitors.read": Operation<"monitorId", undefined, undefined, MonitorStatus>;
  "monitors.update": Operation<"monitorId", undefined, MonitorUpdateBody, Monitor>;
  "openapi.read": Operation<never, undefined, undefined, OpenApiDocument>;
  ping: Operation<never, undefined, undefined, Pong>;
  "projects.create": Operation<never, undefined, ProjectCreateBody, Project>;
  "projects.delete": Operation<"id", undefined, undefined, ProjectDeleted>;
  "projects.get": Operation<"id", undefined, undefined, Project>;
  "projects.keys.create": Operation<"id", undefined, KeyCreateBody, KeyCreated>;
  "projects.list": Operation<
    never,
    {
      /** How many items to return at most. */
      limit?: number | undefined;
      /** The `cursor` of the page before. */
      cursor?: string | undefined;
    },
    undefined,
    ProjectPage
  >;
  "projects.overview": Operation<"id", undefined, undefined, ProjectOverview>;
  "projects.update": Operation<"id", undefined, ProjectUpdateBody, Project>;
  "relay.cancel": Operation<"relay_id", undefined, undefined, RelayCancelled>;
  "relay.list": Operation<
    never,
    {
      /** `pulse`: only notifications of monitors. */
      filter?: "pulse" | undefined;
      status?: "scheduled" | "delivering" | "delivered" | "failed" | "cancelled" | undefined;
      /** How many items to return at most. */
      limit?: number | undefined;
      /** The `cursor` of the page before. */
      cursor?: string | undefined;
    },
    undefined,
    RelayPage
  >;
  "relay.read": Operation<"relay_id", undefined, undefined, Relay>;
  "relay.schedule": Operation<never, undefined, RelayBody, RelayScheduled>;
  signup: Operation<never, undefined, SignupBody, SignedUp>;
  "witness.config.read": Operation<never, undefined, undefined, ReceiptStorage>;
  "witness.config.set": Operation<never, undefined, StorageBody, StorageConfigured>;
  "witness.init": Operation<never, undefined, undefined, ChainExists | ChainCreated>;
  "witness.log": Operation<never, undefined, LogBody, Receipt>;
  "witness.pubkey": Operation<"chainId", undefined, undefined, PublicKey>;
  "witness.receipts.list": Operation<
    never,
    {
      /** How many items to return at most. */
      limit?: number | undefined;
      /** The `cursor` of the page before. */
      cursor?: string | undefined;
    },
    undefined,
    ReceiptPage
  >;
  "witness.receipts.read": Operation<"sequence_id", undefined, undefined, Receipt>;
  "witness.verify": Operation<never, undefined, ReceiptVerifyBody, ReceiptVerdict>;
}
