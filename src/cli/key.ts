import { type ListSpec, listAll, pathSegment, showAnswer, showList, withApi } from "./api.ts";
import type { Given } from "./arguments.ts";
import type { JsonObject } from "./http-api.ts";

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

/** A key that calls the API with every right of its account: what an operator who has lost the key needs. */
const NAME_DEFAULT = "command line";
const PREFIX_DEFAULT = "sm";
const SCOPES_DEFAULT = ["*"];

/** `ninefold key create`. Resolves to the exit code. */
export async function keyCreate(given: Given): Promise<number> {
  const project = given.text("--project");
  const path = project === null ? KEYS.path : `/v1/projects/${pathSegment("--project", project)}/keys`;
  const key = await withApi(given, (api) => api.send("POST", path, termsOf(given)));
  showAnswer(given, key, CREATED);
  return 0;
}

/** `ninefold key list`. Resolves to the exit code. */
export async function keyList(given: Given): Promise<number> {
  const keys = await withApi(given, (api) => listAll(api, KEYS));
  showList(given, KEYS, keys, COLUMNS);
  return 0;
}

/** `ninefold key revoke KEY_ID`. Resolves to the exit code. */
export async function keyRevoke(given: Given): Promise<number> {
  const path = `${KEYS.path}/${pathSegment("KEY_ID", given.words[0] ?? "")}`;
  const revoked = await withApi(given, (api) => api.send("DELETE", path));
  showAnswer(given, revoked, ["key_id", "status", "revoked_at"]);
  return 0;
}

function termsOf(given: Given): JsonObject {
  const scopes = given.texts("--scope");
  const environment = given.text("--environment");
  const expiresAt = given.text("--expires-at");
  return {
    prefix: given.text("--prefix") ?? PREFIX_DEFAULT,
    name: given.text("--name") ?? NAME_DEFAULT,
    scopes: scopes.length === 0 ? SCOPES_DEFAULT : scopes,
    ...(environment === null ? {} : { environment }),
    ...(expiresAt === null ? {} : { expires_at: expiresAt }),
  };
}
