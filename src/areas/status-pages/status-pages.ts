import { isUuid } from "../../kernel/data/uuid.ts";
import { invalidField } from "../../kernel/errors.ts";
import { largeBody } from "../../kernel/http/operation.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { ResourceContext } from "../../kernel/resources/declaration.ts";
import { limitPerAccount } from "../../kernel/resources/limit.ts";
import { resource } from "../../kernel/resources/resource.ts";
import type { PartedRemoval } from "../../kernel/scheduler/parted-removal.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { assertBrand } from "./brand.ts";
import type { PageDeps } from "./ports.ts";
import {
  PAGE_DEFAULTS,
  PAGE_LIST_LIMIT,
  type PageSettings,
  StatusPage,
  StatusPageCreateBody,
  StatusPageDeleted,
  StatusPageSummary,
  StatusPageUpdateBody,
} from "./schema.ts";
import type { PageRow, PageStore } from "./store.ts";

interface PageResourceDeps extends Pick<Kernel, "db" | "ids">, Pick<PageDeps, "tiers" | "monitors"> {
  readonly removal: Pick<PartedRemoval, "remove">;
  readonly pages: PageStore;
  /** Drops the cached texts of a slug after the commit. */
  readonly invalidate: (tx: Tx, slug: string) => void;
}

/** A page with the maximum number of groups has 2,500 monitor ids. */
const BODY_LIMITS = largeBody();

/** Declares status pages. */
export function statusPageResource(deps: PageResourceDeps) {
  const { pages, monitors, removal, invalidate } = deps;

  function isMonitor(projectRef: number, id: string): boolean {
    return isUuid(id) && monitors.find(id)?.projectRef === projectRef;
  }
  /** @throws ApiError `validation_error` for an id of no monitor of the project */
  function assertMonitors(projectRef: number, { groups = [] }: Partial<PageSettings>): void {
    for (const id of groups.flatMap(({ monitor_ids }) => monitor_ids)) {
      if (isMonitor(projectRef, id)) continue;
      throw invalidField("groups", `contains an id of no monitor in this project: ${id}`);
    }
  }
  /** A page as the API shows it, without deleted monitors. */
  function view(row: PageRow, context: ResourceContext): StatusPage {
    const groups = row.settings.groups.map(({ name, monitor_ids }) => ({
      name,
      monitor_ids: monitor_ids.filter((id) => isMonitor(row.projectRef, id)),
    }));
    return { ...summaryOf(row, context), groups, logo: row.settings.logo };
  }

  return resource(deps.ids, {
    type: "page",
    title: "status page",
    idPrefix: "page",
    path: "/v1/pulse/pages",
    operations: "monitors.pages",
    tag: "Monitors",
    access: { area: "pulse", cost: 1, limit: "monitor" },
    file: { section: "status_pages", defaults: PAGE_DEFAULTS, check: assertBrand },
    name: {
      field: "slug",
      taken: "page_slug_taken",
      holder: ({ slug }) => pages.findBySlug(slug),
      // Without the reason: the slug may belong to an unpublished page.
      message: () => "This slug is not available. Choose another.",
    },
    limit: limitPerAccount(deps, "pages", "page_limit_exceeded"),
    store: pages,
    schema: StatusPage,
    view,
    summary: ({ slug }, done) => `Status page ${slug} ${done === "changed" ? "updated" : done}`,
    // Without the bytes of the logo, of which an entry names only the digest.
    audited: ({ created_at, updated_at, url, logo, ...settings }) => ({
      ...settings,
      logo: logo && `sha256:${Bun.CryptoHasher.hash("sha256", logo, "hex")}`,
    }),
    list: {
      summary: "List status pages, newest first",
      description:
        "Published and unpublished pages, without their `groups` and `logo`: a single page has them.",
      key: "pages",
      schema: "StatusPageList",
      limit: PAGE_LIST_LIMIT,
      rows: ({ caller: { project } }, { before, rowsMax }) => pages.summaries(project.ref, before, rowsMax),
      item: StatusPageSummary,
      view: summaryOf,
    },
    read: {
      summary: "Get a status page's settings",
      description:
        "For editing the page. What visitors see is at `/status/{slug}` and, as JSON, at `/status/{slug}.json`. Monitors that were deleted are not in `groups`.",
    },
    create: {
      summary: "Create a public status page",
      description:
        "The page is public at `/status/{slug}` immediately, unless `published` is false. The slug is unique on the server, not only in your project. Visitors are free of charge.",
      example: { slug: "acme", title: "Acme" },
      bodyLimits: BODY_LIMITS,
      body: StatusPageCreateBody,
      row({ caller: { project } }, body, identity) {
        assertMonitors(project.ref, body);
        assertBrand(body);
        const settings = mergeSettings({ ...PAGE_DEFAULTS, title: body.title }, body);
        return { ...identity, slug: body.slug, settings };
      },
      created: ({ tx }, { slug }) => invalidate(tx, slug),
    },
    change: {
      verb: "update",
      summary: "Update a status page",
      description: "Omitted fields stay unchanged. `published: false` hides the page without deleting it.",
      example: { title: "Acme's services" },
      bodyLimits: BODY_LIMITS,
      body: StatusPageUpdateBody,
      row({ tx }, before, body) {
        assertMonitors(before.projectRef, body);
        assertBrand(body);
        const settings = mergeSettings(before.settings, body);
        return { ...before, slug: body.slug ?? before.slug, settings, updatedAt: tx.now };
      },
      changed({ tx }, { slug }, _, before) {
        for (const changed of new Set([before.slug, slug])) invalidate(tx, changed);
      },
    },
    delete: {
      summary: "Delete a status page",
      description:
        "The public address is 404 immediately, and all subscribers are deleted. The monitors and incidents stay. To hide a page for some time, set `published` to false.",
      schema: StatusPageDeleted,
      remove({ tx }, { ref, slug }) {
        pages.remove(tx, ref);
        removal.remove(tx, String(ref));
        invalidate(tx, slug);
      },
    },
  });
}

function summaryOf(row: PageRow, { call }: ResourceContext): StatusPageSummary {
  const { groups, logo, ...settings } = row.settings;
  return {
    id: row.id,
    slug: row.slug,
    url: `${call.baseUrl}/status/${row.slug}`,
    ...settings,
    created_at: isoTime(row.createdAt),
    updated_at: isoTime(row.updatedAt),
  };
}

/** Merges the known settings of a body into others. Undeclared fields are ignored. */
function mergeSettings(before: PageSettings, body: Partial<PageSettings>): PageSettings {
  const names = [...Object.keys(PAGE_DEFAULTS), "title"];
  const known = Object.entries({ ...before, ...body }).filter(([name]) => names.includes(name));
  return Object.fromEntries(known) as PageSettings;
}
