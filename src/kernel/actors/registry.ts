/**
 * Keyed actors: state that lives in memory while it is in use.
 *
 * An actor's mailbox is the writer's queue. Messages are synchronous units of work, run one after another, so
 * two of them never interleave. An actor registers its changes with `tx.onRollback`, so that it always agrees with
 * the file. This registry keeps a limited number of actors and drops idle ones.
 */
export interface Actor {
  /** Whether the actor can be dropped and read again from the file. False while it holds what is only in memory. */
  readonly idle: boolean;
  /** Whether it was used since the registry last looked for one to drop. Set by the registry alone. */
  recent: boolean;
  /** Its share of the capacity, 1 by default. Constant while the actor is active. */
  readonly weight?: number;
}

/** Actors examined per insertion, which limits the cost while many are busy. Later insertions catch up. */
const SCAN_STEPS_MAX = 256;

/**
 * A map of limited size with the clock algorithm (second chance): a hot actor costs one lookup and one flag,
 * and what has not been used for a round goes first. Busy actors stay, even past the limit.
 */
export class ActorRegistry<Key extends string | number, A extends Actor> {
  private readonly actors = new Map<Key, A>();
  private hand = this.actors.entries();
  private weight = 0;

  /** `weightMax`: the total weight of the actors in memory, as far as they are idle. */
  constructor(
    private readonly weightMax: number,
    private readonly onPassivate: (actor: A) => void = () => {},
  ) {}

  /** The active actor of a key, or the one that `activate` builds. Undefined when it builds none. */
  get<B extends A | undefined>(key: Key, activate: () => B): A | B {
    const active = this.actors.get(key);
    if (active !== undefined) {
      active.recent = true;
      return active;
    }
    const activated = activate();
    if (activated !== undefined) this.insert(key, activated);
    return activated;
  }

  /** The actor of a key, if it is active. */
  peek(key: Key): A | undefined {
    return this.actors.get(key);
  }

  /** Adds an actor that was just created. */
  insert(key: Key, actor: A): void {
    if (this.weight >= this.weightMax) this.freeSpace();
    this.drop(key);
    this.actors.set(key, actor);
    this.weight += weightOf(actor);
  }

  /** Drops an actor: its creation was rolled back, or its rows are gone. */
  drop(key: Key): void {
    const actor = this.actors.get(key);
    if (actor === undefined) return;
    this.actors.delete(key);
    this.weight -= weightOf(actor);
  }

  /** Active actors. */
  get size(): number {
    return this.actors.size;
  }

  /** Every active actor. */
  values(): IterableIterator<A> {
    return this.actors.values();
  }

  /** Passivates actors that are idle and were not used for a round, until there is capacity or enough have been examined. */
  private freeSpace(): void {
    // Two rounds, each with the step that begins it: the first may only find that all have been used.
    const stepsMax = Math.min(SCAN_STEPS_MAX, 2 * (this.actors.size + 1));
    for (let step = 0; step < stepsMax && this.weight >= this.weightMax; step += 1) {
      const { done, value } = this.hand.next();
      if (done === true) {
        this.hand = this.actors.entries();
        continue;
      }
      const [key, actor] = value;
      if (actor.idle && !actor.recent) {
        this.drop(key);
        this.onPassivate(actor);
      } else {
        actor.recent = false;
      }
    }
  }
}

function weightOf({ weight = 1 }: Actor): number {
  return weight;
}
