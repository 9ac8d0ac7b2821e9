import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { EXPORT_SLICE_ROWS, exportLine } from "../../../src/areas/audit/domain.ts";
import type { AuditEntry } from "../../../src/areas/audit/schema.ts";
import { expectError } from "../../support/errors.ts";
import { eventually } from "../../support/eventually.ts";
import { endpoint } from "../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { type Entry, entriesOf, newestOf, switchFlag } from "./support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
/** Connections that are not read. */
const stalled: Socket[] = [];
afterAll(() => {
  // The server would wait for them to end.
  for (const socket of stalled) socket.destroy();
  return server.stop();
});

/** Inserts copies of an account's newest entry. */
async function fill(account: Parameters<typeof newestOf>[0], copies: number): Promise<void> {
  const { kernel } = server.server;
  const copy = kernel.db.change<[number, string]>(
    "INSERT INTO audit_log (at, account_ref, action, summary, actor_type, target_type, target_id, truncated) SELECT at, account_ref, action, summary, actor_type, target_type, target_id, 0 FROM audit_log, (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n) WHERE sequence = ?",
  );
  const { sequence } = await newestOf(account);
  await kernel.writer.submit((tx) => void copy(tx, copies, sequence));
}

/** More rows than fit into the buffers between server and client: about 20 MB. */
const MANY_ROWS = 60_000;

/** Each has more, as a line of an export. */
const LEAST_ROW_BYTES = 300;

/** Starts an export and reads only its start. */
async function unreadExport(account: AccountClient): Promise<Socket> {
  await switchFlag(account, "beta", true);
  await fill(account, MANY_ROWS);
  const { hostname, port } = new URL(account.url);
  const socket = connect(Number(port), hostname);
  socket.write(
    `GET /v1/audit/export HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${account.key}\r\n\r\n`,
  );
  await new Promise((resolve) => socket.once("data", resolve));
  socket.pause();
  return socket;
}

describe("GET /v1/audit/export", () => {
  endpoint(() => server, "GET /v1/audit/export", [
    { name: "no entries", status: 200, request: ["GET", "/v1/audit/export"], body: {} },
    {
      name: "an unknown format",
      status: 400,
      code: "validation_error",
      request: ["GET", "/v1/audit/export?format=xml"],
    },
    { name: "no key", status: 401, code: "unauthorized", request: ["GET", "/v1/audit/export"], as: "nobody" },
    {
      name: "another export is running",
      status: 409,
      code: "conflict",
      request: ["GET", "/v1/audit/export"],
      before: async ({ account }) => {
        const reader = await unreadExport(account);
        expect((await account.get("/v1/audit/export")).status).toBe(409);
        stalled.push(reader);
      },
    },
  ]);

  test("JSON lines, oldest first, over many slices", async () => {
    const account = await server.account();
    await switchFlag(account, "beta", true);
    await fill(account, 2 * EXPORT_SLICE_ROWS + 1);
    await switchFlag(account, "beta", false);
    const answer = await account.get("/v1/audit/export");
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
    expect(answer.headers.get("content-disposition")).toBe('attachment; filename="audit.jsonl"');
    const lines = answer.text.trimEnd().split("\n");
    expect(lines).toHaveLength(2 * EXPORT_SLICE_ROWS + 3);
    const entries = lines.map((line) => JSON.parse(line) as Entry);
    const sequences = entries.map(({ sequence }) => Number(sequence));
    expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
    expect(entries.at(-1)).toEqual(await newestOf(account));
    // It has ended, so another one can start.
    expect((await account.get("/v1/audit/export")).text).toBe(answer.text);
  });

  test("a range of times; for a key of one project only its entries", async () => {
    const account = await server.account();
    await switchFlag(account, "outside", true);
    const project = await account.post("/v1/projects", { name: "Shop" });
    const terms = { prefix: "sm", name: "k", scopes: ["*"] };
    const key = await account.post(`/v1/projects/${project.body.id}/keys`, terms);
    const client = server.client(String(key.body.secret));
    await server.clock.advance(1_000);
    const from = encodeURIComponent(new Date(server.clock.now()).toISOString());
    await switchFlag(account, "after", true);
    await switchFlag(client, "inside", true);
    expect((await account.get(`/v1/audit/export?from=${from}`)).text.split("\n")).toHaveLength(3);
    expect((await account.get(`/v1/audit/export?to=${from}`)).text).not.toContain("inside");
    const own = (await client.get("/v1/audit/export?format=csv")).text;
    expect(own).toContain("inside");
    expect(own).not.toContain("outside");
    expectError(await account.get("/v1/admin/audit/export"), "forbidden");
    const all = await server.operator.get(`/v1/admin/audit/export?user_id=${account.userId}`);
    expect(all.text).toContain("admin.accounts.create");
    expect(all.text).not.toContain("server.start");
    expect((await server.operator.get("/v1/admin/audit/export")).text).toContain("server.start");
  });

  test("CSV, without formulas", async () => {
    const account = await server.account();
    await account.post("/v1/projects", { name: '=cmd|"x"' });
    const { text, headers } = await account.get("/v1/audit/export?format=csv");
    expect(headers.get("content-type")).toBe("text/csv; charset=utf-8");
    const [head, line, end] = text.split("\r\n");
    expect(head).toStartWith("sequence,at,action,summary,actor_type,");
    expect(line).toContain('"Project =cmd|""x"" created"');
    expect(end).toBe("");
    const entry = (await entriesOf(account))[0] as unknown as AuditEntry;
    for (const sign of ["=", "+", "-", "@", "\t", "\r"]) {
      expect(exportLine("csv", { ...entry, user_agent: `${sign}1+1` })).toContain(`'${sign}1+1`);
    }
    expect(exportLine("csv", { ...entry, user_agent: "a=b" })).toContain(",a=b,");
  });

  test("breaks off once its reader may not read any more", async () => {
    const account = await server.account();
    const reader = await unreadExport(account);
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: true });
    const ended = new Promise<void>((resolve) => reader.once("close", () => resolve()));
    reader.on("error", () => undefined);
    let bytes = 0;
    reader.on("data", (piece) => {
      bytes += piece.length;
    });
    reader.resume();
    await ended;
    // What was under way arrives, and nothing that is made later.
    expect(bytes).toBeLessThan((MANY_ROWS / 2) * LEAST_ROW_BYTES);
  });

  test("after a client disconnects, the next export can start; HEAD starts none", async () => {
    const account = await server.account();
    const reader = await unreadExport(account);
    expect((await account.get("/v1/audit/export")).status).toBe(409);
    reader.destroy();
    await eventually(async () => expect((await account.send("HEAD", "/v1/audit/export")).status).toBe(200));
    expect((await account.get("/v1/audit/export?from=2030-01-01T00:00:00Z")).status).toBe(200);
  });
});
