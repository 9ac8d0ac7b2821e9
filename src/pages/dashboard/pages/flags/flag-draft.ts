import type { FlagBody, FlagCondition, FlagDefinition, FlagServe } from "../../../../client/generated/api.ts";
import { wordsOf } from "../../ui/kinds.ts";

/** Types of a flag's values. */
export type FlagType = FlagDefinition["type"];

/** An item of a list in a draft. Its number identifies it wherever it is moved. */
export interface Item {
  readonly id: number;
}

/** A variant with its value as entered. */
export interface VariantDraft extends Item {
  readonly name: string;
  readonly text: string;
}

/** A share of a split; an empty variant continues with the next rule. */
export interface ShareDraft extends Item {
  readonly variant: string;
  readonly weight: string;
}

/** What is served: `variant`, or the split if it has shares. */
export interface ServeDraft {
  readonly variant: string;
  readonly split: readonly ShareDraft[];
  readonly by: string;
  readonly seed: string | undefined;
}

/** A condition with its values as entered, one per line. */
export interface ConditionDraft extends Item {
  readonly attribute: string;
  readonly op: FlagCondition["op"];
  readonly lines: string;
  readonly not: boolean;
  readonly ignoreCase: boolean;
}

/** A rule. */
export interface RuleDraft extends Item {
  readonly name: string;
  readonly when: readonly ConditionDraft[];
  readonly serve: ServeDraft;
}

/** A definition while it is edited. */
export interface FlagDraft {
  readonly description: string;
  readonly type: FlagType;
  readonly variants: readonly VariantDraft[];
  /** Empty: no value. */
  readonly off: string;
  readonly rules: readonly RuleDraft[];
  readonly fallback: ServeDraft;
  readonly tags: string;
  readonly metadata: string;
  readonly serverOnly: boolean;
}

let items = 0;

/** A new number for an item of a list. */
export function numbered<T extends object>(fields: T): T & Item {
  items += 1;
  return { ...fields, id: items };
}

/** The draft of a definition. */
export function draftOf(flag: FlagDefinition): FlagDraft {
  return {
    description: flag.description ?? "",
    type: flag.type,
    variants: Object.entries(flag.variants).map(([name, value]) =>
      numbered({ name, text: flag.type === "string" ? String(value) : JSON.stringify(value) }),
    ),
    off: flag.off_variant ?? "",
    rules: flag.rules.map(({ name = "", when, serve }) =>
      numbered({ name, when: when.map(conditionDraft), serve: serveDraft(serve) }),
    ),
    fallback: serveDraft(flag.default),
    tags: flag.tags.join(", "),
    metadata: Object.keys(flag.metadata).length === 0 ? "" : JSON.stringify(flag.metadata),
    serverOnly: flag.server_only,
  };
}

/** Whether two states of a flag have the same editable fields. */
export function isSameDefinition(left: FlagDefinition, right: FlagDefinition): boolean {
  return JSON.stringify(editedOf(left)) === JSON.stringify(editedOf(right));
}

function editedOf(flag: FlagDefinition): unknown[] {
  const { description, type, variants, off_variant, rules, tags, metadata, server_only } = flag;
  return [description, type, variants, flag.default, off_variant, rules, tags, metadata, server_only];
}

function conditionDraft({ attribute, op, values = [], not = false, ignore_case = false }: FlagCondition) {
  return numbered({ attribute, op, lines: values.map(String).join("\n"), not, ignoreCase: ignore_case });
}

function serveDraft({ variant = "", split = [], by = "", seed }: FlagServe): ServeDraft {
  const shares = split.map((share) =>
    numbered({ variant: share.variant ?? "", weight: String(share.weight) }),
  );
  return { variant, split: shares, by, seed };
}

/** The fields that differ between two drafts; unchanged fields are not sent. @throws Error */
export function changesOf(before: FlagDraft, after: FlagDraft): Omit<FlagBody, "flag_key" | "enabled"> {
  const differs = (...names: (keyof FlagDraft)[]): boolean =>
    names.some((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  return {
    ...(differs("description") ? { description: after.description.trim() || null } : {}),
    ...(differs("type") ? { type: after.type } : {}),
    ...(differs("type", "variants") ? { variants: variantsOf(after) } : {}),
    // Clears the server's default: a flag with variants serves no value while it is off unless `off_variant` is
    // set.
    ...(differs("off", "type", "variants") ? { off_variant: after.off === "" ? null : after.off } : {}),
    ...(differs("rules") ? { rules: after.rules.map(ruleOf) } : {}),
    ...(differs("fallback", "type", "variants") ? { default: serveOf(after.fallback) } : {}),
    ...(differs("tags") ? { tags: wordsOf(after.tags) } : {}),
    ...(differs("metadata") ? { metadata: metadataOf(after.metadata) } : {}),
    ...(differs("serverOnly") ? { server_only: after.serverOnly } : {}),
  };
}

function variantsOf({ type, variants }: FlagDraft): Record<string, unknown> {
  const named = variants.map(({ name, text }): [string, unknown] => [
    name.trim(),
    type === "string" ? text : jsonOf(text, `The value of ${name.trim() || "a variant"}`),
  ]);
  const names = new Set(named.map(([name]) => name));
  if (names.size < named.length) throw new Error("Two variants have the same name.");
  return Object.fromEntries(named);
}

function jsonOf(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${what} is not valid JSON.`);
  }
}

function metadataOf(text: string): NonNullable<FlagBody["metadata"]> | null {
  return text.trim() === "" ? null : (jsonOf(text, "Metadata") as NonNullable<FlagBody["metadata"]>);
}

function ruleOf({ name, when, serve }: RuleDraft) {
  const title = name.trim() === "" ? {} : { name: name.trim() };
  return { ...title, when: when.map(conditionOf), serve: serveOf(serve) };
}

const NUMERIC: ReadonlySet<string> = new Set(["gt", "gte", "lt", "lte"]);
const MOMENTS: ReadonlySet<string> = new Set(["before", "after"]);

function conditionOf({ attribute, op, lines, not, ignoreCase }: ConditionDraft): FlagCondition {
  const texts = lines.split("\n").filter((line) => line !== "");
  const isNumber = (text: string): boolean =>
    NUMERIC.has(op) || (MOMENTS.has(op) && /^-?\d+$/.test(text.trim()));
  return {
    attribute: attribute.trim(),
    op,
    ...(op === "exists" ? {} : { values: texts.map((text) => (isNumber(text) ? Number(text) : text)) }),
    ...(not ? { not } : {}),
    ...(ignoreCase ? { ignore_case: true } : {}),
  };
}

function serveOf({ variant, split, by, seed }: ServeDraft): FlagServe {
  if (split.length === 0) return { variant };
  return {
    split: split.map((share) => ({ variant: share.variant || null, weight: Number(share.weight) })),
    ...(by.trim() === "" ? {} : { by: by.trim() }),
    ...(seed === undefined ? {} : { seed }),
  };
}

/** The list with one item replaced. */
export function replaced<T extends Item>(list: readonly T[], item: T, change: Partial<T>): T[] {
  return list.map((other) => (other.id === item.id ? { ...other, ...change } : other));
}

/** The list without an item. */
export function without<T extends Item>(list: readonly T[], item: T): T[] {
  return list.filter(({ id }) => id !== item.id);
}

/** The list with an item moved up or down by one. */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  const item = list[from];
  return item === undefined || to < 0 || to >= list.length
    ? [...list]
    : list.toSpliced(from, 1).toSpliced(to, 0, item);
}
