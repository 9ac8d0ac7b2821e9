import { afterAll, describe, expect, test } from "bun:test";
import { ninefold } from "./run.ts";

const asked: { path: string; key: string | null }[] = [];
let status = 200;
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: async (request) => {
    asked.push({ path: new URL(request.url).pathname, key: request.headers.get("authorization") });
    if (status === 0) await Bun.sleep(5_000);
    return Response.json({ status }, { status });
  },
});
const url = `http://127.0.0.1:${server.port}`;
afterAll(() => server.stop(true));

describe("healthcheck", () => {
  test("exits with 0 if /readyz is ready, without a key", async () => {
    status = 200;
    expect(await ninefold(["healthcheck", "--url", url])).toEqual({ code: 0, out: "ready\n", error: "" });
    expect(asked.splice(0)).toEqual([{ path: "/readyz", key: null }]);
  });

  test("--live requests /healthz", async () => {
    status = 200;
    expect(await ninefold(["healthcheck", "--live", "--url", url])).toEqual({
      code: 0,
      out: "alive\n",
      error: "",
    });
    expect(asked.splice(0)).toEqual([{ path: "/healthz", key: null }]);
  });

  test.each([503, 404, 401, 500, 204, 307])("exits with 1 for the status %d", async (given) => {
    status = given;
    expect(await ninefold(["healthcheck"], { environment: { NINEFOLD_URL: url } })).toEqual({
      code: 1,
      out: "",
      error: `ninefold: ${url} returned ${given} at /readyz.\n`,
    });
    expect(asked.splice(0)).toHaveLength(1);
  });

  test("exits with 1 after the timeout", async () => {
    status = 0;
    expect(await ninefold(["healthcheck", "--url", url, "--timeout", "1"])).toEqual({
      code: 1,
      out: "",
      error: `ninefold: ${url} did not respond within 1 s.\n`,
    });
    asked.splice(0);
  });

  test("checks the server that the environment configures without a URL", async () => {
    status = 200;
    const environment = { NINEFOLD_PORT: String(server.port), NINEFOLD_HOST: "0.0.0.0" };
    expect(await ninefold(["healthcheck"], { environment })).toEqual({ code: 0, out: "ready\n", error: "" });
    expect(asked.splice(0)).toHaveLength(1);
  });

  test("ignores proxies of the environment", async () => {
    status = 200;
    const environment = { HTTP_PROXY: "http://127.0.0.1:1", http_proxy: "http://127.0.0.1:1" };
    expect((await ninefold(["healthcheck", "--url", url], { environment })).code).toBe(0);
    asked.splice(0);
  });
});
