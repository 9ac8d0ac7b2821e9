import type { Api, JsonObject } from "../api/http-api.ts";
import { slugOf } from "../areas/projects/domain.ts";
import { StartupError } from "../kernel/errors.ts";
import { UTC } from "../kernel/time/zone.ts";
import { FileError } from "./document.ts";
import type { Field, Kind } from "./kinds.ts";
import { type FileProject, type FileResource, isRenamable } from "./read.ts";
import { ProjectApi, projectsOf, type ServerProject } from "./server.ts";
import { isSame, replaced, shownValue } from "./shown.ts";

/** What stands in place of a secret. */
const SENSITIVE = "(sensitive)";

/** A changed field; both values are {@link SENSITIVE} for secrets. */
export interface FieldChange {
  readonly field: string;
  readonly old: unknown;
  readonly new: unknown;
}

/** A step of a plan, as `--json` shows it. */
export interface Change {
  readonly action: "create" | "change" | "rename" | "delete";
  readonly kind: string;
  readonly name: string;
  /** The former name, of `rename` alone. */
  readonly renamed_from?: string;
  readonly fields: readonly FieldChange[];
}

/** A step with what it needs to be carried out. */
export interface Step extends Change {
  /** Null for the project itself. */
  readonly resource: Kind | null;
  readonly wanted: FileResource | null;
  /** The resource on the server; null for a new one. */
  readonly item: JsonObject | null;
}

/** The plan of a project. */
export interface ProjectPlan {
  readonly file: FileProject;
  /** Null for a project that does not exist yet. */
  readonly api: ProjectApi | null;
  /** Ids by section and name. */
  readonly ids: Map<string, Map<string, string>>;
  readonly steps: readonly Step[];
  /** What may not be meant, in sentences. */
  readonly warnings: readonly string[];
}

/** What plans are made with. */
export interface Planning {
  readonly api: Api;
  readonly kinds: readonly Kind[];
  /** The path of the file, for messages. */
  readonly path: string;
  /** Whether marked resources that are missing in the file are deleted. */
  readonly prune: boolean;
  /** Whether the creation of a key was interrupted before its secret was stored. */
  readonly isPending?: (project: string, name: string) => boolean;
}

/** Compares a file with a server, and changes nothing. @throws StartupError */
export async function planOf(planning: Planning, files: readonly FileProject[]): Promise<ProjectPlan[]> {
  const projects = await projectsOf(planning.api);
  const plans: ProjectPlan[] = [];
  for (const file of files) plans.push(await planOfProject(planning, file, projects));
  return plans;
}

async function planOfProject(
  planning: Planning,
  file: FileProject,
  projects: readonly ServerProject[],
): Promise<ProjectPlan> {
  const project = projectOf(planning, file, projects);
  const ids = new Map<string, Map<string, string>>();
  if (project === null) {
    const slug = file.slug ?? "";
    const creation = { action: "create", kind: "project", name: slug, fields: [] } as const;
    assertReferences(planning, file, ids);
    assertUnique(planning, file, new Map());
    const creations = ordered(planning, file).map((wanted) => creationOf(wanted));
    return {
      file,
      api: null,
      ids,
      steps: [{ ...creation, resource: null, wanted: null, item: null }, ...creations],
      warnings: [],
    };
  }
  const api = new ProjectApi(planning.api, project);
  const needed = sectionsOf(planning, file);
  const steps: Step[] = [...projectSteps(file, project)];
  const found = new Map<string, ReadonlyMap<string, JsonObject>>();
  for (const kind of planning.kinds) {
    if (!needed.has(kind.section)) continue;
    const items = namedItems(planning, kind, await api.list(kind), file);
    for (const [name, former] of renamesOf(planning, kind, items, file)) {
      items.set(name, items.get(former) ?? {});
      items.delete(former);
    }
    found.set(kind.section, items);
    ids.set(kind.section, new Map([...items].map(([name, item]) => [name, String(item[kind.idKey])])));
  }
  assertReferences(planning, file, ids);
  assertUnique(planning, file, found);
  await addUnlisted(planning, file, api, found);
  for (const wanted of ordered(planning, file)) {
    const item = found.get(wanted.kind.section)?.get(wanted.name);
    const isPending =
      wanted.kind.facts.onceShown !== undefined && planning.isPending?.(project.slug, wanted.name);
    const step =
      item === undefined || isPending === true ? creationOf(wanted) : changeOf(planning, wanted, item, ids);
    if (step !== null) steps.push(step);
  }
  const gone = missingIn(planning, file, found);
  const warnings = likelyRenames(planning, steps, gone, ids);
  if (planning.prune) steps.push(...gone.map(deletionOf));
  steps.push(...reviewSteps(file, project));
  return { file, api, ids, steps, warnings };
}

/** Null for one that is to be created. @throws FileError for a project that the key does not see. */
function projectOf(
  { path }: Planning,
  { slug, at }: FileProject,
  projects: readonly ServerProject[],
): ServerProject | null {
  if (slug !== null) return projects.find((project) => project.slug === slug) ?? null;
  const chosen = projects.length === 1 ? projects[0] : projects.find((project) => project.slug === "default");
  if (chosen === undefined)
    throw new FileError(path, at, "the key sees several projects: name one with project:");
  return chosen;
}

function projectSteps({ name, description, review, timeZone }: FileProject, project: ServerProject): Step[] {
  const fields: FieldChange[] = [];
  if (name !== null && name !== project.name) fields.push({ field: "name", old: project.name, new: name });
  if (description !== undefined && description !== project.description)
    fields.push({ field: "description", old: project.description, new: description });
  const { time_zone: zone = UTC } = project;
  if (timeZone !== undefined && timeZone !== zone)
    fields.push({ field: "time_zone", old: zone, new: timeZone });
  if (review === false && project.review === true) fields.push({ field: "review", old: true, new: false });
  return fields.length === 0 ? [] : [projectStep(project.slug, fields, project)];
}

/** The review begins after all other changes, of which it would make proposals. */
function reviewSteps({ slug, review }: FileProject, project: ServerProject | null): Step[] {
  if (review !== true || project?.review === true) return [];
  return [projectStep(project?.slug ?? slug ?? "", [{ field: "review", old: false, new: true }], project)];
}

function projectStep(name: string, fields: readonly FieldChange[], project: ServerProject | null): Step {
  return { action: "change", kind: "project", name, fields, resource: null, wanted: null, item: project };
}

/** The sections of a file, those that they refer to, and all of them to find what is to be deleted. */
function sectionsOf({ kinds, prune }: Planning, { resources }: FileProject): ReadonlySet<string> {
  if (prune) return new Set(kinds.map(({ section }) => section));
  return new Set(resources.flatMap(({ kind }) => [kind.section, ...kind.refersTo]));
}

/** The resources of a section by name. @throws FileError if the file names one of several with the same name. */
function namedItems(
  { path }: Planning,
  kind: Kind,
  items: readonly JsonObject[],
  file: FileProject,
): Map<string, JsonObject> {
  const named = new Map<string, JsonObject>();
  const byName = new Map(
    file.resources.filter((resource) => resource.kind === kind).map((resource) => [resource.name, resource]),
  );
  for (const item of items) {
    const name = kind.facts.isSingle === true ? (kind.section.split(".")[1] ?? "") : item[kind.facts.name];
    if (typeof name !== "string") continue;
    const wanted = byName.get(name);
    if (named.has(name) && wanted !== undefined)
      throw new FileError(
        path,
        wanted.at,
        `the project has several ${kind.section} with the name ${name}: rename one`,
      );
    named.set(name, item);
  }
  return named;
}

/**
 * The former names of resources that are to be renamed, by their new ones. One that has its new name already is not renamed again.
 * @throws FileError for a former name that the file uses in another way, too
 */
function renamesOf(
  { path }: Planning,
  kind: Kind,
  items: ReadonlyMap<string, JsonObject>,
  { resources }: FileProject,
): ReadonlyMap<string, string> {
  const ofKind = resources.filter((resource) => resource.kind === kind);
  const names = new Set(ofKind.map(({ name }) => name));
  const renames = new Map<string, string>();
  const claimed = new Map<string, string>();
  for (const { name, renamedFrom } of ofKind) {
    if (renamedFrom === null || items.has(name)) continue;
    const { name: former, at } = renamedFrom;
    const other = names.has(former) ? former : claimed.get(former);
    if (other !== undefined)
      throw new FileError(
        path,
        at,
        `renamed_from of ${kind.section}.${name}: ${former} belongs to ${kind.section}.${other} of this file, too`,
      );
    claimed.set(former, name);
    if (items.has(former)) renames.set(name, former);
  }
  return renames;
}

/** @throws FileError for a reference to what is neither in the file nor on the server. */
function assertReferences(
  { path }: Planning,
  { resources }: FileProject,
  ids: ReadonlyMap<string, ReadonlyMap<string, string>>,
): void {
  const known = new Map<string, Set<string>>();
  for (const { kind, name } of resources)
    known.set(kind.section, (known.get(kind.section) ?? new Set()).add(name));
  for (const [section, idByName] of ids)
    known.set(section, new Set([...(known.get(section) ?? []), ...idByName.keys(), ...idByName.values()]));
  for (const { kind, name, at, values, places } of resources) {
    for (const field of kind.fields.values())
      replaced(field.schema, values[field.name], (section, text) => {
        if (known.get(section)?.has(text) === true) return text;
        const message = `${field.name} of ${kind.section}.${name}: there is no ${text} in ${section}`;
        throw new FileError(path, places.get(field.name) ?? at, message);
      });
  }
}

/** Reads what lists do not show, of the resources whose files have it. */
async function addUnlisted(
  { kinds }: Planning,
  { resources }: FileProject,
  api: ProjectApi,
  found: Map<string, ReadonlyMap<string, JsonObject>>,
): Promise<void> {
  for (const kind of kinds) {
    const items = found.get(kind.section);
    if (items === undefined || kind.onlyRead.length === 0) continue;
    const wanted = resources.filter(
      (resource) =>
        resource.kind === kind &&
        items.has(resource.name) &&
        kind.onlyRead.some((field) => field in resource.values),
    );
    const names = wanted.map(({ name }) => name);
    const read = await api.readAll(
      kind,
      names.map((name) => items.get(name) ?? {}),
    );
    found.set(kind.section, new Map([...items, ...names.map((name, at) => [name, read[at] ?? {}] as const)]));
  }
}

/**
 * In the order of changes: what another one of its section refers to comes first.
 *
 * @throws FileError for one that refers to itself, also through others
 */
function ordered({ kinds, path }: Planning, { resources }: FileProject): readonly FileResource[] {
  return kinds.flatMap((kind) => {
    const ofKind = resources.filter((resource) => resource.kind === kind);
    const byName = new Map(ofKind.map((resource) => [resource.name, resource]));
    const begun = new Set<FileResource>();
    const sorted = new Set<FileResource>();
    for (const first of ofKind) {
      // A list of our own: a chain can be as long as a file, and the stack of calls cannot.
      const open = [first];
      for (let current = open.at(-1); current !== undefined; current = open.at(-1)) {
        const needed = begun.has(current) ? [] : referredIn(kind, current, byName);
        begun.add(current);
        // What has begun and is not sorted leads to this one.
        const circular = needed.find((other) => begun.has(other) && !sorted.has(other));
        if (circular !== undefined) {
          const message = `${kind.section}.${current.name} refers to ${circular.name}, and so to itself`;
          throw new FileError(path, current.at, message);
        }
        const missing = needed.filter((other) => !begun.has(other));
        for (const other of missing.reverse()) open.push(other);
        if (missing.length > 0) continue;
        sorted.add(current);
        open.pop();
      }
    }
    return [...sorted];
  });
}

/** What a resource refers to in its own section. */
function referredIn(
  kind: Kind,
  resource: FileResource,
  byName: ReadonlyMap<string, FileResource>,
): readonly FileResource[] {
  const found: FileResource[] = [];
  for (const { name, schema } of kind.fields.values())
    replaced(schema, resource.values[name], (section, text) => {
      const other = section === kind.section ? byName.get(text) : undefined;
      if (other !== undefined) found.push(other);
      return text;
    });
  return found;
}

function creationOf(wanted: FileResource): Step {
  const { kind, name } = wanted;
  return { action: "create", kind: kind.section, name, fields: [], resource: kind, wanted, item: null };
}

/** Null if nothing differs. @throws FileError for a field that cannot be changed. */
function changeOf(
  { path }: Planning,
  wanted: FileResource,
  item: JsonObject,
  ids: ReadonlyMap<string, ReadonlyMap<string, string>>,
): Step | null {
  const { kind, name } = wanted;
  const former = kind.facts.isSingle === true ? name : String(item[kind.facts.name]);
  const isRenamed = former !== name;
  const step = { kind: kind.section, name, resource: kind, wanted, item } as const;
  const renamed = { ...step, action: "rename", renamed_from: former } as const;
  if (kind.facts.createOnly === true) return isRenamed ? { ...renamed, fields: [] } : null;
  const digests = (item["secret_digest"] ?? {}) as JsonObject;
  const fixed = Object.entries(kind.facts.fixed ?? {}).find(([fieldName, omitted]) => {
    const value = fieldName in wanted.values ? wanted.values[fieldName] : omitted;
    return value !== undefined && value !== item[fieldName];
  });
  if (fixed !== undefined) throw unchangeable(path, wanted, fixed[0]);
  assertAlternatives(path, wanted, item);
  const fields = Object.entries(wanted.values).flatMap(([fieldName, value]): FieldChange[] => {
    const field = kind.fields.get(fieldName) as Field;
    if (kind.facts.onCreation?.includes(field.apiName) === true) return [];
    const current = replaced(field.schema, shownValue(kind, field, item), (section, id) =>
      nameOf(ids, section, id),
    );
    const beside = { ...item, ...wanted.values };
    if (isSame(field, value, current, { beside, digests, path: fieldName })) return [];
    if (!field.inChange) throw unchangeable(path, wanted, fieldName);
    const isHidden = wanted.sensitive.has(fieldName) || fieldName in digests || fieldName === "headers";
    return [
      isHidden
        ? { field: fieldName, old: SENSITIVE, new: SENSITIVE }
        : { field: fieldName, old: current ?? null, new: value },
    ];
  });
  if (isRenamed) return { ...renamed, fields };
  return fields.length === 0 ? null : { ...step, action: "change", fields };
}

/** @throws FileError where the file sets one of two fields, and the resource on the server has the other */
function assertAlternatives(
  path: string,
  { kind, name, at, values, places }: FileResource,
  item: JsonObject,
) {
  const { alternatives: [first, second] = [] } = kind.facts;
  if (first === undefined || second === undefined) return;
  for (const [set, other] of [
    [first, second],
    [second, first],
  ] as const) {
    if (isEmpty(values[set]) || other in values || isEmpty(item[other])) continue;
    const empty = Array.isArray(item[other]) ? "[]" : "null";
    const message = `${set} of ${kind.section}.${name} cannot be combined with its ${other}: set ${other} to ${empty}`;
    throw new FileError(path, places.get(set) ?? at, message);
  }
}

function isEmpty(value: unknown): boolean {
  return (value ?? null) === null || (Array.isArray(value) && value.length === 0);
}

/** @throws FileError for a value that another resource has, in the file or on the server */
function assertUnique(
  { kinds, path }: Planning,
  { resources }: FileProject,
  found: ReadonlyMap<string, ReadonlyMap<string, JsonObject>>,
): void {
  for (const kind of kinds) {
    const { unique } = kind.facts;
    const ofKind = resources.filter((resource) => resource.kind === kind);
    if (unique === undefined || ofKind.length === 0) continue;
    const inFile = new Set(ofKind.filter(({ values }) => unique in values).map(({ name }) => name));
    const owners = new Map<unknown, string>();
    for (const [name, item] of found.get(kind.section) ?? [])
      if (!inFile.has(name) && !isEmpty(item[unique])) owners.set(item[unique], name);
    for (const { name, at, values, places } of ofKind) {
      if (isEmpty(values[unique])) continue;
      const owner = owners.get(values[unique]);
      if (owner !== undefined) {
        const isMissing = !ofKind.some((resource) => resource.name === owner);
        const rename = isMissing ? `, or add renamed_from: ${owner} if ${name} is its new name` : "";
        const message = `${unique} of ${kind.section}.${name} is that of ${owner}: choose another one${rename}`;
        throw new FileError(path, places.get(unique) ?? at, message);
      }
      owners.set(values[unique], name);
    }
  }
}

function unchangeable(path: string, { kind, name, at, places }: FileResource, field: string): FileError {
  const message = `${field} of ${kind.section}.${name} cannot be changed: use another name, or delete the resource first`;
  return new FileError(path, places.get(field) ?? at, message);
}

/** A resource on the server that the file does not have. */
interface Missing {
  readonly kind: Kind;
  readonly name: string;
  readonly item: JsonObject;
}

/** Marked resources that are missing in the file, in reverse order. */
function missingIn(
  { kinds }: Planning,
  { resources }: FileProject,
  found: ReadonlyMap<string, ReadonlyMap<string, JsonObject>>,
): readonly Missing[] {
  const gone = kinds.flatMap((kind) => {
    const wanted = new Set(resources.filter((resource) => resource.kind === kind).map(({ name }) => name));
    return [...(found.get(kind.section) ?? [])].flatMap(([name, item]): Missing[] =>
      wanted.has(name) ||
      item["managed_by"] !== "apply" ||
      kind.remove === null ||
      item[kind.facts.archivedField ?? ""] === true
        ? []
        : [{ kind, name, item }],
    );
  });
  return gone.reverse();
}

function deletionOf({ kind, name, item }: Missing): Step {
  return { action: "delete", kind: kind.section, name, fields: [], resource: kind, wanted: null, item };
}

/** Comparisons of what is new with what is missing: a file of a thousand renames is answered in well under a second. */
const COMPARISONS_MAX = 10_000;

/** Warnings of creations that look like a missing resource of the same kind with another name. */
function likelyRenames(
  { path, prune }: Planning,
  steps: readonly Step[],
  gone: readonly Missing[],
  ids: ReadonlyMap<string, ReadonlyMap<string, string>>,
): readonly string[] {
  const free = new Set(gone);
  let comparisons = 0;
  return steps.flatMap(({ action, wanted }) => {
    if (action !== "create" || wanted === null || !isRenamable(wanted.kind)) return [];
    let best: { readonly missing: Missing; readonly share: number } | null = null;
    for (const missing of free) {
      if (missing.kind !== wanted.kind || comparisons >= COMPARISONS_MAX) continue;
      comparisons += 1;
      const share = sharedPart(wanted, missing.item, ids);
      if (share >= LIKE_SHARE && share > (best?.share ?? 0)) best = { missing, share };
    }
    if (best === null) return [];
    free.delete(best.missing);
    const { section } = wanted.kind;
    const former = best.missing.name;
    const end = prune
      ? `${former} is deleted with its history`
      : `${former} stays unchanged, and a second one is created`;
    return [
      `${path}:${wanted.at.line}: ${section}.${wanted.name} looks like ${former} with a new name, but ${end}. To rename it, add renamed_from: ${former}`,
    ];
  });
}

/** Part of the fields of a file that a resource must have to look like the same one. */
const LIKE_SHARE = 0.5;

/** Which part of its fields a resource on the server has, from 0 to 1. */
function sharedPart(
  { kind, values }: FileResource,
  item: JsonObject,
  ids: ReadonlyMap<string, ReadonlyMap<string, string>>,
): number {
  const digests = (item["secret_digest"] ?? {}) as JsonObject;
  const compared = Object.entries(values).flatMap(([name, value]) => {
    const field = kind.fields.get(name);
    // Lists do not show it.
    if (field === undefined || kind.onlyRead.includes(name)) return [];
    const current = replaced(field.schema, shownValue(kind, field, item), (section, id) =>
      nameOf(ids, section, id),
    );
    return [isSame(field, value, current, { beside: { ...item, ...values }, digests, path: name })];
  });
  return compared.length === 0 ? 1 : compared.filter((same) => same).length / compared.length;
}

function nameOf(ids: ReadonlyMap<string, ReadonlyMap<string, string>>, section: string, id: string): string {
  for (const [name, known] of ids.get(section) ?? []) if (known === id) return name;
  return id;
}

/** Fields of a request that creates a project with the slug of a file. */
export function newProject({ slug, name, description, timeZone }: FileProject): JsonObject {
  if (slug === null) throw new StartupError("A new project needs a slug.");
  const shown = name !== null && slugOf(name) === slug ? name : slug;
  return {
    name: shown,
    ...(description === undefined ? {} : { description }),
    ...(timeZone === undefined ? {} : { time_zone: timeZone }),
  };
}
