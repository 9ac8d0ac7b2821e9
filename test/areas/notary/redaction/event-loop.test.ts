import { describe, expect, test } from "bun:test";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import { useTestServer } from "../../../support/server.ts";

const server = useTestServer({ manualClock: true });

describe("the event loop", () => {
  const largest = [
    [
      "as many members as a log can have",
      Object.fromEntries(Array.from({ length: 45_000 }, (_, at) => [`n${at}`, 0])),
    ],
    [
      "as many members as a log can have, written in another form than the server's",
      `{${Array.from({ length: 49_900 }, (_, at) => `"n${at}": ${at}.0`).join(",")}}`,
    ],
    ["as many bytes as a log can have", { text: "a".repeat(1024 * 1024 - 1_000) }],
  ] as const;
  test.each(largest)(
    "%s do not block it, with salt, verified, and when they are redacted",
    async (_, log) => {
      const account = await server.account({ balance: 10_000 });
      await account.post("/v1/witness/sys/init");
      const body = `{"log":${typeof log === "string" ? log : JSON.stringify(log)},"salt":true}`;
      const turnOf = (path: string, text: string) =>
        longestTurnMs(async () => {
          const headers = { authorization: `Bearer ${account.key}` };
          const request = new Request(server.url + path, { method: "POST", headers, body: text });
          const response = await server.server.app.http.handle(request);
          await response.arrayBuffer();
          expect(response.status).toBe(200);
        });
      /** The chain's last receipt: a log and a redaction add one each. */
      let last = 0;
      const logging = (): Promise<number> => {
        last += 1;
        return turnOf("/v1/witness/log", body);
      };
      const redacting = async (): Promise<number> => {
        await logging();
        const turn = await turnOf(`/v1/witness/receipts/${last}/redact`, JSON.stringify({ reason: "test" }));
        last += 1;
        return turn;
      };
      expect(await leastMs(TURN_MS_MAX, logging)).toBeLessThanOrEqual(TURN_MS_MAX);
      const [, sent = ""] = /^\{"log":(.*),"salt":true\}$/s.exec(body) ?? [];
      const receipt = (await account.get("/v1/witness/receipts/1")).body;
      const verified = `{"receipt":${JSON.stringify({ ...receipt, log: undefined })},"log":${sent}}`;
      expect(await leastMs(TURN_MS_MAX, () => turnOf("/v1/witness/verify", verified))).toBeLessThanOrEqual(
        TURN_MS_MAX,
      );
      expect(await leastMs(TURN_MS_MAX, redacting)).toBeLessThanOrEqual(TURN_MS_MAX);
    },
  );
});
