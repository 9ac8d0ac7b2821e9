import { type ListSpec, listing, pathSegment, printingResponse } from "./api.ts";

const KEYS: ListSpec = { path: "/v1/keys", items: "keys", cursor: "next_cursor" };
const COLUMNS = [
  "id",
  "name",
  "prefix",
  "last4",
  "scopes",
  "project_id",
  "created_at",
  "expires_at",
  "revoked_at",
];
const CREATED = ["key_id", "secret", "name", "scopes", "project_id", "expires_at"];

/** By default a key with every scope of its account, for an operator who has lost the key. */
const NAME_DEFAULT = "command line";
const PREFIX_DEFAULT = "sm";
const SCOPES_DEFAULT = ["*"];

/** `ninefold key create`. */
export const keyCreate = printingResponse(CREATED, (args) => {
  const project = args.text("--project");
  const path = project === null ? KEYS.path : `/v1/projects/${pathSegment("--project", project)}/keys`;
  const scopes = args.texts("--scope");
  // JSON omits undefined fields.
  const body = {
    prefix: args.text("--prefix") ?? PREFIX_DEFAULT,
    name: args.text("--name") ?? NAME_DEFAULT,
    scopes: scopes.length === 0 ? SCOPES_DEFAULT : scopes,
    environment: args.text("--environment") ?? undefined,
    expires_at: args.text("--expires-at") ?? undefined,
  };
  return (api) => api.send("POST", path, body);
});

/** `ninefold key list`. */
export const keyList = listing(KEYS, COLUMNS);

/** `ninefold key revoke KEY_ID`. */
export const keyRevoke = printingResponse(["key_id", "status", "revoked_at"], (args) => {
  const path = `${KEYS.path}/${pathSegment("KEY_ID", args.words[0] ?? "")}`;
  return (api) => api.send("DELETE", path);
});
