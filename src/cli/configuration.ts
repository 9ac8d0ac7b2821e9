import { existsSync, readFileSync, readSync } from "node:fs";
import { withDeclaredApp } from "../api/folder-api.ts";
import type { Api } from "../api/http-api.ts";
import { applyPlans, createsKeys, type SecretSink } from "../configuration/apply.ts";
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

/** Longest value of a line of a plan, in characters. */
const VALUE_LENGTH_MAX = 200;

/** `ninefold plan FILE`: prints what `apply` would change. Resolves to the exit code. */
export async function plan(args: Arguments): Promise<number> {
  const plans = await withApi(args, async (api) => planned(api, args, await declaredKinds()));
  const steps = plans.flatMap((one) => one.steps);
  show(args, steps);
  return steps.length === 0 ? NO_CHANGES : CHANGES;
}

/** `ninefold apply FILE`: makes a server match a file. Resolves to the exit code. */
export function apply(args: Arguments): Promise<number> {
  return withApi(args, async (api) => {
    const plans = await planned(api, args, await declaredKinds());
    const steps = plans.flatMap((one) => one.steps);
    const out = args.text("--secrets-out");
    if (createsKeys(plans) && out === null && !args.has("--dry-run"))
      throw new StartupError("The file creates keys. Name a file for their secrets with --secrets-out FILE.");
    if (args.has("--dry-run") || steps.length === 0) {
      show(args, steps);
      return 0;
    }
    if (!args.has("--json")) show(args, steps);
    if (!args.has("--yes") && !isConfirmed()) {
      printError("Nothing was changed.");
      return 1;
    }
    let done = 0;
    try {
      await applyPlans(api, plans, out === null ? null : secretFile(out), () => {
        done += 1;
      });
    } finally {
      if (args.has("--json")) printJson({ changes: steps.slice(0, done).map(changeOf) });
      else print(`${done} of ${steps.length} changes applied.\n`);
    }
    return 0;
  });
}

/** `ninefold export`: prints a project as a configuration file. Resolves to the exit code. */
export function exportConfiguration(args: Arguments): Promise<number> {
  return withApi(args, async (api) => {
    const kinds = await declaredKinds();
    const projects = await projectsOf(api);
    const wanted = args.texts("--project");
    const unknown = wanted.find((slug) => !projects.some((one) => one.slug === slug));
    if (unknown !== undefined) throw new StartupError(`There is no project with the slug ${unknown}.`);
    const isWanted = ({ slug }: { readonly slug: string }) =>
      wanted.length === 0 ? projects.length === 1 || slug === "default" : wanted.includes(slug);
    const exported = [];
    for (const project of projects.filter(isWanted))
      exported.push(await exportProject(new ProjectApi(api, project), kinds));
    print(textOf(exported));
    for (const note of new Set(exported.flatMap(({ notes }) => notes))) printError(note);
    const variables = exported.flatMap((one) => one.variables);
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

const SIGNS = { create: "+ create", change: "~ change", delete: "- delete" } as const;

function show(args: Arguments, steps: readonly Step[]): void {
  if (args.has("--json")) {
    printJson({ changes: steps.map(changeOf) });
    return;
  }
  const lines = steps.flatMap(({ action, kind, name, fields }) => [
    `${SIGNS[action]} ${kind} ${oneLine(name)}`,
    ...fields.map((one) => `    ${one.field}: ${valueText(one.old)} → ${valueText(one.new)}`),
  ]);
  print(lines.length === 0 ? "No changes.\n" : `${lines.join("\n")}\n`);
}

function changeOf({ action, kind, name, fields }: Step): Change {
  return { action, kind, name, fields };
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

type Secrets = Record<string, Record<string, string | { readonly idempotency_key: string }>>;

/**
 * A file with the secrets of new keys by project and name. It is written before a key is created, so that an interrupted
 * creation is repeated with the same `Idempotency-Key` and returns the same secret.
 */
function secretFile(path: string): SecretSink {
  const secrets: Secrets = existsSync(path) ? read(path) : {};
  const write = () => {
    writeDurably(path, `${JSON.stringify(secrets, null, 2)}\n`);
  };
  const of = (project: string) => {
    const own = secrets[project] ?? {};
    secrets[project] = own;
    return own;
  };
  return {
    begin(project, name) {
      const known = of(project)[name];
      if (typeof known === "object") return known.idempotency_key;
      const idempotency_key = crypto.randomUUID();
      of(project)[name] = { idempotency_key };
      write();
      return idempotency_key;
    },
    store(project, name, secret) {
      of(project)[name] = secret;
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
