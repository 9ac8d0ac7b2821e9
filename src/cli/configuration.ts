import { existsSync, readFileSync, readSync } from "node:fs";
import { withDeclaredApp } from "../api/folder-api.ts";
import type { Api, JsonObject } from "../api/http-api.ts";
import { applyPlans, createsKeys, type Outcome, type SecretSink } from "../configuration/apply.ts";
import { exportProject, textOf } from "../configuration/export.ts";
import { readFile } from "../configuration/file.ts";
import { type Kind, kindsOf } from "../configuration/kinds.ts";
import { type Change, type ProjectPlan, planOf, type Step } from "../configuration/plan.ts";
import { fileSchema } from "../configuration/schema.ts";
import { ProjectApi, projectsOf } from "../configuration/server.ts";
import { errorText, StartupError } from "../kernel/errors.ts";
import { writeDurably } from "../kernel/storage/folders.ts";
import { withApi } from "./api.ts";
import type { Arguments } from "./arguments.ts";
import { oneLine, print, printError, printJson } from "./output.ts";

/** Exit codes of `plan`. */
const NO_CHANGES = 0;
const CHANGES = 2;
/** Exit code of `apply` when changes wait for the approval of somebody else. */
const PROPOSED = 3;

/** Longest value of a line of a plan, in characters. */
const VALUE_LENGTH_MAX = 200;

/** `ninefold plan FILE`: prints what `apply` would change. Resolves to the exit code. */
export async function plan(args: Arguments): Promise<number> {
  const plans = await withApi(args, async (api) => planned(api, args, await declaredKinds()));
  const steps = plans.flatMap((plan) => plan.steps);
  show(args, plans);
  return steps.length === 0 ? NO_CHANGES : CHANGES;
}

/** `ninefold apply FILE`: makes a server match a file. Resolves to the exit code. */
export function apply(args: Arguments): Promise<number> {
  return withApi(args, async (api) => {
    const plans = await planned(api, args, await declaredKinds());
    const steps = plans.flatMap((plan) => plan.steps);
    const out = args.text("--secrets-out");
    if (createsKeys(plans) && out === null && !args.has("--dry-run"))
      throw new StartupError("The file creates keys. Name a file for their secrets with --secrets-out FILE.");
    if (args.has("--dry-run") || steps.length === 0) {
      show(args, plans);
      return 0;
    }
    if (!args.has("--json")) show(args, plans);
    if (!args.has("--yes") && !isConfirmed()) {
      printError("Nothing was changed.");
      return 1;
    }
    const done: (readonly [Step, Outcome])[] = [];
    const sink = out === null ? null : secretFile(out);
    try {
      await applyPlans(api, plans, sink, (step, { urls, proposals }) => {
        for (const { project, field, url, isSecret } of urls)
          if (isSecret) sink?.storeUrl(project, field, step.name, url);
        const shown = sink === null ? urls : urls.filter(({ isSecret }) => !isSecret);
        done.push([step, { urls: shown, proposals }]);
      });
    } finally {
      if (args.has("--json"))
        printJson({
          changes: done.map(([step, outcome]) => ({ ...changeOf(step), ...outcomeFields(outcome) })),
        });
      else print(`${done.flatMap(outcomeLines).join("")}${summaryOf(done, steps.length)}\n`);
    }
    return done.some(([, { proposals }]) => proposals.length > 0) ? PROPOSED : 0;
  });
}

/** `ninefold export`: prints a project as a configuration file. Resolves to the exit code. */
export function exportConfiguration(args: Arguments): Promise<number> {
  return withApi(args, async (api) => {
    const kinds = await declaredKinds();
    const projects = await projectsOf(api);
    const wanted = args.texts("--project");
    const unknown = wanted.find((slug) => !projects.some((project) => project.slug === slug));
    if (unknown !== undefined) throw new StartupError(`There is no project with the slug ${unknown}.`);
    const isWanted = ({ slug }: { readonly slug: string }) =>
      wanted.length === 0 ? projects.length === 1 || slug === "default" : wanted.includes(slug);
    const exported = [];
    for (const project of projects.filter(isWanted))
      exported.push(await exportProject(new ProjectApi(api, project), kinds));
    print(textOf(exported));
    for (const note of new Set(exported.flatMap(({ notes }) => notes))) printError(note);
    const variables = exported.flatMap((project) => project.variables);
    if (variables.length > 0) printError(`Secrets are read from the environment: ${variables.join(", ")}.`);
    return 0;
  });
}

/** `ninefold config schema`: prints the JSON Schema of configuration files. Resolves to the exit code. */
export async function configSchema(): Promise<number> {
  printJson(fileSchema(await declaredKinds()));
  return 0;
}

/** The kinds of resources of this version. */
export function declaredKinds(): Promise<Kind[]> {
  return withDeclaredApp(({ http }) => kindsOf(http.routes));
}

async function planned(api: Api, args: Arguments, kinds: readonly Kind[]): Promise<ProjectPlan[]> {
  const [path = ""] = args.words;
  const files = readFile(path, kinds);
  const out = args.text("--secrets-out");
  const pending: Secrets = out === null || !existsSync(out) ? {} : read(out);
  const isPending = (project: string, name: string) => typeof pending[project]?.[name] === "object";
  return planOf({ api, kinds, path, prune: args.has("--prune"), isPending }, files);
}

const SIGNS = { create: "+ create", change: "~ change", rename: "~ rename", delete: "- delete" } as const;

/** Prints the steps of plans; warnings go to standard error. */
function show(args: Arguments, plans: readonly ProjectPlan[]): void {
  const steps = plans.flatMap((plan) => plan.steps);
  const warnings = plans.flatMap((plan) => plan.warnings);
  if (args.has("--json")) {
    printJson({ changes: steps.map(changeOf), ...(warnings.length === 0 ? {} : { warnings }) });
    return;
  }
  for (const warning of warnings) printError(`Warning: ${warning}`);
  const lines = steps.flatMap(({ action, kind, name, renamed_from, fields }) => [
    `${SIGNS[action]} ${kind} ${renamed_from === undefined ? "" : `${oneLine(renamed_from)} → `}${oneLine(name)}`,
    ...fields.map((field) => `    ${field.field}: ${valueText(field.old)} → ${valueText(field.new)}`),
  ]);
  print(lines.length === 0 ? "No changes.\n" : `${lines.join("\n")}\n`);
}

function changeOf({ action, kind, name, renamed_from, fields }: Step): Change {
  return { action, kind, name, ...(renamed_from === undefined ? {} : { renamed_from }), fields };
}

/** The URLs that a step made, by the fields of the API, and its proposals. */
function outcomeFields({ urls, proposals }: Outcome): JsonObject {
  const fields = Object.fromEntries(urls.map(({ field, url }) => [field, url]));
  return proposals.length === 0 ? fields : { ...fields, proposals };
}

function outcomeLines([{ kind, name }, { urls, proposals }]: readonly [Step, Outcome]): readonly string[] {
  return [
    ...urls.map(({ field, url }) => `${kind} ${oneLine(name)} ${field}: ${oneLine(url)}\n`),
    ...proposals.map((id) => `${kind} ${oneLine(name)} proposed: ${oneLine(id)}\n`),
  ];
}

function summaryOf(done: readonly (readonly [Step, Outcome])[], steps: number): string {
  const proposed = done.filter(([, { proposals }]) => proposals.length > 0).length;
  const rest = proposed === 0 ? "" : ` ${proposed} proposed: somebody else must approve them.`;
  return `${done.length - proposed} of ${steps} changes applied.${rest}`;
}

function valueText(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return oneLine(
    text.length > VALUE_LENGTH_MAX ? `${text.slice(0, VALUE_LENGTH_MAX).toWellFormed()}…` : text,
  );
}

/** Asks on a terminal. @throws StartupError elsewhere */
function isConfirmed(): boolean {
  if (!process.stdin.isTTY) throw new StartupError("apply needs --yes where nobody can be asked.");
  print("Apply these changes? Enter yes: ");
  const answer = Buffer.alloc(64);
  const size = readSync(0, answer);
  return answer.toString("utf8", 0, size).trim() === "yes";
}

/** By project and name: the secret of a key, or the `idempotency_key` of a creation that was begun. By field, project and name: URLs. */
type Secrets = Record<string, Record<string, string | Record<string, string>>>;

/** A file of secrets, which also takes URLs. */
interface SecretFile extends SecretSink {
  storeUrl(project: string, field: string, name: string, url: string): void;
}

/**
 * A file with the secrets of new keys by project and name, and with secret URLs. It is written before a key is created, so that an interrupted
 * creation is repeated with the same `Idempotency-Key` and returns the same secret.
 */
function secretFile(path: string): SecretFile {
  const secrets: Secrets = existsSync(path) ? read(path) : {};
  const write = () => {
    writeDurably(path, `${JSON.stringify(secrets, null, 2)}\n`);
  };
  const of = (project: string) => {
    const ofProject = secrets[project] ?? {};
    secrets[project] = ofProject;
    return ofProject;
  };
  return {
    begin(project, name) {
      const known = of(project)[name];
      if (typeof known === "object" && known["idempotency_key"] !== undefined)
        return known["idempotency_key"];
      const idempotency_key = crypto.randomUUID();
      of(project)[name] = { idempotency_key };
      write();
      return idempotency_key;
    },
    store(project, name, secret) {
      of(project)[name] = secret;
      write();
    },
    storeUrl(project, field, name, url) {
      // No slug of a project has an underscore.
      const ofField = of(`${field}s`);
      const known = ofField[project];
      if (typeof known === "object") known[name] = url;
      else ofField[project] = { [name]: url };
      write();
    },
  };
}

function read(path: string): Secrets {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Secrets;
  } catch (error) {
    throw new StartupError(`--secrets-out: ${path} cannot be read (${errorText(error)}).`);
  }
}
