import { expect, test } from "bun:test";
import { useTestServer } from "../../../support/server.ts";

const MINUTE = 60_000;

const server = useTestServer({ manualClock: true });

test("a list of many monitors is read in parts: to its end when it changes meanwhile, and then again", async () => {
  const account = await server.account();
  const { body } = await account.post("/v1/pulse/probes", { name: "fra" });
  const probe = server.client(String(body["token"]));
  const work = async (query: string) => (await probe.get(`/v1/probe/work?wait_ms=0${query}`)).body;
  const ids: string[] = [];
  const add = async () => {
    const settings = { url: "https://10.9.8.7/", interval: MINUTE, timeout: 1_000, probes: ["fra"] };
    ids.push(String((await account.post("/v1/pulse", settings)).body["id"]));
  };
  for (let made = 0; made < 100; made += 1) await add();
  // The last part is complete, however full it is.
  const whole = await work("");
  expect(whole).toMatchObject({ reset: true, complete: true });
  expect(whole["monitors"]).toHaveLength(100);
  await add();
  const first = await work(`&after=${whole["cursor"]}`);
  expect(first).toMatchObject({ reset: true, complete: false });
  await account.put(`/v1/pulse/${ids[0]}`, { timeout: 2_000 });
  const second = await work(`&after=${first["cursor"]}`);
  expect(second).toMatchObject({ reset: false, complete: true, monitors: [{ monitor_id: ids[100] }] });
  const again = await work(`&after=${second["cursor"]}`);
  expect(again).toMatchObject({ reset: true, complete: false });
  expect(again["monitors"]).toContainEqual(expect.objectContaining({ monitor_id: ids[0], timeout: 2_000 }));
});
