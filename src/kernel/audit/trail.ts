import type { Caller } from "../callers/caller.ts";
import type { Changes } from "../projects/changes.ts";
import type { AuditChange, Auditor, Tx } from "../storage/tx.ts";
import type { Actor, ActorType } from "./actor.ts";
import { difference } from "./change.ts";
import { DEFINITION_SIDE, REDUCED_SIDE, SIDE, storedSide } from "./redaction.ts";

/** Longest user agent that is stored, in UTF-16 units; the rest is cut off. */
export const USER_AGENT_LENGTH_MAX = 512;
/** The same when the account has used up its budget for the day. */
const REDUCED_USER_AGENT = 64;
/** Bytes of an entry next to its texts: ids, times, the row itself and its entries in four indexes. */
const ENTRY_BYTES = 300;

/** Where a request came from. */
export interface RequestOrigin {
  /** Null for a request that came over no socket. */
  readonly ip: string | null;
  readonly userAgent: string | null;
  /** Whether it is a command's, on the folder of a stopped server. */
  readonly isOffline: boolean;
}

/** A managed key, by what it is called. */
export interface AuditedKey {
  readonly id: string;
  readonly name: string;
}

/** An entry as it is stored. Names are copied: they outlive what they name. */
export interface AuditRow {
  readonly at: number;
  readonly action: string;
  readonly summary: string;
  /** The account whose log it stands in; null: the server's own. */
  readonly accountRef: number | null;
  /** The account that was acted on, where that is another one. */
  readonly subjectRef: number | null;
  readonly projectId: string | null;
  readonly actorType: ActorType;
  readonly keyId: string | null;
  readonly keyName: string | null;
  readonly userId: string | null;
  /** The customer who acted by a portal link. */
  readonly ownerId: string | null;
  /** The person who acted. */
  readonly personId: string | null;
  readonly personEmail: string | null;
  readonly personName: string | null;
  /** The person's browser session. */
  readonly sessionId: number | null;
  /** JSON of a {@link ScheduledActor}; null for others. */
  readonly schedule: string | null;
  readonly targetType: string;
  readonly targetId: string;
  /** JSON. */
  readonly before: string | null;
  readonly after: string | null;
  readonly truncated: boolean;
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly requestId: string | null;
}

/** A scheduled change that acts for whoever has scheduled it. */
export interface ScheduledActor {
  /** Id of the scheduled change. */
  readonly id: string;
  readonly by: Actor;
}

/** How many bytes of entries each account may write in a day before they are shortened. */
export interface AuditBudget {
  /** Whether an account has used up its budget for the day. */
  isSpent(accountRef: number, now: number): boolean;
  /** Counts the bytes of an entry. */
  spend(tx: Tx, accountRef: number, bytes: number): void;
}

/** What the trail is built on. */
export interface AuditTrailDeps {
  /** Writes an entry within the unit of work that it describes. */
  readonly write: (tx: Tx, row: AuditRow) => void;
  readonly budget: AuditBudget;
  /** The managed key behind a credential; null for a platform key. */
  readonly keyOf: (credential: string) => AuditedKey | null;
  /** Whether client addresses are stored. */
  readonly keepsAddresses: boolean;
  /** The listeners of changes. */
  readonly changes: Changes;
}

/** An operation as the trail sees it. */
export interface AuditedOperation {
  readonly name: string;
  /** The area whose resources it changes; null for none. */
  readonly area: string | null;
  /** Whether it changes the caller's project. */
  readonly changesProject: boolean;
}

/** A request as the trail sees it. */
export interface AuditedRequest {
  readonly operation: AuditedOperation;
  readonly caller: Caller;
  readonly requestId: string;
  readonly requestOrigin: RequestOrigin;
}

/** An actor and where it acted from. */
type Acting = Pick<
  AuditRow,
  | (
      | "accountRef"
      | "actorType"
      | "keyId"
      | "keyName"
      | "userId"
      | "ownerId"
      | "ip"
      | "userAgent"
      | "requestId"
    )
  | ("personId" | "personEmail" | "personName" | "sessionId" | "schedule")
>;

const NO_PERSON = { personId: null, personEmail: null, personName: null, sessionId: null } as const;
const NOBODY = {
  keyId: null,
  keyName: null,
  userId: null,
  ownerId: null,
  ...NO_PERSON,
  schedule: null,
} as const;
const NOWHERE = { ip: null, userAgent: null, requestId: null } as const;

/** Writes who changed what, each entry in the transaction of its change. */
export class AuditTrail {
  constructor(private readonly deps: AuditTrailDeps) {}

  /** What takes down the changes of a request. */
  of(request: AuditedRequest): OperationAudit {
    return new OperationAudit(this, request);
  }

  /** Something that a known caller did. */
  record(tx: Tx, request: AuditedRequest, change: AuditChange): void {
    const { operation, caller, requestOrigin } = request;
    const { projectId = operation.changesProject ? caller.project.id : null } = change;
    const actorType = requestOrigin.isOffline ? "cli" : actorTypeOf(caller);
    this.recordAs(tx, operation.name, actorType, request, { ...change, projectId });
    const { area } = operation;
    const { id } = change.target;
    if (area === null) return;
    if (operation.changesProject) this.deps.changes.inProject(tx, caller.project.ref, area, id);
    else this.deps.changes.inAccount(tx, caller.account.ref, area, id, projectId);
  }

  /** The log-in of a browser. */
  recordLogin(tx: Tx, action: string, request: Omit<AuditedRequest, "operation">, change: AuditChange): void {
    const actorType = request.caller.person === undefined ? "session" : "person";
    this.recordAs(tx, action, actorType, request, change);
  }

  private recordAs(
    tx: Tx,
    action: string,
    actorType: ActorType,
    { caller, requestId, requestOrigin }: Omit<AuditedRequest, "operation">,
    change: AuditChange,
  ): void {
    this.write(tx, action, change, {
      accountRef: caller.account.ref,
      ...this.acting(caller, actorType),
      ...this.from(requestOrigin, requestId),
    });
  }

  /** Who a request's caller is, to be stored with what the server does later. */
  actorOf({ caller, requestOrigin }: Pick<AuditedRequest, "caller" | "requestOrigin">): Actor {
    return actorView(this.acting(caller, requestOrigin.isOffline ? "cli" : actorTypeOf(caller)));
  }

  private acting(caller: Caller, actorType: ActorType) {
    const standsFor = caller.session ?? caller.portal ?? caller;
    const key = this.deps.keyOf(standsFor.credential);
    return {
      actorType,
      keyId: key?.id ?? null,
      keyName: key?.name ?? null,
      userId: caller.account.userId,
      ownerId: caller.portal?.ownerId ?? null,
      ...auditedPerson(caller),
      schedule: null,
    };
  }

  /** Something that somebody has scheduled. `accountRef`: whose log it stands in. */
  recordScheduled(
    tx: Tx,
    action: string,
    accountRef: number,
    { id, by }: ScheduledActor,
    change: AuditChange,
  ): void {
    this.write(tx, action, change, {
      ...NOWHERE,
      accountRef,
      actorType: "schedule",
      // Filters by actor also find what somebody has scheduled.
      keyId: by.key_id,
      keyName: by.key_name,
      userId: by.user_id,
      ownerId: by.owner_id,
      personId: by.person_id ?? null,
      personEmail: by.email ?? null,
      personName: by.name ?? null,
      sessionId: by.session_id ?? null,
      schedule: JSON.stringify({ id, by }),
    });
  }

  /** Something that somebody did who had no key. `account`: whose log it stands in. */
  recordPublic(
    tx: Tx,
    action: string,
    request: Pick<AuditedRequest, "requestId" | "requestOrigin">,
    account: { readonly ref: number; readonly userId: string } | null,
    change: AuditChange,
  ): void {
    const from = this.from(request.requestOrigin, request.requestId);
    const whose = { accountRef: account?.ref ?? null, userId: account?.userId ?? null };
    this.write(tx, action, change, { ...NOBODY, actorType: "public", ...whose, ...from });
  }

  /** Something that the server did by itself. `accountRef`: whose log it stands in; null: the operator's alone. */
  recordSystem(tx: Tx, action: string, accountRef: number | null, change: AuditChange): void {
    this.write(tx, action, change, { ...NOBODY, ...NOWHERE, actorType: "system", accountRef });
  }

  private from({ ip, userAgent }: RequestOrigin, requestId: string) {
    return {
      ip: this.deps.keepsAddresses ? ip : null,
      userAgent: cutText(userAgent, USER_AGENT_LENGTH_MAX),
      requestId,
    };
  }

  private write(tx: Tx, action: string, change: AuditChange, acting: Acting): void {
    const { summary, target, before, after, projectId = null, subjectRef = null } = change;
    const { accountRef } = acting;
    // The affected account sees the entry in its own log as well.
    for (const ref of new Set([accountRef, subjectRef]))
      if (ref !== null) this.deps.changes.inAccount(tx, ref, "audit", null, projectId);
    const isReduced = accountRef !== null && this.deps.budget.isSpent(accountRef, tx.now);
    const limit = isReduced ? REDUCED_SIDE : change.isDefinition === true ? DEFINITION_SIDE : SIDE;
    const was = before && storedSide(after === null ? before : difference(before, after), limit);
    const is = after && storedSide(before === null ? after : difference(after, before), limit);
    const row = {
      ...acting,
      at: tx.now,
      action,
      summary,
      projectId,
      subjectRef: subjectRef === accountRef ? null : subjectRef,
      targetType: target.type,
      targetId: target.id,
      before: was?.text ?? null,
      after: is?.text ?? null,
      truncated: was?.truncated === true || is?.truncated === true,
      userAgent: isReduced ? cutText(acting.userAgent, REDUCED_USER_AGENT) : acting.userAgent,
    };
    this.deps.write(tx, row);
    if (accountRef !== null) this.deps.budget.spend(tx, accountRef, bytesOf(row));
  }
}

/** An actor as people see it. */
export function actorView(acting: Omit<Acting, "accountRef" | "ip" | "userAgent" | "requestId">): Actor {
  const { actorType: type, keyId: key_id, keyName: key_name, userId: user_id, ownerId: owner_id } = acting;
  const { personId, personEmail, personName, sessionId } = acting;
  return {
    type,
    key_id,
    key_name,
    user_id,
    owner_id,
    ...(personId === null || sessionId === null
      ? {}
      : { person_id: personId, email: personEmail ?? "", name: personName, session_id: sessionId }),
  };
}

/** The person of a caller, as of now: entries keep their address and name. */
function auditedPerson({ person, session }: Caller) {
  if (person === undefined) return NO_PERSON;
  const { id, email, name } = person;
  return { personId: id, personEmail: email, personName: name, sessionId: session?.id ?? null };
}

function actorTypeOf({ portal, session, person }: Caller): ActorType {
  if (portal !== undefined) return "portal";
  if (person !== undefined) return "person";
  return session === undefined ? "key" : "session";
}

/** The first `lengthMax` characters of a text, well formed. */
export function cutText(text: string | null, lengthMax: number): string | null {
  return text?.slice(0, lengthMax).toWellFormed() ?? null;
}

/** What an entry takes in the file, approximately. */
function bytesOf(row: AuditRow): number {
  const { before, after, summary, userAgent, keyName, ownerId, targetId } = row;
  const { personEmail, personName, schedule } = row;
  const texts = [before, after, summary, userAgent, keyName, ownerId, targetId];
  texts.push(personEmail, personName, schedule);
  return texts.reduce((bytes, text) => bytes + Buffer.byteLength(text ?? ""), ENTRY_BYTES);
}

/** Takes down what one request changes, over all of its units of work. */
export class OperationAudit implements Auditor {
  private isAudited = false;

  constructor(
    private readonly trail: AuditTrail,
    private readonly request: AuditedRequest,
  ) {}

  note(tx: Tx, change: AuditChange | null): void {
    this.isAudited = true;
    if (change !== null) this.trail.record(tx, this.request, change);
  }

  /** No change goes without an entry. @throws Error when the operation has not said what it changed. */
  assertAudited(): void {
    if (!this.isAudited) throw new Error(`${this.request.operation.name} did not say what it changed`);
  }
}
