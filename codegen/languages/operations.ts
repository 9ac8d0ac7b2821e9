import { type ApiOperation, type Document, operationsOf } from "../document.ts";
import { BOUND } from "../method-names.ts";
import { type Method, objectsOf } from "../methods.ts";
import type { ExampleCall } from "./shell.ts";

/** A request as a method of a client: null for the method if the client has none that sends exactly this request. */
export interface MethodCall {
  readonly method: Method;
  /** Values of the path parameters by their names. */
  readonly params: Readonly<Record<string, string>>;
  /** Typed values of the query; null without one. */
  readonly query: Readonly<Record<string, unknown>> | null;
  readonly body: unknown;
  /** Arguments and options, by names in camel case, of a method that is written manually; null for a generated one. */
  readonly written: {
    readonly args: readonly unknown[];
    readonly options: ReadonlyMap<string, unknown>;
  } | null;
  /** Whether the method returns the pages of a list. */
  readonly isList: boolean;
}

/** Arguments and options of methods that are written manually, by the fields of their requests; of other such methods, none. */
const WRITTEN_FIELDS: Readonly<
  Record<string, { readonly args?: readonly string[]; readonly options: Readonly<Record<string, string>> }>
> = {
  "catch.buckets.list": { options: { name: "name" } },
  "gate.config": { options: { full: "full", tag: "tag", archived: "archived" } },
  "gate.list": { options: {} },
  "keys.verify": {
    args: ["secret"],
    options: {
      require: "require",
      cost: "cost",
      ratelimits: "ratelimits",
      "meta.ip": "ip",
      "meta.user_agent": "userAgent",
    },
  },
  "latch.acquire": { options: { ttl: "ttlMs", timeout: "waitMs", mode: "mode", token: "token" } },
  "monitors.check": { options: { probe: "probe" } },
};
/** Lists among them. */
const WRITTEN_LISTS: ReadonlySet<string> = new Set(["catch.buckets.list", "gate.list"]);

/** Finds the methods of requests. */
export class MethodFinder {
  private readonly operations: readonly ApiOperation[];
  private readonly methods: ReadonlyMap<string, Method>;

  constructor(document: Document) {
    this.operations = operationsOf(document);
    const methods = objectsOf(document).flatMap((object) => object.methods);
    this.methods = new Map(methods.map((method) => [method.operation.id, method]));
  }

  /** The method that sends a request; null without one, such as for an operation that is none of the API. */
  find({ method: verb, path, body }: ExampleCall): MethodCall | null {
    const [route = "", search = ""] = path.split("?");
    const segments = route.split("/");
    const fitting = this.operations.filter((one) => {
      const parts = one.path.split("/");
      const fits = (part: string, at: number): boolean => part.startsWith("{") || part === segments[at];
      return one.method === verb && parts.length === segments.length && parts.every(fits);
    });
    const literal = (one: ApiOperation): number => one.path.split("{").length;
    const [operation] = fitting.sort((a, b) => literal(a) - literal(b));
    const method = operation === undefined ? undefined : this.methods.get(operation.id);
    if (operation === undefined || method === undefined) return null;
    const params = Object.fromEntries(
      operation.path
        .split("/")
        .flatMap((part, at) => (part.startsWith("{") ? [[part.slice(1, -1), segments[at] ?? ""]] : [])),
    );
    const queried = search === "" ? null : queryOf(search, operation);
    if (method.written !== null) {
      const written = writtenCall(operation.id, { ...queried, ...Object(body) });
      const isList = WRITTEN_LISTS.has(operation.id);
      return written && { method, params, query: null, body: undefined, written, isList };
    }
    const fields = method.args.filter(({ place }) => place === "field").map(({ field }) => field);
    const given = typeof body === "object" && body !== null ? Object.keys(body) : [];
    const takesBody = method.args.some(({ place }) => place === "body");
    if (!takesBody && given.some((name) => !fields.includes(name))) return null;
    if (search !== "" && !method.args.some(({ place }) => place === "query")) return null;
    return { method, params, query: queried, body, written: null, isList: method.items !== null };
  }
}

/** The arguments and options for the fields of a request; null if the method does not take one of them. */
function writtenCall(id: string, sent: Readonly<Record<string, unknown>>): MethodCall["written"] {
  const known = WRITTEN_FIELDS[id];
  if (known === undefined) return null;
  const { args = [], options } = known;
  const isGroup = (name: string): boolean => Object.keys(options).some((path) => path.startsWith(`${name}.`));
  const given = Object.entries(sent).flatMap(([name, value]): [string, unknown][] =>
    isGroup(name)
      ? Object.entries(Object(value)).map(([inner, one]) => [`${name}.${inner}`, one])
      : [[name, value]],
  );
  const others = given.filter(([name]) => !args.includes(name));
  if (others.some(([name]) => options[name] === undefined)) return null;
  return {
    args: args.map((name) => sent[name]),
    options: new Map(others.map(([name, value]) => [options[name] ?? name, value])),
  };
}

/** Path parameter that the object of a method has. */
export function boundOf({ object }: Method): string | undefined {
  return BOUND[object];
}

function queryOf(search: string, { query }: ApiOperation): Record<string, unknown> {
  return Object.fromEntries(
    search.split("&").map((pair) => {
      const [name = "", text = ""] = pair.split("=");
      const value = decodeURIComponent(text);
      const { type } = query?.properties?.[name] ?? {};
      if (type === "integer" || type === "number") return [name, Number(value)];
      return [name, type === "boolean" ? value === "true" : value];
    }),
  );
}
