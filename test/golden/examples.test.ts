import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FormatRegistry } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type ApiOperation, Explorer, isEndless, readOperations } from "./api-document.ts";
import type { Answer } from "../support/client.ts";
import { expectErrorShape } from "../support/errors.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const operations = readOperations();

/**
 * Operations whose examples must run before another operation, because it reads their result without naming it in its
 * path.
 */
const BEFORE: Readonly<Record<string, readonly string[]>> = {
  "meter.alert.project.read": ["meter.alert.project.set"],
  "witness.checkpoint": ["witness.init"],
  "witness.index.read": ["witness.init"],
  "witness.index.set": ["witness.init"],
  "witness.log": ["witness.init"],
  "witness.proofs.consistency": ["witness.init", "witness.log"],
  "witness.proofs.inclusion": ["witness.init", "witness.log"],
  "witness.tlog.set": ["witness.init"],
  "witness.witnesses.read": ["witness.init"],
  "witness.witnesses.set": ["witness.init"],
  "witness.config.read": ["witness.config.set"],
};

/** Operations of people who are logged in, or are about to: the tests of people send them. */
const OF_PEOPLE = /^(people\.me\.|people\.identities\.|session\.(switch|passkey|invitation|email))/;
/** Operations that need a mail server, which this server does not have. */
const NEED_MAIL = ["status.subscribe_form", "status.subscription"];
/** Operations for a chain that is shorter than a known checkpoint. */
const NEED_A_FORK = ["witness.accept_fork"];
/** Operations of a server that is a witness of other chains. */
const NEED_A_WITNESS = ["witness.peer.read", "witness.peer.checkpoint"];
/** Of which only alerts have links. */
const NEED_AN_ALERT = ["monitors.links.read"];
/** Operations that name their result below their path. */
const NEED_MORE_PATH = ["witness.tlog.tile"];

/** Operations that only the token of a probe may call. */
const NEED_A_PROBE = ["probe.work.read", "probe.results.create"];

let server: TestServer;
beforeAll(async () => {
  const args = ["--signup", "open", "--allow-private-targets", "127.0.0.0/8"];
  server = await startTestServer({ manualClock: true, args });
  for (const format of ["date-time", "uuid", "uri", "email"]) {
    if (!FormatRegistry.Has(format)) FormatRegistry.Set(format, () => true);
  }
});
afterAll(() => server.stop());

/** The response must be a documented one, in the form that its route declares. */
function expectDocumented({ operationId, responses }: ApiOperation, answer: Answer): void {
  expect(Object.keys(responses), `${operationId}: ${answer.text}`).toContain(String(answer.status));
  if (answer.status >= 400) {
    expectErrorShape(answer);
    return;
  }
  const route = server.server.app.http.routes.find(({ operation }) => operation.name === operationId);
  const schema = route?.responses[answer.status];
  if (answer.status === 204 || schema === undefined) return;
  const errors = [...Value.Errors(schema, answer.body)].map(({ path, message }) => `${path}: ${message}`);
  expect(errors, answer.text).toEqual([]);
}

async function prepare(explorer: Explorer, { operationId }: ApiOperation): Promise<void> {
  for (const name of BEFORE[operationId] ?? []) {
    const earlier = operations.find((operation) => operation.operationId === name);
    if (earlier === undefined) throw new Error(`there is no operation ${name}`);
    expect((await explorer.send(earlier)).status).toBeLessThan(300);
  }
}

async function newExplorer(): Promise<Explorer> {
  return new Explorer(operations, server, await server.account({ balance: 1_000 }));
}

describe("every example works as it stands", () => {
  const withExample = operations.filter(
    ({ example, operationId }) =>
      example !== null &&
      ![...NEED_A_FORK, ...NEED_A_PROBE].includes(operationId) &&
      !OF_PEOPLE.test(operationId),
  );
  test("there are some", () => expect(withExample.length).toBeGreaterThan(5));
  test.each(withExample.map((operation) => [operation.operationId, operation] as const))(
    "%s",
    async (_, operation) => {
      const explorer = await newExplorer();
      await prepare(explorer, operation);
      const answer = await explorer.send(operation);
      expectDocumented(operation, answer);
      expect(answer.status, answer.text).toBeLessThan(300);
    },
  );
});

describe("every operation responds in its documented form", () => {
  const ending = operations.filter(
    (operation) => !isEndless(operation) && !OF_PEOPLE.test(operation.operationId),
  );
  test.each(ending.map((operation) => [operation.operationId, operation] as const))(
    "%s",
    async (_, operation) => {
      const required = operation.body?.required?.length ?? 0;
      expect(
        required === 0 || operation.example !== null,
        "a body with required fields needs an example",
      ).toBe(true);
      const explorer = await newExplorer();
      await prepare(explorer, operation);
      const answer = await explorer.send(operation);
      expectDocumented(operation, answer);
      const status = [...NEED_MAIL, ...NEED_A_WITNESS, ...NEED_AN_ALERT, ...NEED_MORE_PATH].includes(operation.operationId) ? 404 : 200;
      const wanted = NEED_A_PROBE.includes(operation.operationId) ? 401 : status;
      if (operation.method === "GET") expect(answer.status, answer.text).toBe(wanted);
    },
  );
});

test("no example shows something open that has ended", () => {
  const seen: unknown[] = [];
  const look = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    if ("ended_at" in value && "status" in value) seen.push([value.status === "open", value.ended_at === null]);
    if ("resolved_at" in value && "status" in value)
      seen.push([value.status !== "resolved", value.resolved_at === null]);
    for (const member of Object.values(value)) look(member);
  };
  const contents = operations.flatMap(({ responses }) => Object.values(responses).map(({ content }) => content));
  for (const content of contents) look(content?.["application/json"]?.example);
  expect(seen.length).toBeGreaterThan(5);
  for (const one of seen) expect(one).toEqual([true, true]);
});
