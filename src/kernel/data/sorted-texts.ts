import { firstNotBefore } from "./sorted.ts";

/** Most texts of a block: inserting into one moves a few kilobytes at most. */
export const BLOCK_MAX = 512;

/** Most added texts without a place: few enough to put all of them in their places within a millisecond. */
export const RECENT_MAX = 256;

/**
 * A set of texts in the order of their UTF-16 code units. Each operation takes a few microseconds, also among millions. A text
 * that is removed soon after it was added takes less than one: it never gets a place.
 */
export class SortedTexts {
  /** Blocks of at least one text, each block and all of them in order. */
  private readonly blocks: string[][] = [];
  /** Texts that have no place in the blocks yet. */
  private readonly recent = new Set<string>();

  /** Adds a text that is not contained. */
  add(text: string): void {
    this.recent.add(text);
    if (this.recent.size >= RECENT_MAX) this.placeRecent();
  }

  private placeRecent(): void {
    for (const text of this.recent) this.place(text);
    this.recent.clear();
  }

  private place(text: string): void {
    const { blocks } = this;
    const index = Math.max(0, this.blockAfter(text) - 1);
    const block = blocks[index];
    if (block === undefined) {
      blocks.push([text]);
      return;
    }
    block.splice(firstAtLeast(block, text), 0, text);
    if (block.length > BLOCK_MAX) blocks.splice(index + 1, 0, block.splice(BLOCK_MAX / 2));
  }

  /** Removes a text, if it is contained. */
  remove(text: string): void {
    if (this.recent.delete(text)) return;
    const index = this.blockAfter(text) - 1;
    const block = this.blocks[index];
    if (block === undefined) return;
    const at = firstAtLeast(block, text);
    if (block[at] === text) block.splice(at, 1);
    if (block.length === 0) this.blocks.splice(index, 1);
  }

  /** The first text that is not before `text`; undefined when there is none. */
  atLeast(text: string): string | undefined {
    if (this.recent.size > 0) this.placeRecent();
    const index = this.blockAfter(text);
    const block = this.blocks[index - 1];
    return block?.[firstAtLeast(block, text)] ?? this.blocks[index]?.[0];
  }

  /** The first text after `text`; undefined when there is none. */
  after(text: string): string | undefined {
    // No text is between a text and the same one with the smallest code unit behind it.
    return this.atLeast(`${text}\0`);
  }

  /** Index of the first block that begins after `text`. */
  private blockAfter(text: string): number {
    const { blocks } = this;
    return firstNotBefore(0, blocks.length, (at) => ((blocks[at] as string[])[0] as string) <= text);
  }
}

/** Index of the first text that is not before `text`. */
function firstAtLeast(texts: readonly string[], text: string): number {
  return firstNotBefore(0, texts.length, (at) => (texts[at] as string) < text);
}
