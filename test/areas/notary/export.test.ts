import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EXPORT_BYTES_MAX } from "../../../src/areas/notary/export-page.ts";
import { EXPORT_RECEIPTS_MAX } from "../../../src/areas/notary/schema.ts";
import { ninefold } from "../../cli/run.ts";
import { endpoint } from "../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const EXPORT = "/v1/witness/export";

async function logs(account: AccountClient, count: number, text = ""): Promise<string[]> {
  await account.post("/v1/witness/sys/init");
  const receipts: string[] = [];
  for (let n = 1; n <= count; n += 1)
    receipts.push((await account.post("/v1/witness/log", { log: { n, text } })).text);
  return receipts;
}

describe(`GET ${EXPORT}`, () => {
  const bad = (name: string, query: string) => ({
    name,
    request: ["GET", `${EXPORT}?${query}`] as const,
    status: 400,
    code: "validation_error",
  });
  endpoint(() => server, `GET ${EXPORT}`, [
    {
      name: "nothing without a chain",
      request: ["GET", EXPORT],
      status: 200,
      after: (_, { text, headers }) => {
        expect([text, headers.get("content-type")]).toEqual(["", "application/x-ndjson"]);
      },
    },
    bad("from 0", "from=0"),
    bad("a limit of 0", "limit=0"),
    bad("a limit above the maximum", `limit=${EXPORT_RECEIPTS_MAX + 1}`),
    { name: "no key", as: "nobody", request: ["GET", EXPORT], status: 401, code: "unauthorized" },
  ]);

  test("returns the receipts as they were returned when they were made, page by page", async () => {
    const account = await server.account();
    const given = await logs(account, 7, "é \u2028 \ud83d\ude80");
    expect((await account.get(`${EXPORT}?limit=${EXPORT_RECEIPTS_MAX}`)).text).toBe(
      given.map((one) => `${one}\n`).join(""),
    );
    const found: string[] = [];
    for (let next: string | null = "1"; next !== null; ) {
      const { text, headers } = await account.get(`${EXPORT}?limit=3&from=${next}`);
      found.push(...text.trimEnd().split("\n"));
      next = headers.get("x-next-cursor");
    }
    expect(found).toEqual(given);
    expect((await account.get(`${EXPORT}?from=8`)).text).toBe("");
  });

  test("a page ends before it exceeds its size", async () => {
    const account = await server.account();
    await logs(account, 9, "x".repeat(EXPORT_BYTES_MAX / 8 - 1_000));
    const { text, headers } = await account.get(EXPORT);
    expect(text.length).toBeLessThanOrEqual(EXPORT_BYTES_MAX);
    expect(headers.get("x-next-cursor")).toBe("9");
  });
});

describe("ninefold notary export", () => {
  const out = join(tmpdir(), `ninefold-chain-${crypto.randomUUID()}.jsonl`);
  afterAll(() => rmSync(out, { force: true }));

  test("writes a file that ninefold verify proves to be complete, and detects to be cut", async () => {
    const account = await server.account();
    const given = await logs(account, 12);
    const environment = { NINEFOLD_API_KEY: String(account.key), NINEFOLD_URL: server.url };
    const result = await ninefold(["notary", "export", "--out", out], { environment });
    expect(result).toEqual({ code: 0, out: `written: 12 receipts and a checkpoint to ${out}\n`, error: "" });
    const text = readFileSync(out, "utf8");
    expect(text.split("\n").slice(0, 12)).toEqual(given);
    const valid = await ninefold(["verify", out]);
    expect(valid.code).toBe(0);
    expect(valid.out).toContain("\ncheckpoint: 12 receipts of ninefold/wc_");
    writeFileSync(out, text.split("\n").toSpliced(11, 1).join("\n"));
    expect((await ninefold(["verify", out])).out).toBe(
      "not valid: The chain ends at 11; the checkpoint covers 12.\n",
    );
  });

  test("needs --out, and reports a file that cannot be written", async () => {
    expect((await ninefold(["notary", "export"])).code).toBe(2);
    const account = await server.account();
    await logs(account, 1);
    const environment = { NINEFOLD_API_KEY: String(account.key), NINEFOLD_URL: server.url };
    const refused = await ninefold(["notary", "export", "--out", "/missing/folder/file"], { environment });
    expect(refused.code).toBe(1);
    expect(refused.error).toContain("cannot be written");
  });
});
