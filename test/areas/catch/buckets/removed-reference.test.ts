import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { startTestServer } from "../../../support/server.ts";

test("a leftover removal does not affect a new bucket with the same reference", async () => {
  const server = await startTestServer({ manualClock: true });
  try {
    const account = await server.account();
    const bucket = (await account.post("/v1/catch/buckets", { target_url: "https://example.com" })).body;
    const path = `/v1/catch/${String(bucket["id"])}`;
    expect((await server.client(null).post(path, { n: 1 })).body["status"]).toBe("accepted");
    await server.server.stop();
    const file = readdirSync(server.folder).find((name) => name.endsWith(".db")) ?? "";
    const db = new Database(join(server.folder, file));
    db.run(
      "INSERT INTO jobs (id, kind, key, due_at, lane, payload, attempt) SELECT max(id) + 1, 'catch.remove-bucket', '1', 0, '', '{}', 0 FROM jobs",
    );
    db.close();
    await server.start();
    await server.clock.advance(1_000);
    const events = await server.client(account.key).get(`${path}/events`);
    expect(events.status).toBe(200);
    expect((events.body["events"] as unknown[]).length).toBe(1);
  } finally {
    await server.stop();
  }
});
