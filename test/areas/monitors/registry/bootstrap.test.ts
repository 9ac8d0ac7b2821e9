import { expect, test } from "bun:test";
import {
  BOOTSTRAP_BYTES_MAX,
  readBootstrap,
  SUFFIXES_MAX,
  serverFor,
} from "../../../../src/areas/monitors/registry/bootstrap.ts";
import { expiryIn, RESPONSE_BYTES_MAX } from "../../../../src/areas/monitors/registry/rdap.ts";
import { leastMs, processorMs, TURN_MS_MAX } from "../../../support/processor-time.ts";

/** A file with these services. */
const file = (...services: unknown[]) => JSON.stringify({ services });

/** As many of a text as fit between two others. */
function filled(before: string, part: (index: number) => string, after: string, bytesMax: number): string {
  const parts: string[] = [];
  let bytes = before.length + after.length;
  for (let index = 0; ; index += 1) {
    const text = part(index);
    bytes += text.length + 1;
    if (bytes > bytesMax) return before + parts.join(",") + after;
    parts.push(text);
  }
}

test("the longest suffix of a name decides, and HTTPS comes first", () => {
  const servers = readBootstrap(
    file(
      [
        ["com", "NET"],
        ["http://a.example/rdap", "https://a.example/rdap"],
      ],
      [["co.net"], ["https://b.example/"]],
      [["org"], ["ftp://c.example/"]],
    ),
  );
  expect(serverFor(servers, "example.com")).toBe("https://a.example/rdap/");
  expect(serverFor(servers, "example.net")).toBe("https://a.example/rdap/");
  expect(serverFor(servers, "example.co.net")).toBe("https://b.example/");
  expect(serverFor(servers, "example.org")).toBe(null);
});

test("what is no list is rejected", () => {
  expect(() => readBootstrap("<html>")).toThrow();
  expect(() => readBootstrap("[]")).toThrow("it has no services");
  expect(() => readBootstrap("null")).toThrow("it has no services");
});

test("a list has at most 256 KiB and 15,000 suffixes", () => {
  const list = file([["com"], ["https://a.example/"]]);
  expect(readBootstrap(list.padEnd(BOOTSTRAP_BYTES_MAX)).size).toBe(1);
  expect(() => readBootstrap(list.padEnd(BOOTSTRAP_BYTES_MAX + 1))).toThrow("more than 256 KiB");
  const suffixes = Array.from({ length: SUFFIXES_MAX + 1 }, (_, index) => `s${index}`);
  expect(readBootstrap(file([suffixes.slice(1), ["https://a.example/"]])).size).toBe(SUFFIXES_MAX);
  expect(() => readBootstrap(file([suffixes, ["https://a.example/"]]))).toThrow("more than 15000 suffixes");
});

const MAX = BOOTSTRAP_BYTES_MAX;
test.each([
  ["suffixes", filled('{"services":[[[', (index) => `"${index}"`, '],["http://a"]]]}', MAX)],
  ["URLs", filled('{"services":[[["com"],[', () => '"http:"', "]]]}", MAX)],
  ["services", filled('{"services":[', () => '[["a"],["http://a"]]', "]}", MAX)],
  ["services without a server", filled('{"services":[', () => "0", "]}", MAX)],
])("a list of 256 KiB of %s holds the event loop for less than a turn", async (_name, text) => {
  const read = () => {
    try {
      readBootstrap(text);
    } catch {
      // It has too many suffixes, which is found by then.
    }
  };
  expect(await leastMs(TURN_MS_MAX, () => processorMs(read))).toBeLessThan(TURN_MS_MAX);
});

const DOMAIN = '{"objectClassName":"domain","ldhName":"example.com","events":[';
test.each([
  ["events", filled(DOMAIN, () => '{"eventAction":"expiration","eventDate":"x"}', "]}", RESPONSE_BYTES_MAX)],
  ["small values", filled(DOMAIN, () => "0", "]}", RESPONSE_BYTES_MAX)],
  ["objects", filled(DOMAIN, (index) => `{"${index}":{}}`, "]}", RESPONSE_BYTES_MAX)],
])("an RDAP response of 256 KiB of %s holds the event loop for less than a turn", async (_name, text) => {
  const read = () => expiryIn(200, text, "example.com");
  expect(read()).toEqual({ problem: "the registry publishes no expiry" });
  expect(await leastMs(TURN_MS_MAX, () => processorMs(read))).toBeLessThan(TURN_MS_MAX);
});
