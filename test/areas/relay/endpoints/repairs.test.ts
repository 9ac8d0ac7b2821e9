import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { MIGRATIONS } from "../../../../migrations/index.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

test("a setting that did not exist when an endpoint was stored has its default", async () => {
  const id = await messaging.endpoint("/early", { keep_responses: false });
  await stage.server.halt();
  const db = new Database(join(stage.server.folder, "ninefold.db"));
  db.run("UPDATE relay_endpoints SET terms = json_remove(terms, '$.keep_responses') WHERE endpoint_id = ?", [
    id,
  ]);
  db.close();
  await stage.restart();
  expect((await messaging.read(id))["keep_responses"]).toBe(true);
  await stage.account.delete(`/v1/relay/endpoints/${id}`);
});

/** Changes the stopped server's folder as an earlier version left it, and runs the step of the schema that repairs it. */
async function repaired(damage: (db: Database) => void): Promise<void> {
  await stage.server.halt();
  const db = new Database(join(stage.server.folder, "ninefold.db"));
  damage(db);
  db.run("ALTER TABLE relay_messages DROP COLUMN schedule_id");
  const step = MIGRATIONS.find(({ name }) => name.endsWith("_relay_repairs"));
  db.run(step?.sql ?? "");
  db.close();
  await stage.restart();
}

test("deliveries that an earlier version lost are sent in order; pending ones are sent once", async () => {
  const forgotten = await messaging.endpoint("/a", { state: "paused", max_concurrency: 1 });
  const paused = await messaging.endpoint("/paused", { state: "paused" });
  const disabled = await messaging.endpoint("/disabled", { state: "paused" });
  for (let n = 0; n < 3; n += 1) await messaging.send({ n });
  const delayed = await messaging.send({ n: 3 }, { delay: "1h" });
  const lost = (await messaging.read(disabled)).counts["waiting"];
  expect(lost).toBe(4);
  await repaired((db) => {
    db.run("DELETE FROM relay_parked");
    db.run("UPDATE relay_endpoints SET holds = 0");
    db.run("UPDATE relay_endpoints SET state = 1 WHERE endpoint_id = ?", [forgotten]);
    db.run("UPDATE relay_endpoints SET state = 3 WHERE endpoint_id = ?", [disabled]);
  });
  await messaging.settle();
  expect(messaging.takenNumbers()).toEqual([0, 1, 2]);
  expect((await messaging.read(disabled)).counts["waiting"]).toBe(0);
  expect((await messaging.read(paused)).counts["waiting"]).toBe(4);
  await messaging.patch(paused, { state: "live" });
  await messaging.settle();
  expect(messaging.takenNumbers("/paused").sort()).toEqual([0, 1, 2]);
  await stage.server.clock.advance(3_600_000);
  expect(messaging.takenPaths()).toEqual(["/a", "/paused"]);
  expect((await stage.read(delayed[forgotten] ?? "")).attempts).toBe(1);
});
