import { afterEach, expect, test } from "bun:test";
import { OutboundClient } from "../../../src/kernel/outbound/client.ts";
import { failureOf, get, LOOPBACK, Opened, textOf } from "./support.ts";

const opened = new Opened();
afterEach(() => opened.close());

/** A target, and a client whose requests this gate permits. */
function behind(pass: () => Promise<void> | undefined) {
  const requests: string[] = [];
  const target = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => {
      requests.push(new URL(url).pathname);
      return new Response("ok");
    },
  });
  opened.add({ stop: () => target.stop(true) });
  const client = new OutboundClient(LOOPBACK, {}, {}, { pass });
  opened.add({ stop: () => client.close() });
  return { client, requests, url: target.url.href };
}

test("a request leaves when the gate lets it pass", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const passed = Promise.withResolvers<void>();
  const { client, requests, url } = behind(() => {
    passed.resolve();
    return promise;
  });
  const sent = client.send(get(`${url}webhook`));
  await passed.promise;
  expect(requests).toEqual([]);
  resolve();
  expect(textOf(await sent)).toBe("ok");
  expect(requests).toEqual(["/webhook"]);
});

test("what the gate rejects is not sent, and says nothing about the target", async () => {
  let isOpen = true;
  const { client, requests, url } = behind(() => {
    if (!isOpen) throw new Error("deposed");
    return undefined;
  });
  expect(textOf(await client.send(get(`${url}first`)))).toBe("ok");
  isOpen = false;
  // Also over the connection that the first one left open.
  expect(failureOf(await client.send(get(`${url}second`)))).toBe("local");
  expect(failureOf(await client.send(get(`${url}third`, { reuseConnection: false })))).toBe("local");
  expect(requests).toEqual(["/first"]);
});

test("what the gate rejects later, or not before the end of a request's time, is not sent either", async () => {
  const later = behind(() => Promise.reject(new Error("deposed")));
  expect(failureOf(await later.client.send(get(later.url)))).toBe("local");
  const never = behind(() => new Promise(() => undefined));
  expect(failureOf(await never.client.send(get(never.url, { timeoutMs: 200 })))).toBe("local");
  expect([...later.requests, ...never.requests]).toEqual([]);
});
