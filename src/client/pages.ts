/** Items asked for at once while going through a list: the most that a page can hold, since requests cost credits. */
const ITEMS_PER_REQUEST = 100;

/** How a list is read. */
export interface PageSource<Item, Page> {
  /** Reads a page. `limit` is used where the caller has named none. */
  read(cursor: string | undefined, limit: number | undefined): Promise<Page>;
  itemsOf(page: Page): readonly Item[];
  /** Leads to the next page; null or undefined on the last one. */
  cursorOf(page: Page): string | null | undefined;
}

/**
 * A list, read as far as it is looked at: `for await` goes through its items, {@link Pages.page} reads one page.
 * Nothing is sent before.
 */
export class Pages<Item, Page> implements AsyncIterable<Item> {
  constructor(private readonly source: PageSource<Item, Page>) {}

  /** The first page (from `cursor` on, where one was given), as the API answers it, with the cursor of the next. */
  page(): Promise<Page> {
    return this.source.read(undefined, undefined);
  }

  /** Page after page, as the API answers them. */
  pages(): AsyncGenerator<Page, void, undefined> {
    return this.walk(undefined);
  }

  /** Item after item, over all pages. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.walk(ITEMS_PER_REQUEST)) yield* this.source.itemsOf(page);
  }

  /** All items at once. */
  async toArray(): Promise<Item[]> {
    const items: Item[] = [];
    for await (const item of this) items.push(item);
    return items;
  }

  private async *walk(limit: number | undefined): AsyncGenerator<Page, void, undefined> {
    let cursor: string | null | undefined;
    do {
      const page: Page = await this.source.read(cursor ?? undefined, limit);
      yield page;
      cursor = this.source.cursorOf(page);
    } while (cursor !== null && cursor !== undefined);
  }
}
