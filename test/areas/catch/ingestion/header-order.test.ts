import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { CaughtEvent } from "../../../../src/areas/catch/schema.ts";
import { sendRaw } from "../../../support/raw-http.ts";
import { startTestServer } from "../../../support/server.ts";
import { eventOf, newBucket } from "../support.ts";

test("headers are stored with every value; neither the document nor the guide promises their order", async () => {
  const server = await startTestServer();
  const account = await server.account();
  const { id } = await newBucket(account);
  const answer = await sendRaw(server.url, [
    `POST /v1/in/${id} HTTP/1.1\r\nHost: x\r\nX-Zeta: 1\r\nX-Same: a\r\nX-Alpha: 2\r\nX-Same: b\r\nContent-Length: 2\r\n\r\n{}`,
  ]);
  const event = await eventOf(account, id, String(answer?.body["event_id"]));
  const pairs = event.headers_list.filter(([name]) => name?.startsWith("x-")).sort();
  expect(pairs).toEqual([
    ["x-alpha", "2"],
    ["x-same", "a, b"],
    ["x-zeta", "1"],
  ]);
  await server.stop();
  const promise = /in\s+their\s+order/;
  expect(String(CaughtEvent.properties.headers_list.description)).not.toMatch(promise);
  const guide = readFileSync("docs/api/catch.md", "utf8");
  expect(guide.slice(guide.indexOf("`headers_list`")).slice(0, 120)).not.toMatch(promise);
});
