import { expect, setDefaultTimeout, test } from "bun:test";
import { importQstash } from "../../../../src/configuration/import/webhooks/qstash.ts";
import { type Imported, losses, useImports } from "../support.ts";

/** Busy machines take longer. */
setDefaultTimeout(60_000);

const imports = useImports();

type Sections = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, unknown>>>>>>;

const run = (value: unknown): Imported => imports.run((draft) => importQstash(draft, value));
const sections = ({ text }: Imported) => Bun.YAML.parse(text) as Sections;

/** A schedule as the API lists it. */
function schedule(id: string, members: Readonly<Record<string, unknown>> = {}) {
  return {
    createdAt: 1_735_689_600_000,
    scheduleId: id,
    cron: "0 9 * * *",
    destination: "https://example.com/jobs",
    method: "POST",
    header: { "Content-Type": ["application/json"] },
    retries: 3,
    delay: 0,
    isPaused: false,
    callerIP: "192.0.2.7",
    lastScheduleTime: 1_735_722_000_000,
    nextScheduleTime: 1_735_808_400_000,
    lastScheduleStates: { msg_1: "SUCCESS" },
    ...members,
  };
}

test("schedules with their time zone, headers, body, retries and callbacks", async () => {
  const imported = run([
    schedule("scd_report", {
      cron: "CRON_TZ=Europe/Berlin 0 9 * * MON-FRI",
      header: {
        "Content-Type": ["application/json"],
        "X-Source": ["billing"],
        Authorization: ["Bearer t0ken"],
      },
      bodyBase64: Buffer.from('{"report": "daily"}').toString("base64"),
      retries: 5,
      callback: "https://example.com/done?key=k3y",
      failureCallback: "https://example.com/failed",
    }),
    schedule("scd_paused", { isPaused: true, retries: 0, method: "GET", body: '{"a": 1}' }),
  ]);
  expect(sections(imported)["schedules"]).toEqual({
    scd_report: {
      cron: "0 9 * * MON-FRI",
      time_zone: "Europe/Berlin",
      target_url: "https://example.com/jobs",
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "X-Source": "billing",
        Authorization: { env: "SCHEDULES_SCD_REPORT_AUTHORIZATION" },
      },
      // As QStash documents its delays.
      retry_schedule: ["12s", "148s", "1808s", "22026s", "24h"],
      callback_url: { env: "SCHEDULES_SCD_REPORT_CALLBACK_URL" },
      failure_callback_url: { env: "SCHEDULES_SCD_REPORT_FAILURE_CALLBACK_URL" },
      payload: { report: "daily" },
    },
    scd_paused: {
      cron: "0 9 * * *",
      target_url: "https://example.com/jobs",
      method: "GET",
      headers: { "Content-Type": "application/json" },
      retry_schedule: [],
      payload: { a: 1 },
      state: "paused",
    },
  });
  expect(losses(imported)).toEqual([
    "schedule scd_report: callbacks are sent once, with the outcome, and have another body: see the guide",
  ]);
  expect(imported.text + imported.notes.join()).not.toMatch(/t0ken|k3y/);
  const [before, after] = await imports.apply(imported.text);
  expect(before).toHaveLength(2);
  expect(after).toEqual([]);
});

test("URL groups become endpoints of one type, and a schedule to a group sends messages of it", async () => {
  const imported = run({
    url_groups: [
      {
        createdAt: 1_735_689_600_000,
        updatedAt: 1_735_689_600_000,
        name: "orders",
        endpoints: [
          { name: "billing", url: "https://billing.example.com/" },
          { url: "https://stock.example.com/" },
        ],
      },
    ],
    schedules: [schedule("scd_nightly", { destination: "orders", body: '{"nightly": true}' })],
  });
  const { endpoints, schedules } = sections(imported);
  expect(endpoints?.["orders billing"]).toMatchObject({
    url: "https://billing.example.com/",
    event_types: ["orders"],
  });
  expect(endpoints?.["orders 2"]).toMatchObject({
    url: "https://stock.example.com/",
    event_types: ["orders"],
  });
  expect(schedules?.["scd_nightly"]).toEqual({
    cron: "0 9 * * *",
    event_type: "orders",
    payload: { nightly: true },
  });
  expect(losses(imported)).toEqual([
    "URL group orders: name is the event_type of messages: send them in place of publishing to the group",
  ]);
  const [, after] = await imports.apply(imported.text);
  expect(after).toEqual([]);
});

test("what a schedule cannot have", () => {
  const imported = run([
    schedule("scd_text", { body: "plain text", delay: 60, label: "a", labels: ["a"] }),
    schedule("scd_flow", {
      flowControlKey: "k",
      parallelism: 3,
      queueName: "q",
      retryDelayExpression: "1000 * retried",
    }),
    schedule("scd_many", { retries: 25, method: "HEAD" }),
    schedule("scd_seconds", { cron: "* * * * * *" }),
  ]);
  const { schedules } = sections(imported);
  expect(schedules?.["scd_text"]).toMatchObject({ state: "paused" });
  expect(Object.keys(schedules ?? {})).toEqual(["scd_text", "scd_flow", "scd_many"]);
  expect(losses(imported)).toEqual([
    "schedule scd_seconds: cron: * * * * * * is no cron expression of five fields",
    "schedule scd_text: body: is no JSON object: not carried over",
    "schedule scd_text: delay: not carried over: each run is sent at its time",
    "schedule scd_text: label: not carried over",
    "schedule scd_text: labels: not carried over",
    "schedule scd_flow: flow control: not carried over: send to an endpoint, which has max_per_second and max_concurrency",
    "schedule scd_flow: retryDelayExpression: not carried over: the usual delays are, in retry_schedule",
    "schedule scd_many: method: HEAD is not supported: POST is sent",
    "schedule scd_text: state is paused, since its runs would have another body",
    "schedule scd_many: retries lowered to 10 retries",
  ]);
});

test.each([
  [7, "The schedules of QStash must be a list, as the API returns them."],
  [[7], "schedule must be an object."],
  [{ url_groups: [{ name: 7 }] }, "URL group: name must be a text."],
])("%j is rejected", (value, message) => {
  expect(() => run(value)).toThrow(message);
});
