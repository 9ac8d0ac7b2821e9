/**
 * Rules for every declared resource, including future ones. Scopes, foreign ids, and one audit entry for each change
 * hold for every route: see the matrices in `test/api`, and `test/areas/audit/operations.test.ts`.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { loadConfig } from "../../src/config.ts";
import type { DeclaredRoute } from "../../src/kernel/http/api.ts";
import type { ResourceFacts } from "../../src/kernel/http/resource-facts.ts";
import { DEFAULT_TIERS, type TierLimits } from "../../src/kernel/limits/tiers.ts";
import type { Answer, Client } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import { bodyOf } from "../support/matrix.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

/** The lowered limit of a tier. */
const LOW = 3;

/** A resource, and the routes of its verbs. */
interface Declared {
  readonly facts: ResourceFacts;
  readonly create: DeclaredRoute;
  readonly change: DeclaredRoute;
  readonly canDelete: boolean;
}

function declaredBy(routes: readonly DeclaredRoute[]): Declared[] {
  const all = new Set(routes.flatMap(({ operation }) => operation.resource ?? []));
  return [...all].map((facts) => {
    const own = routes.filter(({ operation }) => operation.resource === facts);
    const [create, change] = ["POST", "PATCH"].map((method) => own.find((route) => route.method === method));
    if (create === undefined || change === undefined) throw new Error(`${facts.path} lacks a verb`);
    return { facts, create, change, canDelete: own.some(({ method }) => method === "DELETE") };
  });
}

// The tests are defined before any of them runs.
const looked = await startTestServer({ manualClock: true });
const DECLARED = declaredBy(looked.server.app.http.routes);
await looked.stop();

let server: TestServer;
beforeAll(async () => {
  const lowered = DECLARED.flatMap(({ facts }) => {
    const most = facts.limit?.most;
    return typeof most === "string" ? [[most, LOW] as const] : [];
  });
  const unlimited: TierLimits = { ...DEFAULT_TIERS.unlimited, ...Object.fromEntries(lowered) };
  server = await startTestServer({
    manualClock: true,
    args: ["--allow-private-targets", "127.0.0.0/8"],
    config: { tiers: { ...loadConfig([], {}).tiers, unlimited } },
  });
});
afterAll(() => server.stop());

test("there are declared resources, each with a path and a type of its own", () => {
  expect(DECLARED.length).toBeGreaterThan(0);
  for (const what of ["path", "type", "idPrefix"] as const)
    expect(new Set(DECLARED.map(({ facts }) => facts[what])).size).toBe(DECLARED.length);
});

/** Names that no row of the server has had. */
let names = 0;
function newName(length = 8): string {
  names += 1;
  const text = names.toString(36).padStart(length, "0");
  return text.slice(text.length - length);
}

/** The shortest and the longest name; null may stand for none. */
function lengthsOf(schema: TSchema | undefined): [number, number] {
  const { minLength, maxLength } = schema?.["anyOf"]?.[0] ?? schema;
  return [minLength, maxLength];
}

describe.each(DECLARED.map((one): [string, Declared] => [one.facts.path, one]))("%s", (path, declared) => {
  const { facts, create, change, canDelete } = declared;
  const { field, taken, isFixed = false } = facts.name;
  const owner = () => server.account({ tier: "unlimited" });
  const example = bodyOf(create) as Record<string, unknown>;
  /** The id in a response: `id`, or `schedule_id`. */
  const idOf = ({ body }: Answer) => String(body["id"] ?? body[`${facts.type}_id`]);
  const post = (client: Client, name: unknown) => client.post(path, { ...example, [field]: name });
  const createNamed = async (client: Client, name = newName()): Promise<string> => {
    const created = await post(client, name);
    expect(created.status, created.text).toBe(201);
    expect(idOf(created)).toMatch(new RegExp(`^${facts.idPrefix}_[0-9a-f]{32}$`));
    return idOf(created);
  };
  const namesOf = ({ body }: Answer) =>
    (body[facts.list.key] as Record<string, unknown>[]).map((item) => item[field]);

  test("is created, read, listed, changed and deleted, each change with its audit entry", async () => {
    const client = await owner();
    const entries = async () => {
      const { body } = await client.get(`/v1/audit?target_type=${facts.type}`);
      return body["entries"] as { sequence: string }[];
    };
    const newestEntry = async () => (await client.get(`/v1/audit/${(await entries())[0]?.sequence}`)).body;
    const [first, second] = [newName(), newName()];
    const created = await post(client, first);
    const id = idOf(created);
    const own = `${path}/${id}`;
    const target = { type: facts.type, id };
    expect(created.body[field]).toBe(first);
    const { [facts.file?.onceShown ?? ""]: _, ...lasting } = created.body;
    expect((await client.get(own)).body).toMatchObject(lasting);
    expect(namesOf(await client.get(path))).toEqual([first]);
    const entry = await newestEntry();
    expect(entry).toMatchObject({ action: create.operation.name, target, before: null });
    expect(entry["after"]).toMatchObject({ [field]: first });
    const renamed = isFixed ? first : second;
    if (!isFixed) {
      const changed = await client.patch(own, { [field]: second });
      expect((await client.get(own)).body).toMatchObject(changed.body);
      expect(await newestEntry()).toMatchObject({
        action: change.operation.name,
        target,
        before: { [field]: first },
        after: { [field]: second },
      });
    }
    for (const nothing of [{ [field]: renamed }, {}])
      expect((await client.patch(own, nothing)).body[field]).toBe(renamed);
    const written = isFixed ? 1 : 2;
    expect(await entries()).toHaveLength(written);
    if (!canDelete) return;
    expect((await client.delete(own)).status).toBeLessThan(300);
    const last = await newestEntry();
    expect(last).toMatchObject({ action: `${facts.operations}.delete`, target, after: null });
    expect(last["before"]).toMatchObject({ [field]: renamed });
    expectError(await client.get(own), "not_found");
    expectError(await client.patch(own, {}), "not_found");
    expectError(await client.delete(own), "not_found");
    expect(namesOf(await client.get(path))).toEqual([]);
    expect(await entries()).toHaveLength(written + 1);
  });

  test.each(isFixed ? [create] : [create, change])(
    "$operation.name requires a name of the right length",
    async (route) => {
      const [minLength, maxLength] = lengthsOf(route.body?.properties[field]);
      const client = await owner();
      const own = route === create ? "" : `${path}/${await createNamed(client)}`;
      const send = (name: unknown) =>
        route === create ? post(client, name) : client.patch(own, { [field]: name });
      for (const wrong of [newName(minLength - 1), newName(maxLength + 1), 5, [newName(minLength)]]) {
        const { fields } = expectError(await send(wrong), "validation_error");
        expect([wrong, Object.keys(fields ?? {})]).toEqual([wrong, [field]]);
      }
      for (const right of [newName(minLength), newName(maxLength)])
        expect((await send(right)).body[field]).toBe(right);
    },
  );

  if (taken !== null)
    test("rejects the name of another one", async () => {
      const client = await owner();
      const [first, second] = [newName(), newName()];
      const [holder, other] = [
        await createNamed(client, first),
        `${path}/${await createNamed(client, second)}`,
      ];
      expectError(await post(client, first), String(taken));
      if (isFixed) return;
      expectError(await client.patch(other, { [field]: first }), String(taken));
      expect((await client.patch(other, { [field]: second })).status).toBe(200);
      expect((await client.get(other)).body[field]).toBe(second);
      await client.delete(`${path}/${holder}`);
      expect((await client.patch(other, { [field]: first })).body[field]).toBe(first);
    });

  if (facts.limit !== null)
    test("has a limit", async () => {
      const client = await owner();
      const { most = 0, code = "" } = facts.limit ?? {};
      const ids: string[] = [];
      while (ids.length < (typeof most === "number" ? most : LOW)) ids.push(await createNamed(client));
      expectError(await post(client, newName()), code);
      expect((await client.patch(`${path}/${ids[0]}`, { [field]: newName() })).status).toBe(200);
      // Another account's are not counted.
      await createNamed(await owner());
      if (!canDelete) return;
      await client.delete(`${path}/${ids[0]}`);
      await createNamed(client);
    });

  test("is listed in pages, newest first", async () => {
    const client = await owner();
    const all = [newName(), newName(), newName()];
    for (const name of all) await createNamed(client, name);
    const first = await client.get(`${path}?limit=2`);
    expect(namesOf(first)).toEqual(all.slice(1).reverse());
    const cursor = String(first.body["cursor"]);
    const last = await client.get(`${path}?limit=2&cursor=${cursor}`);
    expect(namesOf(last)).toEqual(all.slice(0, 1));
    expect(last.body["cursor"]).toBeUndefined();
    expect((await client.get(`${path}?limit=3`)).body["cursor"]).toBeUndefined();
    for (const wrong of ["1", `${cursor.slice(1)}A`])
      expectError(await client.get(`${path}?cursor=${wrong}`), "validation_error");
    expectError(await (await owner()).get(`${path}?cursor=${cursor}`), "validation_error");
  });
});
