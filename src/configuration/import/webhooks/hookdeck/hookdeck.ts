import { StartupError } from "../../../../kernel/errors.ts";
import type { Draft } from "../../draft.ts";
import { isObject, SourceObject } from "../../source.ts";
import { itemsOf, type PageForm } from "../pages.ts";
import { type Connection, connectionOf, Endpoints } from "./connections.ts";
import { sourceOf } from "./sources.ts";

const PAGE: PageForm = {
  product: "Hookdeck",
  itemsKey: "models",
  ignored: ["count"],
  moreKey: "pagination",
  hasMore: (pagination) => isObject(pagination) && typeof pagination["next"] === "string",
  further: "next",
};

/**
 * Imports connections of Hookdeck, with their sources and destinations: the response to `GET /connections` of its API of
 * 2025-07-01, a list of connections, or `{connections, sources}`, where `sources` are those without a connection, too.
 * @throws StartupError
 */
export function importHookdeck(draft: Draft, value: unknown): void {
  const isWhole = isObject(value) && "connections" in value;
  const all = new SourceObject(draft, "Hookdeck", isWhole ? value : { connections: value });
  const endpoints = new Endpoints(draft);
  const sources = new Map<string, { readonly value: unknown; readonly connections: Connection[] }>();
  const sourceFor = (source: unknown) => {
    if (!isObject(source)) throw new StartupError("A connection of Hookdeck must have its source.");
    const id = String(source["id"] ?? source["name"]);
    const found = sources.get(id) ?? { value: source, connections: [] };
    sources.set(id, found);
    return found;
  };
  for (const item of itemsOf(draft, all.any("connections"), "connections", PAGE)) {
    if (!isObject(item)) throw new StartupError("connection must be an object.");
    const { connections } = sourceFor(item["source"]);
    const connection = connectionOf(draft, item, endpoints);
    if (connection !== null) connections.push(connection);
  }
  const listed = all.any("sources");
  for (const source of listed === null ? [] : itemsOf(draft, listed, "sources", PAGE)) sourceFor(source);
  for (const source of sources.values()) sourceOf(draft, source.value, source.connections);
  all.rest();
}
