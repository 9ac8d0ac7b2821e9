import { afterAll, beforeAll, expect, test } from "bun:test";
import { ARGS, join, PersonBrowser } from "../areas/people/support.ts";
import { type Engine, startEtcd } from "../harness/failover/engines.ts";
import { Cleanup } from "../harness/processes/cleanup.ts";
import { isFollowing, Nodes, operatorOf } from "./nodes.ts";

const TIMEOUT_MS = 120_000;

const cleanup = new Cleanup();
let engine: Engine;
let nodes: Nodes;
beforeAll(async () => {
  engine = await startEtcd(cleanup, 1);
  nodes = new Nodes(engine.url, cleanup);
}, TIMEOUT_MS);
afterAll(async () => {
  await nodes.stopAll();
  await cleanup.run();
}, TIMEOUT_MS);

test(
  "people stay logged in when another node takes over, and log in there",
  async () => {
    const options = { args: ARGS, advertises: true };
    const first = nodes.start("people", nodes.folder(), options);
    const before = await first.server();
    const ann = await join(before, operatorOf(before), { role: "editor" });
    const second = nodes.start("people", nodes.folder(), options);
    await isFollowing(second);
    const challenge = (await ann.post("/v1/session/passkey/options")).body["options"];
    await first.stop();
    const after = await second.server();
    const moved = Object.assign(new PersonBrowser(after), { cookie: ann.cookie });
    const me = await moved.get("/v1/people/me");
    expect([me.status, me.body["person_id"]], me.text).toEqual([200, ann.personId]);
    // A login that was begun at the former leader ends at the new one.
    const credential = ann.authenticator.get(challenge as { challenge: string });
    expect((await moved.post("/v1/session/passkey", { credential })).status).toBe(201);
  },
  TIMEOUT_MS,
);
