/** Default page size while iterating: the maximum, since each request costs credits. */
const ITEMS_PER_REQUEST = 100;

/**
 * A list that is read lazily: `for await` iterates over its items, {@link Pages.page} reads one page. No request is
 * sent before.
 */
export class Pages<Item, Page> implements AsyncIterable<Item> {
  constructor(
    /** Reads a page. `limit` applies unless the caller set one. */
    private readonly read: (cursor: string | undefined, limit: number | undefined) => Promise<Page>,
    private readonly itemsOf: (page: Page) => readonly Item[],
  ) {}

  /** The first page (after `cursor`, if given) as the API returns it, with the cursor of the next. */
  page(): Promise<Page> {
    return this.read(undefined, undefined);
  }

  /** Iterates over pages as the API returns them. */
  pages(): AsyncGenerator<Page, void, undefined> {
    return this.walk(undefined);
  }

  /** Iterates over the items of all pages. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.walk(ITEMS_PER_REQUEST)) yield* this.itemsOf(page);
  }

  /** Collects the items of all pages. */
  async toArray(): Promise<Item[]> {
    const items: Item[] = [];
    for await (const item of this) items.push(item);
    return items;
  }

  private async *walk(limit: number | undefined): AsyncGenerator<Page, void, undefined> {
    let cursor: string | undefined;
    do {
      const page = await this.read(cursor, limit);
      yield page;
      const next = page as Cursor;
      cursor = next.cursor ?? next.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }
}

/** Cursor of the next page; absent or null on the last page and for lists of one page. */
interface Cursor {
  readonly cursor?: string | null;
  readonly next_cursor?: string | null;
}
