import { readdirSync } from "node:fs";
import { join } from "node:path";
import { findHistory, type HistoryEnd, writeHistory } from "../../src/archive/history.ts";
import { archiveClient } from "../../src/archive/place.ts";
import { type ArchivePlace, ArchiveStore } from "../../src/archive/store.ts";
import { OfflineDatabase } from "../../src/kernel/storage/offline.ts";
import { ENTRY_KEY_PURPOSE } from "../../src/kernel/storage/replication/entry.ts";
import { S3Server } from "../support/s3-server.ts";
import { TestServer, type TestServerOptions } from "../support/server.ts";

/** A master key, so that a copy can be read on another folder. */
export const MASTER_KEY = "5a".repeat(32);

/** An object store, and servers that archive into it. */
export class TestArchive {
  readonly s3 = new S3Server();
  readonly url: string;
  readonly client = archiveClient(null);

  constructor(prefix = "archive") {
    this.url = `s3://${this.s3.bucket}/${prefix}`;
  }

  get environment(): Record<string, string> {
    return { NINEFOLD_MASTER_KEY: MASTER_KEY, ...this.s3.archiveEnvironment };
  }

  /** A server that archives every fifth of a second. */
  server(options: TestServerOptions = {}): TestServer {
    return new TestServer({
      ...options,
      args: ["--archive", this.url, "--archive-interval", "0.2", ...(options.args ?? [])],
      environment: { ...this.environment, ...options.environment },
    });
  }

  get place(): ArchivePlace {
    const { bucket, region, accessKeyId, secretAccessKey, endpoint } = this.s3;
    return {
      bucket: { account: null, endpoint, bucket, region, accessKeyId, secretAccessKey, allowsHttp: true },
      prefix: this.url.replace(`s3://${bucket}/`, "").concat("/"),
    };
  }

  get store(): ArchiveStore {
    return new ArchiveStore(this.client, this.place);
  }

  /** The names of all objects with a beginning. */
  async names(start: string): Promise<string[]> {
    const names: string[] = [];
    for await (const { name } of this.store.list(start)) names.push(name);
    return names;
  }

  /** Writes the state at a time to a file. Null: the archive has none. */
  async restore(server: TestServer, path: string, at: number | null = null): Promise<HistoryEnd | null> {
    const key = server.server.kernel.vault.derive(ENTRY_KEY_PURPOSE);
    const history = await findHistory(this.store, at);
    return history === null ? null : writeHistory(this.store, history, { path, key, at });
  }

  async stop(): Promise<void> {
    this.client.close();
    await this.s3.stop();
  }
}

/** Whether everything is archived, and there is a base. */
export function isArchived({ server }: TestServer): boolean {
  const { archive } = server;
  if (archive === null) throw new Error("the server has no archive");
  const { lagSeconds, baseAt, lastError } = archive.status;
  return lagSeconds === 0 && baseAt !== null && lastError === null;
}

/** The rows of a table in a copy. */
export function rowsIn(path: string, sql: string): Record<string, unknown>[] {
  using db = OfflineDatabase.change(path);
  return db.all<Record<string, unknown>>(sql);
}

/** The files of the tail in a data folder. */
export function tailFiles(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith("ninefold.tail") || name.startsWith("ninefold.base"))
    .map((name) => join(folder, name));
}
