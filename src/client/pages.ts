/** Items asked for at once while going through a list: the most that a page can hold, since requests cost credits. */
const ITEMS_PER_REQUEST = 100;

/**
 * A list, read as far as it is looked at: `for await` goes through its items, {@link Pages.page} reads one page.
 * Nothing is sent before.
 */
export class Pages<Item, Page> implements AsyncIterable<Item> {
  constructor(
    /** Reads a page. `limit` is used where the caller has named none. */
    private readonly read: (cursor: string | undefined, limit: number | undefined) => Promise<Page>,
    private readonly itemsOf: (page: Page) => readonly Item[],
  ) {}

  /** The first page (from `cursor` on, where one was given), as the API answers it, with the cursor of the next. */
  page(): Promise<Page> {
    return this.read(undefined, undefined);
  }

  /** Page after page, as the API answers them. */
  pages(): AsyncGenerator<Page, void, undefined> {
    return this.walk(undefined);
  }

  /** Item after item, over all pages. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.walk(ITEMS_PER_REQUEST)) yield* this.itemsOf(page);
  }

  /** All items at once. */
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

/** What leads to the next page; absent or null on the last one, and where a list has but one. */
interface Cursor {
  readonly cursor?: string | null;
  readonly next_cursor?: string | null;
}
