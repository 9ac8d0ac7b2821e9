import { expect, test } from "bun:test";
import { MIGRATIONS } from "../../../migrations/index.ts";
import { messageStore } from "../../../src/areas/relay/messages/store.ts";
import { migrate } from "../../../src/kernel/storage/migrate.ts";
import { TestStorage } from "../../kernel/support.ts";

test("the migration records whose the deliveries are that were created after their messages", async () => {
  const storage = new TestStorage();
  const { db, writer } = storage;
  migrate(
    db,
    MIGRATIONS.filter(({ name }) => name < "0060"),
  );
  const message = db.change<[ref: number, projectRef: number, owner: string | null]>(
    `INSERT INTO relay_messages (ref, project_ref, message_id, event_type, first_ref, deliveries, scheduled_for, created_at, purge_at, owner_id)
     VALUES (?1, ?2, 'm-' || ?1, 'a', 0, 0, 1, 1, 1, ?3)`,
  );
  const later = db.change<[messageRef: number, relayRef: number]>(
    "INSERT INTO relay_later_deliveries (message_ref, relay_ref) VALUES (?, ?)",
  );
  await writer.submit((tx) => {
    for (const [ref, project, owner] of [
      [1, 7, "acme"] as const,
      [2, 7, null] as const,
      [3, 8, "acme"] as const,
    ])
      message(tx, ref, project, owner);
    for (const [ref, relay] of [
      [1, 10],
      [2, 11],
      [3, 12],
      [1, 13],
    ] as const)
      later(tx, ref, relay);
  });
  migrate(db, MIGRATIONS);
  const { laterOfOwner, laterDeliveries } = messageStore(db);
  expect(laterOfOwner(7, "acme", 100, 10)).toEqual([{ ref: 13 }, { ref: 10 }]);
  expect(laterOfOwner(8, "acme", 100, 10)).toEqual([{ ref: 12 }]);
  expect([1, 2, 3].map((ref) => laterDeliveries(ref))).toEqual([2, 1, 1]);
  storage.close();
});
