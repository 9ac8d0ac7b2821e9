import { parseNearly } from "../../../json-text.ts";
import { compileFilter, type Filter } from "../../../kernel/data/filter.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { RequestHeaders } from "../../../kernel/outbound/headers.ts";
import { readWaits } from "../../../kernel/outbound/retries.ts";
import { laneName } from "../../../kernel/scheduler/dispatcher.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { ENDPOINT_DEFAULTS, type EndpointTerms } from "./schema.ts";
import { openSecrets, type SecretValues, secretHeaders, withoutSealed } from "./secret-settings.ts";
import {
  CLOSED,
  DELETED,
  DISABLED,
  type EndpointRow,
  type EndpointStore,
  type Health,
  LIVE,
} from "./store.ts";

/** Endpoints in memory, a few kilobytes each: those of the most recently used projects. */
const IN_MEMORY_MAX = 20_000;

/** Prefix of the types of notices. */
export const NOTICE_PREFIX = "ninefold.";

/** The properties of a message that endpoints are matched with. */
export interface MessageProperties {
  readonly type: string;
  readonly channels: readonly string[];
  /** The customer to whose endpoints it goes; null: to those without an owner. */
  readonly ownerId: string | null;
  /** The payload, parsed when a filter needs it; null when it is not stored any more, which every filter accepts. */
  readonly value: (() => unknown) | null;
}

/** An endpoint in memory. It may be replaced in the registry: get it again after an `await`. */
export interface Endpoint {
  readonly row: Pick<
    EndpointRow,
    | "ref"
    | "endpoint_id"
    | "accountRef"
    | "projectRef"
    | "name"
    | "owner_id"
    | "created_at"
    | "updated_at"
    | "managed_by"
  >;
  readonly terms: EndpointTerms;
  /** JSON: the template of new deliveries; null without one. */
  readonly template: string | null;
  /** The lane of its delivery jobs. */
  readonly lane: string;
  readonly host: string;
  readonly waits: readonly number[];
  readonly secrets: SecretValues;
  /** The user's headers of its requests. */
  readonly custom: RequestHeaders;
  readonly accepts: (message: MessageProperties) => boolean;
  health: Health;
}

/** Whether due deliveries of an endpoint must be parked. */
export function mustPark({ health: { state, breaker, holds, retrying_ref } }: Endpoint): boolean {
  return state !== LIVE || breaker !== CLOSED || holds === 1 || retrying_ref !== null;
}

export function isEnabled(endpoint: Endpoint | null): endpoint is Endpoint {
  return endpoint !== null && endpoint.health.state !== DISABLED;
}

/** Whether an endpoint receives a message now. */
export function acceptsNow(endpoint: Endpoint, properties: MessageProperties): boolean {
  return isEnabled(endpoint) && endpoint.accepts(properties);
}

/** Whether an endpoint receives its deliveries in order: they wait until the retry of an earlier one. */
export function isOrdered({ terms }: Endpoint): boolean {
  return terms.max_concurrency === 1;
}

/** The endpoints of recently used projects, in memory. A change is visible immediately, and rolled back with its unit of work. */
export class EndpointRegistry {
  private readonly projects = new Map<number, readonly Endpoint[]>();
  private readonly byRef = new Map<number, Endpoint>();

  constructor(
    private readonly deps: Pick<Kernel, "vault"> & {
      readonly store: EndpointStore;
    },
    private readonly inMemoryMax: number = IN_MEMORY_MAX,
  ) {}

  /** The number of endpoints in memory. */
  get inMemory(): number {
    return this.byRef.size;
  }

  /** A project's endpoints that are not deleted, oldest first. */
  ofProject(projectRef: number): readonly Endpoint[] {
    const known = this.projects.get(projectRef);
    if (known !== undefined) return known;
    const endpoints = this.deps.store.ofProject(projectRef).map((row) => this.ready(row));
    this.projects.set(projectRef, endpoints);
    for (const endpoint of endpoints) this.byRef.set(endpoint.row.ref, endpoint);
    for (const oldest of this.projects.keys()) {
      if (this.byRef.size <= this.inMemoryMax || oldest === projectRef) break;
      this.drop(oldest);
    }
    return endpoints;
  }

  /** An endpoint; null when it is deleted or does not exist. */
  get(ref: number): Endpoint | null {
    const known = this.byRef.get(ref);
    if (known !== undefined) return known;
    const row = this.deps.store.find(ref);
    if (row === null || row.state === DELETED) return null;
    this.ofProject(row.projectRef);
    return this.byRef.get(ref) ?? null;
  }

  /** The same; null also when it is disabled. */
  enabled(ref: number): Endpoint | null {
    const endpoint = this.get(ref);
    return isEnabled(endpoint) ? endpoint : null;
  }

  /** Reloads an endpoint that was created, updated or deleted in this unit of work. */
  changed(tx: Tx, projectRef: number, ref: number): void {
    tx.onRollback(() => this.drop(projectRef));
    const known = this.projects.get(projectRef);
    if (known === undefined) return;
    const row = this.deps.store.find(ref);
    const now = row === null || row.state === DELETED ? [] : [this.ready(row)];
    const all = [...known.filter((endpoint) => endpoint.row.ref !== ref), ...now].sort(
      (a, b) => a.row.ref - b.row.ref,
    );
    this.projects.set(projectRef, all);
    this.byRef.delete(ref);
    for (const endpoint of now) this.byRef.set(ref, endpoint);
  }

  /** Stores a change of an endpoint's health. */
  setHealth(tx: Tx, endpoint: Endpoint, change: Partial<Health>): void {
    const before = endpoint.health;
    endpoint.health = { ...before, ...change };
    this.deps.store.setHealth(tx, {
      ...endpoint.health,
      ref: endpoint.row.ref,
    });
    tx.onRollback(() => {
      endpoint.health = before;
    });
  }

  /** Removes a project's endpoints from memory. */
  drop(projectRef: number): void {
    for (const { row } of this.projects.get(projectRef) ?? []) this.byRef.delete(row.ref);
    this.projects.delete(projectRef);
  }

  private ready(stored: EndpointRow): Endpoint {
    const { terms: text, ...row } = withoutSealed(stored);
    // Settings that did not exist when the endpoint was stored have their defaults.
    const terms: EndpointTerms = { ...ENDPOINT_DEFAULTS, ...(parseNearly(text) as EndpointTerms) };
    const secrets = openSecrets(this.deps.vault, stored.endpoint_id, stored);
    const { ref, endpoint_id, accountRef, projectRef, name, owner_id, ...others } = row;
    const { created_at, updated_at, managed_by, ...health } = others;
    return {
      row: {
        ref,
        endpoint_id,
        accountRef,
        projectRef,
        name,
        owner_id,
        created_at,
        updated_at,
        managed_by,
      },
      terms,
      template: terms.template === null ? null : JSON.stringify(terms.template),
      secrets,
      custom: secretHeaders(secrets),
      health,
      lane: laneName(accountRef, endpointDestination(ref)),
      host: new URL(terms.url).host,
      waits: readWaits(terms.retry_schedule),
      accepts: matcherOf(owner_id, terms),
    };
  }
}

/** Marks the destination of a lane as an endpoint; other lanes go to hosts. */
const ENDPOINT_MARK = "#";

function endpointDestination(ref: number): string {
  return ENDPOINT_MARK + ref;
}

/** The endpoint in the name of a lane; null when the lane is that of a host. */
export function endpointIn(destination: string): number | null {
  return destination.startsWith(ENDPOINT_MARK) ? Number(destination.slice(ENDPOINT_MARK.length)) : null;
}

/** A function that returns whether an endpoint receives a message. */
function matcherOf(
  ownerId: string | null,
  { event_types, channels, filter }: EndpointTerms,
): (message: MessageProperties) => boolean {
  const isOfType = typeChoice(event_types);
  const subscribed = new Set(channels);
  const passes: Filter | null = filter === null ? null : compileFilter("filter", filter);
  return (message) => {
    if (message.ownerId !== ownerId || !isOfType(message.type)) return false;
    const shares =
      subscribed.size === 0 ||
      message.channels.length === 0 ||
      message.channels.some((c) => subscribed.has(c));
    return shares && (passes === null || message.value === null || passes(message.value()));
  };
}

/** A function that returns whether a type is one of some, which may be wildcards; any type but notices for none. */
export function typeChoice(types: readonly string[]): (type: string) => boolean {
  if (types.length === 0) return (type) => !type.startsWith(NOTICE_PREFIX);
  const exact = new Set(types);
  const prefixes = types.filter((type) => type.endsWith(".*")).map((type) => type.slice(0, -1));
  return (type) =>
    exact.has(type) || prefixes.some((prefix) => type.length > prefix.length && type.startsWith(prefix));
}
