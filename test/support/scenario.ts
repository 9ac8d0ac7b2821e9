import { expect, test } from "bun:test";
import type { Answer, Client } from "./client.ts";
import { expectError, UUID_V7 } from "./errors.ts";
import type { AccountClient, TestServer } from "./server.ts";

/** Where a scenario happens: an account of its own, and the server around it. */
export interface World {
  readonly server: TestServer;
  readonly account: AccountClient;
}

/** One request and everything that is to be seen of it. */
export interface Scenario {
  readonly name: string;
  readonly request: readonly [method: string, path: string, body?: unknown];
  readonly status: number;
  /** The code of an error. */
  readonly code?: string;
  /** Who asks: the scenario's account unless said otherwise. */
  readonly as?: "operator" | "nobody";
  readonly headers?: Readonly<Record<string, string>>;
  /** The account's tier and balance: `scale` with 100 credits unless said otherwise. */
  readonly account?: { readonly tier?: string; readonly balance?: number };
  /** What happens first. */
  readonly before?: (world: World) => unknown;
  /** The whole body of the answer. */
  readonly body?: unknown;
  /** What the body holds among other things. */
  readonly holds?: object;
  /** What the text of the answer must not contain. */
  readonly lacks?: readonly string[];
  /** Credits that left the own balance; 0 unless said otherwise. */
  readonly spent?: number;
  /** Whether the request deletes the scenario's account, whose balance is not compared then. */
  readonly gone?: boolean;
  /** What else is to be seen afterwards. */
  readonly after?: (world: World, answer: Answer) => unknown;
}

/** Statuses that every endpoint of its kind can give: test/api goes over all routes for them. */
const COMMON: ReadonlySet<string> = new Set(["403", "413", "429", "500", "503"]);

/** Every operation under a key gives it to a session that names an unknown project. */
const PROJECT_NOT_FOUND = "#/components/responses/not_found";

/**
 * Declares one test per scenario of an endpoint, named by status, and one more: every status that the OpenAPI
 * document lists for it has a scenario, so that a missing one is seen.
 */
export function endpoint(server: () => TestServer, route: string, scenarios: readonly Scenario[]): void {
  for (const scenario of scenarios) {
    test(`${scenario.status} ${scenario.name}`, () => play(server(), scenario));
  }
  test("every documented status has a scenario", async () => {
    const shown = new Set(scenarios.map(({ status }) => String(status)));
    const responses = await responsesOf(server().client(null), route);
    const documented = Object.keys(responses);
    const isCommon = (status: string): boolean =>
      COMMON.has(status) || responses[status]?.$ref === PROJECT_NOT_FOUND;
    expect(documented.filter((status) => !shown.has(status) && !isCommon(status))).toEqual([]);
    expect([...shown].filter((status) => !documented.includes(status))).toEqual([]);
  });
}

/** Plays one scenario, and checks all that it says. */
export async function play(server: TestServer, scenario: Scenario): Promise<void> {
  const account = await server.account({ balance: 100, ...scenario.account });
  const world = { server, account };
  await scenario.before?.(world);
  const balance = await balanceOf(world);
  const [method, path, body] = scenario.request;
  const headers = scenario.headers ?? {};
  const answer = await asked(world, scenario.as).send(method, filled(path, world), body, { headers });
  expect({ status: answer.status, body: answer.text }).toMatchObject({ status: scenario.status });
  expect(answer.headers.get("x-request-id")).toMatch(UUID_V7);
  if (scenario.status >= 400) expectError(answer, scenario.code ?? "a scenario of an error names its code");
  if (scenario.body !== undefined) expect(answer.body).toEqual(withUser(scenario.body, world) as never);
  if (scenario.holds !== undefined) expect(answer.body).toMatchObject(withUser(scenario.holds, world));
  for (const text of scenario.lacks ?? []) expect(answer.text).not.toContain(text);
  await scenario.after?.(world, answer);
  if (scenario.gone !== true) expect(balance - (await balanceOf(world))).toBe(scenario.spent ?? 0);
}

/** What a scenario's path and bodies write for the user id of its account. */
export const USER_ID = "{user_id of the account}";

function filled(path: string, { account }: World): string {
  return path.replace(USER_ID, account.userId);
}

function withUser<T>(value: T, { account }: World): T {
  return JSON.parse(JSON.stringify(value).replaceAll(USER_ID, account.userId)) as T;
}

function asked({ server, account }: World, as: Scenario["as"]): Client {
  if (as === "operator") return server.operator;
  return as === "nobody" ? server.client(null) : account;
}

/** The account's balance as the operator sees it: reading it so costs no token, also when the account is suspended. */
export async function balanceOf({ server, account }: World): Promise<number> {
  const { body } = await server.operator.get("/v1/admin/accounts?limit=100");
  const found = (body.accounts as { user_id: string; balance: number }[]).find(
    ({ user_id }) => user_id === account.userId,
  );
  if (found === undefined) throw new Error("the account is not among the last hundred");
  return found.balance;
}

type Responses = Readonly<Record<string, { readonly $ref?: string }>>;

async function responsesOf(client: Client, route: string): Promise<Responses> {
  const [method = "", path = ""] = route.split(" ");
  const { body } = await client.get("/openapi.json");
  const paths = body.paths as Record<string, Record<string, { responses: Responses }>>;
  const operation = paths[path]?.[method.toLowerCase()];
  if (operation === undefined) throw new Error(`the OpenAPI document has no ${route}`);
  return operation.responses;
}
