import { PAGE_LENGTHS_MAX } from "../../../areas/status-pages/schema.ts";
import type { Draft } from "../draft.ts";
import { addPages, shortened, splitGroup } from "../page-groups.ts";
import { SourceObject, shown } from "../source.ts";
import { type Names, namesOf } from "./monitors.ts";

/**
 * Imports a status page. It is never left out: what is too long is shortened, groups with too many monitors are split, and a page
 * with too many groups continues on a further one.
 */
export function statusPageOf(draft: Draft, value: unknown, monitors: Names): void {
  const page = new SourceObject(draft, "status page", value);
  const slug = page.text("slug") ?? "page";
  page.label = `status page ${shown(slug)}`;
  const list = page.list("groups").map((group) => new SourceObject(draft, page.label, group, page.noun));
  const showsUrls = list.some((group) => group.flag("shows_urls"));
  const groups = list.flatMap((group) =>
    splitGroup(page, {
      name: shortened(page, "group name", group.text("name") ?? "", PAGE_LENGTHS_MAX.groupName),
      monitors: namesOf(group, group.list("monitors"), monitors),
    }),
  );
  const title = shortened(page, "title", page.text("title") ?? slug, PAGE_LENGTHS_MAX.title);
  const description = page.text("description");
  const footer = page.text("footer_text");
  const values = {
    title,
    description: description && shortened(page, "description", description, PAGE_LENGTHS_MAX.description),
    footer: footer && shortened(page, "footer", footer, PAGE_LENGTHS_MAX.footer),
    index: page.flag("search_engine_index"),
    published: page.flag("published"),
    show_urls: showsUrls ? true : null,
  };
  page.ignore("id", "created_date", "modified_date", "show_powered_by", "auto_refresh_interval");
  page.rest({ icon: ["/icon.svg"], theme: ["auto", "light"] });
  addPages(draft, page, slug, { values, groups });
}
