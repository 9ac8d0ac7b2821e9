// Makes the kept data folder with pending alerts: alerts.tar.zst, and alerts.json with what it contains. It was made with the
// version in which monitors, meters and channels sent their alerts separately; the test starts the current server on it.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { pack } from "../../../kept/archive.ts";
import { Receiver, receiverUrl } from "../../../kept/world.ts";
import { TEST_START_MS } from "../../../support/server.ts";
import { type KeptAlerts, PATHS, serverWithMail } from "./world.ts";

/** Nothing listens there: e-mails stay pending. */
const NO_MAIL_SERVER = "smtp://127.0.0.1:9";

/** In a separate process: fills a folder, prints what it contains, and kills itself. */
async function fill(): Promise<void> {
  const receiver = new Receiver();
  const server = serverWithMail(TEST_START_MS, receiver, NO_MAIL_SERVER);
  await server.start();
  const account = await server.account({ tier: "pro" });
  const chat = { name: "Chat", kind: "slack", config: { url: receiverUrl(PATHS.channel) } };
  await account.post("/v1/pulse/channels", chat);
  const { body: monitor } = await account.post("/v1/pulse", {
    url: receiverUrl("/broken/site"),
    interval: 300_000,
    name: "Shop",
    webhook_url: receiverUrl(PATHS.monitor),
    email_alert: true,
  });
  while (receiver.at(PATHS.monitor).length === 0) await server.time.advance(100);
  await account.put(`/v1/pulse/${monitor["id"]}`, { active: false });
  await account.put("/v1/meter/m/alert", { threshold: 50, webhook_url: receiverUrl(PATHS.meter) });
  await account.post("/v1/meter/m/refill", { amount: 60 });
  await account.post("/v1/meter/m/deduct", { amount: 20 });
  await server.time.advance(0);
  const { body: page } = await account.get("/v1/relay?filter=pulse");
  const { body: own } = await server.operator.get("/v1/admin/accounts");
  const accounts = own["accounts"] as { readonly email: string }[];
  const sent = Object.values(PATHS).map((path) => {
    const [hit, ...more] = receiver.at(path);
    if (hit === undefined || more.length > 0) throw new Error(`${path} has not one request`);
    return [path, { id: hit.headers.get("webhook-id") ?? "", body: hit.body }] as const;
  });
  const kept: KeptAlerts = {
    at: server.time.now(),
    operatorKey: server.key,
    key: account.key ?? "",
    email: String(accounts.at(0)?.email),
    sent: Object.fromEntries(sent),
    deliveries: page["deliveries"] as KeptAlerts["deliveries"],
  };
  await Bun.write(Bun.stdout, JSON.stringify({ folder: server.folder, kept }));
  process.kill(process.pid, "SIGKILL");
}

if (Bun.argv[2] === "fill") await fill();
else {
  const child = Bun.spawn([process.execPath, "--no-env-file", import.meta.path, "fill"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { folder, kept } = JSON.parse(await child.stdout.text()) as { folder: string; kept: KeptAlerts };
  await child.exited;
  pack(folder, join(import.meta.dir, "alerts.tar.zst"));
  rmSync(folder, { recursive: true });
  await Bun.write(join(import.meta.dir, "alerts.json"), `${JSON.stringify(kept, null, 1)}\n`);
}
