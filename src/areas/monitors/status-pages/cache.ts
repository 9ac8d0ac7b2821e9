import type { TaggedText } from "../../../kernel/http/responses/etag.ts";
import type { PageRow } from "./store.ts";

/** Bytes of public texts in memory: some hundred pages as people have them, or a handful of the largest. */
export const CACHE_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes that an entry takes besides its text. */
const ENTRY_BYTES = 500;
/** A text is stored as it is, and compressed. */
const COPIES = 2;

interface CachedText {
  readonly text: Promise<TaggedText>;
  /** What the text depends on besides the page. */
  readonly variant: string;
  /** 0 until it is rendered. */
  bytes: number;
}

/** A page as it was at a time, and the texts of it that have been requested since. */
export interface CachedPage {
  readonly page: PageRow;
  /** Epoch milliseconds. */
  readonly at: number;
}

interface Cached extends CachedPage {
  readonly texts: Map<string, CachedText>;
  bytes: number;
}

/** What everyone sees of status pages, rendered: limited by bytes, the oldest pages are dropped first. */
export class StatusCache {
  private readonly pages = new Map<string, Cached>();
  private bytes = 0;

  constructor(private readonly bytesMax = CACHE_BYTES_MAX) {}

  /** Bytes of all texts that are stored. */
  get size(): number {
    return this.bytes;
  }

  find(slug: string): CachedPage | null {
    return this.pages.get(slug) ?? null;
  }

  add(page: PageRow, at: number): CachedPage {
    this.drop(page.slug);
    const cached = { page, at, texts: new Map(), bytes: 0 };
    this.pages.set(page.slug, cached);
    this.count(cached, Buffer.byteLength(JSON.stringify(page.settings)) + ENTRY_BYTES);
    return cached;
  }

  drop(slug: string): void {
    this.bytes -= this.pages.get(slug)?.bytes ?? 0;
    this.pages.delete(slug);
  }

  dropProject(projectRef: number): void {
    for (const { page } of this.pages.values()) if (page.projectRef === projectRef) this.drop(page.slug);
  }

  /**
   * A text of a page, rendered once for all who request it meanwhile. Of each `name` only the last `variant` is stored: what
   * clients choose freely cannot fill the cache.
   */
  text(page: CachedPage, name: string, render: () => Promise<TaggedText>, variant = ""): Promise<TaggedText> {
    const cached = this.pages.get(page.page.slug);
    if (cached !== page) return render();
    const known = cached.texts.get(name);
    if (known?.variant === variant) return known.text;
    if (known !== undefined) this.count(cached, -known.bytes);
    const entry: CachedText = { text: render(), variant, bytes: 0 };
    cached.texts.set(name, entry);
    const isStored = () => this.pages.get(cached.page.slug) === cached && cached.texts.get(name) === entry;
    entry.text.then(
      ({ size }) => {
        if (!isStored()) return;
        entry.bytes = COPIES * size + ENTRY_BYTES;
        this.count(cached, entry.bytes);
      },
      () => {
        if (isStored()) cached.texts.delete(name);
      },
    );
    return entry.text;
  }

  private count(cached: Cached, bytes: number): void {
    cached.bytes += bytes;
    this.bytes += bytes;
    for (const slug of this.pages.keys()) {
      if (this.bytes <= this.bytesMax) return;
      this.drop(slug);
    }
  }
}
