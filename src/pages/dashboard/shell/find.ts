import type { OperationName } from "../../../client/api.ts";
import { call } from "../core/api.ts";
import { go } from "../core/route.ts";
import { mayCall } from "../core/session.ts";
import type { Command } from "./commands.ts";
import type { PagePath } from "./sitemap.ts";

/** An object: its title, other text by which it is found, and the rest of its address. */
type Found = readonly [title: string, words: string | null, ...at: string[]];
/** Reads the newest objects, or with a text those that the server finds by it. */
type Read = (text: string, signal: AbortSignal) => Promise<readonly Found[]>;
type Source = readonly [
  kind: string,
  page: PagePath,
  operation: OperationName,
  read: Read,
  isSearch?: boolean,
];

/** Objects of one list of which the palette knows. */
const LIST = { query: { limit: 100 } };
const SHOWN_PER_KIND = 4;
/** Buckets whose events are searched: each search takes the server some time. */
const BUCKETS_SEARCHED = 3;

const monitors: Read = async () =>
  (await call("monitors.list", LIST)).monitors.map((monitor) => [
    monitor.name,
    monitor.url,
    monitor.monitor_id,
  ]);
const incidents: Read = async () =>
  (await call("monitors.incidents.list", LIST)).incidents.map((incident) => [
    incident.title,
    null,
    "incidents",
    incident.id,
  ]);
const statusPages: Read = async () =>
  (await call("monitors.pages.list", LIST)).pages.map((page) => [page.title, page.slug, "pages", page.id]);
const flags: Read = async () =>
  (await call("gate.config", {})).flags.map(({ flag_key }) => [flag_key, null, flag_key]);
const keys: Read = async () =>
  (await call("keys.list", LIST)).keys.map((key) => [key.name, `${key.last4} ${key.owner_id}`, key.id]);
const customers: Read = async () => {
  const owners = (await call("keys.list", LIST)).keys.flatMap(({ owner_id }) => owner_id ?? []);
  return [...new Set(owners)].map((owner) => [owner, null, owner]);
};
const endpoints: Read = async () => {
  const found = (await call("relay.endpoints.list", LIST)).endpoints;
  return found.map(({ endpoint_id, name, url }) => [name ?? url, url, "endpoints", endpoint_id]);
};
const buckets: Read = async () =>
  (await call("catch.buckets.list", {})).buckets.map((bucket) => [
    bucket.name ?? bucket.id,
    bucket.target_url,
    bucket.id,
  ]);
const meters: Read = async (prefix, signal) => {
  // Another text is part of no meter's id.
  if (!/^[\w-]{1,64}$/.test(prefix)) return [];
  const page = await call("meter.list", { query: { prefix, limit: SHOWN_PER_KIND } }, signal);
  return page.meters.map(({ meter_id }) => [meter_id, null, meter_id]);
};
const events: Read = async (q, signal) => {
  const all = (await call("catch.buckets.list", {}, signal)).buckets.slice(0, BUCKETS_SEARCHED);
  const query = { q, limit: SHOWN_PER_KIND };
  const pages = all.map(({ id }) => call("catch.events.list", { params: { bucket_id: id }, query }, signal));
  return (await Promise.all(pages)).flatMap((page) =>
    page.events.map(
      ({ id, bucket_id, event_type }): Found => [`${event_type ?? "Event"} ${id}`, null, bucket_id, id],
    ),
  );
};

const SOURCES: readonly Source[] = [
  ["Monitor", "monitors", "monitors.list", monitors],
  ["Incident", "monitors", "monitors.incidents.list", incidents],
  ["Status page", "monitors", "monitors.pages.list", statusPages],
  ["Flag", "flags", "gate.config", flags],
  ["Meter", "meters", "meter.list", meters, true],
  ["Key", "keys", "keys.list", keys],
  ["Customer", "customers", "keys.list", customers],
  ["Endpoint", "relay", "relay.endpoints.list", endpoints],
  ["Bucket", "catch", "catch.buckets.list", buckets],
  ["Event", "catch", "catch.events.list", events, true],
];

/** Finds objects by their names. What it has read serves every search of an open palette. */
export class Finder {
  private readonly lists = new Map<Source, Promise<readonly Found[]>>();

  /** The best objects of each kind. A kind that cannot be read is omitted. */
  async find(text: string, signal: AbortSignal): Promise<readonly Command[]> {
    const sources = SOURCES.filter(([, , operation]) => mayCall(operation));
    const found = await Promise.all(
      sources.map(async (source): Promise<Command[]> => {
        const [kind, page] = source;
        const objects = await this.read(source, text, signal).catch(() => []);
        return objects
          .slice(0, SHOWN_PER_KIND)
          .map(([title, , ...at]) => ({ title, kind, icon: page, run: () => go([page, ...at]) }));
      }),
    );
    return found.flat();
  }

  private async read(source: Source, text: string, signal: AbortSignal): Promise<readonly Found[]> {
    const [, , , read, isSearch] = source;
    if (isSearch === true) return read(text, signal);
    const list = this.lists.get(source) ?? read(text, signal);
    this.lists.set(source, list);
    const wanted = text.toLowerCase();
    return (await list).filter((texts) => texts.join(" ").toLowerCase().includes(wanted));
  }
}
