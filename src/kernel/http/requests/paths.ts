import { editDistance } from "../../data/nearest-name.ts";
import { ApiError, echoed } from "../../errors.ts";

/** Longest path that a near one is looked for: several times ours, with the ids that stand in them. */
export const GUESSED_LENGTH_MAX = 200;
/** The same in segments: ours have six. */
export const GUESSED_SEGMENTS_MAX = 8;

/** The costs of changing the requested segments into those of an endpoint. */
const COSTS = {
  /** Upper and lower case. */
  spelling: 1,
  /** Any value fits a parameter, so a word that fits comes before it. */
  value: 1,
  /** Nothing stands where the value should, as with a variable that is not set. */
  noValue: 2,
  /** One of the names that an area registered. */
  otherName: 2,
  typo: 4,
  missing: 10,
  surplus: 12,
  /** More than a segment: who wants to change something is not led to what reads it. */
  method: 13,
} as const;
/** Two segments and what was meant by a third: further away, a guess helps nobody. */
const COST_MAX = 28;
/** Shorter words have too many others at one edit's distance. */
const TYPO_LENGTH_MIN = 3;

/** The version of the API, which says nothing about what is meant. */
const VERSION = "v1";
const OTHERWISE = "GET /openapi.json lists every path.";

interface Known {
  readonly method: string;
  /** With parameters as the API's description shows them, `/v1/meter/{meterId}/deduct`. */
  readonly shown: string;
  /** Parameters begin with a colon. */
  readonly segments: readonly string[];
  /** The path that accepts every other method, as {@link shown}. */
  readonly otherMethodsAt: string | null;
  /** Whether it creates what its body names, and changes it as well. */
  readonly isSave: boolean;
}

/** A requested segment, and the known segments that it may stand for, with their costs. */
interface Asked {
  readonly text: string;
  readonly meant: ReadonlyMap<string, number>;
}

/** The known paths, and the error messages of unknown ones. */
export class Paths {
  private readonly known: Known[] = [];
  /** What each word can stand for, itself included: a segment of paths, and the cost. */
  private readonly words = new Map<string, Map<string, number>>();
  /** What errors say of paths that other settings would serve. */
  private readonly absent = new Map<string, string>();
  /** What has been added since the last question: a start adds hundreds of paths, and most servers are asked for none. */
  private added: (() => void)[] = [];

  /** Takes in an endpoint, its parameters in Elysia's form. `otherMethodsAt`: the path that accepts its other methods. */
  add(method: string, path: string, otherMethodsAt: string | null = null, isSave: boolean = false): void {
    this.added.push(() => {
      const segments = path.slice(1).split("/");
      const shown = segments.map((segment) => (isParameter(segment) ? `{${segment.slice(1)}}` : segment));
      this.known.push({ method, shown: `/${shown.join("/")}`, segments, otherMethodsAt, isSave });
      for (const segment of segments) if (!isParameter(segment)) this.addWord(segment, segment, 0);
    });
  }

  /** Takes in what people call segments of paths, by the segment. */
  addNames(names: Readonly<Record<string, readonly string[]>>): void {
    this.added.push(() => {
      for (const [segment, others] of Object.entries(names)) {
        for (const other of others) this.addWord(other, segment, COSTS.otherName);
      }
    });
  }

  /** Adds a path that other settings would serve; `advice` is a sentence that says which. */
  addAbsent(path: string, advice: string): void {
    this.absent.set(path, advice);
  }

  /** The error of a request to an unknown path, or to one that its caller cannot see. */
  refusal(method: string, path: string): ApiError {
    this.takeIn();
    return new ApiError("not_found", `There is no ${method} ${echoed(path)}. ${this.advice(method, path)}`);
  }

  /** Whether an endpoint has this path and method. */
  has(method: string, path: string): boolean {
    this.takeIn();
    const requested = path.slice(1).split("/");
    return this.known.some((known) => known.method === method && fits(known.segments, requested));
  }

  private takeIn(): void {
    for (const take of this.added) take();
    this.added = [];
  }

  private addWord(word: string, segment: string, cost: number): void {
    const meant = this.words.get(word) ?? new Map<string, number>();
    this.words.set(word, meant.set(segment, Math.min(cost, meant.get(segment) ?? cost)));
  }

  /** The advice in the message. The work is limited, however long the path is. */
  private advice(asked: string, path: string): string {
    if (path.length > GUESSED_LENGTH_MAX) return OTHERWISE;
    const absent = this.absent.get(path);
    if (absent !== undefined) return absent;
    const method = asked === "HEAD" ? "GET" : asked;
    const stem = withoutSlashes(path);
    const requested = stem.slice(1).split("/");
    if (requested.length > GUESSED_SEGMENTS_MAX) return OTHERWISE;
    const found = this.knownAt(requested);
    const methods = found.map((known) => known.method);
    if (methods.includes(method)) return stem === path ? OTHERWISE : "Remove the slash at the end.";
    if (methods.length > 0) {
      const save = this.saveOf(method, found[0]);
      const elsewhere = found.find(({ otherMethodsAt }) => otherMethodsAt !== null)?.otherMethodsAt;
      return (
        `This path takes ${listed(methods)}${stem === path ? "" : ", without the slash at the end"}.` +
        (elsewhere === undefined ? "" : ` ${elsewhere} takes every method.`) +
        (save === null ? "" : ` ${save} changes it.`)
      );
    }
    const nearest = this.nearest(method, requested);
    if (nearest === null) return OTHERWISE;
    const save = nearest.method === method ? null : this.saveOf(method, nearest);
    const meant =
      nearest.method === method || save !== null
        ? (save ?? `${method} ${nearest.shown}`)
        : `${nearest.shown}, which takes ${listed(this.methodsAt(nearest.shown))}`;
    return `Did you mean ${meant}?${requested.includes("") ? " A part of this path is empty." : ""}`;
  }

  /** The endpoint that changes what a path with an id names, where a request with this method would and none takes it. */
  private saveOf(method: string, at: Known | undefined): string | null {
    if (at === undefined || (method !== "PATCH" && method !== "PUT")) return null;
    const collection = at.shown.slice(0, at.shown.lastIndexOf("/"));
    const save = this.known.find(({ isSave, shown }) => isSave && shown === collection);
    return save === undefined ? null : `${save.method} ${save.shown}`;
  }

  /** The endpoints of exactly this path; where a word and a parameter fit, those of the word. */
  private knownAt(requested: readonly string[]): Known[] {
    const fitting = this.known.filter(({ segments }) => fits(segments, requested));
    const fewest = Math.min(...fitting.map(parametersOf));
    return fitting.filter((known) => parametersOf(known) === fewest);
  }

  private methodsAt(shown: string): string[] {
    return this.known.filter((known) => known.shown === shown).map(({ method }) => method);
  }

  /** The endpoint at the least distance; of several the one that was declared first. */
  private nearest(method: string, requested: readonly string[]): Known | null {
    const asked = requested.map((text) => ({ text, meant: this.meantBy(text) }));
    const related = new Set(asked.flatMap(({ meant }) => [...meant.keys()]));
    related.delete(VERSION);
    related.delete("");
    let found: Known | null = null;
    let least: number = COST_MAX + 1;
    for (const known of this.known) {
      const { segments } = known;
      const otherMethod = known.method === method ? 0 : COSTS.method;
      if (countDistance(segments.length, asked.length) + otherMethod >= least) continue;
      // Parameters alone do not identify an endpoint.
      if (!segments.some((segment) => related.has(segment))) continue;
      const cost = distance(segments, asked) + otherMethod;
      if (cost >= least) continue;
      found = known;
      least = cost;
    }
    return found;
  }

  private meantBy(text: string): ReadonlyMap<string, number> {
    const exact = this.words.get(text);
    if (exact !== undefined) return exact;
    const word = text.toLowerCase();
    const spelt = this.words.get(word);
    const meant = new Map<string, number>();
    for (const [segment, cost] of spelt ?? []) meant.set(segment, cost + COSTS.spelling);
    if (spelt !== undefined) return meant;
    for (const [known, segments] of this.words) {
      if (!isTypo(known, word)) continue;
      for (const [segment, cost] of segments) meant.set(segment, COSTS.typo + cost);
    }
    return meant;
  }
}

/** What the numbers of segments cost by themselves, whatever these are. */
function countDistance(segments: number, asked: number): number {
  return segments > asked ? (segments - asked) * COSTS.missing : (asked - segments) * COSTS.surplus;
}

/** The least cost of changing the requested segments into those of an endpoint. */
function distance(segments: readonly string[], asked: readonly Asked[]): number {
  let above = [0, ...asked.map((_, index) => (index + 1) * COSTS.surplus)];
  for (const segment of segments) {
    let before = (above[0] ?? 0) + COSTS.missing;
    const row = [before];
    for (let index = 0; index < asked.length; index += 1) {
      const instead = (above[index] ?? 0) + costOf(segment, asked[index]);
      before = Math.min(instead, (above[index + 1] ?? 0) + COSTS.missing, before + COSTS.surplus);
      row.push(before);
    }
    above = row;
  }
  return above.at(-1) ?? 0;
}

/** What it costs to take one segment for another; infinite when they have nothing in common. */
function costOf(segment: string, asked: Asked | undefined): number {
  if (isParameter(segment)) return asked?.text === "" ? COSTS.noValue : COSTS.value;
  return asked?.meant.get(segment) ?? Number.POSITIVE_INFINITY;
}

function isParameter(segment: string): boolean {
  return segment.startsWith(":");
}

function parametersOf({ segments }: Known): number {
  return segments.filter(isParameter).length;
}

function fits(segments: readonly string[], requested: readonly string[]): boolean {
  return (
    segments.length === requested.length &&
    segments.every((segment, index) =>
      isParameter(segment) ? requested[index] !== "" : requested[index] === segment,
    )
  );
}

function withoutSlashes(path: string): string {
  let end = path.length;
  while (end > 1 && path.endsWith("/", end)) end -= 1;
  return path.slice(0, end);
}

/** Whether one letter was added, removed or replaced, or two neighbours were swapped. */
function isTypo(name: string, word: string): boolean {
  if (name.length < TYPO_LENGTH_MIN || Math.abs(name.length - word.length) > 1) return false;
  return editDistance(name, word) === 1;
}

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

function listed(methods: readonly string[]): string {
  const sorted = methods.toSorted((a, b) => METHODS.indexOf(a) - METHODS.indexOf(b));
  return sorted.length === 1 ? `${sorted[0]}` : `${sorted.slice(0, -1).join(", ")} and ${sorted.at(-1)}`;
}
