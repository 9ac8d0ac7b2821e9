import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { MIGRATIONS } from "../../migrations/index.ts";
import { BackupStage, ninefold, TIMEOUT_MS } from "../backup/support.ts";
import { Client } from "../support/client.ts";
import { unpack } from "./archive.ts";
import { FORMS, type Recorded } from "./world.ts";

const VERSIONS = readdirSync(import.meta.dir, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

const stage = new BackupStage();
afterAll(() => stage.close());

/** Content of a database that an executable of some version reads: its schema version, its tables, and their rows. */
interface Contents {
  readonly schema: unknown;
  readonly tables: readonly unknown[];
  readonly rows: Readonly<Record<string, unknown>>;
}

/** Reads a copy, since reading would change the log of a database. */
function contentsOf(folder: string, name: string): Contents {
  const copy = stage.path(`${name}-copy`);
  cpSync(folder, copy, { recursive: true });
  using db = new Database(join(copy, "ninefold.db"));
  const tables = db.query<{ name: string; sql: string }, []>(
    "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name",
  );
  const found = tables.all();
  const names = found.filter(({ sql }) => sql.startsWith("CREATE TABLE")).map((one) => one.name);
  return {
    schema: db.query("PRAGMA user_version").values()[0]?.[0],
    tables: found,
    rows: Object.fromEntries(
      names.map((name) => [name, db.query(`SELECT count(*) FROM "${name}"`).values()[0]?.[0]]),
    ),
  };
}

/** The documented path for old data: upgrade, check, and roll back with a backup from before. */
describe.each(VERSIONS.flatMap((version) => FORMS.map((form) => [version, form] as const)))(
  "data of %s, %s,",
  (version, form) => {
    test(
      "is upgraded, found whole, and rolled back to what that version could read",
      async () => {
        const name = `${version}-${form}`;
        const folder = stage.path(name);
        mkdirSync(folder, { mode: 0o700 });
        const kept = join(import.meta.dir, version, form);
        unpack(`${kept}.tar.zst`, folder);
        const { keys, reads } = JSON.parse(readFileSync(`${kept}.json`, "utf8")) as Recorded;
        const old = contentsOf(folder, name);
        const data = ["--data", folder];
        const doctor = async (): Promise<string> => {
          const { code, out } = await ninefold(["doctor", ...data, "--dns-name", "localhost", "--port", "0"]);
          expect([out, code]).toEqual([expect.stringContaining("\nA server can run here.\n"), 0]);
          return out;
        };
        const balance = "/v1/meter/customer-1/balance";
        const recorded = reads.find(({ as, path }) => as === "scale" && path === balance);
        const start = async (): Promise<void> => {
          const server = await stage.start(name);
          const { status, body } = await new Client(server.url, String(keys["scale"])).get(balance);
          expect({ status, body }).toMatchObject({ status: 200, body: recorded?.answer as object });
          expect(await server.stop()).toBe(0);
        };

        // Before the upgrade: the backup has the old content, and no migration.
        expect(await doctor()).toContain(`schema ${old.schema}; the next start applies`);
        const before = stage.path(`${name}.db`);
        const result = await ninefold(["backup", before, "--verify", ...data]);
        expect([result.error, result.code]).toEqual(["", 0]);

        await start();
        expect(await doctor()).toContain(`schema ${MIGRATIONS.length}\n`);
        const after = await ninefold(["backup", stage.path(`${name}-after.db`), "--verify", ...data]);
        expect([after.error, after.code]).toEqual(["", 0]);

        const restored = await ninefold(["restore", before, "--force", ...data]);
        expect([restored.error, restored.code]).toEqual(["", 0]);
        expect(restored.out).toContain("the master key fits");
        // A restore records itself as a setting; versions read only known settings.
        const settings = Number(old.rows["settings"]) + 1;
        expect(contentsOf(folder, `${name}-restored`)).toEqual({ ...old, rows: { ...old.rows, settings } });
        // Nothing is lost by the upgrade and the rollback.
        await start();
      },
      TIMEOUT_MS,
    );
  },
);
