/**
 * Every operation of the API: what its caller must be, what it costs, which rate limit counts it. The paths
 * stand in the areas' routes; `test/golden/routes.txt` joins both.
 */

/** Who may call: anyone, the operator, or a key with this scope. */
export type Access = "public" | "operator" | Scope;

/** The areas that a scope can name. */
export const SCOPE_AREAS = [
  "meter",
  "projects",
  "keys",
  "gate",
  "latch",
  "pulse",
  "relay",
  "catch",
  "witness",
] as const;

/** A scope that an operation can require. */
export type Scope = `${(typeof SCOPE_AREAS)[number]}:${"read" | "write"}`;

/** What the guard needs to know of an operation. */
export interface Operation {
  readonly access: Access;
  /** Credits, charged in the same transaction as the work. */
  readonly cost: number;
  /** Which token bucket of the caller's key counts the request. */
  readonly limit: "general" | "monitor" | "none";
  /** Refused to keys that are bound to one project. */
  readonly accountOnly: boolean;
  /**
   * The answer is a platform key, which has every scope and no end: refused to keys without the scope `*` and to keys
   * that end, since no key can grant what it lacks.
   */
  readonly grantsEverything: boolean;
  /** Whether it makes, changes or ends keys: refused to platform keys in their grace. */
  readonly changesKeys: boolean;
  /** No part of the API but of running the server: not in its description, and answered to whom `--metrics-access` admits. */
  readonly monitoring: boolean;
  /** Whether the answer holds a secret: then only the credential that got it gets it again, and no cache may keep it. */
  readonly secret: boolean;
  /** Whether success is a change in the caller's project. Projects and keys say themselves which project they change. */
  readonly changesProject: boolean;
  /** Whether `Idempotency-Key` is honoured: on every change by a key, but where the request's own token does it. */
  readonly idempotent: boolean;
}

function operation(access: Access, cost: number, more: Partial<Operation> = {}): Operation {
  return {
    access,
    cost,
    limit: access === "public" ? "none" : "general",
    accountOnly: false,
    grantsEverything: false,
    changesKeys: access === "keys:write",
    monitoring: false,
    secret: false,
    changesProject: access.endsWith(":write"),
    idempotent: access !== "public",
    ...more,
  };
}

/** Of changes to the own balance: they are the account's, and in no project. */
const OWN_BALANCE: Partial<Operation> = { accountOnly: true, changesProject: false };
/** Of changes to projects and keys, which often are not those of the caller's own project. */
const ELSEWHERE: Partial<Operation> = { changesProject: false };

/** Of what answers with a platform key. */
const NEW_PLATFORM_KEY: Partial<Operation> = { grantsEverything: true, changesKeys: true, secret: true };

/** Of what load balancers and Prometheus ask for. */
const MONITORING: Partial<Operation> = { monitoring: true };

/** The table. */
export const OPERATIONS = {
  //                                     access            cost  more
  ping: /*                   */ operation("public", /*       */ 0),
  signup: /*                 */ operation("public", /*       */ 0, { secret: true }),
  "openapi.read": /*         */ operation("public", /*       */ 0),
  "health.live": /*          */ operation("public", /*       */ 0, MONITORING),
  "health.ready": /*         */ operation("public", /*       */ 0, MONITORING),
  "metrics.read": /*         */ operation("public", /*       */ 0, MONITORING),

  "admin.accounts.create": /**/ operation("operator", /*     */ 0, NEW_PLATFORM_KEY),
  "admin.accounts.list": /*  */ operation("operator", /*     */ 0),
  "admin.accounts.update": /**/ operation("operator", /*     */ 0),
  "keys.platform.reset": /*  */ operation("operator", /*     */ 0, NEW_PLATFORM_KEY),
  "admin.clock.advance": /*  */ operation("operator", /*     */ 0),

  "meter.own.balance": /*    */ operation("meter:read", /*   */ 0),
  "meter.own.history": /*    */ operation("meter:read", /*   */ 0),
  "meter.own.deduct": /*     */ operation("meter:write", /*  */ 0, OWN_BALANCE),
  "meter.own.refill": /*     */ operation("meter:write", /*  */ 0, OWN_BALANCE),
  "meter.balance": /*        */ operation("meter:read", /*   */ 0),
  "meter.history": /*        */ operation("meter:read", /*   */ 0),
  "meter.deduct": /*         */ operation("meter:write", /*  */ 1),
  "meter.refill": /*         */ operation("meter:write", /*  */ 1),
  "meter.reset": /*          */ operation("meter:write", /*  */ 1),

  "keys.platform.rotate": /* */ operation("keys:write", /*   */ 1, {
    accountOnly: true,
    ...NEW_PLATFORM_KEY,
    ...ELSEWHERE,
  }),
  "keys.create": /*          */ operation("keys:write", /*   */ 1, { secret: true, ...ELSEWHERE }),
  "keys.list": /*            */ operation("keys:read", /*    */ 1),
  "keys.get": /*             */ operation("keys:read", /*    */ 1),
  "keys.rotate": /*          */ operation("keys:write", /*   */ 1, { secret: true, ...ELSEWHERE }),
  "keys.revoke": /*          */ operation("keys:write", /*   */ 1, ELSEWHERE),
  "keys.verify": /*          */ operation("keys:read", /*    */ 1),

  "projects.create": /*      */ operation("projects:write", /**/ 0, { accountOnly: true, ...ELSEWHERE }),
  "projects.list": /*        */ operation("projects:read", /**/ 0),
  "projects.get": /*         */ operation("projects:read", /**/ 0),
  "projects.update": /*      */ operation("projects:write", /**/ 0, ELSEWHERE),
  "projects.delete": /*      */ operation("projects:write", /**/ 0, ELSEWHERE),
  "projects.overview": /*    */ operation("projects:read", /**/ 0),
  "projects.keys.create": /* */ operation("keys:write", /*   */ 1, { secret: true, ...ELSEWHERE }),

  "gate.save": /*            */ operation("gate:write", /*   */ 0),
  "gate.list": /*            */ operation("gate:read", /*    */ 0),
  "gate.config": /*          */ operation("gate:read", /*    */ 1),
  "gate.evaluate": /*        */ operation("gate:read", /*    */ 1),
  "gate.delete": /*          */ operation("gate:write", /*   */ 0),

  "latch.acquire": /*        */ operation("latch:write", /*  */ 0, { idempotent: false }),
  "latch.release": /*        */ operation("latch:write", /*  */ 0),
  "latch.status": /*         */ operation("latch:read", /*   */ 0),

  "monitors.list": /*        */ operation("pulse:read", /*   */ 1, { limit: "monitor" }),
  "monitors.read": /*        */ operation("pulse:read", /*   */ 1, { limit: "monitor" }),
  "monitors.history": /*     */ operation("pulse:read", /*   */ 1, { limit: "monitor" }),
  "monitors.create": /*      */ operation("pulse:write", /*  */ 1, { limit: "monitor" }),
  "monitors.update": /*      */ operation("pulse:write", /*  */ 1, { limit: "monitor" }),
  "monitors.delete": /*      */ operation("pulse:write", /*  */ 1, { limit: "monitor" }),
  "monitors.check": /*       */ operation("pulse:write", /*  */ 1, { limit: "monitor" }),

  "relay.schedule": /*       */ operation("relay:write", /*  */ 1),
  "relay.list": /*           */ operation("relay:read", /*   */ 0),
  "relay.read": /*           */ operation("relay:read", /*   */ 0),
  "relay.cancel": /*         */ operation("relay:write", /*  */ 0),

  "witness.init": /*         */ operation("witness:write", /**/ 1),
  "witness.log": /*          */ operation("witness:write", /**/ 1),
  "witness.verify": /*       */ operation("witness:read", /* */ 0),
  "witness.receipts.list": /**/ operation("witness:read", /* */ 0),
  "witness.receipts.read": /**/ operation("witness:read", /* */ 0),
  "witness.pubkey": /*       */ operation("public", /*       */ 0),
  "witness.config.read": /*  */ operation("witness:read", /* */ 0),
  "witness.config.set": /*   */ operation("witness:write", /**/ 0),

  "catch.buckets.create": /* */ operation("catch:write", /*  */ 0),
  "catch.buckets.list": /*   */ operation("catch:read", /*   */ 0),
  "catch.buckets.get": /*    */ operation("catch:read", /*   */ 0),
  "catch.buckets.update": /* */ operation("catch:write", /*  */ 0),
  "catch.buckets.delete": /* */ operation("catch:write", /*  */ 0),
  // Charged to the bucket's account, since its caller has no key.
  "catch.ingest": /*         */ operation("public", /*       */ 1),
  "catch.events.list": /*    */ operation("catch:read", /*   */ 1),
  "catch.events.get": /*     */ operation("catch:read", /*   */ 1),
  "catch.events.replay": /*  */ operation("catch:write", /*  */ 1),
  "catch.events.delete": /*  */ operation("catch:write", /*  */ 0),
} as const satisfies Record<string, Operation>;

/** The name of an operation: what the ledger, the metrics and the OpenAPI document call it. */
export type OperationName = keyof typeof OPERATIONS;

/** The entry of an operation, under its common type. */
export function operationNamed(name: OperationName): Operation {
  return OPERATIONS[name];
}
