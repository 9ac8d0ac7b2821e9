import { expect } from "bun:test";
import type { Client } from "../../support/client.ts";
import type { Scenario, World } from "../../support/scenario.ts";

/** A scenario whose request refers to an object that `make` creates. */
interface NamingScenario extends Omit<Scenario, "request" | "before"> {
  /** Creates it, and returns its id. */
  readonly make: (world: World) => Promise<string>;
  readonly ask: (id: string) => Scenario["request"];
}

/** The scenario of a {@link NamingScenario}: its request is determined when it runs. */
export function naming({ make, ask, ...rest }: NamingScenario): Scenario {
  let id = "";
  return {
    ...rest,
    before: async (world) => {
      id = await make(world);
    },
    get request() {
      return ask(id);
    },
  };
}

/** A project as lists show it. */
export interface ProjectItem {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly description: string | null;
  readonly created_at: string;
}

/** Creates a project and returns its id. */
export async function makeProject(client: Client, name = "Shop", description?: string): Promise<string> {
  const body = description === undefined ? { name } : { name, description };
  const answer = await client.post("/v1/projects", body);
  expect(answer.status, answer.text).toBe(201);
  return String(answer.body.id);
}

/** The projects on the first page, newest first. */
export async function projectsOf(client: Client): Promise<ProjectItem[]> {
  return (await client.get("/v1/projects?limit=100")).body.projects as ProjectItem[];
}

/** The id of the default project of an account that has no other. */
export async function defaultProjectOf(client: Client): Promise<string> {
  const projects = await projectsOf(client);
  return projects.at(-1)?.id ?? "";
}
