import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../../../src/kernel/time/units.ts";
import { unpack } from "../../kept/archive.ts";
import { Receiver } from "../../kept/world.ts";
import { Client } from "../../support/client.ts";
import { MailServer } from "../../support/mail-server.ts";
import { type KeptAlerts, PATHS, serverWithMail } from "./kept/world.ts";

const kept = JSON.parse(readFileSync(join(import.meta.dir, "kept/alerts.json"), "utf8")) as KeptAlerts;

/** Attempts after the first: of a monitor's webhook and of a meter's alert, and of a channel. */
const REPEATS = { monitor: 3, meter: 3, channel: 7 } as const;

test("pending alerts of monitors, meters and channels continue where the earlier version stopped: none is lost or doubled", async () => {
  const receiver = new Receiver();
  const mail = await new MailServer().start();
  const server = serverWithMail(kept.at, receiver, mail.url);
  try {
    unpack(join(import.meta.dir, "kept/alerts.tar.zst"), server.makeFolder());
    server.key = kept.operatorKey;
    await server.start();
    const account = new Client(server.url, kept.key);
    const list = async () => (await account.get("/v1/relay?filter=pulse")).body["deliveries"];
    expect(await list()).toMatchObject([...kept.deliveries]);

    await server.time.advance(2 * DAY_MS);
    for (const [name, path] of Object.entries(PATHS)) {
      const hits = receiver.at(path);
      expect({ name, count: hits.length }).toEqual({ name, count: REPEATS[name as keyof typeof PATHS] });
      for (const { headers, body } of hits)
        expect({ id: headers.get("webhook-id") ?? "", body }).toEqual(
          kept.sent[path] ?? { id: "", body: "" },
        );
    }
    const ends = kept.deliveries.map(({ relay_id }) => ({ relay_id, status: "failed" }));
    expect(await list()).toMatchObject(ends);
    const [alert, ...more] = mail.received;
    expect(alert?.to).toEqual([kept.email]);
    expect(more).toEqual([]);
    expect(alert?.raw).toContain("[DOWN] Shop");
  } finally {
    await server.stop();
    await mail.stop();
    await receiver.stop();
  }
});
