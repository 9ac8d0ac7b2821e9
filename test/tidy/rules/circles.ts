import type { Linked } from "./graph.ts";
import { type Violation, violationAt } from "./model.ts";

/** An import between two rooms: the folders or files of one folder that hold its ends. */
interface Passage {
  readonly from: string;
  readonly to: string;
  readonly describe: () => Violation;
}

/**
 * Circles among the files and sub-folders of each folder of `src/`, types included: whoever reads one of them would have to
 * read all. Reported are the imports that go up, in an order of the rooms in which few do.
 */
export function checkCircles(tree: readonly Linked[]): Violation[] {
  const passages = new Map<string, Passage[]>();
  for (const { module, imports } of tree) {
    if (!module.path.startsWith("src/")) continue;
    for (const { target, offset } of imports) {
      if (target === undefined || !target.startsWith("src/")) continue;
      const { folder, from, to } = parting(module.path, target);
      if (from === to) continue;
      const describe = () =>
        violationAt(
          module,
          offset,
          "folder-circle",
          `${from} and ${to} of ${folder} need each other; move what both need into a room of its own, or take it as a parameter`,
        );
      passages.set(folder, [...(passages.get(folder) ?? []), { from, to, describe }]);
    }
  }
  return [...passages.values()].flatMap((found) => goingUp(found).map(({ describe }) => describe()));
}

/** The folder in which the ways to two files part, and the rooms through which they go on. */
function parting(from: string, to: string): { folder: string; from: string; to: string } {
  const [a, b] = [from.split("/"), to.split("/")];
  let depth = 0;
  while (a[depth] === b[depth] && depth < a.length) depth += 1;
  return { folder: a.slice(0, depth).join("/"), from: a[depth] ?? "", to: b[depth] ?? "" };
}

/**
 * The imports that go up. Rooms that import nothing more form the ground, rooms that nothing more imports the roof; of the
 * rest, the one that is imported most, compared with its own imports, comes down next (Eades, Lin and Smyth, 1993).
 */
function goingUp(passages: readonly Passage[]): Passage[] {
  const left = new Set(passages.flatMap(({ from, to }) => [from, to]).sort());
  const ground: string[] = [];
  const roof: string[] = [];
  const open = (): Passage[] => passages.filter(({ from, to }) => left.has(from) && left.has(to));
  while (left.size > 0) {
    const rest = open();
    const room =
      [...left].find((each) => !rest.some(({ from }) => from === each)) ??
      [...left].find((each) => !rest.some(({ to }) => to === each)) ??
      lowest(left, rest);
    const isRoof = rest.some(({ from }) => from === room) && !rest.some(({ to }) => to === room);
    if (isRoof) roof.unshift(room);
    else ground.push(room);
    left.delete(room);
  }
  const floors = new Map([...ground, ...roof].map((room, floor) => [room, floor]));
  return passages.filter(({ from, to }) => (floors.get(from) ?? 0) < (floors.get(to) ?? 0));
}

function lowest(rooms: ReadonlySet<string>, passages: readonly Passage[]): string {
  const height = (room: string): number =>
    passages.reduce((sum, { from, to }) => sum + (from === room ? 1 : 0) - (to === room ? 1 : 0), 0);
  return [...rooms].reduce((a, b) => (height(b) < height(a) ? b : a));
}
