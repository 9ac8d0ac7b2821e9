import { StartupError } from "../../kernel/errors.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { Notes } from "./notes.ts";
import { isObject, parseJson, shown } from "./source.ts";

/** Notes that are shown. */
const NOTES_MAX = 100;
/** Start of a secret, as an import has it. */
const PREFIX = /^[a-z0-9_]{1,32}$/;
/** Bearer credentials of this API. */
const RESERVED_PREFIX = "sm";
const KEY_NAME_LENGTH_MAX = 255;
const LIMIT_NAME_LENGTH_MAX = 64;
const ROLE_NAME_LENGTH_MAX = 128;
/** Characters for a number after the name of a role, where another one has it. */
const SUFFIX_LENGTH_MAX = 8;

type Item = Readonly<Record<string, unknown>>;

/** A role with its permissions, as a request saves it. */
export interface UnkeyRole {
  readonly name: string;
  readonly description: string | null;
  readonly permissions: readonly string[];
}

/** A key, as a request imports it, without its roles. */
export interface UnkeyKey {
  /** What messages call it. */
  readonly label: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Its permissions, those of its roles included. */
  readonly permissions: readonly string[];
  readonly roles: readonly string[];
}

/** What files of Unkey contain. */
export interface UnkeyKeys {
  readonly roles: readonly UnkeyRole[];
  readonly keys: readonly UnkeyKey[];
  /** Keys that cannot be imported, each with the reason. */
  readonly skipped: readonly { readonly label: string; readonly reason: string }[];
  readonly notes: readonly string[];
}

/**
 * Reads responses of Unkey's `apis.listKeys` and `permissions.listRoles`, and rows of its table `keys`. Of a secret only its hash
 * is returned, and no message contains one. `now`: epoch milliseconds.
 * @throws StartupError for a file of another kind
 */
export function readUnkey(
  files: readonly { readonly path: string; readonly text: string }[],
  now: number,
): UnkeyKeys {
  const reader = new UnkeyReader(now);
  for (const { path, text } of files) reader.read(parseJson(text, path, parseQuietly), path);
  return reader.result();
}

/** The message of the runtime may contain what stands in the file. */
function parseQuietly(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new Error("syntax error");
  }
}

class UnkeyReader {
  private readonly roles = new Map<string, UnkeyRole>();
  /** Names here, by those of Unkey. */
  private readonly roleNames = new Map<string, string>();
  private readonly keys: UnkeyKey[] = [];
  private readonly skipped: { readonly label: string; readonly reason: string }[] = [];
  private readonly notes = new Notes(NOTES_MAX);
  private pages = 0;
  private isEndMissing = true;

  constructor(private readonly now: number) {}

  read(value: unknown, path: string): void {
    for (const page of Array.isArray(value) && value.every(isPage) ? value : [value]) {
      const items = itemsOf(page);
      if (items === null)
        throw new StartupError(
          `${path} must be a response of apis.listKeys or permissions.listRoles, or a list of its items.`,
        );
      for (const item of items) this.readItem(item, path);
      if (!items.some(isKey)) continue;
      this.pages += 1;
      if (!hasMore(page)) this.isEndMissing = false;
    }
  }

  result(): UnkeyKeys {
    const pages = { noun: "page", label: "apis.listKeys" };
    if (this.pages > 0 && this.isEndMissing)
      this.notes.add("resource", pages, "has more keys: add the other pages");
    return {
      roles: [...this.roles.values()],
      keys: this.keys,
      skipped: this.skipped,
      notes: this.notes.lines,
    };
  }

  private readItem(item: unknown, path: string): void {
    if (!isObject(item)) throw new StartupError(`${path}: each key and role must be an object.`);
    if (isKey(item)) this.readKey(item);
    else if (isRole(item)) this.readRole(item);
    else throw new StartupError(`${path}: an item is neither a key nor a role of Unkey.`);
  }

  private readRole(item: Item): void {
    const name = String(item["name"]);
    const permissions = listIn(item, "permissions").map((permission) =>
      isObject(permission) ? String(permission["slug"] ?? permission["name"]) : String(permission),
    );
    const description = textIn(item, "description");
    this.roles.set(name, { name: this.roleName(name), description, permissions });
  }

  private readKey(item: Item): void {
    const id = textIn(item, "keyId") ?? textIn(item, "id") ?? "";
    const start = textIn(item, "start");
    const name = (textIn(item, "name") ?? start ?? id).slice(0, KEY_NAME_LENGTH_MAX).toWellFormed();
    const subject = { noun: "key", label: `key ${shown(name)}` };
    const hash = hashOf(item);
    const expires = numberIn(item, "expires");
    const reason =
      hash === null
        ? "has neither its secret (list the keys with decrypt: true) nor its hash"
        : expires !== null && expires <= this.now
          ? "has expired"
          : null;
    if (hash === null || reason !== null) {
      this.skipped.push({ label: subject.label, reason: reason ?? "" });
      return;
    }
    const identity = isObject(item["identity"]) ? item["identity"] : {};
    const lost = (part: Item, field: string, text: string) => {
      if (!isNothing(part[field])) this.notes.add("field", subject, text);
    };
    lost(identity, "meta", "the meta of its identity is not carried over");
    lost(identity, "credits", "the credits of its identity, which its keys share, are not carried over");
    const metadata = metadataOf(item["meta"]);
    const body = {
      hash,
      name,
      prefix: prefixOf(start),
      ...(item["enabled"] === false ? { enabled: false } : {}),
      ...(expires === null ? {} : { expires_at: isoTime(expires) }),
      ...defined("owner_id", textIn(identity, "externalId") ?? textIn(item, "ownerId")),
      ...defined("metadata", metadata),
      ...defined("uses", usesOf(item)),
      ...defined("ratelimits", this.limitsOf(item, identity, subject)),
    };
    const roles = listIn(item, "roles").map((role) => String(isObject(role) ? role["name"] : role));
    const permissions = listIn(item, "permissions").map(String);
    this.keys.push({
      label: subject.label,
      body,
      permissions,
      roles: roles.map((role) => this.roleName(role)),
    });
  }

  /** The name of a role here, which no other role has. */
  private roleName(name: string): string {
    const known = this.roleNames.get(name);
    if (known !== undefined) return known;
    const valid = name.replace(/[^A-Za-z0-9_.:-]/g, "-").slice(0, ROLE_NAME_LENGTH_MAX - SUFFIX_LENGTH_MAX);
    const taken = new Set(this.roleNames.values());
    let unique = valid;
    for (let number = 2; taken.has(unique); number += 1) unique = `${valid}-${number}`;
    this.roleNames.set(name, unique);
    if (unique !== name)
      this.notes.add("change", { noun: "role", label: `role ${shown(name)}` }, `is called ${unique}`);
    return unique;
  }

  private limitsOf(item: Item, identity: Item, subject: { readonly noun: string; readonly label: string }) {
    const old = item["ratelimit"];
    const ofKey = [
      ...listIn(item, "ratelimits"),
      ...(isObject(old) ? [{ ...old, name: "default", autoApply: true }] : []),
    ];
    const all = [
      ...ofKey.map((limit) => ({ limit, shared: "key" })),
      ...listIn(identity, "ratelimits").map((limit) => ({ limit, shared: "owner" })),
    ];
    const limits = new Map<string, object>();
    for (const { limit, shared } of all) {
      if (!isObject(limit)) continue;
      const unkeyName = String(limit["name"]);
      const name = unkeyName
        .toLowerCase()
        .replace(/[^a-z0-9_.-]/g, "-")
        .slice(0, LIMIT_NAME_LENGTH_MAX);
      if (name !== unkeyName)
        this.notes.add("change", subject, `its rate limit ${shown(unkeyName)} is called ${name}`);
      // Those of the key replace those of its identity.
      if (limits.has(name)) continue;
      const duration_ms = numberIn(limit, "duration") ?? numberIn(limit, "refillInterval");
      limits.set(name, {
        name,
        limit: limit["limit"],
        duration_ms,
        auto: limit["autoApply"] === true,
        shared,
      });
    }
    return limits.size === 0 ? null : [...limits.values()];
  }
}

/** Whether a value is a response, and not an item of one. */
function isPage(value: unknown): value is Item {
  return isObject(value) && !isKey(value) && !isRole(value);
}

/** The items of a response or of a list; null for anything else. */
function itemsOf(page: unknown): readonly unknown[] | null {
  if (Array.isArray(page)) return page;
  if (!isObject(page)) return null;
  const items = ["data", "keys", "roles"].map((name) => page[name]).find(Array.isArray);
  return items ?? null;
}

function hasMore(page: unknown): boolean {
  if (!isObject(page)) return false;
  const { pagination, cursor } = page as { readonly pagination?: unknown; readonly cursor?: unknown };
  return isObject(pagination) ? pagination["hasMore"] === true : typeof cursor === "string" && cursor !== "";
}

function isKey(item: unknown): item is Item {
  return (
    isObject(item) && ["keyId", "start", "hash", "plaintext"].some((name) => typeof item[name] === "string")
  );
}

function isRole(item: unknown): item is Item {
  return isObject(item) && typeof item["name"] === "string" && Array.isArray(item["permissions"]);
}

/** The hash of the secret; null if the file has neither of them. */
function hashOf(item: Item): string | null {
  const secret = textIn(item, "plaintext");
  if (secret !== null) return new Bun.CryptoHasher("sha256").update(secret).digest("base64");
  const { hash } = item as { readonly hash?: unknown };
  if (typeof hash === "string") return hash;
  return isObject(hash) ? textIn(hash, "value") : null;
}

/** The prefix that the visible start of a secret has; null if it has none, or one that an import cannot have. */
function prefixOf(start: string | null): string | null {
  const end = start?.lastIndexOf("_") ?? -1;
  const prefix = start === null || end < 1 ? "" : start.slice(0, end);
  return PREFIX.test(prefix) && prefix !== RESERVED_PREFIX ? prefix : null;
}

function metadataOf(meta: unknown): Readonly<Record<string, string>> | null {
  const value = typeof meta === "string" ? objectIn(meta) : meta;
  if (!isObject(value) || Object.keys(value).length === 0) return null;
  const entries = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(
    entries.map(([name, member]) => [name, typeof member === "string" ? member : JSON.stringify(member)]),
  );
}

/** A row has its meta as text. */
function objectIn(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}

function usesOf(item: Item) {
  const credits = isObject(item["credits"]) ? item["credits"] : item;
  const remaining = numberIn(credits, "remaining");
  if (remaining === null) return null;
  const { refill } = credits as { readonly refill?: unknown };
  if (!isObject(refill)) return { remaining };
  const isMonthly = refill["interval"] === "monthly";
  const day = isMonthly ? numberIn(refill, "refillDay") : null;
  return {
    remaining,
    refill: { every: isMonthly ? "month" : "day", amount: refill["amount"], ...defined("day", day) },
  };
}

function textIn(item: Item, name: string): string | null {
  const value = item[name];
  return typeof value === "string" && value !== "" ? value : null;
}

function numberIn(item: Item, name: string): number | null {
  const value = item[name];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function listIn(item: Item, name: string): readonly unknown[] {
  const value = item[name];
  return Array.isArray(value) ? value : [];
}

function defined(name: string, value: unknown): object {
  return value === null ? {} : { [name]: value };
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null || (isObject(value) && Object.keys(value).length === 0);
}
