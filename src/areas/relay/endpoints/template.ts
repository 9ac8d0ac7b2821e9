import { Type } from "@sinclair/typebox";
import { isExactNumber, isNestedDeeper, MemberScan, parseNearly } from "../../../json-text.ts";
import { slices } from "../../../kernel/background/time-slices.ts";
import { pointerSteps } from "../../../kernel/data/json-pointer.ts";
import { invalidField } from "../../../kernel/errors.ts";
import { LruMap } from "../../../kernel/limits/lru-map.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";

/** Longest template, as JSON, in bytes: each delivery stores it. */
export const TEMPLATE_BYTES_MAX = 16 * 1024;
/** Levels of objects and lists in a template. */
export const TEMPLATE_LEVELS_MAX = 20;
/** Longest body that a template makes, and longest body of an event that it is applied to, in bytes. */
export const TEMPLATE_BODY_BYTES_MAX = 1024 * 1024;
/** Templates in memory, up to some ten kilobytes each. */
const COMPILED_MAX = 500;
/** Tokens that are scanned between two checks of the time. */
const TOKENS_PER_STEP = 4_096;

/** The member that makes an object a reference. */
const REFERENCE = "$";
const DEFAULT = "default";

/** Body that an endpoint receives, with references to values. */
export const EndpointTemplate = Type.Unsafe<object>(
  Type.Union([Type.Object({}, { additionalProperties: true }), Type.Array(Type.Any())], {
    errorMessage: "must be an object or a list",
    description:
      'JSON body in which each `{"$": "/data/id"}` is replaced by the value at this JSON pointer of `{id, type, timestamp, data}`; `default` next to `$` replaces a missing value. `format` is then ignored.',
    examples: [{ text: { $: "/data/message", default: "" } }],
  }),
);

/** What a template is applied to. */
export interface TemplateSource {
  /** Id of the message or event. */
  readonly id: string;
  readonly type: string | null;
  /** Epoch milliseconds. */
  readonly timestamp: number;
  /** The payload or body; null where it is not JSON. */
  readonly json: string | null;
}

/** Part of a template: text, or a reference to a value. */
type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "value"; readonly path: readonly string[]; readonly fallback: string | null }
  | { readonly kind: "object"; readonly members: readonly (readonly [name: string, value: Part])[] }
  | { readonly kind: "list"; readonly items: readonly Part[] };

interface Compiled {
  readonly root: Part;
  /** Paths of its references. */
  readonly paths: readonly (readonly string[])[];
}

const compiledTemplates = new LruMap<string, Compiled>(COMPILED_MAX);

/** Checks a template. `field`: its name in errors. @throws ApiError `validation_error` */
export function assertTemplate(field: string, template: object): void {
  const text = JSON.stringify(template);
  if (Buffer.byteLength(text) > TEMPLATE_BYTES_MAX)
    throw invalidField(field, `must be at most ${TEMPLATE_BYTES_MAX} bytes as JSON`);
  if (isNestedDeeper(text, TEMPLATE_LEVELS_MAX))
    throw invalidField(field, `must have at most ${TEMPLATE_LEVELS_MAX} levels of objects and lists`);
  compile(field, template);
}

/**
 * The body that a template makes, in time slices; null if it is longer than {@link TEMPLATE_BODY_BYTES_MAX}. `template`: JSON. The
 * same template and source make the same bytes.
 */
export async function renderTemplate(template: string, source: TemplateSource): Promise<Uint8Array | null> {
  const { root, paths } = compiled(template);
  const values = await valuesAt(paths, source);
  const rendering: Rendering = { values, texts: [], length: 0 };
  if (!append(rendering, root)) add(rendering, "null");
  if (rendering.length > TEMPLATE_BODY_BYTES_MAX) return null;
  const body = Buffer.from(rendering.texts.join(""));
  return body.length > TEMPLATE_BODY_BYTES_MAX ? null : body;
}

function compiled(template: string): Compiled {
  const known = compiledTemplates.get(template);
  if (known !== undefined) return known;
  const root = compile("template", parseNearly(template));
  const result = { root, paths: pathsIn(root) };
  compiledTemplates.set(template, result);
  return result;
}

/** @throws ApiError `validation_error` for a reference that is not one */
function compile(field: string, value: unknown): Part {
  if (typeof value !== "object" || value === null || isExactNumber(value))
    return { kind: "text", text: JSON.stringify(value) };
  if (Array.isArray(value))
    return { kind: "list", items: value.map((item, at) => compile(`${field}.${at}`, item)) };
  if (Object.hasOwn(value, REFERENCE)) return reference(field, value);
  const members = Object.entries(value);
  return {
    kind: "object",
    members: members.map(([name, member]) => [JSON.stringify(name), compile(`${field}.${name}`, member)]),
  };
}

function reference(field: string, value: object): Part {
  const { [REFERENCE]: pointer, [DEFAULT]: fallback, ...others } = value as Record<string, unknown>;
  const [other] = Object.keys(others);
  if (other !== undefined)
    throw invalidField(`${field}.${other}`, "must not stand beside $: only default may");
  const path = typeof pointer === "string" && /^(\/|$)/.test(pointer) ? pointerSteps(pointer) : null;
  if (path === null) throw invalidField(`${field}.${REFERENCE}`, "must be a JSON pointer such as /data/id");
  if (hasReference(fallback))
    throw invalidField(`${field}.${DEFAULT}`, "must be a constant: it must not contain a member $");
  return { kind: "value", path, fallback: Object.hasOwn(value, DEFAULT) ? JSON.stringify(fallback) : null };
}

function hasReference(value: unknown): boolean {
  if (typeof value !== "object" || value === null || isExactNumber(value)) return false;
  return Object.hasOwn(value, REFERENCE) || Object.values(value).some(hasReference);
}

function pathsIn(part: Part): (readonly string[])[] {
  if (part.kind === "value") return [part.path];
  if (part.kind === "object") return part.members.flatMap(([, member]) => pathsIn(member));
  return part.kind === "list" ? part.items.flatMap(pathsIn) : [];
}

/** Finds the texts at some paths of the object that a template refers to. Null for a missing one. */
async function valuesAt(
  paths: readonly (readonly string[])[],
  { id, type, timestamp, json }: TemplateSource,
): Promise<(path: readonly string[]) => string | null> {
  const data = json === null ? "" : `,"data":${json}`;
  const text = `{"id":${JSON.stringify(id)},"type":${JSON.stringify(type)},"timestamp":"${isoTime(timestamp)}"${data}}`;
  const scan = new MemberScan(text, paths);
  while (!scan.advance(TOKENS_PER_STEP)) if (slices.isOver) await slices.next();
  return (path) => scan.textAt(path);
}

interface Rendering {
  readonly values: (path: readonly string[]) => string | null;
  readonly texts: string[];
  /** Characters of the texts. */
  length: number;
}

function add(rendering: Rendering, text: string): void {
  rendering.length += text.length;
  if (rendering.length <= TEMPLATE_BODY_BYTES_MAX) rendering.texts.push(text);
}

/** Appends a part. Returns false, and appends nothing, for a value that is missing. */
function append(rendering: Rendering, part: Part): boolean {
  if (part.kind === "text") add(rendering, part.text);
  else if (part.kind === "value") {
    const text = rendering.values(part.path) ?? part.fallback;
    if (text === null) return false;
    add(rendering, text);
  } else if (part.kind === "list") appendList(rendering, part.items);
  else appendObject(rendering, part.members);
  return true;
}

function appendList(rendering: Rendering, items: readonly Part[]): void {
  add(rendering, "[");
  for (const [at, item] of items.entries()) {
    if (at > 0) add(rendering, ",");
    // The others keep their places.
    if (!append(rendering, item)) add(rendering, "null");
  }
  add(rendering, "]");
}

function appendObject(
  rendering: Rendering,
  members: readonly (readonly [name: string, value: Part])[],
): void {
  let separator = "";
  add(rendering, "{");
  for (const [name, member] of members) {
    if (isMissing(rendering, member)) continue;
    add(rendering, `${separator}${name}:`);
    append(rendering, member);
    separator = ",";
  }
  add(rendering, "}");
}

function isMissing({ values }: Rendering, part: Part): boolean {
  return part.kind === "value" && part.fallback === null && values(part.path) === null;
}
