import type { Database } from "../../../kernel/storage/database.ts";
import type { PageSettings } from "./schema.ts";

/** A status page as stored. */
export interface PageRow {
  readonly ref: number;
  readonly pageId: string;
  readonly accountRef: number;
  readonly projectRef: number;
  readonly slug: string;
  readonly settings: PageSettings;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A status page without its groups. */
export type PageSummaryRow = Omit<PageRow, "settings"> & { readonly settings: Omit<PageSettings, "groups"> };

type Stored = Omit<PageRow, "settings"> & { readonly settings: string };

const SELECT = `SELECT ref, page_id AS pageId, account_ref AS accountRef, project_ref AS projectRef, slug, settings,
  created_at AS createdAt, updated_at AS updatedAt FROM status_pages`;

export type PageStore = ReturnType<typeof pageStore>;

/** All SQL of status pages. */
export function pageStore(db: Database) {
  const withId = db.one<Stored, [pageId: string]>(`${SELECT} WHERE page_id = ?`);
  const withSlug = db.one<Stored, [slug: string]>(`${SELECT} WHERE slug = ?`);
  const page = db.all<Stored, [projectRef: number, before: number, rowsMax: number]>(
    // Omits the groups, which are most of the settings.
    `${SELECT.replace(" settings,", " json_remove(settings, '$.groups') AS settings,")} WHERE project_ref = ? AND ref < ? ORDER BY ref DESC LIMIT ?`,
  );
  return {
    /** Largest reference ever assigned; 0 for none. */
    highestRef: db.number("SELECT seq AS n FROM sqlite_sequence WHERE name = 'status_pages'"),
    insert: db.change<[Readonly<Omit<Stored, "createdAt" | "updatedAt"> & { now: number }>]>(
      "INSERT INTO status_pages (ref, page_id, account_ref, project_ref, slug, settings, created_at, updated_at) VALUES ($ref, $pageId, $accountRef, $projectRef, $slug, $settings, $now, $now)",
    ),
    update: db.change<[slug: string, settings: string, now: number, ref: number]>(
      "UPDATE status_pages SET slug = ?, settings = ?, updated_at = ? WHERE ref = ?",
    ),
    remove: db.change<[ref: number]>("DELETE FROM status_pages WHERE ref = ?"),
    removeOfProject: db.change<[projectRef: number, rowsMax: number]>(
      "DELETE FROM status_pages WHERE ref IN (SELECT ref FROM status_pages WHERE project_ref = ? LIMIT ?)",
    ),
    find: (pageId: string): PageRow | null => rowOf(withId(pageId)),
    findBySlug: (slug: string): PageRow | null => rowOf(withSlug(slug)),
    /** A project's pages without their groups, newest first, below a reference. */
    page: (projectRef: number, before: number, rowsMax: number): PageSummaryRow[] =>
      page(projectRef, before, rowsMax).map((stored) => ({
        ...stored,
        settings: JSON.parse(stored.settings),
      })),
  };
}

function rowOf(stored: Stored | null): PageRow | null {
  return stored && { ...stored, settings: JSON.parse(stored.settings) };
}
