import { afterAll, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { entriesIn } from "../areas/audit/support.ts";
import { unpack } from "../kept/archive.ts";
import type { Client } from "../support/client.ts";
import { BackupStage, ninefold, TIMEOUT_MS } from "./support.ts";

const stage = new BackupStage();
afterAll(() => stage.close());

/** Entries of the server itself, oldest first. */
async function deeds(client: Client) {
  const entries = entriesIn(await client.get("/v1/admin/audit?action=server.*"));
  return entries.toReversed().map(({ action, summary, actor, after }) => ({
    action,
    summary,
    actor: actor.type,
    after,
  }));
}

const actions = async (client: Client) => (await deeds(client)).map(({ action }) => action);

test(
  "the first start after a restore writes one audit entry",
  async () => {
    let server = await stage.start();
    const file = stage.path("copy.db");
    expect((await ninefold(["backup", file, "--data", stage.path("data")])).code).toBe(0);
    await server.stop();
    const { out } = await ninefold(["restore", file, "--data", stage.path("data"), "--force"]);
    const [, made] = /^restored {2}\S+ \(of (\S+)\)/.exec(out) ?? [];
    const before = new Date().toISOString();
    server = await stage.start();
    const [first, restored, last] = await deeds(stage.client(server));
    expect([first?.action, last?.action]).toEqual(["server.start", "server.start"]);
    expect(restored).toEqual({
      action: "server.restore",
      summary: "Server restored from copy.db",
      actor: "system",
      after: { file: "copy.db", backup_created_at: made as string, restored_at: expect.any(String) },
    });
    expect(String(restored?.after?.["restored_at"]) < before).toBe(true);
    await server.stop();
    server = await stage.start();
    expect(await actions(stage.client(server))).toEqual([
      ...["server.start", "server.restore", "server.start", "server.start"],
    ]);
    await server.stop();
  },
  TIMEOUT_MS,
);

test(
  "two restores before a start write one entry; a manually copied file has no time",
  async () => {
    let server = await stage.start("other");
    await server.stop();
    const file = stage.path("by-hand.db");
    copyFileSync(stage.path("other/ninefold.db"), file);
    for (let time = 0; time < 2; time += 1) {
      expect((await ninefold(["restore", file, "--data", stage.path("other"), "--force"])).code).toBe(0);
    }
    server = await stage.start("other");
    const all = await deeds(stage.client(server));
    expect(all.map(({ action }) => action)).toEqual(["server.start", "server.restore", "server.start"]);
    expect(all[1]?.after).toMatchObject({ file: "by-hand.db", backup_created_at: null });
    await server.stop();
  },
  TIMEOUT_MS,
);

test(
  "also for a backup of a version without an audit log",
  async () => {
    const kept = join(import.meta.dir, "../kept/0.1.0/stopped");
    const old = stage.path("old");
    mkdirSync(old);
    unpack(`${kept}.tar.zst`, old);
    expect((await ninefold(["restore", join(old, "ninefold.db"), "--data", stage.path("new")])).code).toBe(0);
    copyFileSync(join(old, "master.key"), stage.path("new/master.key"));
    const server = await stage.start("new");
    stage.key = String(JSON.parse(readFileSync(`${kept}.json`, "utf8")).keys.operator);
    expect(await actions(stage.client(server))).toEqual(["server.restore", "server.start"]);
    await server.stop();
  },
  TIMEOUT_MS,
);
