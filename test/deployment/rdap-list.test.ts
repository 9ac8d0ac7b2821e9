import { afterAll, afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publicationOf, renewRdapList } from "../../scripts/releases/rdap-list.ts";
import { ROOT } from "../harness/processes/server-process.ts";

const folder = mkdtempSync(join(tmpdir(), "ninefold-rdap-list-"));
const file = join(folder, "dns.json");
let host: ReturnType<typeof Bun.serve>;
/** What the host of the list responds. */
let respond: () => Response;

beforeEach(() => {
  host = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => respond() });
  writeFileSync(file, listOf("2026-02-13T23:00:01Z", 100));
});
afterEach(async () => {
  await host.stop(true);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function listOf(publication: string, suffixes: number): string {
  const names = Array.from({ length: suffixes }, (_, index) => `s${index}`);
  return JSON.stringify({ publication, services: [[names, ["https://rdap.example/"]]] });
}

const renew = () => renewRdapList(file, `http://127.0.0.1:${host.port}/dns.json`);

test("a newer list replaces the old one", async () => {
  const newer = listOf("2026-11-01T00:00:00Z", 90);
  respond = () => new Response(newer);
  expect(await renew()).toBe(
    "The list of RDAP servers is now that of 2026-11-01; it was that of 2026-02-13.",
  );
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(JSON.parse(newer));
  expect(await renew()).toBe("The list of RDAP servers is the newest one, of 2026-11-01.");
});

test.each([
  ["an error", () => new Response("", { status: 503 }), "status 503"],
  ["a page", () => new Response("<html>"), "JSON Parse error"],
  ["a list of something else", () => new Response("{}"), "it has no services"],
  ["a list without a date", () => new Response(listOf("", 100)), "it has no date of publication"],
  ["a list that was cut off", () => new Response(listOf("2026-11-01", 89)), "it has only 89 suffixes"],
])("%s keeps the old one, whose date is said", async (_name, response, why) => {
  const before = readFileSync(file, "utf8");
  respond = response;
  const said = await renew();
  expect(said).toStartWith("The list of RDAP servers stays that of 2026-02-13: http://127.0.0.1:");
  expect(said).toContain(why);
  expect(readFileSync(file, "utf8")).toBe(before);
});

test("without a connection the old one is kept", async () => {
  await host.stop(true);
  expect(await renew()).toContain("The list of RDAP servers stays that of 2026-02-13");
});

test("the built-in list has a date", () => {
  const builtIn = readFileSync(join(ROOT, "src/areas/monitors/registry/iana-dns.json"), "utf8");
  expect(publicationOf(builtIn)).toMatch(/^\d{4}-\d\d-\d\d$/);
});
