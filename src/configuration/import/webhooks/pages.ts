import { StartupError } from "../../../kernel/errors.ts";
import type { Draft } from "../draft.ts";
import { isObject, SourceObject } from "../source.ts";

/** How the API of a product returns a page of a list. */
export interface PageForm {
  readonly product: string;
  /** Member with the items. */
  readonly itemsKey: string;
  /** Members that say nothing of the items. */
  readonly ignored: readonly string[];
  /** Member that says whether there is a further page. */
  readonly moreKey: string;
  readonly hasMore: (value: unknown) => boolean;
  /** How further pages are requested. */
  readonly further: string;
}

/** The items of a page as the API returns it, or of a list of them. @throws StartupError */
export function itemsOf(draft: Draft, value: unknown, label: string, form: PageForm): readonly unknown[] {
  const { product, itemsKey } = form;
  if (Array.isArray(value)) return value;
  if (!isObject(value) || !Array.isArray(value[itemsKey]))
    throw new StartupError(
      `The ${label} of ${product} must be a list, or {"${itemsKey}": […]} as the API returns them.`,
    );
  const page = new SourceObject(draft, `${product} ${label}`, value);
  const list = page.list(itemsKey);
  page.ignore(...form.ignored);
  if (form.hasMore(page.any(form.moreKey)))
    page.note(
      form.moreKey,
      `there are further pages: request them with ${form.further}, and import all items in one list`,
    );
  page.rest();
  return list;
}
