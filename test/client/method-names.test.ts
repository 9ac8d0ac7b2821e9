import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FORMER } from "../../codegen/method-names.ts";
import { type Method, objectsOf } from "../../codegen/methods.ts";
import { Ninefold } from "../../src/client/index.ts";
import { operationIdOf } from "../../src/kernel/http/document/operation-ids.ts";
import { useTestServer } from "../support/server.ts";

const document = JSON.parse(readFileSync(join(import.meta.dir, "../golden/openapi.json"), "utf8"));
const methods = objectsOf(document).flatMap((object) => object.methods);
const server = useTestServer();

/** Methods whose verb is not that of their operation: the words that a reader of code expects there. */
const OTHER_VERBS: Readonly<Record<string, string>> = {
  "catch.ingest": "send",
  "catch.in": "sendIn",
  "meter.holds.create": "hold",
  "monitors.incidents.change": "update",
  "ofrep.bulk": "resolveAll",
  "ofrep.evaluate": "resolve",
  signup: "signup",
  "witness.tlog.set": "publish",
};

/** Methods that read are named after what they return, and need no verb. */
function hasVerbOfOperation({ operation, name }: Method): boolean {
  const [verb = ""] = (operationIdOf(operation.id).split(".").at(-1) ?? "").split("_");
  return verb === "get" || verb === "list" || new RegExp(`^${verb}(?![a-z])`).test(name);
}

/** The function of a method by its name, also a former one. */
function functionOf(nf: Ninefold, { object, operation }: Method, name: string): unknown {
  const target =
    object === "meter"
      ? nf.meter("customer-42")
      : object.split(".").reduce((value: unknown, part) => Reflect.get(Object(value), part), nf);
  const found: unknown = Reflect.get(Object(target), name);
  if (typeof found !== "function") throw new Error(`nf.${object} has no method ${name} (${operation.id})`);
  return found;
}

test("a method has the verb of its operation", () => {
  const others = methods.filter((method) => !hasVerbOfOperation(method));
  expect(Object.fromEntries(others.map(({ operation, name }) => [operation.id, name]))).toEqual(OTHER_VERBS);
});

test("former names of methods continue to work, and are deprecated", async () => {
  const nf = new Ninefold({ url: server.url, apiKey: String((await server.account()).key) });
  const renamed = methods.filter(({ former }) => former !== null);
  expect(renamed.map(({ operation }) => operation.id).sort()).toEqual(Object.keys(FORMER).sort());
  for (const method of renamed) {
    expect(functionOf(nf, method, method.name)).toBeFunction();
    expect(functionOf(nf, method, method.former ?? "")).toBeFunction();
  }
  expect(await nf.locks.status("invoice:42")).toEqual(await nf.locks.get("invoice:42"));
  const text = readFileSync(join(import.meta.dir, "../../src/client/areas/methods.ts"), "utf8");
  expect(text.split("@deprecated").length - 1).toBe(renamed.length);
});
