import type { Caller } from "../../kernel/http/access/caller.ts";
import { hasValidChecksum, keyDigestHex } from "../../kernel/secrets/key-format.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { type AllowanceRow, nextRefillAt, remainingAt } from "./allowance.ts";
import {
  coversScope,
  type KeyEnd,
  type KeyError,
  OUTCOMES,
  type Outcome,
  USER_AGENT_KEPT,
} from "./domain.ts";
import type { ClientMeta, KeyUses } from "./key-uses.ts";
import type { KeyLimits, LimitsLook, NamedLimit } from "./limits.ts";
import type { ActiveKey, KeyRegistry } from "./registry.ts";
import type { KeyStore } from "./store.ts";
import type { KeyVerdict, KeyVerifyBody } from "./verify-schema.ts";

/** The verdict on a secret that is no key of the caller's. */
const UNKNOWN: KeyVerdict = {
  valid: false,
  key_id: null,
  project_id: null,
  scopes: null,
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

const NO_KEY: Examined = {
  error: "invalid_key",
  facts: UNKNOWN,
  verdict: UNKNOWN,
  take: () => UNKNOWN,
  refuse: () => {},
};

const COST = 1;
const NO_LIMITS: readonly NamedLimit[] = [];

/** What is asked about a key. */
export interface Asked {
  /** SHA-256 of the secret, hex; null for a text that is no key. */
  readonly digest: string | null;
  readonly client: ClientMeta;
  /** Null: nothing. */
  readonly require: readonly string[] | null;
  /** Uses that it takes. */
  readonly cost: number;
  readonly ratelimits: readonly NamedLimit[];
  /** Whether keys of projects other than the caller's are unknown, to keys of the account as well. */
  readonly inProject?: true;
}

/** Reads what a body asks. */
export function askedOf({ secret, meta, require, cost, ratelimits }: KeyVerifyBody): Asked {
  return {
    digest: hasValidChecksum(secret) ? keyDigestHex(secret) : null,
    client: clientOf(meta),
    require: require ?? null,
    cost: cost ?? COST,
    ratelimits: ratelimits?.map(({ name, cost }) => ({ name, cost: cost ?? COST })) ?? NO_LIMITS,
  };
}

/** A key that was looked at. Until {@link take} nothing has been taken from it, and nothing been noted. */
export interface Examined {
  /** Why it is refused; null for a valid one. */
  readonly error: KeyError | null;
  /** What is told of the key whatever is asked of it: its figures are those of a key without bounds. */
  readonly facts: KeyVerdict;
  /** The whole answer of a verification, as things stand. Made when it is asked for: who takes needs none. */
  readonly verdict: KeyVerdict;
  /**
   * Takes tokens and uses and notes a valid use, within the same unit of work; only for a valid verdict. With uses to take
   * the unit must be one that writes. Returns the verdict with what is left.
   */
  take(tx: Tx): KeyVerdict;
  /** Notes that the key was refused: for its verdict's error, unless it was for something else. */
  refuse(tx: Tx, outcome?: Outcome): void;
}

/** What admission is built on. */
interface AdmissionParts {
  readonly store: KeyStore;
  readonly registry: KeyRegistry;
  readonly uses: KeyUses;
  readonly limits: KeyLimits;
}

/** Judges whether a key lets a request in. Nothing is taken unless everything passes. */
export class Admission {
  constructor(private readonly parts: AdmissionParts) {}

  /** Whether a valid key would lose uses: then the judgement must be durable before it is told. */
  takesUses(caller: Caller, asked: Asked): boolean {
    if (asked.cost === 0) return false;
    const key = this.find(caller, asked);
    return key !== undefined && this.parts.registry.hasAllowance(key);
  }

  /**
   * Judges, and takes what it costs when the key is valid.
   * @throws ApiError `validation_error` for limits that the key does not have.
   */
  verify(tx: Tx, caller: Caller, asked: Asked): KeyVerdict {
    const examined = this.examine(tx, caller, asked);
    if (examined.error === null) return examined.take(tx);
    examined.refuse(tx);
    return examined.verdict;
  }

  /**
   * Judges alone. Keys that the caller does not see are unknown.
   * @throws ApiError `validation_error` for limits that the key does not have.
   */
  examine(tx: Tx, caller: Caller, asked: Asked): Examined {
    const { registry } = this.parts;
    const key = this.find(caller, asked);
    const end = key === undefined ? "invalid_key" : registry.errorOf(key, tx.now);
    if (key === undefined || end === "invalid_key") return NO_KEY;
    return new Examination(this.parts, key, end, asked, tx.now);
  }

  private find(caller: Caller, { digest, inProject }: Asked): ActiveKey | undefined {
    const key = digest === null ? undefined : this.parts.registry.find(digest);
    if (key === undefined || key.accountRef !== caller.account.ref) return undefined;
    if (inProject && key.project !== null && key.project.ref !== caller.project.ref) return undefined;
    return caller.projectBound && key.project?.ref !== caller.project.ref ? undefined : key;
  }
}

/** The judgement on a key that is there. */
class Examination implements Examined {
  readonly error: KeyError | null;
  readonly facts: KeyVerdict;
  private readonly allowance: AllowanceRow | null;
  private readonly look: LimitsLook | null;
  private made: KeyVerdict | null = null;

  constructor(
    private readonly parts: AdmissionParts,
    private readonly key: ActiveKey,
    end: KeyEnd | null,
    private readonly asked: Asked,
    private readonly now: number,
  ) {
    const { store, registry } = parts;
    this.allowance = registry.hasAllowance(key) ? store.allowance(key.allowanceRef) : null;
    const error = end ?? refusalOf(key, asked);
    // A key that is refused for another reason is told how its limits stand, none of them having taken part.
    this.look = error === null ? this.lookAtLimits() : null;
    this.error = error ?? this.shortage();
    this.facts = this.factsOfKey();
  }

  get verdict(): KeyVerdict {
    this.made ??= this.told();
    return this.made;
  }

  take(tx: Tx): KeyVerdict {
    const { parts, key, asked, allowance, look, facts } = this;
    tx.afterCommit(() => parts.uses.note(key, tx.now, asked.client));
    if (allowance === null && look === null) return facts;
    look?.take(tx);
    const left = allowance === null ? null : remainingAt(allowance, tx.now) - asked.cost;
    if (left !== null && asked.cost > 0) parts.store.setRemaining(tx, left, tx.now, key.allowanceRef);
    return { ...facts, uses_remaining: left, ratelimits: look?.states() ?? [] };
  }

  refuse(tx: Tx, outcome?: Outcome): void {
    const { parts, key } = this;
    const noted = outcome ?? OUTCOMES.find((one) => one === this.error);
    // Nothing is kept of the keys of a deleted project.
    if (noted !== undefined) tx.afterCommit(() => parts.uses.noteRefusal(key, tx.now, noted));
  }

  private lookAtLimits(): LimitsLook | null {
    const { limits } = this.key;
    const { ratelimits } = this.asked;
    return limits.length === 0 && ratelimits.length === 0
      ? null
      : this.parts.limits.look(this.key, ratelimits, this.now);
  }

  /** What there is too little of. */
  private shortage(): KeyError | null {
    const { allowance, look, asked, now } = this;
    if (look !== null && look.waitMs > 0) return "rate_limited";
    if (allowance !== null && remainingAt(allowance, now) < asked.cost) return "usage_exceeded";
    return null;
  }

  private told(): KeyVerdict {
    const { key, allowance, look, parts, error, facts, now } = this;
    if (error === null && allowance === null && look === null) return facts;
    const untaken = error === null || look !== null || key.limits.length === 0 ? null : parts.limits;
    return {
      ...facts,
      valid: error === null,
      error,
      uses_remaining: allowance && remainingAt(allowance, now),
      ratelimits: look?.states() ?? untaken?.states(key, now) ?? [],
      retry_after_seconds: this.retryAfter(),
    };
  }

  /** Whole seconds after which another try may pass; null where waiting does not help. */
  private retryAfter(): number | null {
    const { allowance, look, asked, error, now } = this;
    const exceeded = error === "usage_exceeded" ? allowance : null;
    const refill = exceeded && nextRefillAt(exceeded, now, asked.cost);
    const waitMs = error === "rate_limited" ? (look?.waitMs ?? 0) : refill && refill - now;
    return waitMs && Math.max(1, Math.ceil(waitMs / 1000));
  }

  /** What is told of the key where nothing is wrong with it, and nothing bounds it: made once. */
  private factsOfKey(): KeyVerdict {
    const { key, parts } = this;
    if (key.verdict !== null) return key.verdict;
    const metadata = key.metadata === undefined ? parts.store.metadataOf(key.ref)?.metadata : key.metadata;
    const verdict: KeyVerdict = {
      valid: true,
      key_id: key.id,
      project_id: key.project?.id ?? null,
      scopes: [...key.scopes.list],
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

/** What is wrong with a key that has not ended, before its limits are looked at. */
function refusalOf(key: ActiveKey, { client, require }: Asked): KeyError | null {
  if (!key.isEnabled) return "disabled";
  if (key.allowedIps !== null && !(client.ip !== null && key.allowedIps.includes(client.ip)))
    return "ip_not_allowed";
  const { list } = key.scopes;
  const hasAll = require?.every((required) => list.some((scope) => coversScope(scope, required))) ?? true;
  return hasAll ? null : "insufficient_scope";
}

/** The client that a verification names. */
function clientOf(meta: KeyVerifyBody["meta"]): ClientMeta {
  const { ip = null, user_agent = null } = meta ?? {};
  return { ip, ua: user_agent === null ? null : kept(user_agent) };
}

/** Cut so that no character is halved, and lone surrogates replaced: the file cannot hold them. */
function kept(agent: string): string {
  const whole = agent.toWellFormed();
  if (whole.length <= USER_AGENT_KEPT) return whole;
  return [...whole.slice(0, 2 * USER_AGENT_KEPT)].slice(0, USER_AGENT_KEPT).join("").toWellFormed();
}
