import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../../package.json" with { type: "json" };
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  const environment = {
    NINEFOLD_SMTP_URL: "smtp://ada:secret-1@mail.example.com:587?x=secret-2",
    NINEFOLD_MASTER_KEY: "5ec4e7".padEnd(64, "0"),
  };
  const args = [
    "--mail-from",
    "ninefold@example.com",
    "--cors-origins",
    "https://a.example,https://b.example",
  ];
  server = await startTestServer({ manualClock: true, args, environment });
});
afterAll(() => server.stop());

describe("GET /v1/admin/status", () => {
  test("returns the state of the server", async () => {
    for (let at = 0; at < 20; at += 1) await server.client(null).get("/v1/ping");
    await server.operator.post("/v1/meter/m/refill", { amount: 1 });
    const { status, body } = await server.operator.get("/v1/admin/status");
    expect(status).toBe(200);
    const positive = expect.any(Number);
    expect(body).toEqual({
      version,
      started_at: new Date(TEST_START_MS).toISOString(),
      data_folder: server.folder,
      database_bytes: statSync(join(server.folder, "ninefold.db")).size,
      wal_bytes: positive,
      disk_free_bytes: positive,
      rss_bytes: positive,
      event_loop_lag_p99_ms: positive,
      requests_per_second: positive,
      requests_in_flight: 1,
      jobs: { waiting: positive, due: 0, running: 0, overdue_seconds: 0 },
      mail: {
        configured: true,
        queued: 0,
        sent: 0,
        failures: 0,
        failing_since: null,
        last_error: null,
      },
      archive: null,
      cluster: null,
      gauges: expect.any(Object),
      counters: expect.any(Object),
    } as never);
    const figures = body as Record<string, number>;
    for (const name of ["wal_bytes", "disk_free_bytes", "rss_bytes", "requests_per_second"])
      expect(figures[name], name).toBeGreaterThan(0);
    expect((body.jobs as { waiting: number }).waiting).toBeGreaterThan(2);
  });

  test("contains the gauges and counters of the metrics, summed over their labels", async () => {
    const { body } = await server.operator.get("/v1/admin/status");
    const [gauges, counters] = [body.gauges, body.counters] as Record<string, number>[];
    expect(gauges?.["ninefold_commit_failing"]).toBe(0);
    expect(gauges).not.toHaveProperty("ninefold_jobs_due");
    // The requests of the test above, over all operations; 20 of them are pings.
    expect(counters?.["ninefold_http_requests_total"]).toBeGreaterThan(20);
    expect(counters?.["ninefold_credits_charged_total"]).toBe(0);
    expect(counters).not.toHaveProperty("ninefold_http_request_duration_seconds");
    const text = (await server.operator.get("/metrics")).text;
    const declared = [...text.matchAll(/^# TYPE (\w+) counter$/gm)].map(([, name = ""]) => name);
    expect(Object.keys(counters ?? {}).sort()).toEqual(declared.sort());
  });

  test("counts due jobs and reports the age of the oldest", async () => {
    const { kernel } = server.server;
    // A job of an unknown kind stays due.
    await kernel.writer.submit((tx) => kernel.scheduler.enqueue(tx, "unknown", "", tx.now - 5_000, {}));
    const { jobs } = (await server.operator.get("/v1/admin/status")).body;
    expect(jobs).toMatchObject({ due: 1, running: 0 });
  });
});

describe("GET /v1/admin/options", () => {
  test("contains every option with its value and source, and no secret", async () => {
    const answer = await server.operator.get("/v1/admin/options");
    const options = answer.body.options as { name: string; value: unknown; source: string }[];
    const of = (name: string) => options.find((option) => option.name === name);
    expect(of("cors_origins")).toEqual({
      name: "cors_origins",
      source: "flag",
      value: ["https://a.example", "https://b.example"],
    });
    expect(of("signup")).toEqual({ name: "signup", value: "closed", source: "default" });
    expect(of("master_key")).toEqual({ name: "master_key", value: "********", source: "variable" });
    expect(of("smtp_url")?.value).toBe("smtp://********@mail.example.com:587?********");
    expect(of("operator_key")?.value).toBeNull();
    expect(of("tiers.free.requests_per_minute")?.value).toBe(60);
    for (const secret of ["secret-1", "secret-2", "5ec4e7", "ada"]) expect(answer.text).not.toContain(secret);
  });
});
