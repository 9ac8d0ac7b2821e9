import type { TaggedText } from "../../kernel/http/responses/etag.ts";
import type { PageRow } from "./store.ts";

/** Maximum size of the cache in bytes: some hundred usual pages, or about ten of the largest. */
export const CACHE_BYTES_MAX = 64 * 1024 * 1024;
/** Memory of an entry without its text, in bytes. */
const ENTRY_BYTES = 500;
/** A text is stored plain and compressed. */
const COPIES = 2;

interface CachedText {
  readonly text: Promise<TaggedText>;
  /** Input that the text depends on in addition to the page, such as the base URL of a feed. */
  readonly variant: string;
  /** 0 until it is rendered. */
  bytes: number;
}

/** A page and the time at which its texts are rendered. */
export interface CachedPage {
  readonly page: PageRow;
  /** Epoch milliseconds. */
  readonly at: number;
}

interface Cached extends CachedPage {
  readonly texts: Map<string, CachedText>;
  bytes: number;
}

/** Rendered texts of status pages. The cache is limited in bytes and drops the oldest pages first. */
export class StatusCache {
  private readonly pages = new Map<string, Cached>();
  private bytes = 0;

  constructor(private readonly bytesMax = CACHE_BYTES_MAX) {}

  /** Size of all stored texts in bytes. */
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
   * Returns a text of a page, rendered once for all concurrent requests. Only the last `variant` of each `name` is stored, so
   * that values chosen by clients cannot fill the cache.
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
