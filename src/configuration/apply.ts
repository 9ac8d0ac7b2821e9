import { type Api, type JsonObject, RejectedRequest } from "../api/http-api.ts";
import { StartupError } from "../kernel/errors.ts";
import type { Field, Kind } from "./kinds.ts";
import { newProject, type ProjectPlan, type Step } from "./plan.ts";
import { type FileResource, requestOf } from "./read.ts";
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

/** What a step led to. */
export interface Outcome {
  readonly urls: readonly MadeUrl[];
  /** Ids of the proposals that stand in place of the change, where the project reviews it. */
  readonly proposals: readonly string[];
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
  url: ["headers", "tls_client_key"],
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
 * Carries out the steps of plans, one after another. `onStep` is called after each, with what it led to. A change that the
 * project reviews is proposed.
 * @throws StartupError at the first failure, naming the resource; a further run continues.
 */
export async function applyPlans(
  api: Api,
  plans: readonly ProjectPlan[],
  sink: SecretSink | null,
  onStep: (step: Step, outcome: Outcome) => void,
): Promise<void> {
  for (const plan of plans) {
    const run: Run = { api, plan, sink, project: plan.api, proposals: [] };
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
      onStep(step, { urls, proposals: run.proposals.splice(0) });
    }
  }
}

interface Run {
  readonly api: Api;
  readonly plan: ProjectPlan;
  readonly sink: SecretSink | null;
  project: ProjectApi | null;
  /** Of the current step. */
  readonly proposals: string[];
}

/** Sends a change of a resource, or proposes it where the project reviews it: then the result is null. */
async function sendOrPropose(
  { proposals }: Run,
  api: ProjectApi,
  { facts }: Kind,
  name: string,
  send: {
    readonly method: string;
    readonly path: string;
    readonly body?: JsonObject;
    readonly headers?: Readonly<Record<string, string>>;
  },
): Promise<JsonObject | null> {
  try {
    return await api.send(send.method, send.path, send.body, send.headers);
  } catch (error) {
    if (facts.proposals === undefined || !(error instanceof RejectedRequest)) throw error;
    if (error.code !== "review_required") throw error;
    const { [facts.name]: _, ...change } = send.body ?? { delete: true };
    const path = facts.proposals.replace(":name", encodeURIComponent(name));
    const proposal = await api.send("POST", path, change);
    proposals.push(String(proposal["proposal_id"]));
    return null;
  }
}

async function perform(run: Run, step: Step): Promise<readonly MadeUrl[]> {
  const { file } = run.plan;
  if (step.resource === null) {
    if (step.action === "create") {
      const created = (await run.api.send("POST", "/v1/projects", newProject(file))) as ServerProject;
      if (created.slug !== file.slug)
        throw new StartupError(`The project got the slug ${created.slug}: another one has ${file.slug}.`);
      run.project = new ProjectApi(run.api, created);
      if (file.name !== null && file.name !== created.name)
        await run.api.send("PATCH", `/v1/projects/${created.id}`, { name: file.name });
      return [];
    }
    const change = Object.fromEntries(step.fields.map((field) => [field.field, field.new]));
    const id = run.project?.project.id ?? String(step.item?.["id"]);
    await run.api.send("PATCH", `/v1/projects/${id}`, change);
    return [];
  }
  if (run.project === null) throw new Error("the project has not been created");
  if (step.action === "create") return create(run, run.project, step);
  if (step.action === "delete") await remove(run, run.project, step);
  else if (step.action === "rename" && step.resource.facts.isSave === true)
    await saveAs(run, run.project, step);
  else if (step.resource.facts.isPut === true) await replace(run, run.project, step);
  else await change(run, run.project, step);
  return [];
}

async function create(run: Run, api: ProjectApi, step: Step): Promise<readonly MadeUrl[]> {
  const { plan, sink } = run;
  const { resource, wanted } = step;
  if (resource === null || wanted === null) return [];
  if (resource.facts.isPut === true) {
    await replace(run, api, step);
    return [];
  }
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
  const path = pathOf(route.path, api.project.id);
  const created = await sendOrPropose(run, api, resource, wanted.name, {
    method: "POST",
    path,
    body,
    headers,
  });
  if (created === null) return [];
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

/**
 * Creates or replaces what has a `PUT`: with its settings on the server, and over them those of the file. What is to be archived
 * is archived afterwards.
 */
async function replace(run: Run, api: ProjectApi, step: Step): Promise<void> {
  const { resource, wanted, item } = step;
  if (resource === null || wanted === null) return;
  const { facts, create: route } = resource;
  const { archivedField = "" } = facts;
  const { [archivedField]: isArchived, ...body } = wholeBody(run, resource, wanted, item ?? {});
  const isOnlyArchived = item !== null && step.fields.every(({ field }) => field === archivedField);
  if (isArchived !== true || !isOnlyArchived) {
    const path = pathOf(route.path, wanted.name);
    const sent = item === null ? { ...body, managed_by: "apply" } : body;
    await sendOrPropose(run, api, resource, wanted.name, { method: route.method, path, body: sent });
  }
  if (item === null)
    run.plan.ids.set(
      resource.section,
      (run.plan.ids.get(resource.section) ?? new Map<string, string>()).set(wanted.name, wanted.name),
    );
  if (isArchived === true)
    await remove(run, api, { ...step, item: { [facts.name]: wanted.name, [resource.idKey]: wanted.name } });
}

/** The body of a request with all settings of a resource on the server, and over them those of the file. */
function wholeBody({ plan }: Run, resource: Kind, wanted: FileResource, item: JsonObject): JsonObject {
  const fields = [...resource.fields.values()];
  const shown = fields.flatMap((field) => {
    const value = shownValue(resource, field, item);
    return value === undefined ? [] : [[field.name, value] as const];
  });
  const wantedFields = fields.filter(({ name }) => name in wanted.values);
  const values = { ...Object.fromEntries(shown), ...withIds(plan, wantedFields, wanted.values) };
  const present = fields.filter(({ name }) => name in values);
  return requestOf(resource, present, values);
}

/** Renames what is saved by its name: saves it with all of its settings by the new one, and deletes the former. */
async function saveAs(run: Run, api: ProjectApi, step: Step): Promise<void> {
  const { resource, wanted, item } = step;
  if (resource === null || wanted === null || item === null) return;
  const { facts, create: route } = resource;
  const identity = { [facts.name]: wanted.name, managed_by: "apply" };
  const body = { ...wholeBody(run, resource, wanted, item), ...identity };
  const path = pathOf(route.path, api.project.id);
  await sendOrPropose(run, api, resource, wanted.name, { method: "POST", path, body });
  await remove(run, api, step);
}

async function change(
  run: Run,
  api: ProjectApi,
  { action, resource, wanted, item, fields }: Step,
): Promise<void> {
  if (resource?.change == null || wanted === null || item === null) return;
  const { plan } = run;
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
  const sending = { method: route.method, path, body: { ...body, ...identity } };
  await sendOrPropose(run, api, resource, wanted.name, sending);
}

async function remove(run: Run, api: ProjectApi, { resource, item }: Step): Promise<void> {
  if (resource?.remove == null || item === null) return;
  const { method, path } = resource.remove;
  try {
    const name = String(item[resource.facts.name]);
    await sendOrPropose(run, api, resource, name, { method, path: pathOf(path, item[resource.idKey]) });
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
