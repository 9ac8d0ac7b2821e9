import { type Actor, ActorRegistry } from "../../../kernel/actors/registry.ts";
import { changed } from "../../../kernel/audit/change.ts";
import { type Caller, type CallerAccount, type Charger, hasScope } from "../../../kernel/callers/caller.ts";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import type { Call } from "../../../kernel/http/requests/call.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { LruMap } from "../../../kernel/limits/lru-map.ts";
import { NO_LIMIT, type Tiers } from "../../../kernel/limits/tiers.ts";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import type { WebhookSecrets } from "../../../kernel/outbound/webhook-secrets.ts";
import type { ProjectActivity } from "../../../kernel/projects/activity.ts";
import { COUNTED_MAX } from "../../../kernel/projects/overview-card.ts";
import { managedView } from "../../../kernel/resources/managed.ts";
import { isOtherOrigin, movedWithoutSecret } from "../../../kernel/secrets/bound-secret.ts";
import { sealedJson, sealedText } from "../../../kernel/secrets/sealed-column.ts";
import { SECRET_NAMES } from "../../../kernel/secrets/secret-names.ts";
import type { Fields, Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import { DAY_MS } from "../../../kernel/time/units.ts";
import {
  assertBelowBucketLimit,
  type EventStatus,
  knownProvider,
  NO_TRAFFIC,
  type Provider,
  type Traffic,
} from "../domain.ts";
import { type EventSequence, firstSequenceAt, receiptOf } from "../event-ids.ts";
import type { Pieces } from "../large/pieces.ts";
import type { CertificateHosts } from "../providers/certificates.ts";
import type { Bucket, BucketCreateBody, BucketUpdateBody, EventDelivery } from "../schema.ts";
import {
  type BucketRow,
  type BucketStore,
  decodeProvider,
  type EventStore,
  encodeProvider,
} from "../store.ts";
import { newBucketId } from "./ids.ts";
import { bucketIdIn } from "./own-path.ts";
import {
  assertSecrets,
  changedSettings,
  type GivenSecrets,
  openSettings,
  type Settings,
  type SettingsTerms,
  type StoredSettings,
  settingsIn,
  settingsView,
} from "./settings.ts";

const SIGNING_SECRET = sealedText("catch-signing-secret");
/** The further settings of a bucket, some of which are secret. */
export const BUCKET_SETTINGS = sealedJson<StoredSettings>("catch-settings");

/** Idle buckets in memory: some hundred bytes each. */
export const BUCKETS_IN_MEMORY_MAX = 20_000;

/** Accounts whose stored bytes are in memory, about 2 MB; others are summed up when they are needed. */
const ACCOUNTS_IN_MEMORY_MAX = 20_000;

const TARGET_NEEDED =
  'is required: it must be an https URL such as https://example.com/webhooks, unless the bucket has targets or delivery is "pull"';

/** Stored value for no target. */
const NO_TARGET = "";

/** The end of an event's retries. */
export interface FailureNotice {
  readonly accountRef: number;
  readonly projectRef: number;
  /** Name of the bucket, or its id. */
  readonly name: string;
  /** Fields of the notice, as the API shows them. */
  readonly facts: {
    readonly bucket_id: string;
    readonly event_id: string;
    readonly event_type: string | null;
    readonly attempts: number;
    readonly response_status: number | null;
    readonly error: string;
  };
}

/** An endpoint that accepts an event, and the key by which it orders the event; null without an order. */
export interface Recipient {
  readonly ref: number;
  readonly orderKey: string | null;
}

/** The project's endpoints, which may be targets of buckets, and the deliveries of events to them. */
interface TargetEndpoints {
  hasEndpoint(projectRef: number, endpointId: string): boolean;
  /** The URL of an endpoint; null when the project has none with this id. */
  urlOf(projectRef: number, endpointId: string): string | null;
  /** Whether an endpoint is live: neither paused nor disabled. */
  isLive(projectRef: number, endpointId: string): boolean;
  /** Whether an endpoint exists and is not disabled. */
  isEnabled(projectRef: number, endpointId: string): boolean;
  /** An endpoint whose types and filter accept an event; null when they do not. */
  accepting(
    projectRef: number,
    endpointId: string,
    event: { readonly type: string | null; readonly value: () => unknown },
  ): Recipient | null;
  /** Stores a delivery of an event to each endpoint. */
  send(
    tx: Tx,
    owner: { readonly accountRef: number; readonly projectRef: number },
    event: { readonly bucket_id: string; readonly event_id: string; readonly type: string | null },
    recipients: readonly Recipient[],
  ): { relay_id: string; endpoint_id: string }[];
  /** The deliveries of an event, oldest first. */
  ofEvent(eventId: string): EndpointDelivery[];
  /** The last attempts to deliver an event, newest first. */
  attempts(eventId: string, limit: number): EndpointAttempt[];
}

/** A delivery of an event to an endpoint. */
export interface EndpointDelivery extends Omit<EventDelivery, "finished_at"> {
  /** Epoch milliseconds; null before the end. */
  readonly finished_at: number | null;
}

/** An attempt to deliver an event to an endpoint. */
export interface EndpointAttempt {
  readonly endpoint_id: string;
  /** Epoch milliseconds. */
  readonly started_at: number;
  readonly duration_ms: number;
  readonly response_status: number | null;
  readonly error: string | null;
  readonly response_body: Uint8Array | null;
}

/** What the area needs of other areas and of the server. */
export interface CatchDeps {
  readonly accounts: {
    /** The account in memory: changes of tier, balance or suspension are visible immediately. */
    account(accountRef: number): CallerAccount;
    /** The account's newest platform key, which signs forwarded events. */
    signingKey(accountRef: number): string | null;
  };
  readonly charger: Charger;
  readonly activity: ProjectActivity;
  readonly outbound: OutboundClient;
  /** The projects' secrets, which also sign forwarded events. */
  readonly secrets: Pick<WebhookSecrets, "headers">;
  /** Endpoints that buckets deliver to. */
  readonly endpoints: TargetEndpoints;
  readonly notices: {
    /** Notifies the subscribers of a project that the retries of an event ended. */
    failed(tx: Tx, notice: FailureNotice): void;
  };
  readonly tiers: Tiers;
  /** Public URL of the server; null when it is not configured. */
  readonly publicUrl: () => string | null;
  readonly certificateHosts: CertificateHosts;
}

/** What the services of the area share. */
export interface SharedDeps extends Kernel, CatchDeps {
  /** Bodies above 1 MiB. */
  readonly large: Pieces;
  readonly store: BucketStore;
  readonly events: EventStore;
  readonly sequence: EventSequence;
}

/** A bucket in memory. Its recent traffic is not stored: a restart resets it. */
export interface BucketActor
  extends Actor,
    Omit<
      BucketRow,
      "target_url" | "provider" | "signing_secret" | "settings" | "live" | "pull" | "deleted_at"
    > {
  /** False while its counts are not stored yet. */
  idle: boolean;
  target_url: string | null;
  readonly provider: Provider | null;
  /** Unsealed. */
  signing_secret: string | null;
  settings: Settings;
  live: boolean;
  /** Whether clients fetch its events. */
  pull: boolean;
  deleted: boolean;
  traffic: Traffic;
}

/** What forwards the events of buckets. */
export interface EventForwarding {
  /** Forwards the pending events of a bucket that starts to send, or has other targets. */
  wentLive(tx: Tx, bucket: BucketActor): void;
}

/** Buckets in use are in memory. Their counts change there, within units of work, and are stored once per batch. */
export class Buckets {
  private readonly actors: ActorRegistry<string, BucketActor>;
  private changed = new Set<BucketActor>();
  /** Bytes of the bodies of accounts that are in use, by their references. */
  private readonly bytesOfAccount = new LruMap<number, number>(ACCOUNTS_IN_MEMORY_MAX);
  private nextRef: number;

  constructor(
    private readonly deps: Pick<
      SharedDeps,
      | "store"
      | "events"
      | "vault"
      | "digests"
      | "ids"
      | "writer"
      | "outbound"
      | "tiers"
      | "changes"
      | "accounts"
      | "publicUrl"
      | "endpoints"
    >,
    private readonly forwarding: EventForwarding,
    inMemoryMax = BUCKETS_IN_MEMORY_MAX,
  ) {
    this.actors = new ActorRegistry(inMemoryMax);
    this.nextRef = deps.store.highestRef() + 1;
    deps.writer.beforeCommit((tx) => this.writeCounts(tx));
  }

  /** A bucket by its id; undefined when it is deleted. */
  find(id: string): BucketActor | undefined {
    const bucket = this.actors.get(id, () => this.load(id));
    return bucket?.deleted === false ? bucket : undefined;
  }

  /** A bucket by its reference; undefined when it is deleted. */
  withRef(ref: number): BucketActor | undefined {
    const row = this.deps.store.idOf(ref);
    return row === null ? undefined : this.find(row.id);
  }

  /** @throws ApiError `catch.bucket_not_found` when it does not exist or belongs to another project */
  ofProject(projectRef: number, id: string): BucketActor {
    const bucket = this.find(id);
    if (bucket === undefined || bucket.project_ref !== projectRef) {
      throw new ApiError("catch.bucket_not_found", "There is no bucket with this id in your project.");
    }
    return bucket;
  }

  /** A project's buckets, newest first, or the one with a name. */
  listOfProject(projectRef: number, name?: string): BucketActor[] {
    const { store } = this.deps;
    const rows =
      name === undefined ? store.ofProject(projectRef) : [store.named(projectRef, name) ?? []].flat();
    return rows.flatMap(({ id }) => this.find(id) ?? []);
  }

  /** Numbers of a project's events by status, and those that need attention, for the overview. */
  figures(projectRef: number, now: number) {
    const { events } = this.deps;
    const sum = { pending: 0, failed: 0, failed_24h: 0, delivered: 0 };
    let waiting = Number.POSITIVE_INFINITY;
    for (const { ref, provider, live, pending, failed, delivered } of this.listOfProject(projectRef)) {
      sum.pending += pending;
      sum.failed += failed;
      sum.delivered += delivered;
      const day = firstSequenceAt(now - DAY_MS);
      if (failed > 0) sum.failed_24h += events.failedFrom(ref, provider, day, COUNTED_MAX);
      // Events of a paused bucket are not overdue.
      if (live && pending > 0) waiting = Math.min(waiting, ...events.pendingAfter(ref, provider, 0, 1));
    }
    const pending_since = Number.isFinite(waiting) ? isoTime(receiptOf(waiting)) : null;
    return { ...sum, pending_since };
  }

  /** The buckets of a project with the most failed events. */
  failing(projectRef: number, bucketsMax: number) {
    return this.listOfProject(projectRef)
      .filter(({ failed }) => failed > 0)
      .sort((a, b) => b.failed - a.failed)
      .slice(0, bucketsMax)
      .map(({ id, name, failed }) => ({ bucket_id: id, name, failed }));
  }

  /** @throws ApiError `validation_error`, `catch.provider_unsupported`, `bucket_name_taken`, `bucket_limit_exceeded` */
  create(tx: Tx, { account, project }: Caller, body: BucketCreateBody): BucketActor {
    const { store, tiers } = this.deps;
    const { target_url = null } = body;
    const pull = body.delivery === "pull";
    this.assertTarget(target_url, pull, body.targets ?? []);
    const provider = knownProvider(body.provider);
    const terms = this.settingsTerms(tx, account.tier, project.ref);
    const settings = changedSettings(provider, {}, settingsIn(body), terms);
    const { name = null, signing_secret, previous_signing_secret } = body;
    assertSecrets(settings, { signing_secret, previous_signing_secret }, body.provider);
    this.assertNameFree(project.ref, name, null);
    const { buckets: bucketsMax } = tiers[account.tier];
    // Without a limit nothing has to be counted.
    if (bucketsMax !== NO_LIMIT) assertBelowBucketLimit(store.countOfAccount(account.ref), bucketsMax);
    const id = this.freeId();
    const ref = this.nextRef++;
    store.insert(tx, {
      ref,
      id,
      account_ref: account.ref,
      project_ref: project.ref,
      name,
      target_url: target_url ?? NO_TARGET,
      live: body.state === "live",
      pull,
      provider: encodeProvider(provider),
      signing_secret: SIGNING_SECRET.sealOrNull(this.deps.vault, id, body.signing_secret ?? null),
      ...this.sealSettings(id, settings),
      created_at: tx.now,
      managed_by: body.managed_by ?? null,
    });
    this.storeTargets(tx, ref, settings);
    tx.onRollback(() => this.actors.drop(id));
    const bucket = this.ofProject(project.ref, id);
    tx.audit({ ...aboutBucket(bucket, "created"), before: null, after: termsOf(bucket) });
    if (isSending(bucket)) this.forwarding.wentLive(tx, bucket);
    return bucket;
  }

  /**
   * Updates the given fields; omitted fields keep their values.
   * @throws ApiError `catch.bucket_not_found`, `bucket_name_taken`, `validation_error`; `conflict` for another target of events
   *   that contain a secret which the caller may not read
   */
  change(
    tx: Tx,
    { caller, ownUrls }: Pick<Call, "caller" | "ownUrls">,
    id: string,
    changes: BucketUpdateBody,
  ): BucketActor {
    const projectRef = caller.project.ref;
    const bucket = this.ofProject(projectRef, id);
    assertTokenStays(caller, bucket, changes);
    const { name, target_url, signing_secret, settings, live, pull, updated_at } = bucket;
    const { target_url: url = target_url, signing_secret: secret = signing_secret, state } = changes;
    const { name: called = name, delivery } = changes;
    const before = termsOf(bucket);
    const settingChanges = settingsIn(changes);
    const plain = [changes.name, changes.target_url, changes.signing_secret, state, delivery];
    if (plain.every((value) => value === undefined) && Object.keys(settingChanges).length === 0) {
      tx.audit(null);
      return bucket;
    }
    const pulls = delivery === undefined ? pull : delivery === "pull";
    const { targets = settings.stored.targets } = changes;
    if ([changes.target_url, delivery, changes.targets].some((value) => value !== undefined))
      this.assertTarget(url, pulls, targets ?? []);
    this.assertNoLoop(bucket, changes, ownUrls);
    this.assertNameFree(projectRef, called, bucket);
    const sent = isSending(bucket);
    const hadTargets = hasTargets(bucket);
    const { provider, account_ref } = bucket;
    const set =
      Object.keys(settingChanges).length === 0
        ? settings
        : changedSettings(
            provider,
            settings.stored,
            settingChanges,
            this.settingsTerms(tx, this.deps.accounts.account(account_ref).tier, projectRef),
          );
    assertSecrets(set, changedSecrets(changes, secret), undefined);
    tx.onRollback(() =>
      Object.assign(bucket, { name, target_url, signing_secret, settings, live, pull, updated_at }),
    );
    bucket.name = called;
    bucket.target_url = url;
    bucket.signing_secret = secret;
    bucket.settings = set;
    bucket.live = state === undefined ? live : state === "live";
    bucket.pull = pulls;
    bucket.updated_at = tx.now;
    tx.audit(changed({ ...aboutBucket(bucket, "changed"), before, after: termsOf(bucket) }));
    this.keep(bucket);
    const sealed = {
      signing_secret: SIGNING_SECRET.sealOrNull(this.deps.vault, bucket.id, secret),
      ...this.sealSettings(bucket.id, set),
    };
    this.deps.store.setTerms(tx, { ...bucket, target_url: url ?? NO_TARGET, ...sealed });
    if (changes.targets !== undefined) this.storeTargets(tx, bucket.ref, set);
    if (isSending(bucket) && (!sent || hadTargets !== hasTargets(bucket)))
      this.forwarding.wentLive(tx, bucket);
    return bucket;
  }

  /** A bucket as a caller sees it. */
  view(bucket: BucketActor, { caller, baseUrl }: Pick<Call, "caller" | "baseUrl">): Bucket {
    const { stored } = bucket.settings;
    const secrets = {
      signing_secret: bucket.signing_secret,
      previous_signing_secret: stored.previous_signing_secret,
      "challenge.token": stored.challenge?.token,
    };
    return { ...bucketView(bucket, baseUrl), ...this.deps.digests.of(caller, "catch", bucket.id, secrets) };
  }

  /** Marks a bucket as deleted: it is hidden, and its rows are removed later. */
  markDeleted(tx: Tx, bucket: BucketActor): void {
    this.countBytes(tx, bucket, -bucket.stored_bytes);
    bucket.deleted = true;
    tx.onRollback(() => {
      bucket.deleted = false;
    });
    this.keep(bucket);
    this.deps.store.setDeleted(tx, tx.now, bucket.ref);
    tx.afterCommit(() => this.actors.drop(bucket.id));
  }

  /** Moves an event between statuses: `from` is null for a new event, `to` for a deleted one. */
  count(tx: Tx, bucket: BucketActor, from: EventStatus | null, to: EventStatus | null): void {
    this.keep(bucket);
    move(bucket, from, to);
    this.deps.changes.inProject(tx, bucket.project_ref, "catch", bucket.id);
    tx.onRollback(() => move(bucket, to, from));
  }

  /** Counts the bytes of an event's body that is stored, or removed (negative). */
  countBytes(tx: Tx, bucket: BucketActor, bytes: number): void {
    const { account_ref } = bucket;
    const before = this.storedBytesOf(account_ref);
    const { stored_bytes } = bucket;
    tx.onRollback(() => {
      bucket.stored_bytes = stored_bytes;
      this.bytesOfAccount.set(account_ref, before);
    });
    this.keep(bucket);
    bucket.stored_bytes += bytes;
    this.bytesOfAccount.set(account_ref, before + bytes);
  }

  /** Bytes of the bodies of all events of an account. */
  storedBytesOf(accountRef: number): number {
    const known = this.bytesOfAccount.get(accountRef);
    if (known !== undefined) return known;
    const bytes = this.deps.store.storedBytesOf(accountRef);
    this.bytesOfAccount.set(accountRef, bytes);
    return bytes;
  }

  /** Counts a request that was too large to be stored. */
  countTooLarge(tx: Tx, bucket: BucketActor): void {
    const { too_large, last_too_large_at } = bucket;
    tx.onRollback(() => Object.assign(bucket, { too_large, last_too_large_at }));
    this.keep(bucket);
    bucket.too_large += 1;
    bucket.last_too_large_at = tx.now;
    this.deps.store.setTooLarge(tx, bucket.too_large, tx.now, bucket.ref);
    this.deps.changes.inProject(tx, bucket.project_ref, "catch", bucket.id);
  }

  /** Keeps a bucket in memory until the batch ends, because its changes may be rolled back. */
  private keep(bucket: BucketActor): void {
    bucket.idle = false;
    this.changed.add(bucket);
  }

  /** A rollback of the batch undoes the changes in memory unit by unit. */
  private writeCounts(tx: Tx): void {
    if (this.changed.size === 0) return;
    for (const bucket of this.changed) {
      const { pending, delivered, failed, stored_bytes, ref } = bucket;
      this.deps.store.setCounts(tx, pending, delivered, failed, stored_bytes, ref);
      bucket.idle = true;
    }
    this.changed = new Set();
  }

  private load(id: string): BucketActor | undefined {
    const row = this.deps.store.find(id);
    if (row === null) return undefined;
    const { signing_secret: sealed, settings, deleted_at, ...same } = row;
    const provider = decodeProvider(row.provider);
    const { vault } = this.deps;
    return {
      ...same,
      idle: true,
      recent: false,
      traffic: NO_TRAFFIC,
      provider,
      target_url: row.target_url === NO_TARGET ? null : row.target_url,
      settings: openSettings(provider, BUCKET_SETTINGS.openOrNull(vault, id, settings) ?? {}),
      signing_secret: SIGNING_SECRET.openOrNull(vault, id, sealed),
      live: row.live !== 0,
      pull: row.pull !== 0,
      deleted: deleted_at !== null,
    };
  }

  /** A name is unique within its project. `except`: the bucket that may already have it. @throws ApiError `bucket_name_taken` */
  private assertNameFree(projectRef: number, name: string | null, except: BucketActor | null): void {
    const holder = name === null ? null : this.deps.store.named(projectRef, name);
    if (holder === null || holder.id === except?.id) return;
    const message = `The bucket ${holder.id} of this project has this name. Choose another name, or rename that bucket.`;
    throw new ApiError("bucket_name_taken", message, { extras: { bucket_id: holder.id } });
  }

  private storeTargets(tx: Tx, ref: number, { stored, targets }: Settings): void {
    if (stored.targets === undefined) return;
    this.deps.store.setTargets(
      tx,
      ref,
      targets.map(({ endpoint_id }) => endpoint_id),
    );
  }

  private assertTarget(url: string | null, pulls: boolean, targets: readonly unknown[]): void {
    if (url === null) {
      if (!pulls && targets.length === 0) throw invalidField("target_url", TARGET_NEEDED);
      return;
    }
    if (targets.length > 0)
      throw invalidField(
        "targets",
        "cannot be combined with target_url: set target_url to null, or targets to []",
      );
    this.deps.outbound.policy.assertUrl("target_url", url, { requireHttps: true });
  }

  /** A new bucket needs no check, since nothing knows its id. @throws ApiError `validation_error` */
  private assertNoLoop(
    { id, project_ref }: BucketActor,
    { target_url, targets }: BucketUpdateBody,
    ownUrls: readonly string[],
  ): void {
    if (target_url && bucketIdIn(target_url, ownUrls) === id)
      throw invalidField(
        "target_url",
        "must not be a URL of this bucket, which would forward each event to itself",
      );
    for (const [at, { endpoint_id }] of (targets ?? []).entries()) {
      const url = this.deps.endpoints.urlOf(project_ref, endpoint_id);
      if (url !== null && bucketIdIn(url, ownUrls) === id)
        throw invalidField(
          `targets.${at}.endpoint_id`,
          "must not be an endpoint whose URL is one of this bucket",
        );
    }
  }

  private sealSettings(
    id: string,
    { stored }: Settings,
  ): Pick<BucketRow, "settings"> & { retention_hours: number | null } {
    const { retention_hours = null } = stored;
    return { settings: BUCKET_SETTINGS.sealOrNull(this.deps.vault, id, stored), retention_hours };
  }

  private settingsTerms({ now }: Tx, tier: CallerAccount["tier"], projectRef: number): SettingsTerms {
    const { tiers, publicUrl, endpoints } = this.deps;
    return {
      now,
      publicUrl: publicUrl(),
      retentionHoursMax: tiers[tier].eventRetentionHours,
      hasEndpoint: (endpointId) => endpoints.hasEndpoint(projectRef, endpointId),
    };
  }

  /** A random id that is not used. A deleted bucket occupies its id until its rows are removed. */
  private freeId(): string {
    for (;;) {
      const id = newBucketId(this.deps.ids);
      if (this.deps.store.find(id) === null) return id;
    }
  }
}

/** Whether a bucket forwards its events. */
export function isSending({ live, pull }: BucketActor): boolean {
  return live && !pull;
}

/** Whether a bucket's events go to endpoints, in place of its `target_url`. */
export function hasTargets({ settings: { targets } }: BucketActor): boolean {
  return targets.length > 0;
}

/** The secrets of an update to check: a new recipe must be able to use the secret that the bucket has. */
function changedSecrets(changes: BucketUpdateBody, secret: string | null): GivenSecrets {
  const { signing_secret, previous_signing_secret, signature } = changes;
  return { signing_secret: signature ? secret : signing_secret, previous_signing_secret };
}

function move(bucket: BucketActor, from: EventStatus | null, to: EventStatus | null): void {
  if (from !== null) bucket[from] -= 1;
  if (to !== null) bucket[to] += 1;
}

/** Summary and target of an audit entry about a bucket. */
export function aboutBucket({ id, name }: BucketActor, what: string) {
  return { summary: `Bucket ${name ?? id} ${what}`, target: { type: "bucket", id } };
}

/** A bucket's settings for the audit log, which removes the secret. */
export function termsOf(bucket: BucketActor): Fields {
  const { name, target_url, provider, signing_secret, settings, live, pull } = bucket;
  const terms = { name, target_url, delivery: deliveryOf(pull), provider, signing_secret };
  return { ...terms, ...settings.stored, state: live ? "live" : "paused" };
}

function deliveryOf(pull: boolean): Bucket["delivery"] {
  return pull ? "pull" : "push";
}

/** A bucket without what depends on the caller, with URLs that start with `baseUrl`. */
function bucketView(bucket: BucketActor, baseUrl: string): Bucket {
  const { id, name, target_url, provider, signing_secret, settings, live, pull } = bucket;
  const { pending, delivered, failed } = bucket;
  return {
    id,
    name,
    ingest_url: `${baseUrl}/v1/in/${id}`,
    target_url,
    provider,
    has_signing_secret: signing_secret !== null,
    ...settingsView(provider, settings),
    state: live ? "live" : "paused",
    delivery: deliveryOf(pull),
    created_at: isoTime(bucket.created_at),
    updated_at: isoTime(bucket.updated_at),
    too_large: bucket.too_large,
    last_too_large_at: isoTimeOrNull(bucket.last_too_large_at),
    events: { pending, delivered, failed },
    ...managedView(bucket.managed_by),
    ...(live || pull
      ? {}
      : {
          hint: `The bucket is paused and forwards nothing. To start forwarding: PATCH /v1/catch/buckets/${id} {"state": "live"}`,
        }),
  };
}

/** Whether the sender sends the secret itself, so that each event has it. */
function forwardsSecret({
  signing_secret,
  settings,
}: Pick<BucketActor, "signing_secret" | "settings">): boolean {
  const isToken = settings.preset?.schemes.some(({ algorithm }) => algorithm === "token") === true;
  return isToken && signing_secret !== null;
}

/** Whether events contain a secret of their sender: one that is verified, or headers that the bucket forwards by name. */
export function containsSecret(bucket: BucketActor): boolean {
  return forwardsSecret(bucket) || namesCredentials(bucket.settings.stored.forward);
}

function namesCredentials(forward: StoredSettings["forward"]): boolean {
  return forward?.headers?.some((name) => SECRET_NAMES.has(name.toLowerCase())) === true;
}

/**
 * Keys without `catch:read` cannot read events, and may not have those with a secret sent elsewhere. Nor may they end its
 * verification: a later change could move the events, which their sender still sends with it.
 *
 * @throws ApiError `conflict`
 */
function assertTokenStays(caller: Caller, bucket: BucketActor, changes: BucketUpdateBody): void {
  if (hasScope(caller, "catch:read")) return;
  const { forward = bucket.settings.stored.forward } = changes;
  const isMoved = changes.forward !== undefined || movedField(bucket, changes) !== null;
  if (isMoved && namesCredentials(forward))
    throw new ApiError(
      "conflict",
      "The bucket forwards headers in which senders send secrets. Use a key that also has the scope catch:read, or name no such headers in forward.headers.",
    );
  if (!forwardsSecret(bucket)) return;
  const { signing_secret: secret, previous_signing_secret: previous, signature } = changes;
  if (secret === null || (signature !== undefined && signature?.algorithm !== "token"))
    throw new ApiError(
      "conflict",
      "The sender's secret, which is forwarded with each event, would no longer be verified. Use a key that also has the scope catch:read.",
    );
  const kept =
    secret === undefined
      ? "signing_secret"
      : previous === undefined && bucket.settings.stored.previous_signing_secret
        ? "previous_signing_secret"
        : null;
  const moved = movedField(bucket, changes);
  if (kept !== null && moved !== null) throw movedWithoutSecret(caller, moved, kept);
}

/** The field of a change with which events are sent elsewhere; null without any. */
function movedField(
  { target_url, settings }: BucketActor,
  { target_url: url = null, targets }: BucketUpdateBody,
): "target_url" | "targets" | null {
  if (isOtherOrigin(target_url, url)) return "target_url";
  const known = new Set(settings.targets.map(({ endpoint_id }) => endpoint_id));
  return targets?.some(({ endpoint_id }) => !known.has(endpoint_id)) === true ? "targets" : null;
}
