import { changed } from "../../../kernel/audit/change.ts";
import { type Caller, hasScope } from "../../../kernel/callers/caller.ts";
import { assertFilter } from "../../../kernel/data/filter.ts";
import { serializeMetadata } from "../../../kernel/data/schema.ts";
import { prefixedId } from "../../../kernel/data/uuid.ts";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import { pageOf, pageStart } from "../../../kernel/http/requests/pagination.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tiers } from "../../../kernel/limits/tiers.ts";
import { readWaits } from "../../../kernel/outbound/retries.ts";
import { SCHEME_RULES, type SignatureScheme } from "../../../kernel/outbound/signature-schemes.ts";
import type { TargetPolicy } from "../../../kernel/outbound/target.ts";
import type { ValidSecrets, WebhookSecrets } from "../../../kernel/outbound/webhook-secrets.ts";
import { COUNTED_MAX } from "../../../kernel/projects/overview-card.ts";
import { managedView } from "../../../kernel/resources/managed.ts";
import { assertSecretStays, isOtherOrigin } from "../../../kernel/secrets/bound-secret.ts";
import type { AuditChange, Tx } from "../../../kernel/storage/tx.ts";
import { DAY_MS, HOUR_MS } from "../../../kernel/time/units.ts";
import { GRACE_HOURS, LIST_LIMIT, RELAY_STATUSES } from "../deliveries/schema.ts";
import { messageBody } from "../payload.ts";
import { HEALTHY } from "./breaker.ts";
import type { RegisteredSource } from "./event-source.ts";
import {
  assertNoNotices,
  assertNotReservedType,
  NOTICE_SUBSCRIBERS_MAX,
  subscribesToNotices,
} from "./notices.ts";
import type { EndpointQueue } from "./queue.ts";
import { type Endpoint, type EndpointRegistry, isOrdered, NOTICE_PREFIX } from "./registry.ts";
import type { EndpointRemoval } from "./removal.ts";
import {
  ENDPOINT_DEFAULTS,
  ENDPOINT_STATES,
  type EndpointTerms,
  type RelayEndpoint,
  type RelayEndpointBody,
  type RelayEndpointCreated,
  type RelayEndpointItem,
  type RelayEndpointPage,
  type RelayEndpointPatch,
  type RelayEndpointQuery,
  type RelayEndpointSecret,
  type RelayEndpointSecretRotateBody,
  type RelayEndpointSecretRotated,
  type RelayEndpointTestBody,
  type RelayEndpointTested,
  type RelayPreview,
  type RelayPreviewBody,
} from "./schema.ts";
import {
  coverSecrets,
  INITIAL_SECRETS,
  keptSecrets,
  readSecrets,
  sealSecrets,
  secretChanges,
} from "./secret-settings.ts";
import { assertSignature, signatureOf } from "./signature.ts";
import { CLOSED, type EndpointStore, type Health, LIVE, OPEN, PAUSED } from "./store.ts";
import { assertTemplate, renderTemplate, type TemplateSource } from "./template.ts";

/** Endpoints of a project in every tier: a message may have a delivery to each of them. */
export const ENDPOINTS_MAX = 1_000;

const NEW: Health = {
  ...HEALTHY,
  state: LIVE,
  last_status: null,
  last_error: null,
  holds: 0,
  noticed_at: null,
  unnoticed: 0,
  retrying_ref: null,
};

/** A caller's settings of an endpoint, checked. */
type EndpointInput = ReturnType<typeof checkedSettings>;

/** Checks a caller's settings. @throws ApiError `validation_error` naming the field. */
export function checkedSettings(body: RelayEndpointPatch, policy: Pick<TargetPolicy, "assertUrl">) {
  const { name, state, owner_id: ownerId, metadata, secret, ...terms } = body;
  if (terms.url !== undefined) policy.assertUrl("url", terms.url);
  if (terms.filter !== undefined && terms.filter !== null) assertFilter("filter", terms.filter);
  if (terms.retry_schedule !== undefined) readWaits(terms.retry_schedule);
  if (terms.template !== undefined && terms.template !== null) assertTemplate("template", terms.template);
  if (terms.signature !== undefined && terms.signature !== null) assertSignature(terms.signature);
  const secrets = readSecrets(body);
  const described = metadata === undefined ? undefined : metadata && serializeMetadata(metadata);
  return { name, secrets, state, ownerId, metadata: described, secret, terms: termsIn(terms) };
}

/** Sends messages to one endpoint, regardless of its types and filter. */
interface TestMessages {
  /** `payload`: JSON. */
  sendTo(tx: Tx, endpoint: Endpoint, type: string, payload: string): RelayEndpointTested;
  /** What the body of a message is made of. @throws ApiError `not_found`; `conflict` when its payload is deleted */
  sourceOf(projectRef: number, messageId: string): MessageSource;
}

/** What the body of a message is made of. */
export interface MessageSource extends TemplateSource {
  readonly type: string;
  readonly json: string;
}

export class Endpoints {
  private nextRef: number;

  constructor(
    private readonly deps: Pick<Kernel, "ids" | "vault" | "digests"> & {
      readonly endpoints: EndpointStore;
      readonly registry: EndpointRegistry;
      readonly messages: TestMessages;
      readonly queue: EndpointQueue;
      readonly removal: EndpointRemoval;
      readonly secrets: WebhookSecrets;
      readonly policy: TargetPolicy;
      readonly tiers: Tiers;
      readonly source: RegisteredSource;
      /** The example of an event type, as JSON; null without one. */
      readonly exampleOf: (projectRef: number, type: string) => string | null;
      /** The id of the resend that recovers an endpoint, if the caller may read it; null without one. */
      readonly recoveryOf: (caller: Caller, endpointRef: number) => string | null;
    },
  ) {
    this.nextRef = deps.endpoints.highestRef() + 1;
  }

  /** Checks a caller's settings. @throws ApiError `validation_error` naming the field. */
  prepare(body: RelayEndpointPatch) {
    return checkedSettings(body, this.deps.policy);
  }

  /** @throws ApiError `endpoint_limit_exceeded`, `endpoint_name_taken` */
  create(
    tx: Tx,
    caller: Caller,
    { url, secret, managed_by }: RelayEndpointBody,
    input: EndpointInput,
  ): RelayEndpointCreated {
    const { endpoints, registry, secrets, ids, tiers } = this.deps;
    const { account, project } = caller;
    const { existing, deleted } = this.countOf(project.ref, null, tx.now);
    const most = Math.min(ENDPOINTS_MAX, tiers[account.tier].endpoints);
    if (existing + deleted >= most)
      throw new ApiError(
        "endpoint_limit_exceeded",
        `Your tier allows ${most} endpoints in a project; this one has ${existing}${countedToo(deleted)}. ${whatToDo(deleted)}, or move to a larger tier.`,
      );
    const { name = null, state, ownerId = null, metadata = null, terms } = input;
    this.assertFree(project.ref, name);
    if (ownerId !== null) assertNoNotices(terms.event_types ?? []);
    if (subscribesToNotices(terms.event_types ?? [])) this.assertMaySubscribe(project.ref);
    const ref = this.nextRef++;
    const endpoint_id = prefixedId("ep", ids.uuidV7());
    endpoints.insert(tx, {
      ref,
      endpoint_id,
      accountRef: account.ref,
      projectRef: project.ref,
      name,
      owner_id: ownerId,
      metadata,
      ...NEW,
      state: state === "paused" ? PAUSED : LIVE,
      terms: JSON.stringify({ url, ...ENDPOINT_DEFAULTS, ...terms }),
      ...sealSecrets(this.deps.vault, endpoint_id, { ...INITIAL_SECRETS, ...input.secrets }),
      created_at: tx.now,
      updated_at: tx.now,
      managed_by: managed_by ?? null,
    });
    registry.changed(tx, project.ref, ref);
    const { scheme } = signatureOf(terms.signature ?? null);
    const newSecret =
      secret === undefined ? secrets.current(tx, ref, scheme) : secrets.rotate(tx, ref, 0, secret, scheme);
    const created = this.itemView(this.find(caller, endpoint_id));
    tx.audit({ ...about(created, "created"), before: null, after: created });
    return { ...this.shownTo(caller, this.find(caller, endpoint_id)), ...shownSecret(newSecret) };
  }

  /** A page of a project's endpoints, newest first. @throws ApiError `validation_error` for a foreign cursor. */
  list(caller: Caller, query: RelayEndpointQuery): RelayEndpointPage {
    const { project, portal } = caller;
    const { limit = LIST_LIMIT, cursor, name, state } = query;
    const owner_id = portal?.ownerId ?? query.owner_id;
    const before = pageStart(cursor);
    const fits = (endpoint: Endpoint): boolean =>
      endpoint.row.ref < before &&
      (name === undefined || endpoint.row.name === name) &&
      (owner_id === undefined || endpoint.row.owner_id === owner_id) &&
      (state === undefined || stateOf(endpoint) === state);
    const rows = this.deps.registry.ofProject(project.ref).filter(fits).reverse();
    const { items, ...next } = pageOf(rows.slice(0, limit + 1), limit, ({ row }) => [row.ref]);
    return { endpoints: items.map((endpoint) => this.shownTo(caller, endpoint)), ...next };
  }

  /** @throws ApiError `not_found` */
  read(caller: Caller, endpointId: string, now: number): RelayEndpoint {
    const { endpoints } = this.deps;
    const endpoint = this.find(caller, endpointId);
    const { ref } = endpoint.row;
    const recovery = this.deps.recoveryOf(caller, ref);
    const finished = (status: "delivered" | "failed") =>
      endpoints.finishedSince(ref, RELAY_STATUSES.indexOf(status) + 1, COUNTED_MAX, now - DAY_MS);
    return {
      ...this.shownTo(caller, endpoint),
      counts: {
        waiting: endpoints.waiting(ref, COUNTED_MAX),
        delivered_24h: finished("delivered"),
        failed_24h: finished("failed"),
      },
      ...(recovery === null ? {} : { recovery_id: recovery }),
    };
  }

  /**
   * Updates the given settings. `ownUrls`: starts of this server's URLs.
   *
   * @throws ApiError `not_found`, `endpoint_name_taken`; `conflict` for another owner, and for another origin without the
   *   headers that are sent there; `validation_error` for a URL of a bucket that delivers to this endpoint
   */
  change(
    tx: Tx,
    caller: Caller,
    endpointId: string,
    input: EndpointInput,
    ownUrls: readonly string[],
  ): RelayEndpointItem {
    const { project } = caller;
    const { endpoints, registry, queue } = this.deps;
    const before = this.find(caller, endpointId);
    const { ref, endpoint_id } = before.row;
    const shownBefore = this.itemView(before);
    const { name = before.row.name, state, metadata, secret, terms } = input;
    const { owner_id } = before.row;
    if (terms.url !== undefined) this.assertNoLoop(endpoint_id, terms.url, ownUrls);
    this.assertChangeable(caller, before, input);
    if (name !== before.row.name) this.assertFree(project.ref, name);
    if (owner_id !== null) assertNoNotices(terms.event_types ?? []);
    const subscribed = subscribesToNotices(before.terms.event_types);
    if (!subscribed && subscribesToNotices(terms.event_types ?? [])) this.assertMaySubscribe(project.ref);
    endpoints.change(tx, {
      ref,
      name,
      terms: JSON.stringify({ ...before.terms, ...terms }),
      updated_at: tx.now,
      ...sealSecrets(this.deps.vault, endpoint_id, { ...before.secrets, ...input.secrets }),
    });
    if (metadata !== undefined) endpoints.setMetadata(tx, metadata, ref);
    const isNewSecret = this.setSecret(tx, before, { ...before.terms, ...terms }, secret);
    registry.changed(tx, project.ref, ref);
    const endpoint = this.find(caller, endpointId);
    if (state === "paused")
      registry.setHealth(tx, endpoint, {
        state: PAUSED,
        disabled_reason: null,
      });
    if (state === "live") registry.setHealth(tx, endpoint, { ...HEALTHY, state: LIVE });
    // Without an order to keep, deliveries do not wait for the retry of another one.
    if (!isOrdered(endpoint) && endpoint.health.retrying_ref !== null)
      registry.setHealth(tx, endpoint, { retrying_ref: null });
    // New limits apply immediately to parked deliveries.
    if (state === "live" || terms.max_per_second !== undefined || terms.max_concurrency !== undefined)
      queue.stateChanged(tx, ref);
    const after = this.itemView(endpoint);
    const { updated_at: _, ...shown } = shownBefore;
    const { updated_at: __, ...shownAfter } = after;
    const hidden = {
      ...shownAfter,
      ...secretChanges(input.secrets),
      ...(isNewSecret ? { secret_changed: true } : {}),
    };
    tx.audit(
      changed({
        ...about(after, "changed"),
        before: shown,
        after: hidden,
      } satisfies AuditChange),
    );
    return this.shownTo(caller, endpoint);
  }

  /**
   * Deletes an endpoint and cancels its pending deliveries. Its row is removed immediately if it has no deliveries, and
   * emptied otherwise.
   *
   * @throws ApiError `not_found`, `endpoint_in_use`
   */
  remove(tx: Tx, caller: Caller, endpointId: string): void {
    const { project } = caller;
    const { endpoints, registry, secrets, queue, removal } = this.deps;
    const endpoint = this.find(caller, endpointId);
    this.assertNoTarget(endpointId);
    const { ref } = endpoint.row;
    const shown = this.itemView(endpoint);
    if (endpoints.mayHaveDeliveries(ref) === 0) removal.remove(tx, ref);
    else endpoints.markDeleted(tx, tx.now, ref);
    registry.changed(tx, project.ref, ref);
    secrets.forget(tx, ref);
    queue.stateChanged(tx, ref);
    tx.audit({ ...about(shown, "deleted"), before: shown, after: null });
  }

  /** Replaces the secret of an endpoint. @throws ApiError `not_found`, `validation_error` for an invalid secret */
  rotate(
    tx: Tx,
    caller: Caller,
    endpointId: string,
    body: RelayEndpointSecretRotateBody,
  ): RelayEndpointSecretRotated {
    const endpoint = this.find(caller, endpointId);
    const graceMs = (body.grace_hours ?? GRACE_HOURS) * HOUR_MS;
    const { scheme } = signatureOf(endpoint.terms.signature);
    const newSecret = this.deps.secrets.rotate(tx, endpoint.row.ref, graceMs, body.secret, scheme);
    const previous_expires_at = tx.now + graceMs;
    const after = { previous_expires_at };
    tx.audit({
      ...about(endpoint.row, "secret rotated"),
      before: null,
      after,
    });
    return {
      ...shownSecret(newSecret),
      public_key: newSecret[0].private?.publicText ?? null,
      previous_expires_at,
    };
  }

  /** Returns the secret of an endpoint, or its public key. @throws ApiError `not_found` */
  reveal(tx: Tx, caller: Caller, endpointId: string): RelayEndpointSecret {
    const endpoint = this.find(caller, endpointId);
    const { scheme } = signatureOf(endpoint.terms.signature);
    const valid = this.deps.secrets.current(tx, endpoint.row.ref, scheme);
    const [{ createdAt, private: key }, ...previous] = valid;
    const after = { created_at: createdAt };
    tx.audit({ ...about(endpoint.row, "secret revealed"), before: null, after });
    return {
      ...shownSecret(valid),
      public_key: key?.publicText ?? null,
      created_at: createdAt,
      previous: previous.map(({ expiresAt }) => ({ expires_at: expiresAt ?? tx.now })),
    };
  }

  /**
   * The endpoints that count towards a limit: those of a project or of one of its customers, and those deleted in the last
   * day that are still stored, so that deleting and creating again and again has a limit, too.
   */
  countOf(projectRef: number, ownerId: string | null, now: number): { existing: number; deleted: number } {
    const all = this.deps.registry.ofProject(projectRef);
    const existing = ownerId === null ? all.length : all.filter(({ row }) => row.owner_id === ownerId).length;
    return { existing, deleted: this.deps.endpoints.deletedSince(projectRef, now - DAY_MS, ownerId) };
  }

  /**
   * Sends a message to one endpoint, regardless of its types and filter. `payload`: JSON; default: the example of the type.
   * @throws ApiError `not_found`; `conflict` while it is disabled; `validation_error` for a reserved type to a customer
   */
  test(
    tx: Tx,
    caller: Caller,
    endpointId: string,
    { event_type: type = "webhook.test" }: Pick<RelayEndpointTestBody, "event_type">,
    payload = this.deps.exampleOf(caller.project.ref, type) ?? '{"test":true}',
  ): RelayEndpointTested {
    const endpoint = this.find(caller, endpointId);
    if (stateOf(endpoint) === "disabled")
      throw new ApiError("conflict", "This endpoint is disabled. Enable it first: set its state to live.");
    // A customer could take it for a notice; the account may test with its own.
    if (endpoint.row.owner_id !== null) assertNotReservedType(type);
    return this.deps.messages.sendTo(tx, endpoint, type, payload);
  }

  /**
   * The body that an endpoint would receive of a message. `payload`: JSON.
   * @throws ApiError `not_found`, `conflict`; `validation_error` also for a result that is too large
   */
  async preview(
    caller: Caller,
    endpointId: string,
    { event_type, message_id, template: tried }: Omit<RelayPreviewBody, "payload">,
    payload: string | undefined,
    now: number,
  ): Promise<RelayPreview> {
    const { template, terms } = this.find(caller, endpointId);
    if (tried !== undefined && tried !== null) assertTemplate("template", tried);
    const source = this.previewedSource(caller, { event_type, message_id, payload, now });
    const { type, json } = source;
    const used = tried === undefined ? template : tried && JSON.stringify(tried);
    if (used === null)
      return {
        body: messageBody(terms.format, { event_type: type, created_at: source.timestamp, payload: json }),
      };
    const body = await renderTemplate(used, source);
    if (body === null)
      throw invalidField("template", "makes a body above 1 MiB of this payload: refer to smaller values");
    return { body: Buffer.from(body).toString("utf8") };
  }

  private previewedSource(
    caller: Caller,
    { event_type: type, message_id: id, payload: json, now }: Previewed,
  ) {
    if (id !== undefined && (type !== undefined || json !== undefined))
      throw invalidField("message_id", "cannot be combined with event_type and payload: omit them");
    if (id !== undefined) return this.deps.messages.sourceOf(caller.project.ref, id);
    if (type === undefined) throw invalidField("event_type", "is required, unless message_id is given");
    if (json === undefined) throw invalidField("payload", "is required, unless message_id is given");
    return { id: PREVIEW_ID, type, timestamp: now, json };
  }

  /** The reference of an endpoint, also of a deleted one; 0 when it does not exist. */
  refOf(projectRef: number, endpointId: string): number {
    return this.deps.endpoints.refOf(endpointId, projectRef);
  }

  /** An endpoint of the caller's project; of a portal link, only those of its customer. @throws ApiError `not_found` */
  find({ project, portal }: Pick<Caller, "project" | "portal">, endpointId: string): Endpoint {
    const all = this.deps.registry.ofProject(project.ref);
    const found = all.find(({ row }) => row.endpoint_id === endpointId);
    const isVisible = portal === undefined || found?.row.owner_id === portal.ownerId;
    if (found !== undefined && isVisible) return found;
    throw new ApiError("not_found", "There is no endpoint with this endpoint_id in this project.");
  }

  /** An endpoint as a caller sees it. */
  private shownTo(caller: Caller, endpoint: Endpoint): RelayEndpointItem {
    const { ref, endpoint_id } = endpoint.row;
    const secrets = { secret: this.deps.secrets.newest(ref), ...endpoint.secrets };
    return { ...this.itemView(endpoint), ...this.deps.digests.of(caller, "relay", endpoint_id, secrets) };
  }

  private itemView(endpoint: Endpoint): RelayEndpointItem {
    const { row, terms } = endpoint;
    const metadata = this.deps.endpoints.metadataOf(row.ref)?.metadata ?? null;
    return {
      endpoint_id: row.endpoint_id,
      name: row.name,
      owner_id: row.owner_id,
      metadata: metadata === null ? {} : JSON.parse(metadata),
      ...terms,
      ...coverSecrets(endpoint.secrets),
      public_key: this.deps.secrets.publicKey(row.ref),
      state: stateOf(endpoint),
      health: healthView(endpoint),
      created_at: row.created_at,
      updated_at: row.updated_at,
      ...managedView(row.managed_by),
    };
  }

  /** Sets a new secret, or makes the key pair that a new signature needs. Returns whether the secret changed. */
  private setSecret(
    tx: Tx,
    { row: { ref } }: Endpoint,
    { signature }: Pick<EndpointTerms, "signature">,
    secret: string | undefined,
  ): boolean {
    const { secrets } = this.deps;
    const { scheme } = signatureOf(signature);
    if (secret === undefined && secrets.fits(ref, scheme)) return false;
    if (secret === undefined && scheme !== "ed25519") throw invalidField("secret", missingSecret(scheme));
    secrets.rotate(tx, ref, GRACE_HOURS * HOUR_MS, secret, scheme);
    return true;
  }

  private assertFree(projectRef: number, name: string | null): void {
    const all = this.deps.registry.ofProject(projectRef);
    const holder = name === null ? undefined : all.find(({ row }) => row.name === name);
    if (holder === undefined) return;
    const { endpoint_id } = holder.row;
    const message = `The endpoint ${endpoint_id} of this project has this name. Choose another name, or rename that endpoint.`;
    throw new ApiError("endpoint_name_taken", message, {
      extras: { endpoint_id },
    });
  }

  /** @throws ApiError `endpoint_in_use` */
  private assertNoTarget(endpointId: string): void {
    const buckets = this.deps.source.current.bucketsOf(endpointId);
    const [bucket_id] = buckets;
    if (bucket_id === undefined) return;
    const message = `Buckets deliver their events to this endpoint: ${buckets.join(", ")}. Remove it from their targets first.`;
    throw new ApiError("endpoint_in_use", message, { extras: { bucket_id } });
  }

  private assertNoLoop(endpointId: string, url: string, ownUrls: readonly string[]): void {
    const bucketId = this.deps.source.current.loopThrough(endpointId, url, ownUrls);
    if (bucketId !== null)
      throw invalidField("url", `must not lead to the bucket ${bucketId}, which delivers to this endpoint`);
  }

  /** @throws ApiError `conflict` for another owner, and for another origin without the secrets that are sent there */
  private assertChangeable(caller: Caller, { row, terms, secrets }: Endpoint, input: EndpointInput): void {
    if (input.ownerId !== undefined && input.ownerId !== row.owner_id)
      throw new ApiError(
        "conflict",
        "The owner of an endpoint cannot be changed: its deliveries belong to the owner. Create an endpoint for the new owner, and delete this one.",
      );
    const moved = { field: "url", before: terms.url, after: input.terms.url ?? terms.url };
    for (const secretField of keptSecrets(secrets, input.secrets))
      assertSecretStays(caller, { ...moved, secretField });
    if (!isOtherOrigin(moved.before, moved.after) || hasScope(caller, "catch:read")) return;
    if (!this.deps.source.current.forwardsSecretTo(row.endpoint_id)) return;
    throw new ApiError(
      "conflict",
      "url leads to another origin, and buckets deliver events to this endpoint that contain the secret of their sender. Use a key that also has the scope catch:read, or change the targets of the buckets.",
    );
  }

  private assertMaySubscribe(projectRef: number): void {
    const all = this.deps.registry.ofProject(projectRef);
    const subscribers = all.filter(({ terms }) => subscribesToNotices(terms.event_types));
    if (subscribers.length < NOTICE_SUBSCRIBERS_MAX) return;
    throw invalidField(
      "event_types",
      `name types of ${NOTICE_PREFIX}*, as ${NOTICE_SUBSCRIBERS_MAX} endpoints of this project do already: change one of those`,
    );
  }
}

/** Id of a previewed message that does not exist. */
const PREVIEW_ID = "msg_preview";

/** What is previewed: a stored message, or a type and a payload, which is JSON. */
interface Previewed {
  readonly event_type: string | undefined;
  readonly message_id: string | undefined;
  readonly payload: string | undefined;
  readonly now: number;
}

/** The secret as a response shows it. Receivers verify with the public key of a private one. */
function shownSecret([newest]: ValidSecrets): { secret?: string } {
  return newest.private === null ? { secret: newest.text } : {};
}

function missingSecret(scheme: SignatureScheme): string {
  return `is required, since the present one does not fit the scheme ${scheme}: it ${SCHEME_RULES[scheme].expected}`;
}

/** What an error about a limit says of deleted endpoints. */
export function countedToo(deleted: number): string {
  return deleted === 0
    ? ""
    : `, and ${deleted} deleted in the last 24 hours, which ${deleted === 1 ? "counts" : "count"} as well`;
}

/** How a caller gets below a limit. A deleted endpoint is free again after a day, unless nothing was sent to it. */
export function whatToDo(deleted: number): string {
  return deleted === 0 ? "Delete one" : "Change an existing one, wait";
}

/** The known settings among the fields of a body. */
function termsIn(body: Partial<EndpointTerms>): Partial<EndpointTerms> {
  const names = ["url", ...Object.keys(ENDPOINT_DEFAULTS)];
  return Object.fromEntries(Object.entries(body).filter(([name]) => names.includes(name)));
}

function stateOf({ health: { state } }: Endpoint): RelayEndpointItem["state"] {
  return ENDPOINT_STATES[state - 1] ?? "disabled";
}

function healthView({ health }: Endpoint): RelayEndpointItem["health"] {
  const { breaker, failures, failing_since, next_probe_at, disabled_reason } = health;
  return {
    breaker: breaker === CLOSED ? "closed" : "open",
    consecutive_failures: failures,
    failing_since,
    next_probe_at: breaker === OPEN ? next_probe_at : null,
    disabled_reason,
  };
}

function about({ endpoint_id, name }: Pick<RelayEndpointItem, "endpoint_id" | "name">, what: string) {
  return {
    summary: `Endpoint ${name ?? endpoint_id} ${what}`,
    target: { type: "endpoint", id: endpoint_id },
  };
}
