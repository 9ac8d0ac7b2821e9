import { expect, test } from "bun:test";
import { join } from "node:path";
import { operationIdOf } from "../../src/kernel/http/document/operation-ids.ts";

interface Operation {
  readonly operationId: string;
  readonly "x-former-operation-id"?: string;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const document: Document = await Bun.file(join(import.meta.dir, "../golden/openapi.json")).json();
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));

test("ids are unique, and none is the former id of another operation, so that no client changes its meaning", () => {
  const ids = operations.map(({ operationId }) => operationId);
  const former = operations.flatMap((operation) => operation["x-former-operation-id"] ?? []);
  expect(former.length).toBeGreaterThan(50);
  expect([...ids, ...former].length).toBe(new Set([...ids, ...former]).size);
});

test.each([
  ["relay.endpoints.read", "relay.endpoints.get"],
  ["relay.endpoints.change", "relay.endpoints.update"],
  ["meter.balance", "meter.balance.get"],
  ["meter.deduct", "meter.deduct"],
])("%s has the id %s", (name, id) => expect(operationIdOf(name)).toBe(id));

/** What operations do. A new one uses a verb of this list, or adds its own. */
const VERBS =
  "accept accept_fork acknowledge acquire add advance approve cancel capture check confirm create deduct delete edit end end_others evaluate evaluate_all export extend force_release get import ingest init list list_of_flag log ping prepare preview push receive recover redact refill reject release renew replay resend reset reveal revoke revoke_by_owner rotate run save schedule send send_batch set sign_up snooze start stop stream subscribe switch test test_mail update use verify withdraw";

test("an id ends in a verb", () => {
  const verbs = new Set(operations.map(({ operationId }) => operationId.split(".").at(-1) ?? ""));
  expect([...verbs].sort()).toEqual(VERBS.split(" "));
});
