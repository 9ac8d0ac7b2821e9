import type { RestoreStep } from "../../kernel/data/backup-check.ts";

const TABLE = "server_settings";
const IS_ARCHIVE = "substr(name, 1, 7) = 'archive'";

/** Removes the stored archive: a restored copy must not write into the archive of the server that it is a copy of. */
export const removeStoredArchive: RestoreStep = (db) => {
  if (!db.hasTable(TABLE) || db.get(`SELECT 1 FROM ${TABLE} WHERE ${IS_ARCHIVE}`) === null) return [];
  db.execute(`DELETE FROM ${TABLE} WHERE ${IS_ARCHIVE}`);
  return [
    "archive   the archive of the settings is removed: set it again, if this server replaces the old one",
  ];
};

/** Removes the stored settings that a lost master key has sealed, and what is useless without them. */
export const forgetServerSecrets: RestoreStep = (db) => {
  if (!db.hasTable(TABLE) || db.get(`SELECT 1 FROM ${TABLE} WHERE sealed IS NOT NULL`) === null) return [];
  db.execute(`DELETE FROM ${TABLE} WHERE sealed IS NOT NULL OR ${IS_ARCHIVE} OR name = 'mail_from'`);
  return ["lost      the stored settings of the mail server and of the archive: set them again"];
};
