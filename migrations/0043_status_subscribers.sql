-- People who want an e-mail about the incidents of a status page.
CREATE TABLE status_subscribers (
  ref          INTEGER PRIMARY KEY AUTOINCREMENT,
  page_ref     INTEGER NOT NULL,
  account_ref  INTEGER NOT NULL,
  project_ref  INTEGER NOT NULL,
  email        TEXT    NOT NULL, -- in lower case
  created_at   INTEGER NOT NULL, -- epoch milliseconds, as the other
  confirmed_at INTEGER           -- null: the address is not confirmed
) STRICT;
CREATE UNIQUE INDEX status_subscribers_by_email ON status_subscribers (page_ref, email);
CREATE INDEX status_subscribers_by_project ON status_subscribers (project_ref, ref);
CREATE INDEX status_subscribers_unconfirmed ON status_subscribers (created_at) WHERE confirmed_at IS NULL;
