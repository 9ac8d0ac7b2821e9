import { compileFilter, type Filter } from "../../../kernel/data/filter.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { RequestHeaders } from "../../../kernel/outbound/headers.ts";
import { laneName } from "../../../kernel/scheduler/dispatcher.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { readWaits } from "../domain.ts";
import type { EndpointTerms } from "./schema.ts";
import { CLOSED, DELETED, type EndpointRow, type EndpointStore, type Health, LIVE } from "./store.ts";

/** Endpoints in memory, a few kilobytes each: those of the projects that were used last. */
const IN_MEMORY_MAX = 20_000;

/** What begins the types of this server's own messages. */
export const OWN_TYPES = "ninefold.";

/** A message, as far as endpoints choose by it. */
export interface Offered {
  readonly type: string;
  readonly channels: readonly string[];
  /** The payload, parsed where a filter asks for it. */
  readonly value: () => unknown;
}

/** An endpoint, ready for use. It lives in the registry: after an `await` it has to be asked for again. */
export interface Endpoint {
  readonly row: Pick<
    EndpointRow,
    "ref" | "endpoint_id" | "accountRef" | "projectRef" | "name" | "created_at" | "updated_at"
  >;
  readonly terms: EndpointTerms;
  /** The lane that its deliveries wait in. */
  readonly lane: string;
  readonly host: string;
  readonly waits: readonly number[];
  /** Its own headers, opened. */
  readonly custom: RequestHeaders;
  readonly takes: (message: Offered) => boolean;
  health: Health;
}

/** What sealed headers of an endpoint are sealed for. */
export function endpointSealContext(endpointId: string): string {
  return `endpoint-headers:${endpointId}`;
}

/** Whether due deliveries of an endpoint have to wait, or to go behind others that do. */
export function isHeld({ health: { state, breaker, holds, retrying_ref } }: Endpoint): boolean {
  return state !== LIVE || breaker !== CLOSED || holds === 1 || retrying_ref !== null;
}

/** Whether an endpoint gets its deliveries in their order: while one waits for its retry, the others wait for it. */
export function keepsOrder({ terms }: Endpoint): boolean {
  return terms.max_concurrency === 1;
}

/** The endpoints of the projects in use, in memory. A change of one is seen at once, and taken back with its unit of work. */
export class EndpointRegistry {
  private readonly projects = new Map<number, readonly Endpoint[]>();
  private readonly byRef = new Map<number, Endpoint>();

  constructor(
    private readonly deps: Pick<Kernel, "vault"> & {
      readonly store: EndpointStore;
    },
    private readonly inMemoryMax: number = IN_MEMORY_MAX,
  ) {}

  /** Endpoints in memory. */
  get inMemory(): number {
    return this.byRef.size;
  }

  /** Those of a project that are not deleted, the oldest first. */
  ofProject(projectRef: number): readonly Endpoint[] {
    const known = this.projects.get(projectRef);
    if (known !== undefined) return known;
    const endpoints = this.deps.store.ofProject(projectRef).map((row) => this.ready(row));
    this.projects.set(projectRef, endpoints);
    for (const one of endpoints) this.byRef.set(one.row.ref, one);
    for (const oldest of this.projects.keys()) {
      if (this.byRef.size <= this.inMemoryMax || oldest === projectRef) break;
      this.drop(oldest);
    }
    return endpoints;
  }

  /** One that is not deleted; null where there is none. */
  get(ref: number): Endpoint | null {
    const known = this.byRef.get(ref);
    if (known !== undefined) return known;
    const row = this.deps.store.find(ref);
    if (row === null || row.state === DELETED) return null;
    this.ofProject(row.projectRef);
    return this.byRef.get(ref) ?? null;
  }

  /** One has been made, changed or deleted in this unit of work: it alone is read again. */
  changed(tx: Tx, projectRef: number, ref: number): void {
    tx.onRollback(() => this.drop(projectRef));
    const known = this.projects.get(projectRef);
    if (known === undefined) return;
    const row = this.deps.store.find(ref);
    const now = row === null || row.state === DELETED ? [] : [this.ready(row)];
    const all = [...known.filter((one) => one.row.ref !== ref), ...now].sort((a, b) => a.row.ref - b.row.ref);
    this.projects.set(projectRef, all);
    this.byRef.delete(ref);
    for (const one of now) this.byRef.set(ref, one);
  }

  /** Notes how an endpoint is from now on. */
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

  /** Takes a project's endpoints out of memory. */
  drop(projectRef: number): void {
    for (const { row } of this.projects.get(projectRef) ?? []) this.byRef.delete(row.ref);
    this.projects.delete(projectRef);
  }

  private ready({ terms: text, headers, ...row }: EndpointRow): Endpoint {
    const terms: EndpointTerms = JSON.parse(text);
    const custom =
      headers === null ? {} : JSON.parse(this.deps.vault.open(headers, endpointSealContext(row.endpoint_id)));
    const { ref, endpoint_id, accountRef, projectRef, name, created_at, updated_at, ...health } = row;
    return {
      row: {
        ref,
        endpoint_id,
        accountRef,
        projectRef,
        name,
        created_at,
        updated_at,
      },
      terms,
      custom,
      health,
      lane: laneName(accountRef, endpointPlace(ref)),
      host: new URL(terms.url).host,
      waits: readWaits(terms.retry_schedule),
      takes: choice(terms),
    };
  }
}

const PLACE_MARK = "#";

function endpointPlace(ref: number): string {
  return PLACE_MARK + ref;
}

/** The endpoint that a place in a lane's name is; null where it is a host, which begins otherwise. */
export function endpointIn(place: string): number | null {
  return place.startsWith(PLACE_MARK) ? Number(place.slice(PLACE_MARK.length)) : null;
}

/** Which messages an endpoint gets. */
function choice({ event_types, channels, filter }: EndpointTerms): (message: Offered) => boolean {
  const isOfType = typeChoice(event_types);
  const own = new Set(channels);
  const passes: Filter | null = filter === null ? null : compileFilter("filter", filter);
  return (message) => {
    if (!isOfType(message.type)) return false;
    const shares =
      own.size === 0 || message.channels.length === 0 || message.channels.some((c) => own.has(c));
    return shares && (passes === null || passes(message.value()));
  };
}

function typeChoice(types: readonly string[]): (type: string) => boolean {
  if (types.length === 0) return (type) => !type.startsWith(OWN_TYPES);
  const exact = new Set(types);
  const beginnings = types.filter((type) => type.endsWith(".*")).map((type) => type.slice(0, -1));
  return (type) =>
    exact.has(type) || beginnings.some((one) => type.length > one.length && type.startsWith(one));
}
