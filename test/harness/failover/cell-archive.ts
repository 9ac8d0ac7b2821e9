import { findHistory, writeHistory } from "../../../src/archive/history.ts";
import { archiveClient } from "../../../src/archive/place.ts";
import { createVault } from "../../../src/kernel/secrets/vault.ts";
import { ENTRY_KEY_PURPOSE } from "../../../src/kernel/storage/replication/entry.ts";
import { archiveIn, archiveUrl, differingTables, integrityOf, type RoundStore } from "../archive/bench.ts";

const ARCHIVED_MS_MAX = 60_000;
const POLL_MS = 50;
const INTERVAL_SECONDS = "0.2";

/** What the status of a leader says about its archive. */
interface ArchiveState {
  readonly lag_seconds: number;
  readonly base_at: string | null;
  readonly last_error: string | null;
}

/** The archive of a cell under test. */
export class CellArchive {
  constructor(
    readonly s3: RoundStore,
    private readonly masterKey: string,
    /** File to which it is restored. */
    private readonly path: string,
  ) {}

  /** Options of a node that archives when it leads. */
  get args(): readonly string[] {
    return ["--archive", archiveUrl(this.s3), "--archive-interval", INTERVAL_SECONDS];
  }

  get environment(): Readonly<Record<string, string>> {
    return this.s3.archiveEnvironment;
  }

  /** Waits until the leader at a URL has archived everything. @throws Error when it does not. */
  async settled(url: string, apiKey: string): Promise<void> {
    const headers = { authorization: `Bearer ${apiKey}` };
    let last = "";
    for (const end = performance.now() + ARCHIVED_MS_MAX; performance.now() < end; await Bun.sleep(POLL_MS)) {
      const response = await fetch(`${url}/v1/admin/status`, { headers });
      const { archive } = (await response.json()) as { archive?: ArchiveState };
      if (archive?.lag_seconds === 0 && archive.base_at !== null && archive.last_error === null) return;
      last = JSON.stringify(archive);
    }
    throw new Error(`the leader does not archive: ${last}`);
  }

  /** Restores the newest state. Returns what differs from the file of a leader that has ended. */
  async differences(databasePath: string): Promise<string[]> {
    const client = archiveClient(null);
    try {
      const store = archiveIn(this.s3, client);
      const key = createVault(Buffer.from(this.masterKey, "hex")).derive(ENTRY_KEY_PURPOSE);
      const history = await findHistory(store, null);
      if (history === null) return ["nothing can be restored"];
      await writeHistory(store, history, { path: this.path, key, at: null });
      const integrity = integrityOf(this.path);
      return [...(integrity === "ok" ? [] : [integrity]), ...differingTables(databasePath, this.path)];
    } finally {
      client.close();
    }
  }
}
