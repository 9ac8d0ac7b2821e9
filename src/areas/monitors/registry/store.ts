import type { Database } from "../../../kernel/storage/database.ts";

/** The bootstrap file that was read last. */
interface StoredBootstrap {
  /** Where it is from; empty for the built-in one. */
  readonly source: string;
  /** Epoch milliseconds. */
  readonly refreshedAt: number;
  /** As it was read; null: the built-in one. */
  readonly file: string | null;
}

export type RegistryStore = ReturnType<typeof registryStore>;

/** All SQL of bootstrap files of RDAP. */
export function registryStore(db: Database) {
  return {
    bootstrap: db.one<StoredBootstrap, []>(
      "SELECT source, refreshed_at AS refreshedAt, file FROM rdap_bootstrap WHERE id = 1",
    ),
    setBootstrap: db.change<[source: string, refreshedAt: number, file: string | null]>(
      "INSERT OR REPLACE INTO rdap_bootstrap (id, source, refreshed_at, file) VALUES (1, ?, ?, ?)",
    ),
    /** Whether there is a domain monitor. */
    hasDomains: db.number("SELECT 1 AS n FROM monitors WHERE type = 'domain' LIMIT 1"),
  };
}
