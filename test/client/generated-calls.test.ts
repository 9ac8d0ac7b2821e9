import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Document } from "../../codegen/document.ts";
import { type Method, objectsOf } from "../../codegen/methods.ts";
import { operationAt } from "../../src/client/api.ts";
import { Ninefold, NinefoldError } from "../../src/client/index.ts";
import { Pages } from "../../src/client/pages.ts";
import type { DeclaredRoute } from "../../src/kernel/http/api.ts";
import { bodyOf, makeResource, parametersOf, queryOf, SEGMENTS, segmentOf } from "../support/matrix.ts";
import { useTestServer } from "../support/server.ts";
import { createRecorder } from "./support.ts";

const folder = mkdtempSync(join(tmpdir(), "ninefold-generated-calls-"));
const server = useTestServer({
  manualClock: true,
  args: ["--signup", "open", "--allow-private-targets", "127.0.0.0/8", "--backup-dir", folder],
});
afterAll(() => rmSync(folder, { recursive: true }));

const document: Document = JSON.parse(readFileSync(join(import.meta.dir, "../golden/openapi.json"), "utf8"));
/** Methods without code of their own. */
const GENERATED = objectsOf(document)
  .flatMap(({ methods }) => methods)
  .filter(({ written }) => written === null);

/** Whether the server has accepted the form of a request, which then did not fit the state of a new account. */
function isUnderstood({ status, code }: NinefoldError): boolean {
  return status === 404 || status === 409 || code === "catch.replay_failed" || code === "own_proposal";
}

function routeOf(name: string): DeclaredRoute {
  const route = server.server.app.http.routes.find(({ operation }) => operation.name === name);
  if (route === undefined) throw new Error(`no route has the operation ${name}`);
  return route;
}

/** The object of the client with a method. */
function objectOf(nf: Ninefold, path: string, resource: Readonly<Record<string, string>>): object {
  if (path === "meter") return nf.meter(resource["meterId"] ?? "");
  const names = path === "" ? [] : path.split(".");
  return names.reduce<object>((object, name) => Reflect.get(object, name), nf);
}

function queryOfRoute(route: DeclaredRoute): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(queryOf(route)));
}

/** The key of a portal link, for operations of customers. */
async function portalToken(nf: Ninefold): Promise<string> {
  const { url } = await nf.relay.portal.create({ owner_id: "acme" });
  return url.slice(url.indexOf("=") + 1);
}

/** The arguments of a method: parameters of a new resource, and the example of the body. */
function argumentsOf(
  { args }: Method,
  route: DeclaredRoute,
  resource: Readonly<Record<string, string>>,
): unknown[] {
  const body = (bodyOf(route) ?? {}) as Readonly<Record<string, unknown>>;
  return args.map(({ place, field }) => {
    if (place === "path") return resource[field];
    if (place === "field") return body[field];
    return place === "body" ? body : queryOfRoute(route);
  });
}

test.each(GENERATED.map((method) => [method.operation.id, method] as const))(
  "the method of %s sends the operation's request, which the server accepts",
  async (id, method) => {
    const route = routeOf(id);
    const isOperators = route.operation.access === "operator";
    const { key } = isOperators ? server : await server.account({ tier: "scale" });
    const owner = server.client(key);
    const segment = segmentOf(route);
    const needsResource = parametersOf(route).length > 0 && SEGMENTS.includes(segment);
    const resource = needsResource ? await makeResource(segment, owner) : {};
    const recorder = createRecorder();
    const nf = new Ninefold({ url: server.url, apiKey: key, fetch: recorder.fetch, retries: 0 });
    const caller = route.operation.byPortal ? nf.withKey(await portalToken(nf)) : nf;
    const object = objectOf(caller, method.object, resource);
    const result: unknown = Reflect.apply(
      Reflect.get(object, method.name),
      object,
      argumentsOf(method, route, resource),
    );
    try {
      await (result instanceof Pages ? result.page() : result);
    } catch (error) {
      if (!(error instanceof NinefoldError)) throw error;
      expect(isUnderstood(error), `${error.status} ${error.code}: ${error.message}`).toBe(true);
    }
    const sent = recorder.requests.at(-1);
    expect(operationAt(sent?.method ?? "", sent?.path ?? "")).toBe(route.operation.name as never);
    for (const parameter of parametersOf(route))
      expect(sent?.path).toContain(encodeURIComponent(resource[parameter] ?? ""));
  },
);
