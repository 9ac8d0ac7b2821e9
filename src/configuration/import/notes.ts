/** Names that the note of a loss shows, of several objects. */
const NAMES_SHOWN_MAX = 20;

/**
 * What a note says, in the order in which a reader needs it: what has no counterpart at all, which fields are not carried
 * over, what is not as it was, which addresses stay, and which variables to set.
 */
const KINDS = ["resource", "field", "change", "address", "variable"] as const;
export type NoteKind = (typeof KINDS)[number];

/** What a note is about. */
export interface Subject {
  /** What it is, such as `monitor`. */
  readonly noun: string;
  /** The same with its name, such as `monitor Shop`. */
  readonly label: string;
}

/** Equal notes of several objects. */
interface Note {
  readonly kind: NoteKind;
  readonly noun: string;
  readonly text: string;
  count: number;
  /** The first ones. */
  readonly labels: string[];
}

/** The notes of an import. */
export class Notes {
  private readonly byKind = new Map<NoteKind, Map<string, Note>>(KINDS.map((kind) => [kind, new Map()]));
  private omitted = 0;

  /** `linesMax`: further ones are counted. */
  constructor(private readonly linesMax: number) {}

  add(kind: NoteKind, { noun, label }: Subject, text: string): void {
    const notes = this.byKind.get(kind) ?? new Map<string, Note>();
    const key = `${noun}\n${text}`;
    const same = notes.get(key);
    if (same !== undefined) {
      same.count += 1;
      if (same.labels.length < NAMES_SHOWN_MAX) same.labels.push(label);
    } else if (notes.size < this.linesMax) notes.set(key, { kind, noun, text, count: 1, labels: [label] });
    else this.omitted += 1;
  }

  /** A line for each note; equal ones are counted, and losses name their objects. */
  get lines(): readonly string[] {
    const all = KINDS.flatMap((kind) => [...(this.byKind.get(kind) ?? new Map<string, Note>()).values()]);
    const lines = all.slice(0, this.linesMax).map(lineOf);
    const omitted = this.omitted + all.length - lines.length;
    return omitted === 0 ? lines : [...lines, `${omitted} more notes are not shown.`];
  }
}

function lineOf({ kind, noun, text, count, labels }: Note): string {
  if (count === 1) return `${labels[0]}: ${text}`;
  const counted = `${text}: ${count} ${pluralOf(noun)}`;
  if (kind !== "resource" && kind !== "field") return counted;
  const names = labels.map((label) => label.slice(noun.length + 1)).filter((name) => name !== "");
  const more = count > labels.length ? [`${count - labels.length} more`] : [];
  return names.length === 0 ? counted : `${counted} (${[...names, ...more].join(", ")})`;
}

function pluralOf(noun: string): string {
  return noun === "maintenance" ? "maintenance windows" : `${noun}s`;
}
