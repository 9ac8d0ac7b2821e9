import { changed } from "../../../kernel/audit/change.ts";
import { isUuid, prefixedId } from "../../../kernel/data/uuid.ts";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import type { Caller } from "../../../kernel/http/access/caller.ts";
import { pageOf, pageStart } from "../../../kernel/http/requests/pagination.ts";
import { TierLimit } from "../../../kernel/limits/tier-limits.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import type { MonitorParts } from "../ports.ts";
import { LIST_LIMIT } from "../schema.ts";
import {
  PAGE_DEFAULTS,
  type PageSettings,
  type StatusPage,
  type StatusPageCreateBody,
  type StatusPageSummary,
  type StatusPageUpdateBody,
} from "./schema.ts";
import type { PageRow, PageStore, PageSummaryRow } from "./store.ts";

interface PageParts extends Pick<MonitorParts, "db" | "ids" | "tiers" | "monitors"> {
  readonly pages: PageStore;
  /** Drops the cached texts of a slug after the commit. */
  readonly invalidate: (tx: Tx, slug: string) => void;
}

/** Creates, lists, updates and deletes status pages. */
export class StatusPages {
  private readonly limit: TierLimit;
  private nextRef: number;

  constructor(private readonly parts: PageParts) {
    this.limit = new TierLimit(parts.db, parts.tiers, "pages", "page_limit_exceeded");
    this.nextRef = parts.pages.highestRef() + 1;
  }

  /** @throws ApiError `validation_error`, `page_limit_exceeded`, `page_slug_taken` */
  create(tx: Tx, { account, project }: Caller, given: StatusPageCreateBody, baseUrl: string): StatusPage {
    const { pages, ids, invalidate } = this.parts;
    this.assertMonitors(project.ref, given);
    this.assertSlugAvailable(given.slug, null);
    this.limit.assertCapacity(account);
    const { slug, title } = given;
    const ref = this.nextRef++;
    const pageId = prefixedId("page", ids.uuidV7());
    const settings = JSON.stringify(mergeSettings({ ...PAGE_DEFAULTS, title }, given));
    pages.insert(tx, {
      ref,
      pageId,
      accountRef: account.ref,
      projectRef: project.ref,
      slug,
      settings,
      now: tx.now,
    });
    invalidate(tx, slug);
    const created = this.view(this.find(project.ref, pageId), baseUrl);
    tx.audit({ ...auditTarget(created, "created"), before: null, after: auditedFields(created) });
    return created;
  }

  /** @throws ApiError `not_found`, `validation_error`, `page_slug_taken` */
  update(
    tx: Tx,
    { project }: Caller,
    pageId: string,
    given: StatusPageUpdateBody,
    baseUrl: string,
  ): StatusPage {
    const { pages, invalidate } = this.parts;
    const before = this.find(project.ref, pageId);
    const previous = this.view(before, baseUrl);
    this.assertMonitors(project.ref, given);
    const { slug = before.slug } = given;
    this.assertSlugAvailable(slug, before.ref);
    pages.update(tx, slug, JSON.stringify(mergeSettings(before.settings, given)), tx.now, before.ref);
    for (const one of new Set([before.slug, slug])) invalidate(tx, one);
    const current = this.view(this.find(project.ref, pageId), baseUrl);
    tx.audit(
      changed({
        ...auditTarget(current, "updated"),
        before: auditedFields(previous),
        after: auditedFields(current),
      }),
    );
    return current;
  }

  /** @throws ApiError `not_found` */
  delete(tx: Tx, { project }: Caller, pageId: string, baseUrl: string): { deleted: true } {
    const row = this.find(project.ref, pageId);
    const deleted = this.view(row, baseUrl);
    this.parts.pages.remove(tx, row.ref);
    this.parts.invalidate(tx, row.slug);
    tx.audit({ ...auditTarget(deleted, "deleted"), before: auditedFields(deleted), after: null });
    return { deleted: true };
  }

  /** @throws ApiError `not_found` */
  get(projectRef: number, pageId: string, baseUrl: string): StatusPage {
    return this.view(this.find(projectRef, pageId), baseUrl);
  }

  /** Lists a project's pages, newest first, without their groups. @throws ApiError `validation_error` for an invalid cursor */
  list(projectRef: number, query: { limit?: number; cursor?: string }, baseUrl: string) {
    const { limit = LIST_LIMIT, cursor } = query;
    const rows = this.parts.pages.page(projectRef, pageStart(cursor), limit + 1);
    const { items, ...next } = pageOf(rows, limit, ({ ref }) => [ref]);
    return { pages: items.map((row) => summaryOf(row, baseUrl)), ...next };
  }

  private find(projectRef: number, pageId: string): PageRow {
    const row = this.parts.pages.find(pageId);
    if (row !== null && row.projectRef === projectRef) return row;
    throw new ApiError("not_found", "There is no status page with this id in this project.");
  }

  /** @throws ApiError `validation_error` for an id of no monitor of the project */
  private assertMonitors(projectRef: number, { groups = [] }: StatusPageUpdateBody): void {
    for (const id of groups.flatMap(({ monitor_ids }) => monitor_ids)) {
      if (this.isMonitor(projectRef, id)) continue;
      throw invalidField("groups", `contains an id of no monitor in this project: ${id}`);
    }
  }

  private isMonitor(projectRef: number, id: string): boolean {
    const monitor = isUuid(id) ? this.parts.monitors.find(id) : null;
    return monitor?.projectRef === projectRef;
  }

  /** @throws ApiError `page_slug_taken` */
  private assertSlugAvailable(slug: string, currentRef: number | null): void {
    const holder = this.parts.pages.findBySlug(slug);
    if (holder === null || holder.ref === currentRef) return;
    throw new ApiError(
      "page_slug_taken",
      // Without the reason: the slug may belong to an unpublished page.
      "This slug is not available. Choose another.",
    );
  }

  /** Returns a page as the API shows it, without deleted monitors. */
  private view({ settings, ...row }: PageRow, baseUrl: string): StatusPage {
    const groups = settings.groups.map(({ name, monitor_ids }) => ({
      name,
      monitor_ids: monitor_ids.filter((id) => this.isMonitor(row.projectRef, id)),
    }));
    return { ...summaryOf({ ...row, settings }, baseUrl), groups };
  }
}

function summaryOf({ settings, ...row }: PageSummaryRow, baseUrl: string): StatusPageSummary {
  return {
    id: row.pageId,
    slug: row.slug,
    url: `${baseUrl}/status/${row.slug}`,
    ...settings,
    created_at: isoTime(row.createdAt),
    updated_at: isoTime(row.updatedAt),
  };
}

/** Merges the known settings of a body into others. Undeclared fields are ignored. */
function mergeSettings(before: PageSettings, given: StatusPageUpdateBody): PageSettings {
  const names = [...Object.keys(PAGE_DEFAULTS), "title"];
  const known = Object.entries({ ...before, ...given }).filter(([name]) => names.includes(name));
  return Object.fromEntries(known) as PageSettings;
}

function auditedFields({ created_at, updated_at, url, ...settings }: StatusPage) {
  return settings;
}

function auditTarget({ id, slug }: StatusPage, action: string) {
  return { summary: `Status page ${slug} ${action}`, target: { type: "page", id } };
}
