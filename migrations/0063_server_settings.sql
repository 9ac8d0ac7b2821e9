-- Options of the server that its operator has set in the console. A flag, a variable and the file win.
CREATE TABLE server_settings (
  name   TEXT PRIMARY KEY,
  value  TEXT, -- JSON; null for a secret
  sealed BLOB  -- JSON, sealed under the master key
) STRICT, WITHOUT ROWID;
