import type { Api, JsonObject } from "../api/http-api.ts";
import { PROJECT_HEADER } from "../kernel/http/access/project-choice.ts";
import type { Kind } from "./kinds.ts";

/** Items of a page: the maximum of the API. */
const PAGE_LIMIT = 100;
/** Requests that are sent concurrently where the order does not matter. */
const CONCURRENCY = 8;

/** A project of a server. */
export type ServerProject = {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
  readonly description: string | null;
  /** Whether changes of flags need the approval of somebody else; undefined on earlier servers. */
  readonly review?: boolean;
  /** Undefined on earlier servers. */
  readonly time_zone?: string;
};

/** Calls a server in one project. */
export class ProjectApi {
  private readonly headers: Readonly<Record<string, string>>;

  constructor(
    private readonly api: Api,
    readonly project: ServerProject,
  ) {
    this.headers = { [PROJECT_HEADER]: project.id };
  }

  /** @throws StartupError with the server's error message. */
  send(method: string, path: string, body?: JsonObject, headers: Readonly<Record<string, string>> = {}) {
    return this.api.send(method, path, body, { ...this.headers, ...headers });
  }

  /** The resources of a kind in this project. */
  async list(kind: Kind): Promise<readonly JsonObject[]> {
    const { facts, listPath } = kind;
    if (facts.isSingle === true) {
      const found = await this.sendOrNull("GET", listPath);
      return found === null ? [] : [found];
    }
    const items = await this.active(kind);
    // The list of keys has those of the whole account.
    return items.filter(
      (item) =>
        (item["project_id"] === undefined || item["project_id"] === this.project.id) &&
        item["has_name"] !== false,
    );
  }

  /** How many resources of a kind belong to the account and to none of its projects. */
  async countOfAccount(kind: Kind): Promise<number> {
    const items = kind.facts.isSingle === true ? [] : await this.active(kind);
    return items.filter((item) => item["project_id"] === null).length;
  }

  /** The resources in the list of a kind, without those that are revoked, or imported: a file cannot create these. */
  private async active({
    facts: { archivedField },
    listPath,
    itemsKey,
  }: Kind): Promise<readonly JsonObject[]> {
    const archived = archivedField === undefined ? [] : [withQuery(listPath, `${archivedField}=true`)];
    const items: JsonObject[] = [];
    for (const path of [listPath, ...archived])
      items.push(...(await pagesOf((query) => this.send("GET", withQuery(path, query)), itemsKey)));
    return items.filter((item) => (item["revoked_at"] ?? null) === null && item["imported"] !== true);
  }

  /** The response to a resource of its own, for each of some. */
  async readAll(kind: Kind, items: readonly JsonObject[]): Promise<readonly JsonObject[]> {
    const { read } = kind;
    if (read === null) return items;
    const found: JsonObject[] = [];
    for (let from = 0; from < items.length; from += CONCURRENCY) {
      const some = items.slice(from, from + CONCURRENCY);
      found.push(
        ...(await Promise.all(some.map((item) => this.send("GET", pathOf(read.path, item[kind.idKey]))))),
      );
    }
    return found;
  }

  private async sendOrNull(method: string, path: string): Promise<JsonObject | null> {
    try {
      return await this.send(method, path);
    } catch (error) {
      if ((error as { status?: number }).status === 404) return null;
      throw error;
    }
  }
}

/** The projects that the key sees. */
export async function projectsOf(api: Api): Promise<readonly ServerProject[]> {
  const found = await pagesOf((query) => api.send("GET", withQuery("/v1/projects", query)), "projects");
  return found as readonly ServerProject[];
}

async function pagesOf(
  read: (query: string) => Promise<JsonObject>,
  itemsKey: string,
): Promise<readonly JsonObject[]> {
  const found: JsonObject[] = [];
  for (let cursor: unknown = null; ; ) {
    const from = cursor === null ? "" : `&cursor=${encodeURIComponent(String(cursor))}`;
    const page = await read(`limit=${PAGE_LIMIT}${from}`);
    found.push(...((page[itemsKey] ?? []) as readonly JsonObject[]));
    const next = page["cursor"] ?? page["next_cursor"] ?? null;
    if (next === null || next === cursor) return found;
    cursor = next;
  }
}

function withQuery(path: string, query: string): string {
  return `${path}${path.includes("?") ? "&" : "?"}${query}`;
}

/** The path of one resource. */
export function pathOf(path: string, id: unknown): string {
  return path.replace(/:[A-Za-z_]+/, encodeURIComponent(String(id)));
}
