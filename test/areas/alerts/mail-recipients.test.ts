import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import type { MailServer } from "../../support/mail-server.ts";
import { startMailing } from "../../support/mailing-server.ts";
import type { TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";
import { ARGS, PersonBrowser } from "../people/support.ts";

const CHANNELS = "/v1/pulse/channels";
const MINUTE = 60_000;

let server: TestServer;
let site: WebhookSink;
let mail: MailServer;
let owner: Client;
beforeEach(async () => {
  site = new WebhookSink();
  ({ server, mail } = await startMailing(ARGS));
  owner = await server.account({ tier: "pro", email: "owner@example.com" });
});
afterEach(async () => {
  await server.stop();
  await mail.stop();
  site.stop();
});

/** Invites a person; returns their id. */
async function invited(email: string, terms: object = { role: "responder" }): Promise<string> {
  const answer = await owner.post("/v1/people", { email, ...terms });
  expect(answer.status, answer.text).toBe(201);
  await server.clock.advance(1_000);
  return String(answer.body["person_id"]);
}

/** Accepts the invitation that a person was mailed last. */
async function accept(email: string): Promise<void> {
  const letter = mail.received.findLast(({ to }) => to.includes(email))?.raw ?? "";
  const [url = ""] = /https:\S+#\/invitation\/[\w-]+/.exec(letter) ?? [];
  await new PersonBrowser(server).accept(url);
}

async function joined(email: string, terms?: object): Promise<string> {
  const id = await invited(email, terms);
  await accept(email);
  return id;
}

const create = (to: readonly string[], client = owner) =>
  client.post(CHANNELS, { name: "Team", kind: "email", config: { to } });

/** The recipients of an outage and its recovery, each with their number of messages. */
async function notified(): Promise<Record<string, number>> {
  mail.received.length = 0;
  site.answers(503);
  await server.clock.advance(MINUTE);
  site.answers(200);
  await server.clock.advance(MINUTE);
  const counts: Record<string, number> = {};
  for (const { to } of mail.received) for (const address of to) counts[address] = (counts[address] ?? 0) + 1;
  return counts;
}

test("a channel notifies people of its account, each once, until they are disabled or deleted", async () => {
  const ann = await joined("Ann@example.com");
  const bob = await joined("bob@example.com");
  const created = await create([
    "ann@example.com",
    "Ann@example.com",
    "bob@example.com",
    "owner@example.com",
  ]);
  expect(created.status, created.text).toBe(201);
  await owner.post("/v1/pulse", { url: site.url("/health"), interval: MINUTE, name: "Shop" });
  await server.clock.advance(5_000);
  expect(await notified()).toEqual({ "ann@example.com": 2, "bob@example.com": 2, "owner@example.com": 2 });
  await owner.patch(`/v1/people/${ann}`, { disabled: true });
  expect(await notified()).toEqual({ "bob@example.com": 2, "owner@example.com": 2 });
  await owner.patch(`/v1/people/${ann}`, { disabled: false });
  await owner.delete(`/v1/people/${bob}`);
  // More changes within half an hour would be flapping.
  await server.clock.advance(30 * MINUTE);
  expect(await notified()).toEqual({ "ann@example.com": 2, "owner@example.com": 2 });
});

test("the account is notified if nobody is left, and a test goes to those who are", async () => {
  const ann = await joined("ann@example.com");
  const { body } = await create(["ann@example.com"]);
  await owner.post("/v1/pulse", { url: site.url("/health"), interval: MINUTE, name: "Shop" });
  await server.clock.advance(5_000);
  expect(await notified()).toEqual({ "ann@example.com": 2 });
  mail.received.length = 0;
  expect((await owner.post(`${CHANNELS}/${body["id"]}/test`)).body).toMatchObject({ status: "sent" });
  expect(mail.received.map(({ to }) => to)).toEqual([["ann@example.com"]]);
  await owner.delete(`/v1/people/${ann}`);
  expect(await notified()).toEqual({ "owner@example.com": 2 });
});

test("only people who have logged in, are not disabled and have a role in the project can be named", async () => {
  await invited("new@example.com");
  const off = await joined("off@example.com");
  await owner.patch(`/v1/people/${off}`, { disabled: true });
  const { body: project } = await owner.post("/v1/projects", { name: "Other", slug: "other" });
  const projects = [{ project_id: project["id"], role: "viewer" }];
  await joined("other@example.com", { role: null, projects });
  const stranger = await server.account({ tier: "pro", email: "stranger@example.com" });
  for (const email of ["new", "off", "other", "stranger", "nobody"].map((name) => `${name}@example.com`)) {
    const { error } = expectError(await create(["owner@example.com", email]), "validation_error");
    expect(error.message).toContain("config.to");
  }
  expect((await create(["stranger@example.com"], stranger)).status).toBe(201);
  await accept("new@example.com");
  expect((await create(["new@example.com"])).status).toBe(201);
  const inProject = { headers: { "X-Ninefold-Project": String(project["id"]) } };
  const channel = { name: "Other", kind: "email", config: { to: ["other@example.com"] } };
  expect((await owner.post(CHANNELS, channel, inProject)).status).toBe(201);
});

test("a channel of the operator uses any address, but not of a person who is disabled", async () => {
  const { operator } = server;
  const answer = await operator.post("/v1/people", { email: "ann@example.com", role: "responder" });
  expect(answer.status, answer.text).toBe(201);
  await server.clock.advance(1_000);
  await accept("ann@example.com");
  expect((await create(["ann@example.com", "anyone@example.com"], operator)).status).toBe(201);
  await operator.post("/v1/pulse", { url: site.url("/health"), interval: MINUTE, name: "Shop" });
  await server.clock.advance(5_000);
  expect(await notified()).toEqual({ "ann@example.com": 2, "anyone@example.com": 2 });
  await operator.patch(`/v1/people/${answer.body["person_id"]}`, { disabled: true });
  expect(await notified()).toEqual({ "anyone@example.com": 2 });
});

test("people who leave while a step or a message of quiet hours waits for them get neither", async () => {
  const [ann, bob] = [await joined("ann@example.com"), await joined("bob@example.com")];
  const mailTo = { kind: "email", config: { to: ["ann@example.com", "bob@example.com"] } };
  const step = await owner.post(CHANNELS, { name: "Step", ...mailTo, default: false });
  const at = new Date(server.clock.now()).getUTCHours();
  const hour = (more: number) => `${String((at + more) % 24).padStart(2, "0")}:00`;
  const quiet_hours = { from: hour(0), to: hour(2), time_zone: "UTC" };
  expect((await owner.post(CHANNELS, { name: "Night", ...mailTo, quiet_hours })).status).toBe(201);
  const escalate = [{ after_ms: 30 * MINUTE, channel_ids: [step.body["id"]] }];
  const first = { name: "First", kind: "email", config: { to: ["bob@example.com"] }, escalate };
  expect((await owner.post(CHANNELS, first)).status).toBe(201);
  await owner.post("/v1/pulse", { url: site.url("/health"), interval: MINUTE, name: "Shop" });
  await server.clock.advance(5_000);
  site.answers(503);
  mail.received.length = 0;
  const recipients = () => mail.received.splice(0).map(({ to }) => String(to));
  await server.clock.advance(2 * MINUTE);
  expect(recipients()).toEqual(["bob@example.com"]);
  await owner.delete(`/v1/people/${ann}`);
  await server.clock.advance(30 * MINUTE);
  expect(recipients()).toEqual(["bob@example.com"]);
  await owner.patch(`/v1/people/${bob}`, { disabled: true });
  await server.clock.advance(120 * MINUTE);
  // Nobody of the channel is left: the account is told what it missed.
  expect(recipients()).toEqual(["owner@example.com"]);
});

test("people who leave while the mail server does not accept their e-mail do not get it", async () => {
  const [ann, bob] = [await joined("ann@example.com"), await joined("bob@example.com")];
  expect((await create(["ann@example.com", "bob@example.com"])).status).toBe(201);
  await owner.post("/v1/pulse", { url: site.url("/health"), interval: MINUTE, name: "Shop" });
  await server.clock.advance(5_000);
  const recipients = () => mail.received.splice(0).map(({ to }) => String(to));
  recipients();
  mail.refuseWith = 451;
  site.answers(503);
  await server.clock.advance(2 * MINUTE);
  await owner.delete(`/v1/people/${ann}`);
  mail.refuseWith = null;
  await server.clock.advance(60 * MINUTE);
  expect(recipients()).toEqual(["bob@example.com"]);
  const { body } = await owner.get(CHANNELS);
  expect(JSON.stringify(body)).toContain("may not receive alerts of the project any more");
  // Nobody is left: the account gets it.
  mail.refuseWith = 451;
  site.answers(200);
  await server.clock.advance(2 * MINUTE);
  await owner.patch(`/v1/people/${bob}`, { disabled: true });
  mail.refuseWith = null;
  await server.clock.advance(60 * MINUTE);
  expect(recipients()).toEqual(["owner@example.com"]);
});
