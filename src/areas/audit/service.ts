import { parseNearly } from "../../json-text.ts";
import { actorView, type ScheduledActor } from "../../kernel/audit/trail.ts";
import type { Caller } from "../../kernel/callers/caller.ts";
import { isUuid, uuidToBytes } from "../../kernel/data/uuid.ts";
import { ApiError } from "../../kernel/errors.ts";
import { encodeCursor, pageStart } from "../../kernel/http/requests/pagination.ts";
import { withoutSecretUrls } from "../../kernel/http/responses/hidden-urls.ts";
import type { TextSource } from "../../kernel/http/responses/text-stream.ts";
import { isoTime, timestampOfQuery } from "../../kernel/time/date-time.ts";
import {
  EXPORT_ROWS_MAX,
  EXPORT_SLICE_ROWS,
  type ExportFormat,
  exportHead,
  exportLine,
  SCANNED_ROWS_MAX,
  splitIntoSteps,
} from "./domain.ts";
import { withoutAddresses } from "./hidden-addresses.ts";
import {
  type AdminEntryQuery,
  type AdminExportQuery,
  type AuditEntry,
  type AuditPage,
  ENTRIES_LIMIT,
} from "./schema.ts";
import type { AuditStore, EntrySize, Filters, StoredEntry, Walk } from "./store.ts";

/** What the log needs of the accounts. */
export interface AuditAccounts {
  /** The reference of the account with this user id; 0 when there is none. */
  refOfUser(userId: string): number;
}

/** The reader of entries: a caller, with access to its account's, or the operator, with access to all. */
export type Reader = Caller | "operator";

/** A walk with its scope already given. */
type AnyScopeWalk = Walk<Record<never, never>>;

/** The use cases of the audit log. */
export class AuditService {
  private readonly exporting = new Set<number>();

  constructor(
    private readonly store: AuditStore,
    private readonly accounts: AuditAccounts,
  ) {}

  /** A page of entries, newest first. @throws ApiError `validation_error` */
  list(reader: Reader, query: AdminEntryQuery): AuditPage {
    const { limit = ENTRIES_LIMIT, cursor } = query;
    const filters = filtersOf(query);
    const walk = this.walkOf(reader, query);
    const last = pageStart(cursor) - 1;
    const first = walk.downFrom({ last, rows: SCANNED_ROWS_MAX });
    const found = walk.newestSizes({ ...filters, first, last, limit: limit + 1 });
    const [shown = []] = splitIntoSteps(found.slice(0, limit));
    const entries = entriesIn(walk, filters, shown)
      .toReversed()
      .map((entry) => entryView(entry, reader));
    const lastShown = shown.at(-1);
    if (found.length > shown.length && lastShown !== undefined)
      return { entries, cursor: encodeCursor([lastShown.sequence]) };
    // The walk ended early: there may be more.
    return first > 1 ? { entries, cursor: encodeCursor([first]) } : { entries };
  }

  /** @throws ApiError `not_found` */
  get(reader: Reader, sequence: string): AuditEntry {
    const entry = this.store.find(Number(sequence));
    if (entry === null || !isVisible(reader, entry)) {
      throw new ApiError("not_found", "There is no entry with this sequence.");
    }
    return entryView(entry, reader);
  }

  /**
   * The entries in a range of times as text, oldest first, one slice at a time.
   * @throws ApiError `validation_error`, `conflict` while another export of the account runs.
   */
  export(caller: Caller, reader: Reader, query: AdminExportQuery): TextSource {
    const filters = filtersOf(query);
    const walk = this.walkOf(reader, query);
    const { ref } = caller.account;
    if (this.exporting.has(ref)) {
      throw new ApiError(
        "conflict",
        "Another export of this account is running. Retry when it has finished.",
      );
    }
    this.exporting.add(ref);
    const texts = exported(walk, filters, query.format ?? "jsonl", {
      through: this.store.highest(),
      reader: caller,
    });
    return { next: () => texts.next().value ?? null, end: () => this.exporting.delete(ref) };
  }

  private walkOf(reader: Reader, query: AdminEntryQuery): AnyScopeWalk {
    const { store } = this;
    if (reader === "operator") {
      if (query.user_id === undefined) return store.everything;
      return withScope(store.aboutAccount, { accountRef: this.accounts.refOfUser(query.user_id) });
    }
    const accountRef = reader.account.ref;
    const { target_type: targetType, target_id: targetId, project_id } = query;
    if (isLimitedToProject(reader))
      return withScope(store.ofProject, { accountRef, project: reader.project.id });
    if (targetType !== undefined && targetId !== undefined) {
      return withScope(store.ofTarget, { accountRef, targetType, targetId });
    }
    if (project_id !== undefined) return withScope(store.ofProject, { accountRef, project: project_id });
    return withScope(store.ofAccount, { accountRef });
  }
}

/** Walks through committed rows, up to the last one at the start of the export. */
function* exported(
  walk: AnyScopeWalk,
  filters: Filters,
  format: ExportFormat,
  { through, reader }: { readonly through: number; readonly reader: Caller },
): Generator<string> {
  yield exportHead(format);
  let remaining = EXPORT_ROWS_MAX;
  for (let first = 1; first <= through && remaining > 0; ) {
    const last = walk.upFrom({ first, rows: EXPORT_SLICE_ROWS }) || through;
    const sizes = walk.oldestSizes({ ...filters, first, last: Math.min(last, through) }).slice(0, remaining);
    remaining -= sizes.length;
    first = last + 1;
    // An empty text if no entry matches, so that other requests run in between.
    if (sizes.length === 0) yield "";
    for (const step of splitIntoSteps(sizes)) {
      const entries = entriesIn(walk, filters, step);
      yield entries
        .map((entry) => exportLine(format, withoutSecretUrls(entryView(entry, reader), reader)))
        .join("");
    }
  }
}

/** The entries of a step, oldest first, in either order of the step. */
function entriesIn(walk: AnyScopeWalk, filters: Filters, step: readonly EntrySize[]): StoredEntry[] {
  const ends = [step.at(0)?.sequence ?? 0, step.at(-1)?.sequence ?? 0];
  return walk.oldest({ ...filters, first: Math.min(...ends), last: Math.max(...ends) });
}

function withScope<Scope extends object>(walk: Walk<Scope>, scope: Scope): AnyScopeWalk {
  return {
    downFrom: (query) => walk.downFrom({ ...scope, ...query }),
    upFrom: (query) => walk.upFrom({ ...scope, ...query }),
    newestSizes: (query) => walk.newestSizes({ ...scope, ...query }),
    oldestSizes: (query) => walk.oldestSizes({ ...scope, ...query }),
    oldest: (query) => walk.oldest({ ...scope, ...query }),
  };
}

function filtersOf(query: AdminEntryQuery): Filters {
  const { action = null, actor = null, target_type, target_id, project_id } = query;
  const isPrefix = action?.endsWith(".*") === true;
  const actorId = actor?.toLowerCase() ?? "";
  return {
    action: isPrefix ? null : action,
    actionPrefix: isPrefix ? (action?.slice(0, -1) ?? null) : null,
    actor,
    actorKey: isUuid(actorId) ? uuidToBytes(actorId) : null,
    targetType: target_type ?? null,
    targetId: target_id ?? null,
    projectId: project_id ?? null,
    from: timeOrNull("from", query.from),
    to: timeOrNull("to", query.to),
  };
}

function timeOrNull(field: string, text: string | undefined): number | null {
  return text === undefined ? null : timestampOfQuery(field, text);
}

function isVisible(reader: Reader, entry: StoredEntry & { readonly accountRef: number | null }): boolean {
  if (reader === "operator") return true;
  if (entry.accountRef !== reader.account.ref) return false;
  return !isLimitedToProject(reader) || entry.projectId === reader.project.id;
}

/** Whether a caller can read only the entries of its project: a key of one project, or one without the scope `*`. */
function isLimitedToProject({ projectBound, scopes }: Caller): boolean {
  return projectBound || !scopes.has("*");
}

function entryView(entry: StoredEntry, reader: Reader): AuditEntry {
  const { sequence, action, summary, before, after } = entry;
  const view: AuditEntry = {
    sequence: String(sequence),
    at: isoTime(entry.at),
    action,
    summary,
    actor: entryActor(entry),
    project_id: entry.projectId,
    target: { type: entry.targetType, id: entry.targetId },
    before: sideOf(before),
    after: sideOf(after),
    ...(entry.truncated ? { truncated: true } : {}),
    ip: entry.ip,
    user_agent: entry.userAgent,
    request_id: entry.requestId,
  };
  return withoutAddresses(view, reader);
}

function entryActor(entry: StoredEntry): AuditEntry["actor"] {
  if (entry.schedule === null) return actorView(entry);
  const { id, by }: ScheduledActor = JSON.parse(entry.schedule);
  const { type, user_id } = { ...by, type: entry.actorType };
  return { type, key_id: null, key_name: null, user_id, owner_id: null, id, by };
}

/** One side of a change, with all digits of its numbers. */
function sideOf(stored: string | null): AuditEntry["before"] {
  return stored === null ? null : (parseNearly(stored) as AuditEntry["before"]);
}
