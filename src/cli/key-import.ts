import { type Api, type JsonObject, RejectedRequest } from "../api/http-api.ts";
import { readText } from "../config/sources.ts";
import { INPUT_BYTES_MAX } from "../configuration/import/source.ts";
import { readUnkey, type UnkeyKey, type UnkeyRole } from "../configuration/import/unkey.ts";
import { wallMs } from "../kernel/time/clock.ts";
import { type ListSpec, listAll, pathSegment, withApi } from "./api.ts";
import type { Arguments } from "./arguments.ts";
import { print, printError, printJson } from "./output.ts";

const ROLES: ListSpec = { path: "/v1/keys/roles", items: "roles", cursor: "cursor" };
/** Keys in a request: the maximum of the API. */
const PER_REQUEST = 100;
/** Exit code when keys were skipped or rejected; all others were imported. */
const REJECTED = 1;
/** Statuses of a request that is rejected because of one of its keys, or because of its size. */
const BAD_KEYS: ReadonlySet<number> = new Set([400, 413]);

/** A key that was not imported. */
interface Missing {
  readonly label: string;
  readonly reason: string;
}

/** `ninefold key import FILE…`. Resolves to the exit code. */
export async function keyImport(args: Arguments): Promise<number> {
  const files = args.words.map((path) => ({
    path,
    text: readText(path === "-" ? "/dev/stdin" : path, "key import", { bytesMax: INPUT_BYTES_MAX }),
  }));
  const { roles, keys, skipped, notes } = readUnkey(files, wallMs());
  const imported = await withApi(args, async (api) => {
    const saved = await saveRoles(api, roles);
    for (const name of new Set(keys.flatMap((key) => key.roles)))
      if (!saved.known.has(name))
        saved.notes.push(`role ${name}: is in none of the files; its keys have its permissions themselves`);
    return { ...saved, ...(await importKeys(api, keys, saved.known)) };
  });
  const missing = [...skipped, ...imported.rejected];
  const allNotes = [...notes, ...imported.notes];
  const { created, existing } = imported;
  if (args.has("--json"))
    printJson({ roles: imported.names, imported: created, existing, skipped: missing, notes: allNotes });
  else {
    for (const note of allNotes) printError(note);
    print(`${created} imported, ${existing} were there already.\n`);
    for (const { label, reason } of missing) printError(`${label} was skipped: ${reason}`);
  }
  return missing.length === 0 ? 0 : REJECTED;
}

/** Saves roles that the project does not have. Returns the permissions of all roles, and the names of the new ones. */
async function saveRoles(api: Api, roles: readonly UnkeyRole[]) {
  const notes: string[] = [];
  const names: string[] = [];
  const known = new Map<string, ReadonlySet<string>>();
  for (const { name, permissions } of await listAll(api, ROLES))
    known.set(String(name), new Set(permissions as readonly string[]));
  for (const { name, description, permissions } of roles) {
    const before = known.get(name);
    const isSame = before !== undefined && before.symmetricDifference(new Set(permissions)).size === 0;
    if (before !== undefined && !isSame) notes.push(`role ${name}: has other permissions here, which stay`);
    if (before !== undefined) continue;
    const body = { permissions, ...(description === null ? {} : { description }) };
    await api.send("PUT", `${ROLES.path}/${pathSegment("role", name)}`, body);
    known.set(name, new Set(permissions));
    names.push(name);
  }
  return { known, names, notes };
}

async function importKeys(
  api: Api,
  keys: readonly UnkeyKey[],
  known: ReadonlyMap<string, ReadonlySet<string>>,
) {
  const total = { created: 0, existing: 0, rejected: [] as Missing[] };
  for (let from = 0; from < keys.length; from += PER_REQUEST)
    await importSome(api, keys.slice(from, from + PER_REQUEST), known, total);
  return total;
}

/** Imports keys in one request; if it is rejected, each half of them, until the key is found that is not valid. */
async function importSome(
  api: Api,
  keys: readonly UnkeyKey[],
  known: ReadonlyMap<string, ReadonlySet<string>>,
  total: { created: number; existing: number; readonly rejected: Missing[] },
): Promise<void> {
  try {
    const body = { keys: keys.map((key) => bodyOf(key, known)) };
    const response = await api.send("POST", "/v1/keys/import", body);
    for (const { existing } of response["keys"] as readonly JsonObject[])
      total[existing === true ? "existing" : "created"] += 1;
  } catch (error) {
    if (!(error instanceof RejectedRequest) || !BAD_KEYS.has(error.status)) throw error;
    const [only, second] = keys;
    if (only !== undefined && second === undefined) {
      total.rejected.push({ label: only.label, reason: error.message });
      return;
    }
    const half = Math.ceil(keys.length / 2);
    for (const part of [keys.slice(0, half), keys.slice(half)]) await importSome(api, part, known, total);
  }
}

/** A key with the roles that the project has, and the permissions that it does not have by them. */
function bodyOf({ body, permissions, roles }: UnkeyKey, known: ReadonlyMap<string, ReadonlySet<string>>) {
  const held = roles.filter((role) => known.has(role));
  const byRole = new Set(held.flatMap((role) => [...(known.get(role) ?? [])]));
  const direct = permissions.filter((permission) => !byRole.has(permission));
  return {
    ...body,
    ...(direct.length === 0 ? {} : { permissions: direct }),
    ...(held.length === 0 ? {} : { roles: held }),
  };
}
