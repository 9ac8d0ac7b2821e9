import type { Answers, Api, ListOf, PageQuery } from "../api.ts";
import type { StatusPageCreateBody, StatusPageUpdateBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Status pages, visible to anyone at the page's `url`. */
export class StatusPages {
  constructor(private readonly api: Api) {}

  /** Creates a page. It is public unless `published` is false. */
  create(body: StatusPageCreateBody, options?: ChangeOptions): Answers<"monitors.pages.create"> {
    return this.api.call("monitors.pages.create", { body }, options);
  }

  /** Lists status pages, newest first. */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"monitors.pages.list", "pages"> {
    return this.api.list("monitors.pages.list", "pages", { query }, options);
  }

  /** Returns the settings of a page. */
  get(pageId: string, options?: RequestOptions): Answers<"monitors.pages.read"> {
    return this.api.call("monitors.pages.read", { params: { page_id: pageId } }, options);
  }

  /** Updates a page. Omitted fields stay unchanged. */
  update(
    pageId: string,
    body: StatusPageUpdateBody,
    options?: ChangeOptions,
  ): Answers<"monitors.pages.update"> {
    return this.api.call("monitors.pages.update", { params: { page_id: pageId }, body }, options);
  }

  /** Deletes a page. */
  delete(pageId: string, options?: ChangeOptions): Answers<"monitors.pages.delete"> {
    return this.api.call("monitors.pages.delete", { params: { page_id: pageId } }, options);
  }
}
