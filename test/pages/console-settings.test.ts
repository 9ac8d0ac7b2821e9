import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useConsole } from "./console.ts";

const server = useConsole({ args: ["--allow-private-targets", "127.0.0.0/8"] });
let sink: WebhookSink;
beforeAll(() => {
  sink = new WebhookSink();
});
afterAll(() => sink.stop());

/** Labels of settings on pages and in forms: those with an effect for a resource are shown, and no others. */
interface Shown {
  readonly path: string;
  readonly body: () => object;
  /** Its page, by the fields of the response. */
  readonly page: (created: Record<string, unknown>) => string;
  readonly has: readonly string[];
  readonly lacks: readonly string[];
}

const monitorPage = ({ id }: Record<string, unknown>) => `monitors/${id}`;
const bucketPage = ({ id }: Record<string, unknown>) => `catch/${id}`;
/** Settings of the webhook and the e-mail of a monitor. */
const OWN_ALERTS = ["Webhook and e-mail also report recovery", "Notify on recovery", "Reminder after"];
const CERTIFICATE = "Certificate warning (days before expiry)";

const RESOURCES: readonly (readonly [name: string, Shown])[] = [
  [
    "a monitor of a plain URL with channels",
    {
      path: "/v1/pulse",
      body: () => ({ url: sink.url(), interval: 300_000 }),
      page: monitorPage,
      has: ["Timeout", "Latency", "Interval after a failed check (seconds)"],
      lacks: [
        ...OWN_ALERTS,
        CERTIFICATE,
        "Headers",
        "Notify channels when slow",
        "Ping URL",
        "Grace period (minutes)",
      ],
    },
  ],
  [
    "a monitor with a webhook and a limit of latency",
    {
      path: "/v1/pulse",
      body: () => ({
        url: "https://127.0.0.1:9/",
        interval: 300_000,
        webhook_url: sink.url("/alerts"),
        degraded_ms: 500,
        headers: { "X-Shop": "42" },
      }),
      page: monitorPage,
      has: ["Webhook and e-mail also report recovery", CERTIFICATE, "Headers", "Notify channels when slow"],
      lacks: ["Ping URL"],
    },
  ],
  [
    "a heartbeat",
    {
      path: "/v1/pulse",
      body: () => ({ type: "heartbeat", name: "Backup", period_ms: 3_600_000 }),
      page: monitorPage,
      has: ["Ping URL", "Grace period (minutes)", "Last run"],
      lacks: [...OWN_ALERTS, CERTIFICATE, "Timeout", "Timeout (seconds)", "Latency", "Headers", "Slow above"],
    },
  ],
  [
    "a TCP monitor",
    {
      path: "/v1/pulse",
      body: () => ({ type: "tcp", host: "127.0.0.1", port: 9, interval: 300_000 }),
      page: monitorPage,
      has: ["Timeout", "Expected text"],
      lacks: [...OWN_ALERTS, CERTIFICATE, "Method", "Headers", "Accepted statuses", "JSON path"],
    },
  ],
  [
    "a bucket without a secret whose events are fetched",
    {
      path: "/v1/catch/buckets",
      body: () => ({ delivery: "pull" }),
      page: bucketPage,
      has: ["Retention (hours)"],
      lacks: ["Retry schedule", "Previous secret"],
    },
  ],
  [
    "a bucket with a secret that forwards",
    {
      path: "/v1/catch/buckets",
      body: () => ({ target_url: sink.url(), provider: "github", signing_secret: "a secret of some length" }),
      page: bucketPage,
      has: ["Retry schedule", "Previous secret"],
      lacks: [],
    },
  ],
];

/** Labels of facts, columns, headings and fields, each in its own words. */
const LABELS = `[...document.querySelectorAll("dt, th, h2, label, legend")].map((one) => one.innerText.trim())`;

test.each(RESOURCES)(
  "%s shows the settings that have an effect for it, and no others",
  async (_, { path, body, page: pageOf, has, lacks }) => {
    const created = await server.operator.post(path, body());
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go(pageOf(created.body));
    await page.getByRole("button", { name: "Edit…" }).click();
    await page.getByText("More", { exact: true }).click();
    const labels = () => page.evaluate<string[]>(LABELS);
    await eventually(async () => expect(await labels()).toEqual(expect.arrayContaining([...has])));
    const shown = await labels();
    expect(lacks.filter((label) => shown.includes(label))).toEqual([]);
    await page.getByRole("button", { name: "Cancel" }).click();
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
