import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { JSON_LEVELS_MAX } from "../../src/json-text.ts";
import type { DeclaredRoute } from "../../src/kernel/http/api.ts";
import type { Answer, Client } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import { bodyOf, makeResource, parametersOf, pathOf, queryOf, segmentOf } from "../support/matrix.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../support/processor-time.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

/** Some seconds of work for `JSON.stringify`, in a body of 80 KB. */
const LEVELS = 40_000;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    manualClock: true,
    args: ["--signup", "open", "--allow-private-targets", "127.0.0.0/8"],
  });
});
afterAll(() => server.stop());

const nest = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

/** The valid body of a route, with a nested value in place of each member, and as an additional member. */
function nestedBodies(route: DeclaredRoute, levels: number): string[] {
  const fitting = (bodyOf(route) ?? {}) as Record<string, unknown>;
  const names = [...Object.keys(route.body?.properties ?? {}), "other"];
  return names.map((name) => JSON.stringify({ ...fitting, [name]: "HERE" }).replace('"HERE"', nest(levels)));
}

function routesWithBody(): readonly DeclaredRoute[] {
  // Customers of a portal send fewer requests than this test needs.
  const routes = server.server.app.http.routes.filter(
    ({ body, operation }) => body !== undefined && !operation.byPortal,
  );
  expect(routes.length).toBeGreaterThan(20);
  return routes;
}

async function callerOf(route: DeclaredRoute): Promise<Client> {
  const { access } = route.operation;
  if (access === "public") return server.client(null);

  // On a slow machine the attempts send more requests than other tiers may in a minute, which the clock of the test never ends.
  return access === "operator" ? server.operator : server.account({ tier: "unlimited" });
}

async function targetOf(route: DeclaredRoute, caller: Client): Promise<string> {
  const needed = parametersOf(route);
  if (needed.length === 0) return route.path;
  if (needed.includes("user_id")) return pathOf(route, { user_id: (await server.account()).userId });
  return pathOf(route, await makeResource(segmentOf(route), caller)) + queryOf(route);
}

describe(`${LEVELS} levels`, () => {
  test("are rejected on every route with a JSON body, with and without an Idempotency-Key", async () => {
    for (const route of routesWithBody()) {
      const caller = await callerOf(route);
      const path = await targetOf(route, caller);
      const { bytesMax } = route.operation.bodyLimits;
      const bodies = [
        ...nestedBodies(route, LEVELS),
        // What fits into a small body: some 30,000 levels, and 40,000 that are never closed.
        ...nestedBodies(route, 30_000),
        `{"other":${"[".repeat(LEVELS)}`,
      ];
      const answers: Answer[] = [];
      const sending = async (): Promise<void> => {
        for (const body of bodies) {
          answers.push(await caller.send(route.method, path, body));
          const headers = { "idempotency-key": crypto.randomUUID() };
          answers.push(await caller.send(route.method, path, body, { headers }));
        }
      };
      const turn = await leastMs(TURN_MS_MAX, () => longestTurnMs(sending));
      for (const [index, answer] of answers.entries()) {
        const { length } = bodies[Math.floor(index / 2) % bodies.length] ?? "";
        const name = `${route.method} ${route.path} with ${length} bytes`;
        const code = length > bytesMax ? "request_too_large" : "validation_error";
        // A public route may count attempts before it parses the body.
        expect([name, code, ...(route.path === "/v1/signup" ? ["rate_limit_exceeded"] : [])]).toContain(
          String(answer.body.code),
        );
      }
      expect(turn, route.path).toBeLessThanOrEqual(TURN_MS_MAX);
    }
  }, 300_000);

  test("of a webhook are stored and returned as text", async () => {
    const account = await server.account();
    const { body: bucket } = await account.post("/v1/catch/buckets", { target_url: "https://127.0.0.1:9/" });
    const text = nest(LEVELS);
    let event: Answer | undefined;
    const storing = async (): Promise<void> => {
      const { body } = await server.client(null).post(`/v1/catch/${bucket.id}`, text);
      event = await account.get(`/v1/catch/${bucket.id}/events/${body.event_id}`);
    };
    const turn = await leastMs(TURN_MS_MAX, () => longestTurnMs(storing));
    expect(event?.body.payload === text).toBe(true);
    expect(turn).toBeLessThanOrEqual(TURN_MS_MAX);
  });
});

describe("the limit", () => {
  test(`is ${JSON_LEVELS_MAX} levels, the body itself included`, async () => {
    const account = await server.account();
    const body = (levels: number): string => `{"amount":1,"other":${nest(levels - 1)}}`;
    expect((await account.post("/v1/meter/m/refill", body(JSON_LEVELS_MAX))).status).toBe(200);
    const { fields } = expectError(
      await account.post("/v1/meter/m/refill", body(JSON_LEVELS_MAX + 1)),
      "validation_error",
    );
    expect(fields).toEqual({ body: [`is nested deeper than ${JSON_LEVELS_MAX} levels`] });
  });

  test("does not count brackets within strings", async () => {
    const account = await server.account();
    const body = { amount: 1, other: '["'.repeat(2_000) };
    expect((await account.post("/v1/meter/m/refill", body)).status).toBe(200);
  });
});
