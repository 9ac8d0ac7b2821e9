/** A name that is not taken: `base`, or `base` with the next free number behind it. `taken` has the last number of each name. */
export function numbered(taken: Map<string, number>, base: string, joint: string): string {
  for (;;) {
    const number = (taken.get(base) ?? 0) + 1;
    taken.set(base, number);
    if (number === 1) return base;
    const name = `${base}${joint}${number}`;
    if (taken.has(name)) continue;
    taken.set(name, 1);
    return name;
  }
}

/** Names of the environment variables of a file. Exports and imports use it, so that the same secret has the same name. */
export class Variables {
  private readonly taken = new Map<string, number>();

  /** All names, in the order in which they were given. */
  get names(): readonly string[] {
    return [...this.all];
  }

  private readonly all: string[] = [];

  /**
   * A new name. `section`: that of the resource, of which the first part counts. `name`: the name of the resource; null for
   * one without a name. `path`: the members that lead to the secret; positions in lists and the member `headers` are left out.
   */
  nameFor(section: string, name: string | null, path: readonly (string | number)[]): string {
    const [outer = ""] = section.split(".", 1);
    const [first, ...others] = path.filter((part) => typeof part === "string");
    const inner = first === "headers" ? others : [first ?? "", ...others];
    const base = [outer, ...(name === null ? [] : [name]), ...inner]
      .join("_")
      .toUpperCase()
      .replaceAll(/[^A-Z0-9]+/g, "_");
    const free = numbered(this.taken, base, "_");
    this.all.push(free);
    return free;
  }
}
