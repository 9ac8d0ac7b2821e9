import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { version } from "../../package.json" with { type: "json" };
import { publicKeyText, signFile, throwAwayKey } from "../../scripts/releases/minisign.ts";
import { FEED_BYTES_MAX } from "../../src/cli/upgrade/upgrade.ts";
import { ninefold } from "./run.ts";

const KEY = throwAwayKey();
const DATE = "2026-11-23T10:00:00Z";
const RELEASE = "https://example.com/releases/v99.0.0";
const NEWER = JSON.stringify({ version: "99.0.0", date: DATE, url: RELEASE });

/** Content of the feed's server, by path. */
const files = new Map<string, string | URL>();
const paths: string[] = [];
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const { pathname } = new URL(request.url);
    paths.push(pathname);
    const file = files.get(pathname);
    if (file instanceof URL) return Response.redirect(file.href, 302);
    return file === undefined ? new Response("none", { status: 404 }) : new Response(file);
  },
});
const feed = `http://127.0.0.1:${server.port}/feed.json`;
afterAll(() => server.stop(true));

const signed = (text: string, key = KEY): string => signFile(Buffer.from(text), "file:feed.json", key);

function publish(text: string, signature = signed(text)): void {
  files.set("/feed.json", text);
  files.set("/feed.json.minisig", signature);
}

function check(...more: readonly string[]) {
  return ninefold(["upgrade", "--check", "--feed", feed, "--public-key", publicKeyText(KEY), ...more]);
}

beforeEach(() => {
  files.clear();
  paths.length = 0;
});

describe("upgrade --check", () => {
  test.each([
    ["the same version", version],
    ["an older one", "0.0.9"],
    ["a preview of this version", `${version}-rc.1`],
  ])("exits with 0 for %s", async (_, newest) => {
    publish(JSON.stringify({ version: newest, date: DATE, url: RELEASE }));
    expect(await check()).toEqual({ code: 0, out: `Version ${version} is up to date\n`, error: "" });
    expect(paths.sort()).toEqual(["/feed.json", "/feed.json.minisig"]);
  });

  test("exits with 2 for a newer version, and prints where to get it", async () => {
    publish(NEWER);
    expect(await check()).toEqual({
      code: 2,
      out: `Version 99.0.0 of ${DATE} is available: ${RELEASE}\n`,
      error: "",
    });
    const json = await check("--json");
    expect([json.code, JSON.parse(json.out)]).toEqual([
      2,
      { version, newest: "99.0.0", date: DATE, url: RELEASE, newer: true },
    ]);
  });

  test("takes feed and key from the environment, and follows redirects", async () => {
    publish(NEWER);
    for (const name of ["feed.json", "feed.json.minisig"]) files.set(`/latest/${name}`, new URL(name, feed));
    const environment = {
      NINEFOLD_UPGRADE_FEED: feed.replace("/feed", "/latest/feed"),
      NINEFOLD_UPGRADE_PUBLIC_KEY: publicKeyText(KEY),
    };
    expect((await ninefold(["upgrade", "--check"], { environment })).code).toBe(2);
  });

  const signature = (line: number, change: (text: string) => string): string =>
    signed(NEWER)
      .split("\n")
      .map((text, index) => (index === line ? change(text) : text))
      .join("\n");
  const flipped = (text: string): string => {
    const bytes = Buffer.from(text, "base64");
    bytes.writeUInt8((bytes.at(-1) ?? 0) ^ 1, bytes.length - 1);
    return bytes.toString("base64");
  };
  test.each([
    ["a feed that was changed", signed(`${NEWER} `), "has an invalid signature"],
    ["another key", signed(NEWER, throwAwayKey()), "is signed with another key"],
    [
      "another key with the same id",
      signed(NEWER, { ...throwAwayKey(), id: KEY.id }),
      "has an invalid signature",
    ],
    ["a signature that was changed", signature(1, flipped), "has an invalid signature"],
    ["a changed trusted comment", signature(2, (text) => `${text}!`), "has an invalid signature"],
    ["a changed signature of it", signature(3, flipped), "has an invalid signature"],
    ["a signature that is cut off", signature(3, () => ""), "has no signature in the format of minisign"],
    [
      "a signature without prehashing",
      signature(1, (text) => `RWQ${text.slice(3)}`),
      "has no signature in the format of minisign",
    ],
    ["no signature", "\n", "has no signature in the format of minisign"],
  ])("exits with 1 for %s", async (_, given, problem) => {
    publish(NEWER, given);
    expect(await check()).toEqual({
      code: 1,
      out: "",
      error: `ninefold: ${feed} ${problem}. Nothing in it is used.\n`,
    });
  });

  test.each(["[]", "null", "{", '{"version":1}', NEWER.replace("99.0.0", "99")])(
    "exits with 1 for a signed file that is no feed: %s",
    async (text) => {
      publish(text);
      expect(await check()).toEqual({
        code: 1,
        out: "",
        error: `ninefold: ${feed} is not a feed of releases.\n`,
      });
    },
  );

  test("reads a feed of the largest size, and nothing larger", async () => {
    publish(NEWER.padEnd(FEED_BYTES_MAX));
    expect((await check()).code).toBe(2);
    publish(NEWER.padEnd(FEED_BYTES_MAX + 1));
    const { code, error } = await check();
    expect(code).toBe(1);
    expect(error).toStartWith(`ninefold: ${feed} could not be loaded: `);
  });

  test("exits with 1 if feed or signature are not there, or the server cannot be reached", async () => {
    files.set("/feed.json", NEWER);
    expect(await check()).toEqual({
      code: 1,
      out: "",
      error: `ninefold: ${feed}.minisig could not be loaded: status 404.\n`,
    });
    const nowhere = "http://127.0.0.1:1/feed.json";
    const { code, error } = await check("--feed", nowhere);
    expect(code).toBe(1);
    expect(error).toStartWith(`ninefold: ${nowhere}`);
    expect(error).toContain(" could not be loaded: ");
  });

  test("without --check it is an invalid command line", async () => {
    const { code, out, error } = await ninefold(["upgrade"]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(error).toContain("ninefold upgrade installs nothing. Add --check to look for a newer version.");
  });

  test.each([
    [
      ["--check", "--feed", "https://example.com"],
      "Set the URL of the feed with --feed or NINEFOLD_UPGRADE_FEED, and its public key with --public-key or NINEFOLD_UPGRADE_PUBLIC_KEY.",
    ],
    [
      ["--check", "--feed", "https://example.com", "--public-key", "RWQ"],
      "The public key is not one of minisign (56 characters that begin with RW, from its .pub file).",
    ],
  ])("exits with 1, which is no newer version, for %p", async (args, message) => {
    expect(await ninefold(["upgrade", ...args])).toEqual({
      code: 1,
      out: "",
      error: `ninefold: ${message}\n`,
    });
    expect(paths).toEqual([]);
  });
});
