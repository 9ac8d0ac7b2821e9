import type { Caller } from "../../kernel/callers/caller.ts";
import { LruMap } from "../../kernel/limits/lru-map.ts";
import { hasValidChecksum, KEY_LENGTH_MAX, keyDigestHex } from "../../kernel/secrets/key-format.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { type AllowanceRow, nextRefillAt, remainingAt } from "./allowance.ts";
import {
  type InactiveReason,
  type KeyError,
  OUTCOMES,
  type Outcome,
  USER_AGENT_LENGTH_MAX,
} from "./domain.ts";
import { importedDigestHex } from "./imported-digest.ts";
import type { ClientMeta, KeyUses } from "./key-uses.ts";
import type { KeyLimits, LimitsCheck, NamedLimit } from "./rate-limits.ts";
import type { ActiveKey, KeyRegistry } from "./registry.ts";
import { parseRequirement, type Requirement, unmetReasonOf } from "./requirement.ts";
import type { KeyStore } from "./store.ts";
import type { KeyVerdict, KeyVerifyBody } from "./verify-schema.ts";

/** The verdict on a secret that is not a key of the caller. */
const UNKNOWN_KEY: KeyVerdict = {
  valid: false,
  key_id: null,
  project_id: null,
  scopes: null,
  roles: null,
  permissions: null,
  error: "invalid_key",
  owner_id: null,
  meter_id: null,
  name: null,
  environment: null,
  metadata: null,
  expires_at: null,
  enabled: null,
  uses_remaining: null,
  ratelimits: null,
  retry_after_seconds: null,
};

const NO_KEY: Evaluation = {
  error: "invalid_key",
  facts: UNKNOWN_KEY,
  verdict: UNKNOWN_KEY,
  take: () => UNKNOWN_KEY,
  reject: () => {},
  withRoles: (verdict) => verdict,
};

/** Cached digests of secrets: the keys in use, about 300 bytes each. */
const DIGESTS_REMEMBERED_MAX = 16_384;
const DEFAULT_COST = 1;
const NO_LIMITS: readonly NamedLimit[] = [];

/** A parsed verification: the key, its client, and what the key must allow. */
export interface AdmissionRequest {
  readonly secret: string;
  readonly client: ClientMeta;
  /** What the key must have; null for nothing. */
  readonly require: Requirement | null;
  /** Number of uses to take. */
  readonly cost: number;
  readonly ratelimits: readonly NamedLimit[];
  /** If true, keys of projects other than the caller's are unknown, even if the caller's key is of the account. */
  readonly inProject?: true;
}

/** @throws ApiError `validation_error` for a requirement that is not one. */
export function admissionRequestOf({
  secret,
  meta,
  require,
  cost,
  ratelimits,
}: KeyVerifyBody): AdmissionRequest {
  return {
    secret,
    client: clientOf(meta),
    require: parseRequirement(require),
    cost: cost ?? DEFAULT_COST,
    ratelimits: ratelimits?.map(({ name, cost }) => ({ name, cost: cost ?? DEFAULT_COST })) ?? NO_LIMITS,
  };
}

/** Remaining uses and tokens of a key. */
type Remaining = Pick<KeyVerdict, "uses_remaining" | "ratelimits" | "retry_after_seconds">;

/** The evaluation of a key. It takes no tokens or uses and records nothing before {@link take} or {@link reject}. */
export interface Evaluation {
  /** Why the key is rejected; null if it is valid. */
  readonly error: KeyError | null;
  /** The key's own fields, independent of the request: a valid verdict without limits. */
  readonly facts: KeyVerdict;
  /** The complete verdict as of now. Computed on first access. */
  readonly verdict: KeyVerdict;
  /**
   * Takes tokens and uses and records a valid use, in the same unit of work; only for a valid verdict. If the request
   * costs limited uses, the unit must be one that writes. Returns what remains: with the facts it is the verdict. For a key
   * without limits it returns the facts themselves.
   */
  take(tx: Tx): Remaining;
  /** Records the rejection: with the verdict's error, unless another outcome is given. */
  reject(tx: Tx, outcome?: Outcome): void;
  /** A verdict with the permissions of the key's roles as well: facts and verdict have those of the key alone. */
  withRoles(verdict: KeyVerdict): KeyVerdict;
}

interface AdmissionDeps {
  readonly store: KeyStore;
  readonly registry: KeyRegistry;
  readonly uses: KeyUses;
  readonly limits: KeyLimits;
}

/** Decides whether a key admits a request. Tokens and uses are taken only if every check passes. */
export class Admission {
  /** Digests of secrets, hex. Whether the key of one is valid, and of the caller's account, is checked each time. */
  private readonly digests = new LruMap<string, string>(DIGESTS_REMEMBERED_MAX);

  constructor(private readonly deps: AdmissionDeps) {}

  /** Whether a valid key would lose uses: then the verdict must be durable before it is returned. */
  consumesUses(caller: Caller, request: AdmissionRequest): boolean {
    if (request.cost === 0) return false;
    const key = this.find(caller, request);
    return key !== undefined && this.deps.registry.hasAllowance(key);
  }

  /**
   * Evaluates a key and, if it is valid, takes what the request costs.
   * @throws ApiError `validation_error` for limits that the key does not have.
   */
  verify(tx: Tx, caller: Caller, request: AdmissionRequest): KeyVerdict {
    const evaluation = this.examine(tx, caller, request);
    if (evaluation.error === null) {
      const remaining = evaluation.take(tx);
      const { facts } = evaluation;
      return evaluation.withRoles(remaining === facts ? facts : { ...facts, ...remaining });
    }
    evaluation.reject(tx);
    return evaluation.withRoles(evaluation.verdict);
  }

  /**
   * Evaluates a key. Keys that the caller cannot see are unknown.
   * @throws ApiError `validation_error` for limits that the key does not have.
   */
  examine(tx: Tx, caller: Caller, request: AdmissionRequest): Evaluation {
    const { registry } = this.deps;
    const key = this.find(caller, request);
    const inactiveReason = key === undefined ? "invalid_key" : registry.inactiveReasonOf(key, tx.now);
    if (key === undefined || inactiveReason === "invalid_key") return NO_KEY;
    return new KeyEvaluation(this.deps, key, inactiveReason, request, tx.now);
  }

  private find(caller: Caller, { secret, inProject }: AdmissionRequest): ActiveKey | undefined {
    const key = this.withSecret(secret, caller.account.ref);
    if (key === undefined) return undefined;
    if (inProject && key.project !== null && key.project.ref !== caller.project.ref) return undefined;
    return caller.projectBound && key.project?.ref !== caller.project.ref ? undefined : key;
  }

  /** The account's key with this secret: one of ours, or an imported one, whose secret can be any text. */
  private withSecret(secret: string, accountRef: number): ActiveKey | undefined {
    const known = this.digests.get(secret);
    const cached = known === undefined ? undefined : this.withDigest(known, accountRef);
    if (cached !== undefined) return cached;
    const hash = keyDigestHex(secret);
    return (
      (hasValidChecksum(secret) ? this.remembered(secret, hash, accountRef) : undefined) ??
      this.remembered(secret, importedDigestHex(accountRef, hash), accountRef)
    );
  }

  private remembered(secret: string, digest: string, accountRef: number): ActiveKey | undefined {
    const key = this.withDigest(digest, accountRef);
    // Only secrets of existing keys are cached, so that other texts cannot fill the cache, and no long ones.
    if (key !== undefined && secret.length <= KEY_LENGTH_MAX) this.digests.set(secret, digest);
    return key;
  }

  private withDigest(digest: string, accountRef: number): ActiveKey | undefined {
    const key = this.deps.registry.find(digest);
    return key?.accountRef === accountRef ? key : undefined;
  }
}

/** The evaluation of a known key. */
class KeyEvaluation implements Evaluation {
  readonly error: KeyError | null;
  readonly facts: KeyVerdict;
  private readonly allowance: AllowanceRow | null;
  private readonly check: LimitsCheck | null;
  private cached: KeyVerdict | null = null;

  constructor(
    private readonly deps: AdmissionDeps,
    private readonly key: ActiveKey,
    inactiveReason: InactiveReason | null,
    private readonly request: AdmissionRequest,
    private readonly now: number,
  ) {
    const { store, registry } = deps;
    this.allowance = registry.hasAllowance(key) ? store.allowance(key.allowanceRef) : null;
    const error = inactiveReason ?? rejectionOf(key, registry, request);
    // If the key is rejected for another reason, its limits are not applied.
    this.check = error === null ? this.checkLimits() : null;
    this.error = error ?? this.exceededLimit();
    this.facts = this.baseVerdict();
  }

  get verdict(): KeyVerdict {
    this.cached ??= this.completeVerdict();
    return this.cached;
  }

  take(tx: Tx): Remaining {
    const { deps, key, request, allowance, check, facts } = this;
    tx.afterCommit(() => deps.uses.recordUse(key, tx.now, request.client));
    if (allowance === null && check === null) return facts;
    check?.take(tx);
    const remaining = allowance === null ? null : remainingAt(allowance, tx.now) - request.cost;
    if (remaining !== null && request.cost > 0)
      deps.store.setRemaining(tx, remaining, tx.now, key.allowanceRef);
    return {
      uses_remaining: remaining,
      ratelimits: check?.states() ?? [],
      retry_after_seconds: null,
    };
  }

  reject(tx: Tx, outcome?: Outcome): void {
    const { deps, key } = this;
    const counted = outcome ?? OUTCOMES.find((outcome) => outcome === this.error);
    // `deleted` is no outcome: nothing is stored for keys of a deleted project.
    if (counted !== undefined) tx.afterCommit(() => deps.uses.recordRejection(key, tx.now, counted));
  }

  withRoles(verdict: KeyVerdict): KeyVerdict {
    const { key, deps } = this;
    if (key.roles.length === 0) return verdict;
    const held = deps.registry.permissionsOf(key);
    return { ...verdict, permissions: [...new Set(held.flatMap(({ list }) => list))] };
  }

  private checkLimits(): LimitsCheck | null {
    const { limits } = this.key;
    const { ratelimits } = this.request;
    return limits.length === 0 && ratelimits.length === 0
      ? null
      : this.deps.limits.check(this.key, ratelimits, this.now);
  }

  private exceededLimit(): KeyError | null {
    const { allowance, check, request, now } = this;
    if (check !== null && check.waitMs > 0) return "rate_limited";
    if (allowance !== null && remainingAt(allowance, now) < request.cost) return "usage_exceeded";
    return null;
  }

  private completeVerdict(): KeyVerdict {
    const { key, allowance, check, deps, error, facts, now } = this;
    if (error === null && allowance === null && check === null) return facts;
    const unusedLimits = error === null || check !== null || key.limits.length === 0 ? null : deps.limits;
    return {
      ...facts,
      valid: error === null,
      error,
      uses_remaining: allowance && remainingAt(allowance, now),
      ratelimits: check?.states() ?? unusedLimits?.states(key, now) ?? [],
      retry_after_seconds: this.retryAfter(),
    };
  }

  /** Whole seconds after which a retry can succeed; null if waiting does not help. */
  private retryAfter(): number | null {
    const { allowance, check, request, error, now } = this;
    const exceeded = error === "usage_exceeded" ? allowance : null;
    const refill = exceeded && nextRefillAt(exceeded, now, request.cost);
    const waitMs = error === "rate_limited" ? (check?.waitMs ?? 0) : refill && refill - now;
    return waitMs && Math.max(1, Math.ceil(waitMs / 1000));
  }

  /** The verdict on the valid key without its limits. Cached with the key unless its metadata is long. */
  private baseVerdict(): KeyVerdict {
    const { key, deps } = this;
    if (key.verdict !== null) return key.verdict;
    const metadata = key.metadata === undefined ? deps.store.metadataOf(key.ref)?.metadata : key.metadata;
    const verdict: KeyVerdict = {
      valid: true,
      key_id: key.id,
      project_id: key.project?.id ?? null,
      scopes: [...key.scopes.list],
      roles: [...key.roles],
      permissions: [...key.permissions.list],
      error: null,
      owner_id: key.owner_id,
      meter_id: key.meter_id,
      name: key.isEmptied ? null : key.name,
      environment: key.environment,
      metadata: metadata == null ? {} : (JSON.parse(metadata) as Record<string, string>),
      expires_at: isoTimeOrNull(key.expires_at),
      enabled: key.isEnabled,
      uses_remaining: null,
      ratelimits: [],
      retry_after_seconds: null,
    };
    if (key.metadata !== undefined) key.verdict = verdict;
    return verdict;
  }
}

/** Why an active key is rejected, before its limits are checked; null if it is not. */
function rejectionOf(
  key: ActiveKey,
  registry: KeyRegistry,
  { client, require }: AdmissionRequest,
): KeyError | null {
  if (!key.isEnabled) return "disabled";
  if (key.allowedIps !== null && !(client.ip !== null && key.allowedIps.includes(client.ip)))
    return "ip_not_allowed";
  return require === null ? null : unmetReasonOf(require, [key.scopes, ...registry.permissionsOf(key)]);
}

function clientOf(meta: KeyVerifyBody["meta"]): ClientMeta {
  const { ip = null, user_agent = null } = meta ?? {};
  return { ip, ua: user_agent === null ? null : cutUserAgent(user_agent) };
}

/** Cuts between characters and replaces lone surrogates, which SQLite cannot store. */
function cutUserAgent(userAgent: string): string {
  const wellFormed = userAgent.toWellFormed();
  if (wellFormed.length <= USER_AGENT_LENGTH_MAX) return wellFormed;
  return [...wellFormed.slice(0, 2 * USER_AGENT_LENGTH_MAX)]
    .slice(0, USER_AGENT_LENGTH_MAX)
    .join("")
    .toWellFormed();
}
