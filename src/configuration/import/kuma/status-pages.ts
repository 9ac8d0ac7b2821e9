import { GROUP_MONITORS_MAX, GROUPS_MAX, PAGE_LENGTHS_MAX } from "../../../areas/status-pages/schema.ts";
import type { Draft } from "../draft.ts";
import { SourceObject, shown } from "../source.ts";
import { type Names, namesOf } from "./monitors.ts";

interface Group {
  readonly name: string;
  readonly monitors: readonly string[];
}

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
    split(page, {
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
  if (groups.length > GROUPS_MAX)
    page.noteChange("groups", `continue on further pages: a page has at most ${GROUPS_MAX}`);
  for (let from = 0; from === 0 || from < groups.length; from += GROUPS_MAX)
    draft.add({
      section: "status_pages",
      name: slug,
      subject: page,
      values: { ...values, groups: groups.slice(from, from + GROUPS_MAX) },
    });
}

/** A group as several with the most monitors that one may have. */
function split(page: SourceObject, { name, monitors }: Group): readonly Group[] {
  if (monitors.length <= GROUP_MONITORS_MAX) return [{ name, monitors }];
  const count = Math.ceil(monitors.length / GROUP_MONITORS_MAX);
  page.noteChange(
    `group ${shown(name)}`,
    `is split into ${count}: a group has at most ${GROUP_MONITORS_MAX} monitors`,
  );
  return Array.from({ length: count }, (_, index) => {
    const number = index === 0 ? "" : ` (${index + 1})`;
    return {
      name: `${name.slice(0, PAGE_LENGTHS_MAX.groupName - number.length)}${number}`,
      monitors: monitors.slice(index * GROUP_MONITORS_MAX, (index + 1) * GROUP_MONITORS_MAX),
    };
  });
}

/** A text of at most so many characters, with a note if that is another one. */
function shortened(page: SourceObject, field: string, text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  page.noteChange(field, `is shortened to ${lengthMax} characters`);
  return text.slice(0, lengthMax).toWellFormed();
}
