import { column, json, once, type RowOf, resourceTable } from "../../kernel/resources/table.ts";
import type { Database } from "../../kernel/storage/database.ts";
import { PAGE_DEFAULTS, type PageSettings } from "./schema.ts";

/** Settings that did not exist when the page was stored have their defaults. */
const SETTINGS = {
  ...json<PageSettings>(),
  decode: (stored: unknown): PageSettings => ({ ...PAGE_DEFAULTS, ...JSON.parse(`${stored}`) }),
};

const PAGES = {
  name: "status_pages",
  id: "page_id",
  columns: {
    accountRef: once(column<number>()),
    slug: column<string>(),
    settings: SETTINGS,
    createdAt: once(column<number>()),
    updatedAt: column<number>(),
  },
};

/** A status page as stored. */
export type PageRow = RowOf<typeof PAGES>;
export type PageStore = ReturnType<typeof pageStore>;

/** All SQL of status pages. */
export function pageStore(db: Database) {
  const rows = resourceTable(db, PAGES);
  return {
    ...rows,
    findBySlug: rows.one<[slug: string]>("WHERE slug = ?"),
    /** A project's pages, newest first, below a reference; their groups and logos, which can be large, are not read. */
    summaries: rows.all<[projectRef: number, before: number, rowsMax: number]>(
      "WHERE project_ref = ? AND ref < ? ORDER BY ref DESC LIMIT ?",
      { settings: "json_remove(settings, '$.groups', '$.logo')" },
    ),
  };
}
