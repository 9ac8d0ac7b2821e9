import type { Database } from "../../../kernel/storage/database.ts";

/** A subscriber of a page as stored. */
export type SubscriberRow = {
  readonly ref: number;
  readonly pageRef: number;
  readonly accountRef: number;
  readonly projectRef: number;
  /** In lower case. */
  readonly email: string;
  readonly createdAt: number;
  /** Epoch milliseconds; null: the address is not confirmed. */
  readonly confirmedAt: number | null;
  /** When it was carried over from another status page, epoch milliseconds; null: they subscribed here. */
  readonly importedAt: number | null;
};

const SELECT = `SELECT ref, page_ref AS pageRef, account_ref AS accountRef, project_ref AS projectRef, email,
  created_at AS createdAt, confirmed_at AS confirmedAt, imported_at AS importedAt FROM status_subscribers`;

export type SubscriberStore = ReturnType<typeof subscriberStore>;

/** All SQL of the subscribers of status pages. */
export function subscriberStore(db: Database) {
  return {
    find: db.one<SubscriberRow, [ref: number]>(`${SELECT} WHERE ref = ?`),
    findByEmail: db.one<SubscriberRow, [pageRef: number, email: string]>(
      `${SELECT} WHERE page_ref = ? AND email = ?`,
    ),
    /** Confirmed subscribers of a project's pages, oldest first. */
    after: db.all<SubscriberRow, [projectRef: number, after: number, rowsMax: number]>(
      `${SELECT} WHERE project_ref = ? AND ref > ? AND confirmed_at IS NOT NULL ORDER BY ref LIMIT ?`,
    ),
    /** The account of a project with confirmed subscribers; null without any. */
    ownerOf: db.one<{ readonly accountRef: number }, [projectRef: number]>(
      "SELECT account_ref AS accountRef FROM status_subscribers WHERE project_ref = ? AND confirmed_at IS NOT NULL LIMIT 1",
    ),
    confirmedCount: db.number<[pageRef: number]>(
      "SELECT count(*) AS n FROM status_subscribers WHERE page_ref = ? AND confirmed_at IS NOT NULL",
    ),
    unconfirmedCount: db.number<[pageRef: number]>(
      "SELECT count(*) AS n FROM status_subscribers WHERE page_ref = ? AND confirmed_at IS NULL",
    ),
    insert: db.change<[Omit<SubscriberRow, "ref" | "confirmedAt" | "importedAt">]>(
      `INSERT INTO status_subscribers (page_ref, account_ref, project_ref, email, created_at)
       VALUES ($pageRef, $accountRef, $projectRef, $email, $createdAt)`,
    ),
    /** Adds a confirmed subscriber, or confirms the one with this address. */
    insertConfirmed: db.change<[Omit<SubscriberRow, "ref">]>(
      `INSERT INTO status_subscribers (page_ref, account_ref, project_ref, email, created_at, confirmed_at, imported_at)
       VALUES ($pageRef, $accountRef, $projectRef, $email, $createdAt, $confirmedAt, $importedAt)
       ON CONFLICT (page_ref, email) DO UPDATE SET confirmed_at = $confirmedAt, imported_at = $importedAt WHERE confirmed_at IS NULL`,
    ),
    renew: db.change<[now: number, ref: number]>(
      "UPDATE status_subscribers SET created_at = ? WHERE ref = ?",
    ),
    confirm: db.change<[now: number, ref: number]>(
      "UPDATE status_subscribers SET confirmed_at = ? WHERE ref = ? AND confirmed_at IS NULL",
    ),
    remove: db.change<[ref: number]>("DELETE FROM status_subscribers WHERE ref = ?"),
    removeOfPage: db.change<[pageRef: number, rowsMax: number]>(
      "DELETE FROM status_subscribers WHERE ref IN (SELECT ref FROM status_subscribers WHERE page_ref = ? LIMIT ?)",
    ),
    removeOfProject: db.change<[projectRef: number, rowsMax: number]>(
      "DELETE FROM status_subscribers WHERE ref IN (SELECT ref FROM status_subscribers WHERE project_ref = ? LIMIT ?)",
    ),
    /** Whether an address has unsubscribed from a page. */
    hasUnsubscribed: db.number<[pageRef: number, digest: Uint8Array]>(
      "SELECT count(*) AS n FROM status_unsubscribed WHERE page_ref = ? AND digest = ?",
    ),
    unsubscribedCount: db.number<[pageRef: number]>(
      "SELECT count(*) AS n FROM status_unsubscribed WHERE page_ref = ?",
    ),
    insertUnsubscribed: db.change<[pageRef: number, projectRef: number, digest: Uint8Array]>(
      "INSERT OR IGNORE INTO status_unsubscribed (page_ref, project_ref, digest) VALUES (?, ?, ?)",
    ),
    removeUnsubscribed: db.change<[pageRef: number, digest: Uint8Array]>(
      "DELETE FROM status_unsubscribed WHERE page_ref = ? AND digest = ?",
    ),
    removeFirstUnsubscribed: db.change<[pageRef: number]>(
      "DELETE FROM status_unsubscribed WHERE ref = (SELECT min(ref) FROM status_unsubscribed WHERE page_ref = ?)",
    ),
    removeUnsubscribedOfPage: db.change<[pageRef: number, rowsMax: number]>(
      "DELETE FROM status_unsubscribed WHERE ref IN (SELECT ref FROM status_unsubscribed WHERE page_ref = ? LIMIT ?)",
    ),
    removeUnsubscribedOfProject: db.change<[projectRef: number, rowsMax: number]>(
      "DELETE FROM status_unsubscribed WHERE ref IN (SELECT ref FROM status_unsubscribed WHERE project_ref = ? LIMIT ?)",
    ),
    removeUnconfirmed: db.change<[before: number, rowsMax: number]>(
      "DELETE FROM status_subscribers WHERE ref IN (SELECT ref FROM status_subscribers WHERE confirmed_at IS NULL AND created_at < ? LIMIT ?)",
    ),
  };
}
