import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../harness/processes/ports.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { endOf } from "../support/ended.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";
import { type Received, WebhookSink } from "../support/webhook-sink.ts";
import { NODE_OR_BUN } from "./runtime.ts";

const TIMEOUT_MS = 30_000;

const jsBlocks = (page: string): string[] => {
  const text = readFileSync(join(ROOT, page), "utf8");
  return [...text.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
};

const folder = mkdtempSync(join(tmpdir(), "ninefold-receivers-"));
const sink = new WebhookSink();
let server: TestServer;
let account: AccountClient;
let secret = "";
beforeAll(async () => {
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  server = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
  account = await server.account();
  secret = String((await account.post("/v1/relay/secret")).body["secret"]);
});
afterAll(async () => {
  await server.stop();
  sink.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Sends one delivery. Returns the status of its target. */
async function deliver(target_url: string): Promise<unknown> {
  const order = { target_url, method: "POST", delay: "0s", payload: { n: "☃" } };
  const { relay_id } = (await account.post("/v1/relay", order)).body;
  for (;;) {
    const { body } = await account.get(`/v1/relay/${relay_id}`);
    if (body["finished_at"] !== null) return body["response_status"];
    await Bun.sleep(5);
  }
}

test("the receiver in JavaScript takes what the server sends, and nothing else", async () => {
  const [program = ""] = jsBlocks("docs/guides/receiving.md");
  writeFileSync(join(folder, "receiver.mjs"), program);
  const port = String(freePort());
  const receiver = Bun.spawn([NODE_OR_BUN, join(folder, "receiver.mjs")], {
    cwd: folder,
    env: { PORT: port, WEBHOOK_SECRET: secret },
    stdout: "pipe",
    stderr: "inherit",
  });
  try {
    const url = `http://127.0.0.1:${port}/`;
    while ((await fetch(url).catch(() => null)) === null) await Bun.sleep(20);
    expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(401);
    expect(await deliver(url)).toBe(200);
  } finally {
    receiver.kill();
  }
  expect(await new Response(receiver.stdout).text()).toContain('{"n":"☃"}');
});

/** What the function of a page says that verifies without a library. */
async function byHand(page: string, key: string, headers: object, body: string): Promise<unknown> {
  const block = jsBlocks(page).find((jsBlock) => jsBlock.includes("function isGenuine"));
  const [path, given] = [join(folder, "by-hand.mjs"), JSON.stringify([key, headers, body])];
  writeFileSync(
    path,
    `${block}\nconst [key, headers, body] = ${given};\nconsole.log(isGenuine(key, headers, Buffer.from(body)));`,
  );
  const { out, error } = await endOf([NODE_OR_BUN, path], { timeoutMs: TIMEOUT_MS });
  return error === "" ? JSON.parse(out) : error;
}

test(
  "without a library, in the new form and in the old one",
  async () => {
    expect(await deliver(sink.url())).toBe(200);
    const [{ headers, body }] = sink.take() as [Received];
    const given = Object.fromEntries(headers as unknown as Iterable<[string, string]>);
    for (const [page, key, signature] of [
      ["docs/guides/receiving.md", secret, "webhook-signature"],
      ["docs/api/relay-signatures.md", String(account.key), "x-svc-signature"],
    ] as const) {
      const text = Buffer.from(body).toString();
      expect(await byHand(page, key, given, text)).toBe(true);
      expect(await byHand(page, key, given, `${text} `)).toBe(false);
      expect(await byHand(page, key, { ...given, [signature]: "v1,forged" }, text)).toBe(false);
    }
  },
  TIMEOUT_MS,
);
