import { describe, expect, test } from "bun:test";
import { TARGETS_MAX } from "../../../../src/areas/catch/domain.ts";
import { expectError } from "../../../support/errors.ts";
import { newBucket } from "../support.ts";
import { targetStage } from "./targets-support.ts";

const stage = targetStage();
const { endpoint, bucket, patch } = stage;

const URL_GIVEN = "https://hooks.example.com/in";
const UNKNOWN = "ep_01a1fc2c30c071d9bf080e3cb4a7b202";
const create = (body: object) => stage.account.post("/v1/catch/buckets", body);

async function endpoints(count: number): Promise<{ endpoint_id: string }[]> {
  const created: { endpoint_id: string }[] = [];
  for (let n = 0; n < count; n += 1) created.push({ endpoint_id: await endpoint(`e${n}`) });
  return created;
}

describe("the targets of a bucket", () => {
  test("are empty by default, and are shown as they were set", async () => {
    expect((await newBucket(stage.account)).targets).toEqual([]);
    const [{ endpoint_id } = { endpoint_id: "" }] = await endpoints(1);
    const targets = [{ endpoint_id, filter: { amount: { $gte: 100 } } }];
    const created = await create({ targets });
    expect(created.body).toMatchObject({ targets, target_url: null, delivery: "push", state: "paused" });
    const { body } = await stage.account.get(`/v1/catch/buckets/${created.body["id"]}`);
    expect(body["targets"]).toEqual(targets);
  });

  test("survive a restart", async () => {
    const [first] = await endpoints(1);
    await bucket([first?.endpoint_id ?? ""]);
    await stage.restart();
    const { body } = await stage.account.get(`/v1/catch/buckets/${stage.bucketId}`);
    expect(body["targets"]).toEqual([first] as unknown[]);
  });

  test("an empty list removes them, with a target_url in their place", async () => {
    const targets: unknown[] = [];
    await bucket([await endpoint("a")]);
    const without = await patch({ targets });
    expectError(without, "validation_error");
    expect(Object.keys(without.body["fields"] as object)).toEqual(["target_url"]);
    expect((await patch({ targets, target_url: URL_GIVEN })).body).toMatchObject({
      targets: [],
      target_url: URL_GIVEN,
    });
  });

  test("cannot be combined with target_url, in one request or after another", async () => {
    const targets = await endpoints(1);
    for (const answer of [
      await create({ target_url: URL_GIVEN, targets }),
      await stage.account.patch(`/v1/catch/buckets/${(await newBucket(stage.account)).id}`, { targets }),
      await bucket([targets[0]?.endpoint_id ?? ""]).then(() => patch({ target_url: URL_GIVEN })),
    ]) {
      expectError(answer, "validation_error");
      expect(Object.keys(answer.body["fields"] as object)).toEqual(["targets"]);
    }
  });

  test(`may be ${TARGETS_MAX}, and not one more`, async () => {
    const targets = await endpoints(TARGETS_MAX + 1);
    expect((await create({ targets: targets.slice(0, TARGETS_MAX) })).status).toBe(201);
    expectError(await create({ targets }), "validation_error");
  });

  test.each([
    ["an unknown endpoint", { endpoint_id: UNKNOWN }, "targets.0.endpoint_id"],
    ["a text that is no id", { endpoint_id: "x".repeat(101) }, "targets.0.endpoint_id"],
    ["no id", {}, "targets.0.endpoint_id"],
  ])("%s is rejected with 400, which names the field", async (_, target, field) => {
    const { status, body } = await create({ targets: [target] });
    expect([status, Object.keys(body["fields"] as object)]).toEqual([400, [field]]);
  });

  test("a repeated endpoint and an invalid filter are rejected, by their position", async () => {
    const [first, second] = await endpoints(2);
    const refused = async (targets: unknown) =>
      Object.keys((await create({ targets })).body["fields"] as object);
    expect(await refused([first, second, first])).toEqual(["targets.2.endpoint_id"]);
    expect(await refused([first, { ...second, filter: { a: { $regex: "x" } } }])).toEqual([
      "targets.1.filter.a.$regex",
    ]);
  });

  test("cannot be an endpoint of another project or account: the error is that of an unknown one", async () => {
    const other = await stage.server.account();
    const foreign = await endpoint("foreign", {}, other);
    const project = await stage.account.post("/v1/projects", { name: "Other" });
    const key = await stage.account.post(`/v1/projects/${project.body["id"]}/keys`, {
      prefix: "sm",
      name: "k",
      scopes: ["*"],
    });
    const inProject = stage.server.client(String(key.body["secret"]));
    const sibling = await inProject.post("/v1/relay/endpoints", { url: URL_GIVEN });
    const unknown = await create({ targets: [{ endpoint_id: UNKNOWN }] });
    for (const endpoint_id of [foreign, String(sibling.body["endpoint_id"])]) {
      const answer = await create({ targets: [{ endpoint_id }] });
      expect([answer.status, answer.body["fields"]]).toEqual([400, unknown.body["fields"]]);
    }
    const own = await inProject.post("/v1/catch/buckets", {
      targets: [{ endpoint_id: String(sibling.body["endpoint_id"]) }],
    });
    expect(own.status).toBe(201);
  });

  test("are in the audit log", async () => {
    const [first, second] = await endpoints(2);
    await bucket([first?.endpoint_id ?? ""]);
    await patch({ targets: [first, second] });
    const { body } = await stage.account.get("/v1/audit?action=catch.buckets.update&limit=1");
    const [entry] = body["entries"] as { before: object; after: object }[];
    expect(entry).toMatchObject({ before: { targets: [first] }, after: { targets: [first, second] } });
  });
});

describe("an endpoint that is a target", () => {
  const remove = (endpointId: string) => stage.account.delete(`/v1/relay/endpoints/${endpointId}`);

  test("cannot be deleted: 409 names the buckets; afterwards it can", async () => {
    const [listed, second] = [await endpoint("a"), await endpoint("b")];
    await bucket([listed, second]);
    const first = stage.bucketId;
    await bucket([listed]);
    const answer = await remove(listed);
    expectError(answer, "endpoint_in_use");
    const { message } = answer.body["error"] as { message: string };
    expect(message).toContain(`${first}, ${stage.bucketId}`);
    expect(answer.body["bucket_id"]).toBe(first);
    await patch({ targets: [{ endpoint_id: second }] });
    await stage.account.delete(`/v1/catch/buckets/${first}`);
    expect((await remove(listed)).status).toBe(204);
    expectError(await remove(second), "endpoint_in_use");
  });

  test("has no owner and gets none", async () => {
    const endpointId = await endpoint("a");
    await bucket([endpointId]);
    const given = await stage.account.patch(`/v1/relay/endpoints/${endpointId}`, { owner_id: "customer" });
    expectError(given, "conflict");
    const owned = await endpoint("b", { owner_id: "customer" });
    expectError(await patch({ targets: [{ endpoint_id: owned }] }), "validation_error");
  });

  test("can be paused", async () => {
    const endpointId = await endpoint("a");
    await bucket([endpointId]);
    const paused = await stage.account.patch(`/v1/relay/endpoints/${endpointId}`, { state: "paused" });
    expect(paused.body["state"]).toBe("paused");
  });

  test("is deleted with its project, and so is the bucket", async () => {
    const { body: project } = await stage.account.post("/v1/projects", { name: "Gone" });
    const key = await stage.account.post(`/v1/projects/${project["id"]}/keys`, {
      prefix: "sm",
      name: "k",
      scopes: ["*"],
    });
    const client = stage.server.client(String(key.body["secret"]));
    const created = await client.post("/v1/relay/endpoints", { url: URL_GIVEN });
    const targets = [{ endpoint_id: String(created.body["endpoint_id"]) }];
    expect((await client.post("/v1/catch/buckets", { targets })).status).toBe(201);
    const count = stage.server.server.kernel.db.number<[id: string]>(
      "SELECT count(*) AS n FROM catch_targets WHERE endpoint_id = ?",
    );
    const [target] = targets;
    expect(count(target?.endpoint_id ?? "")).toBe(1);
    await stage.account.delete(`/v1/projects/${project["id"]}`);
    await stage.advance(60_000);
    expect(count(target?.endpoint_id ?? "")).toBe(0);
  });
});
