import { expect } from "bun:test";
import type { Ninefold } from "../../src/client/index.ts";
import { NOBODY_URL } from "./webhook-calls.ts";

/** Calls everything that has to do with incidents and channels. */
export async function callIncidents(nf: Ninefold): Promise<void> {
  const { incidents, channels } = nf.monitors;
  const { id } = await incidents.create({ title: "Payments fail" });
  expect((await incidents.list({ status: "open" }).toArray())[0]?.id).toBe(id);
  expect((await incidents.update(id, { public: true })).public).toBe(true);
  expect((await incidents.acknowledge(id)).acknowledged_by).toBeString();
  expect((await incidents.say(id, { status: "resolved", message: "All is well." })).resolved_at).toBeString();
  expect((await incidents.get(id)).updates.map(({ message }) => message)).toEqual(["All is well."]);

  const channel = await channels.create({ name: "Chat", kind: "slack", config: { url: NOBODY_URL } });
  expect((await channels.update(channel.id, { default: false })).default).toBe(false);
  expect((await channels.get(channel.id)).events).toContain("monitor.down");
  expect((await channels.list().toArray()).map(({ name }) => name)).toEqual(["Chat"]);
  expect((await channels.test(channel.id)).status).toBe("failed");
  expect(await channels.delete(channel.id)).toEqual({ deleted: true });
}

/** Calls everything that has to do with status pages. */
export async function callPages(nf: Ninefold): Promise<void> {
  const { pages } = nf.monitors;
  const { id, url } = await pages.create({ slug: "acme", title: "Acme" });
  expect((await pages.list().toArray()).map((page) => page.id)).toEqual([id]);
  expect((await pages.update(id, { published: false })).published).toBe(false);
  expect(await pages.get(id)).toMatchObject({ url, slug: "acme" });
  expect(await pages.delete(id)).toEqual({ deleted: true });
}
