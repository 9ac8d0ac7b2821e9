import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import type { Client } from "../../support/client.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { makeProject, type ProjectItem } from "./support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

async function page(client: Client, limit: number, cursor: unknown) {
  const query = cursor === undefined ? "" : `&cursor=${cursor}`;
  const { status, body, text } = await client.get(`/v1/projects?limit=${limit}${query}`);
  expect(status, text).toBe(200);
  return { projects: body.projects as ProjectItem[], cursor: body.cursor };
}

type Change = "add" | "delete-last-seen" | "delete-first-seen";

/** Changes between two pages: listed projects can be deleted, and new ones precede all that are still to be listed. */
async function happen(account: Client, changes: readonly Change[], seen: readonly string[], kept: unknown) {
  for (const change of changes) {
    if (change === "add") await makeProject(account, "New");
    const gone = change === "delete-last-seen" ? seen.at(-1) : seen[0];
    if (change !== "add" && gone !== kept) await account.delete(`/v1/projects/${gone}`);
  }
}

test("pages contain every project once, newest first, while others are created and deleted", async () => {
  const between = fc.array(fc.constantFrom<Change>("add", "delete-last-seen", "delete-first-seen"), {
    maxLength: 3,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.nat(12),
      fc.integer({ min: 1, max: 5 }),
      fc.array(between, { minLength: 1, maxLength: 8 }),
      async (count, limit, changes) => {
        const account = await server.account();
        const made = (await page(account, 1, undefined)).projects.map(({ id }) => id);
        for (let index = 0; index < count; index += 1) made.unshift(await makeProject(account, `P${index}`));
        const seen: string[] = [];
        let cursor: unknown;
        for (let turn = 0; turn === 0 || cursor !== undefined; turn += 1) {
          const { projects, cursor: next } = await page(account, limit, cursor);
          if (next !== undefined) expect(projects).toHaveLength(limit);
          seen.push(...projects.map(({ id }) => id));
          cursor = next;
          await happen(account, changes[turn % changes.length] ?? [], seen, made.at(-1));
        }
        expect(seen).toEqual(made);
      },
    ),
    { numRuns: 25 },
  );
});
