import type { Api, JsonObject } from "../api/http-api.ts";
import { StartupError } from "../kernel/errors.ts";
import type { Field } from "./kinds.ts";
import { newProject, type ProjectPlan, type Step } from "./plan.ts";
import { requestOf } from "./read.ts";
import { ProjectApi, pathOf, type ServerProject } from "./server.ts";
import { replaced, shownValue } from "./shown.ts";

/** A URL of a resource that was created. */
export interface MadeUrl {
  /** Slug of the project. */
  readonly project: string;
  /** Such as `ping_url`. */
  readonly field: string;
  readonly url: string;
  readonly isSecret: boolean;
}

/** Where the secrets of new keys go. */
export interface SecretSink {
  /** The `Idempotency-Key` of a creation, the same after an interruption. */
  begin(project: string, name: string): string;
  store(project: string, name: string, secret: string): void;
}

/**
 * Secrets that are sent to a URL, by the field of the URL. A change of the URL contains them, too: the server accepts another
 * origin only with its secrets, unless the key has the scope `*`.
 */
const SENT_TO: Readonly<Record<string, readonly string[]>> = {
  url: ["headers"],
  target_url: ["headers", "signing_secret"],
  targets: ["signing_secret"],
};

/** Whether a plan creates keys, whose secrets must go somewhere. */
export function createsKeys(plans: readonly ProjectPlan[]): boolean {
  return plans.some(({ steps }) => steps.some(isKey));
}

function isKey({ action, resource }: Step): boolean {
  return action === "create" && resource?.facts.onceShown !== undefined;
}

/**
 * Carries out the steps of plans, one after another. `onStep` is called after each, with the URLs that it made.
 * @throws StartupError at the first failure, naming the resource; a further run continues.
 */
export async function applyPlans(
  api: Api,
  plans: readonly ProjectPlan[],
  sink: SecretSink | null,
  onStep: (step: Step, urls: readonly MadeUrl[]) => void,
): Promise<void> {
  for (const plan of plans) {
    const run: Run = { api, plan, sink, project: plan.api };
    for (const step of plan.steps) {
      let urls: readonly MadeUrl[] = [];
      try {
        urls = await perform(run, step);
      } catch (error) {
        if (!(error instanceof StartupError)) throw error;
        const at = step.wanted === null ? "" : `, line ${step.wanted.at.line}`;
        throw new StartupError(
          `${step.action} ${step.kind}.${step.name}${at}: ${error.message} Run the command again to continue.`,
        );
      }
      onStep(step, urls);
    }
  }
}

interface Run {
  readonly api: Api;
  readonly plan: ProjectPlan;
  readonly sink: SecretSink | null;
  project: ProjectApi | null;
}

async function perform(run: Run, step: Step): Promise<readonly MadeUrl[]> {
  const { file } = run.plan;
  if (step.resource === null) {
    if (step.action === "create") {
      const created = (await run.api.send(
        "POST",
        "/v1/projects",
        newProject(file),
      )) as unknown as ServerProject;
      if (created.slug !== file.slug)
        throw new StartupError(`The project got the slug ${created.slug}: another one has ${file.slug}.`);
      run.project = new ProjectApi(run.api, created);
      if (file.name !== null && file.name !== created.name)
        await run.api.send("PATCH", `/v1/projects/${created.id}`, { name: file.name });
      return [];
    }
    const change = Object.fromEntries(step.fields.map((field) => [field.field, field.new]));
    await run.api.send("PATCH", `/v1/projects/${String(step.item?.["id"])}`, change);
    return [];
  }
  if (run.project === null) throw new Error("the project has not been created");
  if (step.action === "create") return create(run, run.project, step);
  if (step.action === "delete") await remove(run.project, step);
  else if (step.action === "rename" && step.resource.facts.isSave === true)
    await saveAs(run, run.project, step);
  else await change(run, run.project, step);
  return [];
}

async function create(
  { plan, sink }: Run,
  api: ProjectApi,
  { resource, wanted }: Step,
): Promise<readonly MadeUrl[]> {
  if (resource === null || wanted === null) return [];
  const { facts, fields, create: route } = resource;
  const present = [...fields.values()].filter(({ name }) => name in wanted.values);
  const values = withIds(plan, present, wanted.values);
  const identity = facts.isSingle === true ? {} : { [facts.name]: wanted.name, managed_by: "apply" };
  const inCreate = present.filter((field) => field.inCreate);
  const body = { ...requestOf(resource, inCreate, values), ...identity };
  const { slug } = api.project;
  const { onceShown = null } = facts;
  const isKeyed = onceShown !== null && sink !== null;
  const headers: Record<string, string> = isKeyed ? { "idempotency-key": sink.begin(slug, wanted.name) } : {};
  const created = await api.send("POST", pathOf(route.path, api.project.id), body, headers);
  if (isKeyed) sink.store(slug, wanted.name, String(created[onceShown]));
  const id = String(created[resource.idKey] ?? created["id"] ?? created[facts.name] ?? "");
  const names = plan.ids.get(resource.section) ?? new Map<string, string>();
  plan.ids.set(resource.section, names.set(wanted.name, id));
  // Such as the state of a bucket.
  const later = present.filter((field) => !field.inCreate);
  if (later.length > 0 && resource.change !== null)
    await api.send(
      resource.change.method,
      pathOf(resource.change.path, id),
      requestOf(resource, later, values),
    );
  return (facts.urls ?? []).flatMap(({ field, isSecret }) => {
    const url = created[field];
    return typeof url === "string" ? [{ project: slug, field, url, isSecret }] : [];
  });
}

/** Renames what is saved by its name: saves it with all of its settings by the new one, and deletes the former. */
async function saveAs(run: Run, api: ProjectApi, step: Step): Promise<void> {
  const { resource, wanted, item } = step;
  if (resource === null || wanted === null || item === null) return;
  const { facts, create: route } = resource;
  const fields = [...resource.fields.values()];
  const shown = fields.flatMap((field) => {
    const value = shownValue(resource, field, item);
    return value === undefined ? [] : [[field.name, value] as const];
  });
  const wantedFields = fields.filter(({ name }) => name in wanted.values);
  const values = { ...Object.fromEntries(shown), ...withIds(run.plan, wantedFields, wanted.values) };
  const present = fields.filter(({ name }) => name in values);
  const identity = { [facts.name]: wanted.name, managed_by: "apply" };
  await api.send("POST", pathOf(route.path, api.project.id), {
    ...requestOf(resource, present, values),
    ...identity,
  });
  await remove(api, step);
}

async function change(
  { plan }: Run,
  api: ProjectApi,
  { action, resource, wanted, item, fields }: Step,
): Promise<void> {
  if (resource?.change == null || wanted === null || item === null) return;
  const { facts, change: route } = resource;
  const sentAlong = fields.flatMap(({ field }) => SENT_TO[field] ?? []);
  const changed = [...resource.fields.values()].filter(
    ({ name }) =>
      fields.some(({ field }) => field === name) || (sentAlong.includes(name) && name in wanted.values),
  );
  // A save and a flattened object are given as a whole.
  const isWhole = facts.isSingle === true || changed.some((field) => field.isFlattened);
  const sent = isWhole
    ? [...resource.fields.values()].filter(
        (field) =>
          field.name in wanted.values &&
          (facts.isSingle === true || field.isFlattened || changed.includes(field)),
      )
    : changed;
  const body = requestOf(resource, sent, withIds(plan, sent, wanted.values));
  const identity =
    facts.isSave === true
      ? { [facts.name]: wanted.name, enabled: wanted.values["enabled"] ?? item["enabled"] }
      : action === "rename"
        ? { [facts.name]: wanted.name }
        : {};
  const path =
    facts.isSave === true || facts.isSingle === true ? route.path : pathOf(route.path, item[resource.idKey]);
  await api.send(route.method, path, { ...body, ...identity });
}

async function remove(api: ProjectApi, { resource, item }: Step): Promise<void> {
  if (resource?.remove == null || item === null) return;
  const { method, path } = resource.remove;
  try {
    await api.send(method, pathOf(path, item[resource.idKey]));
  } catch (error) {
    if ((error as { status?: number }).status !== 404) throw error;
  }
}

/** Values with ids in place of names. What is no name is an id already. */
function withIds({ ids }: ProjectPlan, fields: readonly Field[], values: JsonObject): JsonObject {
  const idOf = (section: string, name: string) => ids.get(section)?.get(name) ?? name;
  const entries = fields.map(({ name, schema }) => [name, replaced(schema, values[name], idOf)]);
  return { ...values, ...Object.fromEntries(entries) };
}
