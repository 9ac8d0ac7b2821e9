import { mapInSlices } from "../../../kernel/background/time-slices.ts";
import { LruMap } from "../../../kernel/limits/lru-map.ts";

/** Bundles in memory, about 50 KB each. */
export const BUNDLES_MAX = 128;

/**
 * The entries of published chains that were read last. Anyone can read them without a key, and an entry takes the hash of a log
 * of up to 1 MiB: it is computed once for many readers. Entries never change.
 */
export class EntryBundles {
  /** By chain and bundle. */
  private readonly bundles = new LruMap<string, Uint8Array[]>(BUNDLES_MAX);

  /** Returns the first `width` entries of a bundle. `entryAt` computes those that are not in memory, in slices. */
  async read(name: string, width: number, entryAt: (at: number) => Uint8Array): Promise<Uint8Array> {
    const entries = this.bundles.getOrAdd(name, () => []);
    const positions = Array.from({ length: width }, (_, at) => at);
    // Concurrent readers of a bundle share what each of them has computed.
    const read = await mapInSlices(positions, (at) => {
      const entry = entries[at] ?? entryAt(at);
      entries[at] = entry;
      return entry;
    });
    return Buffer.concat(read);
  }
}
