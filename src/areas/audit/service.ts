import { isUuid, uuidToBytes } from "../../kernel/data/uuid.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Caller } from "../../kernel/http/access/caller.ts";
import { encodeCursor, pageStart } from "../../kernel/http/requests/pagination.ts";
import type { TextSource } from "../../kernel/http/responses/text-stream.ts";
import { isoTime, timestampOfQuery } from "../../kernel/time/date-time.ts";
import {
  EXPORT_ROWS_MAX,
  EXPORT_SLICE_ROWS,
  type ExportFormat,
  exportHead,
  exportLine,
  stepsOf,
  WALKED_ROWS_MAX,
} from "./domain.ts";
import {
  type AdminEntryQuery,
  type AdminExportQuery,
  type AuditEntry,
  type AuditPage,
  ENTRIES_LIMIT,
} from "./schema.ts";
import type { AuditStore, EntrySize, Filters, StoredEntry, Walk } from "./store.ts";

/** The accounts, as far as the log needs them. */
export interface AuditAccounts {
  /** The reference of the account with this user id; 0 when there is none. */
  refOfUser(userId: string): number;
}

/** Whose entries are read: a caller's own, or for the operator everybody's. */
export type Reader = Caller | "operator";

/** A walk that knows whose entries it goes through. */
type Bound = Walk<Record<never, never>>;

/** The use cases of the log. */
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
    const first = walk.downFrom({ last, rows: WALKED_ROWS_MAX });
    const found = walk.newestSizes({ ...filters, first, last, limit: limit + 1 });
    const [shown = []] = stepsOf(found.slice(0, limit));
    const entries = entriesIn(walk, filters, shown).toReversed().map(entryView);
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
    return entryView(entry);
  }

  /**
   * The entries of a time as text, oldest first, a slice at a time.
   * @throws ApiError `validation_error`, `conflict` while another export of the account runs.
   */
  export(caller: Caller, reader: Reader, query: AdminExportQuery): TextSource {
    const filters = filtersOf(query);
    const walk = this.walkOf(reader, query);
    const { ref } = caller.account;
    if (this.exporting.has(ref)) {
      throw new ApiError("conflict", "Another export of this account is running. Wait for its end.");
    }
    this.exporting.add(ref);
    const texts = exported(walk, filters, query.format ?? "jsonl", this.store.highest());
    return { next: () => texts.next().value ?? null, end: () => this.exporting.delete(ref) };
  }

  private walkOf(reader: Reader, query: AdminEntryQuery): Bound {
    const { store } = this;
    if (reader === "operator") {
      if (query.user_id === undefined) return store.everything;
      return bound(store.aboutAccount, { accountRef: this.accounts.refOfUser(query.user_id) });
    }
    const accountRef = reader.account.ref;
    const { target_type: targetType, target_id: targetId, project_id } = query;
    if (seesOwnProjectOnly(reader)) return bound(store.ofProject, { accountRef, project: reader.project.id });
    if (targetType !== undefined && targetId !== undefined) {
      return bound(store.ofTarget, { accountRef, targetType, targetId });
    }
    if (project_id !== undefined) return bound(store.ofProject, { accountRef, project: project_id });
    return bound(store.ofAccount, { accountRef });
  }
}

/** The walk goes through committed rows, up to the last one at its beginning. */
function* exported(walk: Bound, filters: Filters, format: ExportFormat, through: number): Generator<string> {
  yield exportHead(format);
  let left = EXPORT_ROWS_MAX;
  for (let first = 1; first <= through && left > 0; ) {
    const last = walk.upFrom({ first, rows: EXPORT_SLICE_ROWS }) || through;
    const sizes = walk.oldestSizes({ ...filters, first, last: Math.min(last, through) }).slice(0, left);
    left -= sizes.length;
    first = last + 1;
    // Also where nothing matches: the reader's turn is where others get theirs.
    if (sizes.length === 0) yield "";
    for (const step of stepsOf(sizes)) {
      const entries = entriesIn(walk, filters, step);
      yield entries.map((entry) => exportLine(format, entryView(entry))).join("");
    }
  }
}

/** The entries of a step, oldest first, whichever way it was found. */
function entriesIn(walk: Bound, filters: Filters, step: readonly EntrySize[]): StoredEntry[] {
  const ends = [step.at(0)?.sequence ?? 0, step.at(-1)?.sequence ?? 0];
  return walk.oldest({ ...filters, first: Math.min(...ends), last: Math.max(...ends) });
}

function bound<Whose extends object>(walk: Walk<Whose>, whose: Whose): Bound {
  return {
    downFrom: (query) => walk.downFrom({ ...whose, ...query }),
    upFrom: (query) => walk.upFrom({ ...whose, ...query }),
    newestSizes: (query) => walk.newestSizes({ ...whose, ...query }),
    oldestSizes: (query) => walk.oldestSizes({ ...whose, ...query }),
    oldest: (query) => walk.oldest({ ...whose, ...query }),
  };
}

function filtersOf(query: AdminEntryQuery): Filters {
  const { action = null, actor = null, target_type, target_id, project_id } = query;
  const isArea = action?.endsWith(".*") === true;
  const actorId = actor?.toLowerCase() ?? "";
  return {
    action: isArea ? null : action,
    actionPrefix: isArea ? (action?.slice(0, -1) ?? null) : null,
    actor,
    actorKey: isUuid(actorId) ? uuidToBytes(actorId) : null,
    targetType: target_type ?? null,
    targetId: target_id ?? null,
    projectId: project_id ?? null,
    from: momentOrNull("from", query.from),
    to: momentOrNull("to", query.to),
  };
}

function momentOrNull(field: string, text: string | undefined): number | null {
  return text === undefined ? null : timestampOfQuery(field, text);
}

function isVisible(reader: Reader, entry: StoredEntry & { readonly accountRef: number | null }): boolean {
  if (reader === "operator") return true;
  if (entry.accountRef !== reader.account.ref) return false;
  return !seesOwnProjectOnly(reader) || entry.projectId === reader.project.id;
}

/** Whether a caller reads the entries of its own project only: a key of one project, or one without the scope `*`. */
function seesOwnProjectOnly({ projectBound, scopes }: Caller): boolean {
  return projectBound || !scopes.has("*");
}

function entryView(entry: StoredEntry): AuditEntry {
  const { sequence, action, summary, before, after } = entry;
  return {
    sequence: String(sequence),
    at: isoTime(entry.at),
    action,
    summary,
    actor: {
      type: entry.actorType,
      key_id: entry.keyId,
      key_name: entry.keyName,
      user_id: entry.userId,
    },
    project_id: entry.projectId,
    target: { type: entry.targetType, id: entry.targetId },
    before: before && JSON.parse(before),
    after: after && JSON.parse(after),
    ...(entry.truncated ? { truncated: true } : {}),
    ip: entry.ip,
    user_agent: entry.userAgent,
    request_id: entry.requestId,
  };
}
