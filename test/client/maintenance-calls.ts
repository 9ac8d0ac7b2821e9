import { expect } from "bun:test";
import type { Ninefold } from "../../src/client/index.ts";

/** Calls everything that has to do with planned work. */
export async function callMaintenance(nf: Ninefold): Promise<void> {
  const { maintenance } = nf.monitors;
  const { id } = await maintenance.create({ title: "Backup", schedule: "0 3 * * *", duration_ms: 3_600_000 });
  expect((await maintenance.list({ status: "scheduled" }).toArray()).map((one) => one.id)).toEqual([id]);
  expect((await maintenance.update(id, { message: "Nightly." })).message).toBe("Nightly.");
  expect((await maintenance.get(id)).tz).toBe("UTC");
  expect(await maintenance.delete(id)).toEqual({ deleted: true });
}
