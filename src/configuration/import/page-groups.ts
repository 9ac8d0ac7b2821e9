import { GROUP_MONITORS_MAX, GROUPS_MAX, PAGE_LENGTHS_MAX } from "../../areas/status-pages/schema.ts";
import type { Draft } from "./draft.ts";
import { type SourceObject, shown } from "./source.ts";

/** A group of an imported status page. */
export interface PageGroup {
  readonly name: string;
  /** Names of its monitors. */
  readonly monitors: readonly string[];
}

/** A group as several with the most monitors that one may have. */
export function splitGroup(page: SourceObject, { name, monitors }: PageGroup): readonly PageGroup[] {
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

/** Adds a status page, and further ones for groups that it may not have. */
export function addPages(
  draft: Draft,
  page: SourceObject,
  slug: string,
  { values, groups }: { readonly values: object; readonly groups: readonly PageGroup[] },
): void {
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

/** A text of at most so many characters, with a note if that is another one. */
export function shortened(source: SourceObject, field: string, text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  source.noteChange(field, `is shortened to ${lengthMax} characters`);
  return text.slice(0, lengthMax).toWellFormed();
}
