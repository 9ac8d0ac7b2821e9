/**
 * A map with a limited number of entries, which forgets those that were not used lately. It consists of two generations: a
 * use moves an entry to the younger one, and a full younger one replaces the older one. So reading an entry that is in
 * steady use costs one lookup, and at least half as many entries as allowed are remembered.
 */
export class LruMap<Key, Value extends NonNullable<unknown> | null> {
  private younger = new Map<Key, Value>();
  private older = new Map<Key, Value>();
  private readonly generationMax: number;

  /** `entriesMax`: the largest number of entries, at least 2. */
  constructor(entriesMax: number) {
    this.generationMax = Math.floor(entriesMax / 2);
  }

  /** Number of entries. */
  get size(): number {
    return this.younger.size + this.older.size;
  }

  get(key: Key): Value | undefined {
    const value = this.younger.get(key);
    if (value !== undefined) return value;
    const old = this.older.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  /** The value of a key; the first time the one that `make` returns, which is stored. */
  getOrAdd(key: Key, make: () => Value): Value {
    const known = this.get(key);
    if (known !== undefined) return known;
    const value = make();
    this.set(key, value);
    return value;
  }

  set(key: Key, value: Value): void {
    this.older.delete(key);
    if (!this.younger.has(key) && this.younger.size >= this.generationMax) {
      this.older = this.younger;
      this.younger = new Map();
    }
    this.younger.set(key, value);
  }

  delete(key: Key): void {
    this.younger.delete(key);
    this.older.delete(key);
  }
}
