import { describe, expect, test } from "bun:test";
import {
  type ChannelMessage,
  headingOf,
  redactedUrl,
  requestOf,
  shortened,
  TEXT_MAX,
} from "../../../src/areas/alerts/channel-kinds.ts";
import { clockText, durationText } from "../../../src/kernel/time/readable.ts";

const told = (text: string, title = "Shop", link: string | null = null): ChannelMessage => {
  const event = "monitor.down";
  const nothing = { detail: null, url: null, incidentLink: null, actionLink: null, facts: {} };
  return { event, heading: headingOf(event, title), text, link, ...nothing };
};
const bodyOf = ({ body }: { body: string }) => JSON.parse(body);
const URL_GIVEN = { url: "https://example.com/x", token: "t", chat_id: "1" };

describe("a text", () => {
  test(`of ${TEXT_MAX} is sent completely, a longer one is cut at a whole character`, () => {
    expect(shortened("x".repeat(TEXT_MAX))).toBe("x".repeat(TEXT_MAX));
    expect(shortened("x".repeat(TEXT_MAX + 1))).toBe(`${"x".repeat(TEXT_MAX - 1)}…`);
    const cut = shortened("😀".repeat(TEXT_MAX));
    expect([cut.length, cut.isWellFormed()]).toEqual([TEXT_MAX, true]);
  });

  test("is within the limit of each provider, with the longest name and link, in any script", () => {
    const link = `https://${"a".repeat(200)}.example/dashboard/#/monitors/${crypto.randomUUID()}`;
    for (const letter of ["x", "ж", "界", "😀"]) {
      const longest = told(shortened(letter.repeat(TEXT_MAX + 1)), letter.repeat(100), link);
      expect(bodyOf(requestOf("discord", URL_GIVEN, longest)).content.length).toBeLessThanOrEqual(2_000);
      expect(bodyOf(requestOf("telegram", URL_GIVEN, longest)).text.length).toBeLessThanOrEqual(4_096);
      expect(Buffer.byteLength(requestOf("ntfy", URL_GIVEN, longest).body)).toBeLessThanOrEqual(4_096);
    }
  });

  test("has no mentions and no markup for Slack", () => {
    const { text } = bodyOf(requestOf("slack", URL_GIVEN, told("<!channel> & <https://evil.example|x>")));
    expect(text).toBe("[DOWN] Shop\n&lt;!channel&gt; &amp; &lt;https://evil.example|x&gt;");
  });
});

describe("a title for ntfy", () => {
  const titleOf = (title: string) => requestOf("ntfy", URL_GIVEN, told("x", title)).headers["Title"] ?? "";

  test("of ASCII is sent unchanged", () => {
    expect(titleOf("Shop 1")).toBe("[DOWN] Shop 1");
  });

  test("of other characters is sent as complete encoded words of at most 75 characters", () => {
    for (const title of ["Café", "界".repeat(100), "😀".repeat(100), `a${"é".repeat(99)}`]) {
      const words = titleOf(title).split(" ");
      expect(words.every((word) => word.length <= 75 && /^=\?UTF-8\?B\?[A-Za-z0-9+/=]+\?=$/.test(word))).toBe(
        true,
      );
      const parts = words.map((word) => Buffer.from(word.slice(10, -2), "base64").toString());
      // Decoders put a word's bytes together by themselves.
      expect(parts.some((part) => part.includes("\ufffd"))).toBe(false);
      expect(parts.join("")).toBe(`[DOWN] ${title}`);
    }
  });
});

test("a self-hosted server with a path gets requests below it", () => {
  const url = (kind: "telegram" | "gotify", base?: string) =>
    requestOf(kind, { token: "1:a", chat_id: "1", ...(base === undefined ? {} : { url: base }) }, told("x"))
      .url;
  expect(url("telegram")).toBe("https://api.telegram.org/bot1:a/sendMessage");
  expect(url("telegram", "https://bots.example/api/")).toBe("https://bots.example/api/bot1:a/sendMessage");
  expect(url("gotify", "https://gotify.example")).toBe("https://gotify.example/message");
  expect(url("gotify", "https://home.example/gotify/")).toBe("https://home.example/gotify/message");
  expect(redactedUrl("https://ntfy.example:8443/topic?auth=x")).toBe("https://ntfy.example:8443/[secret]");
});

test("durations are written in words", () => {
  const at = Date.UTC(2026, 2, 10, 12, 1, 59);
  expect(clockText(at, at + 1_000)).toBe("12:01 UTC");
  expect(clockText(at, at + 1_000, "Europe/Berlin")).toBe("13:01 Europe/Berlin");
  expect(clockText(at, at + 1_000, "Asia/Kathmandu")).toBe("17:46 Asia/Kathmandu");
  expect(clockText(at, at + 43_200_000, "Asia/Tokyo")).toBe("2026-03-10 21:01 Asia/Tokyo");
  expect(clockText(at, at + 86_400_000)).toBe("2026-03-10 12:01 UTC");
  const durations: [ms: number, text: string][] = [
    ...([
      [0, "0 s"],
      [59_000, "59 s"],
      [60_000, "1 min"],
      [7_140_000, "119 min"],
    ] as [number, string][]),
    ...([
      [7_200_000, "2 h"],
      [172_000_000, "48 h"],
      [172_800_000, "2 days"],
    ] as [number, string][]),
  ];
  for (const [ms, text] of durations) expect(durationText(ms)).toBe(text);
});
