import { expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { useTestServer } from "../support/server.ts";

const server = useTestServer({ debugLog: true });

test("each request is one debug line, without its path, its key or its body", async () => {
  const account = await server.account();
  const heartbeat = await account.post("/v1/pulse", { type: "heartbeat" });
  const pingUrl = new URL(String(heartbeat.body["ping_url"]));
  server.logs.length = 0;
  await account.post("/v1/meter/a-meter/refill", { amount: 5 });
  await server.client(null).get(pingUrl.pathname);
  await server.client(null).get("/v1/keys");
  await server.client("wrong").get("/nowhere");
  const lines = server.logs.filter(({ message }) => message === "request").map(({ fields }) => fields);
  expect(lines).toMatchObject([
    {
      request_id: expect.any(String),
      ms: expect.any(Number),
      bytes: expect.any(Number),
      method: "POST",
      route: "/v1/meter/:meterId/refill",
      operation: "meter.refill",
      status: 200,
      key: expect.stringMatching(/^platform:\d+$/),
    },
    expect.objectContaining({
      method: "GET",
      route: expect.stringContaining(":"),
      status: 200,
      key: undefined,
    }),
    expect.objectContaining({ route: "/v1/keys", status: 401, key: undefined }),
    expect.objectContaining({ route: null, operation: "none", status: 404, key: undefined }),
  ]);
  const text = JSON.stringify(server.logs);
  for (const secret of [account.key, pingUrl.pathname.split("/").at(-1) ?? "", "a-meter"]) {
    expect(text).not.toContain(secret);
  }
});

test("start and stop are logged with the changed settings", async () => {
  await server.restart();
  await eventually(() => {
    const infos = server.logs.filter(({ level }) => level === "info");
    expect(infos.map(({ message }) => message)).toEqual(["server stopped", "server started"]);
    expect(infos[1]?.fields).toMatchObject({
      url: server.url,
      data: server.folder,
      port: 0,
      durability: "normal",
    });
  });
});
