import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** What a new project's row holds. */
export interface NewProject {
  readonly ref: number;
  readonly id: string;
  readonly accountRef: number;
  readonly name: string;
  readonly slug: string;
  readonly description: string | null;
  readonly isDefault: boolean;
}

/** All SQL of projects. */
export class ProjectStore {
  private readonly insertProject;
  private readonly defaultByAccount;
  private readonly highest;

  constructor(db: Database) {
    this.insertProject = db.command<
      [number, string, number, string, string, string | null, number, number, number]
    >(
      "INSERT INTO projects (ref, id, account_ref, name, slug, description, is_default, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    );
    this.defaultByAccount = db.query<{ ref: number; id: string }, [number]>(
      "SELECT ref, id FROM projects WHERE account_ref = ? AND is_default = 1",
    );
    this.highest = db.query<{ ref: number | null }>("SELECT max(ref) AS ref FROM projects");
  }

  /** The largest reference given so far; 0 when there is none. */
  highestRef(): number {
    return this.highest.get()?.ref ?? 0;
  }

  insert(tx: Tx, project: NewProject): void {
    const { ref, id, accountRef, name, slug, description, isDefault } = project;
    this.insertProject.run(
      tx,
      ref,
      id,
      accountRef,
      name,
      slug,
      description,
      isDefault ? 1 : 0,
      tx.now,
      tx.now,
    );
  }

  defaultOf(accountRef: number): { ref: number; id: string } | null {
    return this.defaultByAccount.get(accountRef);
  }
}
