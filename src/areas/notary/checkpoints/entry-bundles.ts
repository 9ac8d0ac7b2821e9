import { mapInSlices } from "../../../kernel/background/time-slices.ts";

/** Bundles in memory, about 50 KB each. */
export const BUNDLES_MAX = 128;

/**
 * The entries of published chains that were read last. Anyone can read them without a key, and an entry takes the hash of a log
 * of up to 1 MiB: it is computed once for many readers. Entries never change.
 */
export class EntryBundles {
  /** By chain and bundle; the one that was read last comes last. */
  private readonly bundles = new Map<string, Uint8Array[]>();

  /** Returns the first `width` entries of a bundle. `entryAt` computes those that are not in memory, in slices. */
  async read(name: string, width: number, entryAt: (at: number) => Uint8Array): Promise<Uint8Array> {
    const entries = this.use(name);
    const positions = Array.from({ length: width }, (_, at) => at);
    // Concurrent readers of a bundle share what each of them has computed.
    const read = await mapInSlices(positions, (at) => {
      const entry = entries[at] ?? entryAt(at);
      entries[at] = entry;
      return entry;
    });
    return Buffer.concat(read);
  }

  private use(name: string): Uint8Array[] {
    const entries = this.bundles.get(name) ?? [];
    this.bundles.delete(name);
    this.bundles.set(name, entries);
    const [oldest] = this.bundles.keys();
    if (this.bundles.size > BUNDLES_MAX && oldest !== undefined) this.bundles.delete(oldest);
    return entries;
  }
}
