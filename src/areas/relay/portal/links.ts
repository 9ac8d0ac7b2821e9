import {
  type Caller,
  type CallerPortal,
  type CallerProject,
  hasScope,
} from "../../../kernel/callers/caller.ts";
import { durationMs } from "../../../kernel/data/duration-text.ts";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import type { Authenticator, PortalAuthenticator } from "../../../kernel/http/access/guard.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { keyDigest, keyPrefix, mintKey } from "../../../kernel/secrets/key-format.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import { DAY_MS } from "../../../kernel/time/units.ts";
import { assertNoNotices } from "../endpoints/notices.ts";
import {
  LIFETIME_EXPECTED,
  PORTAL_ENDPOINTS_MAX,
  PORTAL_EXPIRES_IN,
  type PortalLink,
  type PortalLinkBody,
  type PortalLinkCreated,
  type PortalLinksRevoked,
} from "./schema.ts";
import type { LinkRow, PortalStore } from "./store.ts";

/** Shortest lifetime of a link: a person must be able to open it. */
export const PORTAL_MS_MIN = 60_000;
/** Longest lifetime of a link: it is for a visit, not for a bookmark. */
export const PORTAL_MS_MAX = 7 * DAY_MS;
/** Links of one customer: a new one above this number ends the oldest. Applications create one for each visit. */
export const LINKS_PER_OWNER_MAX = 100;

/** Prefix of the tokens. Keys of this API have another one, so neither is accepted in place of the other. */
const TOKEN_PREFIX = "portal";
/** Scopes that a key needs to create a link. A link has them as long as its key has them. */
const SCOPES = ["relay:read", "relay:write"] as const;

/** What links need of other areas. */
export interface LinkDeps {
  /** Finds the caller of a key by its digest. */
  readonly keys: Authenticator;
  /** The account's project with this id; null when there is none. */
  readonly findProject: (accountRef: number, id: string) => CallerProject | null;
  /** The account's newest platform key; null if its text is lost. */
  readonly accountKey: (accountRef: number) => string | null;
}

/** The key that creates a link, and the address of the page. */
export interface LinkOrigin {
  readonly caller: Caller;
  /** SHA-256 of the key, hex; null for a person, whose links act for the account's platform key. */
  readonly keyDigest: string | null;
  readonly baseUrl: string;
}

/** The caller of a portal link: a customer, limited to the endpoints with its `owner_id` in one project. */
class PortalCaller implements Caller {
  readonly credential: string;
  readonly scopes: ReadonlySet<string>;
  readonly projectBound = true;
  readonly project: CallerProject;
  readonly portal: CallerPortal;

  constructor(
    readonly link: LinkRow,
    private readonly key: Caller,
    private readonly isRevoked: () => boolean,
    private readonly isProjectDeleted: () => boolean,
  ) {
    this.credential = `portal:${link.id}`;
    this.scopes = new Set(SCOPES.filter((scope) => hasScope(key, scope)));
    this.project = { ref: link.project_ref, id: link.project_id };
    this.portal = { ownerId: link.owner_id, credential: key.credential };
  }

  get account() {
    return this.key.account;
  }

  get projectDeleted() {
    return this.key.projectDeleted || this.isProjectDeleted();
  }

  get revoked() {
    return this.key.revoked || this.isRevoked();
  }

  get endsAt() {
    return Math.min(this.link.expires_at, this.key.endsAt ?? this.link.expires_at);
  }

  get superseded() {
    return this.key.superseded;
  }
}

/** Portal links: random tokens, stored as hashes, that act for the key which created them within narrow limits. */
export class PortalLinks implements PortalAuthenticator {
  constructor(
    private readonly deps: Pick<Kernel, "clock" | "ids"> & LinkDeps & { readonly links: PortalStore },
  ) {}

  /**
   * Creates a link. @throws ApiError `validation_error`; `forbidden` for a key without the scopes of a link; `conflict` for a
   * person whose account has lost the text of its platform key
   */
  create(
    tx: Tx,
    { caller, keyDigest: digest, baseUrl }: LinkOrigin,
    body: PortalLinkBody,
  ): PortalLinkCreated {
    const { links, ids } = this.deps;
    const { owner_id, event_types = [], expires_in = PORTAL_EXPIRES_IN } = body;
    assertMayCreateLinks(caller);
    assertNoNotices(event_types);
    const token = mintKey(TOKEN_PREFIX, ids);
    const until = tx.now + lifetimeMs(expires_in);
    const expires_at = Math.min(until, caller.endsAt ?? until);
    links.insert(tx, {
      token_hash: keyDigest(token),
      key_digest: digest === null ? this.accountKeyDigest(caller) : Buffer.from(digest, "hex"),
      project_ref: caller.project.ref,
      project_id: caller.project.id,
      owner_id,
      event_types: event_types.length === 0 ? null : JSON.stringify(event_types),
      created_at: tx.now,
      expires_at,
    });
    links.removeOfOwner(tx, caller.project.ref, owner_id, LINKS_PER_OWNER_MAX);
    tx.audit({
      summary: `Portal link for ${owner_id} created`,
      target: { type: "portal", id: owner_id },
      before: null,
      after: { expires_at: isoTime(expires_at) },
    });
    return { url: `${baseUrl}/portal/#token=${token}`, expires_at };
  }

  private accountKeyDigest({ account }: Caller): Uint8Array {
    const key = this.deps.accountKey(account.ref);
    if (key !== null) return keyDigest(key);
    throw new ApiError(
      "conflict",
      "A restore has removed the text of the account's platform key. Rotate the key first.",
    );
  }

  /** Revokes all links of a customer. */
  revoke(tx: Tx, { project }: Caller, ownerId: string): PortalLinksRevoked {
    const { links } = this.deps;
    const revoked = links.valid(project.ref, ownerId, tx.now);
    links.removeOfOwner(tx, project.ref, ownerId, 0);
    const target = { type: "portal", id: ownerId };
    const summary = `Portal links of ${ownerId} revoked: ${revoked}`;
    tx.audit(revoked === 0 ? null : { summary, target, before: { links: revoked }, after: { links: 0 } });
    return { revoked };
  }

  /** The link that a request was sent with. */
  read(caller: Caller): PortalLink {
    if (!(caller instanceof PortalCaller)) throw new Error("this request was not sent with a portal link");
    const { owner_id, event_types } = caller.link;
    return {
      owner_id,
      expires_at: caller.endsAt,
      event_types: event_types === null ? [] : JSON.parse(event_types),
      endpoints_max: PORTAL_ENDPOINTS_MAX,
    };
  }

  authenticatePortal(token: string): Caller | null {
    if (keyPrefix(token) !== TOKEN_PREFIX) return null;
    const { links, keys, findProject, clock } = this.deps;
    const link = links.withToken(keyDigest(token));
    if (link === null || link.expires_at <= clock.now()) return null;
    const key = keys.authenticate(Buffer.from(link.key_digest).toString("hex"));
    if (key === null) return null;
    const isProjectDeleted = (): boolean => findProject(key.account.ref, link.project_id) === null;
    if (isProjectDeleted()) return null;
    return new PortalCaller(link, key, () => links.exists(link.id) === 0, isProjectDeleted);
  }
}

/** A link permits what its key permits: without one of the scopes, its page would fail. @throws ApiError `forbidden` */
function assertMayCreateLinks(caller: Caller): void {
  const missing = SCOPES.find((scope) => !hasScope(caller, scope));
  if (missing === undefined) return;
  throw new ApiError(
    "forbidden",
    `The key does not have the scope ${missing}. A portal link needs ${SCOPES.join(" and ")}: use a key that has both, or add the scope.`,
  );
}

/** @throws ApiError `validation_error` outside the limits. */
function lifetimeMs(text: string): number {
  const ms = durationMs(text);
  if (ms >= PORTAL_MS_MIN && ms <= PORTAL_MS_MAX) return ms;
  throw invalidField("expires_in", LIFETIME_EXPECTED);
}
