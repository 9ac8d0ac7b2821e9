import { isAtLeast, ROLES } from "../../src/kernel/callers/role.ts";
import type { DeclaredRoute } from "../../src/kernel/http/api.ts";
import { describeBy } from "../support/document.ts";
import { startTestServer } from "../support/server.ts";
import { renderChannelMessages } from "./channel-messages.ts";
import { renderMistakes } from "./mistakes.ts";

/** Updates the golden files and the files generated from them, run from the repository's root. */
export const UPDATE_COMMAND = "bun test/golden/update.ts";

/** Files that describe the API, so that its changes are visible in them. */
export interface Goldens {
  /** Every route: method, path, operation, scope, cost, and special properties. */
  readonly "routes.txt": string;
  /** Which role may call which operation, and which require a recent login. */
  readonly "roles.txt": string;
  /** The OpenAPI document. */
  readonly "openapi.json": string;
  /** Typical mistakes with their errors. */
  readonly "mistakes.txt": string;
  /** Messages of channels of every kind. */
  readonly "channel-messages.txt": string;
}

/** Renders the golden files from a running server; on a test clock, so that every route is there. */
export async function renderGoldens(): Promise<Goldens> {
  const resolver = { resolve: async (name: string) => (name === "app" ? ["172.18.0.2"] : []) };
  const server = await startTestServer({ manualClock: true, deps: { outbound: { resolver } } });
  try {
    const { body } = await server.client(null).get("/openapi.json");
    // The other files are rendered from responses that the golden document may not describe yet.
    describeBy(body);
    return {
      "routes.txt": renderRoutes(server.server.app.http.routes),
      "roles.txt": renderRoles(server.server.app.http.routes),
      "openapi.json": `${printed(body)}\n`,
      "mistakes.txt": await renderMistakes(server),
      "channel-messages.txt": await renderChannelMessages(),
    };
  } finally {
    await server.stop();
  }
}

/** Longest line of the document, as in the whole repository. */
const LINE_LENGTH_MAX = 110;

/** JSON in which values that fit on a line are on one line, so that a difference shows its context. */
function printed(value: unknown, indent = ""): string {
  const whole = JSON.stringify(value);
  if (typeof value !== "object" || value === null || indent.length + whole.length <= LINE_LENGTH_MAX) return whole;
  const inner = `${indent}  `;
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((part) => inner + printed(part, inner))
    : Object.entries(value).map(([name, part]) => `${inner}${JSON.stringify(name)}: ${printed(part, inner)}`);
  return `${isList ? "[" : "{"}\n${parts.join(",\n")}\n${indent}${isList ? "]" : "}"}`;
}

/** Each operation that needs a caller, by role: `yes`, or `no`; `-` for what only keys may. */
function renderRoles(routes: readonly DeclaredRoute[]): string {
  const rows = routes
    .filter(({ operation }) => operation.access !== "public" && !operation.byPortal)
    .map(({ operation: { name, access, role, stepUp, ofAccount } }) => {
      const cells = ROLES.map((assigned) => (role === null ? "-" : isAtLeast(assigned, role) ? "yes" : "no"));
      const notes = [ofAccount ? "account" : "", stepUp ? "recent login" : ""].filter((note) => note !== "");
      return [name, access, ...cells, notes.join(", ")];
    })
    .sort(([a = ""], [b = ""]) => (a < b ? -1 : 1));
  const table = [["operation", "scope", ...ROLES, "notes"], ...rows];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => (row[column] ?? "").length))) ?? [];
  const lines = table.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ").trimEnd());
  return `${lines.join("\n")}\n`;
}

function renderRoutes(routes: readonly DeclaredRoute[]): string {
  const rows = routes.map(({ method, path, operation }) => {
    const { access, cost, ...more } = operation;
    const notes = [
      more.accountOnly ? "account's keys only" : "",
      more.monitoring ? "as --metrics-access says" : "",
      more.secret ? "secret answer" : "",
      more.limit === "general" || access === "public" ? "" : `limit ${more.limit}`,
      more.idempotent || access === "public" || method === "GET" ? "" : "no Idempotency-Key",
    ];
    return [
      method,
      path,
      operation.name,
      access,
      String(cost),
      notes.filter((note) => note !== "").join(", "),
    ];
  });
  const table = [["method", "path", "operation", "scope", "cost", "notes"], ...rows.sort(byPath)];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...table.map((row) => (row[column] ?? "").length)));
  const line = (row: string[]): string =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd();
  return `${table.map(line).join("\n")}\n`;
}

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

function byPath(a: string[], b: string[]): number {
  const [methodA = "", pathA = ""] = a;
  const [methodB = "", pathB = ""] = b;
  if (pathA !== pathB) return pathA < pathB ? -1 : 1;
  return METHODS.indexOf(methodA) - METHODS.indexOf(methodB);
}
