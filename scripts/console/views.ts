/** The addresses that the console is looked at by: every page, every form, what is not there. */
export const VIEWS = [
  "overview",
  "projects",
  "projects?new=1",
  "keys",
  "keys?new=1",
  "meters",
  "meters/customer-42",
  "flags",
  "locks",
  "monitors",
  "monitors?new=1",
  "relay",
  "relay?new=1",
  "catch",
  "catch?new=1",
  "notary",
  "notary?view=verify",
  "audit",
  "audit/1",
  "backups",
  "metrics",
  "settings",
  "nowhere",
];
/** Those whose first row leads further. */
export const WITH_ROWS = ["keys", "flags", "monitors", "relay", "catch", "notary", "audit"];
