import type { Answer, Client } from "../../support/client.ts";

/** An entry of the log, as a test looks at it. */
export interface Entry {
  readonly sequence: string;
  readonly at: string;
  readonly action: string;
  readonly summary: string;
  readonly actor: {
    readonly type: string;
    readonly key_id: string | null;
    readonly key_name: string | null;
    readonly user_id: string | null;
    readonly owner_id: string | null;
  };
  readonly project_id: string | null;
  readonly target: { readonly type: string; readonly id: string };
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown> | null;
  readonly truncated?: true;
  readonly ip: string | null;
  readonly user_agent: string | null;
  readonly request_id: string | null;
}

/** The entries of a page. */
export function entriesIn({ body, text }: Answer): readonly Entry[] {
  if (!Array.isArray(body.entries)) throw new Error(`no page of the audit log: ${text}`);
  return body.entries as readonly Entry[];
}

/** A client's entries, newest first. */
export async function entriesOf(client: Client, query = ""): Promise<readonly Entry[]> {
  return entriesIn(await client.get(`/v1/audit${query}`));
}

/** The newest one. */
export async function newestOf(client: Client): Promise<Entry> {
  const [entry] = await entriesOf(client, "?limit=1");
  if (entry === undefined) throw new Error("the audit log is empty");
  return entry;
}

/** Switches a flag: the smallest audited change. */
export function switchFlag(client: Client, flag_key: string, enabled: boolean): Promise<Answer> {
  return client.post("/v1/gate", { flag_key, enabled });
}
