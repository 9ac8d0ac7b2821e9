/**
 * Keyed actors: state that lives in memory while it is in use.
 *
 * An actor's mailbox is the writer's queue. Messages are synchronous units of work, run one after another, so
 * two of them never interleave; what an actor changes it registers with `tx.onRollback`, so that it is always
 * what the file says. This registry does the rest: it keeps a bounded number of actors and lets the idle ones
 * go.
 */
export interface Actor {
  /** Whether the actor can be dropped and read again from the file. False while it holds what is only in memory. */
  readonly idle: boolean;
}

/**
 * Two generations: what is used moves into the young one; when that is full, what stayed behind in the old one
 * is passivated. One map look-up for a hot actor, no list to maintain.
 */
export class ActorRegistry<Key extends string | number, A extends Actor> {
  private young = new Map<Key, A>();
  private old = new Map<Key, A>();
  private readonly generationMax: number;
  private readonly onPassivate: (actor: A) => void;

  /** `actorsMax` bounds the idle actors kept; busy ones stay as long as they are busy. */
  constructor(actorsMax: number, onPassivate: (actor: A) => void = () => {}) {
    this.generationMax = Math.max(1, Math.floor(actorsMax / 2));
    this.onPassivate = onPassivate;
  }

  /** The active actor of a key, or the one that `activate` builds. Undefined when it builds none. */
  get<B extends A | undefined>(key: Key, activate: () => B): A | B {
    const active = this.young.get(key) ?? this.promote(key);
    if (active !== undefined) return active;
    const activated = activate();
    if (activated !== undefined) this.insert(key, activated);
    return activated;
  }

  /** The actor of a key, if it is active. */
  peek(key: Key): A | undefined {
    return this.young.get(key) ?? this.old.get(key);
  }

  /** Adds an actor that was just created. */
  insert(key: Key, actor: A): void {
    if (this.young.size >= this.generationMax) this.rotate();
    this.young.set(key, actor);
  }

  /** Drops an actor: its creation was rolled back, or its rows are gone. */
  drop(key: Key): void {
    this.young.delete(key);
    this.old.delete(key);
  }

  /** Active actors. */
  get size(): number {
    return this.young.size + this.old.size;
  }

  /** Every active actor. */
  *values(): IterableIterator<A> {
    yield* this.young.values();
    yield* this.old.values();
  }

  private promote(key: Key): A | undefined {
    const actor = this.old.get(key);
    if (actor === undefined) return undefined;
    this.old.delete(key);
    this.insert(key, actor);
    return actor;
  }

  private rotate(): void {
    const leaving = this.old;
    this.old = this.young;
    this.young = new Map();
    for (const [key, actor] of leaving) {
      if (actor.idle) this.onPassivate(actor);
      else this.young.set(key, actor);
    }
  }
}
