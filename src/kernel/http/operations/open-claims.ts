import type { CallerAccount } from "../../callers/caller.ts";
import type { RemoveAccountRows } from "../../projects/resources.ts";
import type { Database } from "../../storage/database.ts";
import type { Tx } from "../../storage/tx.ts";

/** A charge whose request has no outcome yet. */
export interface OpenClaim {
  readonly id: number;
  readonly account_ref: number;
  readonly operation: string;
  readonly cost: number;
}

/** Claims refunded in one unit of work. */
const SLICE = 100;

/**
 * Charges of requests under an `Idempotency-Key` that are between their two units of work. They stand in the database
 * with the charge itself, so that the next start finds and refunds those of a killed server: a repeat runs and is charged again.
 */
export class OpenClaims {
  private readonly insert;
  private readonly delete;
  private readonly select;
  private readonly deleteOfAccount;
  /** The first of this start: earlier ones are nobody's any more. */
  private readonly first: number;
  private next: number;

  constructor(db: Database) {
    this.insert = db.change<[number, number, string, number]>(
      "INSERT INTO open_claims (id, account_ref, operation, cost) VALUES (?, ?, ?, ?)",
    );
    this.delete = db.change<[number]>("DELETE FROM open_claims WHERE id = ?");
    this.select = db.all<OpenClaim, [number]>(
      `SELECT id, account_ref, operation, cost FROM open_claims WHERE id < ? ORDER BY id LIMIT ${SLICE}`,
    );
    this.deleteOfAccount = db.change<[accountRef: number, rowsMax: number]>(
      "DELETE FROM open_claims WHERE id IN (SELECT id FROM open_claims WHERE account_ref = ? LIMIT ?)",
    );
    this.first = db.number("SELECT max(id) AS n FROM open_claims")() + 1;
    this.next = this.first;
  }

  /** Notes a charge in the unit of work that takes it. Returns its number. */
  open(tx: Tx, account: CallerAccount, operation: string, cost: number): number {
    const id = this.next++;
    this.insert(tx, id, account.ref, operation, cost);
    return id;
  }

  /** Strikes it out in the unit of work that records the outcome. */
  close(tx: Tx, id: number): void {
    this.delete(tx, id);
  }

  /** Removes the claims of a deleted account, to which nothing is refunded. There are few claims at any time. */
  readonly removeRows: RemoveAccountRows = (tx, accountRef, rowsMax) =>
    this.deleteOfAccount(tx, accountRef, rowsMax);

  /** Takes out some of those that an earlier run of the server left behind; none when there are no more. */
  takeAbandoned(tx: Tx): readonly OpenClaim[] {
    const claims = this.select(this.first);
    for (const { id } of claims) this.delete(tx, id);
    return claims;
  }
}
