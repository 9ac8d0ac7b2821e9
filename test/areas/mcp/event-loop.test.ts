import { expect, test } from "bun:test";
import { BODY_BYTES_MAX } from "../../../src/kernel/http/operation.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../support/processor-time.ts";
import { useTestServer } from "../../support/server.ts";
import { managedKey, messageOf, post } from "./support.ts";

const server = useTestServer({ args: ["--mcp", "--mcp-write"], manualClock: true });

const terms = { target_url: "https://example.com/", method: "POST", delay: "1h" };
const scheduling = (payload: object) =>
  JSON.stringify(messageOf("tools/call", { name: "deliveries_schedule", arguments: { ...terms, payload } }));

test.each([
  ["many values", scheduling({ list: Array.from({ length: 49_000 }, () => ({})) })],
  [
    "many numbers in another form",
    scheduling({ list: Array.from({ length: 49_000 }, () => 1.5) }).replaceAll("1.5", "1.50"),
  ],
  ["a long text", scheduling({ text: "x".repeat(BODY_BYTES_MAX - 1_000) })],
  ["a text with escapes", scheduling({ text: '\\"\u0001'.repeat(60_000) })],
])("%s: no call holds the event loop", async (_, body) => {
  const key = await managedKey(await server.account(), ["*"]);
  const headers = { "mcp-method": "tools/call", "mcp-name": "deliveries_schedule" };
  const turn = () =>
    longestTurnMs(async () => {
      expect((await post(server, key, body, headers)).status).toBe(200);
    });
  expect(await leastMs(TURN_MS_MAX, turn)).toBeLessThanOrEqual(TURN_MS_MAX);
});
