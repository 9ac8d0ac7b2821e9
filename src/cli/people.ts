import { openFolder } from "../api/folder-api.ts";
import type { Api } from "../api/http-api.ts";
import { UsageError } from "../config/command-line.ts";
import { flagsGiven } from "../config/sources.ts";
import { resolveFolderConfig } from "../config.ts";
import { urlOf, withLocalhost } from "../kernel/data/addresses.ts";
import { StartupError } from "../kernel/errors.ts";
import { isoTime } from "../kernel/time/date-time.ts";
import { type ListSpec, listAll, listing, pathSegment, printingResponse } from "./api.ts";
import type { Arguments } from "./arguments.ts";
import { printFields, printJson } from "./output.ts";

const PEOPLE: ListSpec = { path: "/v1/people", items: "people", cursor: "cursor" };
const COLUMNS = ["person_id", "email", "name", "role", "status", "last_seen_at"];

/** `ninefold people list`. */
export const peopleList = listing(PEOPLE, COLUMNS);

/** `ninefold people invite EMAIL --role ROLE`. */
export const peopleInvite = printingResponse(
  ["person_id", "email", "role", "invitation_url", "invitation_expires_at"],
  (args) => {
    const role = args.text("--role");
    if (role === null) throw new UsageError("people invite needs --role.");
    const body = { email: args.words[0], role, name: args.text("--name") ?? undefined };
    return (api) => api.send("POST", PEOPLE.path, body);
  },
);

/** `ninefold people disable PERSON`. */
export const peopleDisable = printingResponse(
  ["person_id", "email", "role", "status"],
  (args) => async (api) => {
    const id = await personIdOf(api, args.words[0] ?? "");
    return api.send("PATCH", `${PEOPLE.path}/${pathSegment("PERSON", id)}`, { disabled: true });
  },
);

/** `ninefold people login-link EMAIL --data FOLDER`. Resolves to the exit code. */
export async function peopleLoginLink(args: Arguments): Promise<number> {
  const folder = resolveFolderConfig(flagsGiven(args.line)).dataFolder;
  const { app, config, close } = await openFolder(folder, args.line);
  try {
    const { path, expiresAt } = await app.createLoginLink(args.words[0] ?? "", args.text("--account"));
    const link = {
      url: (config.publicUrl ?? withLocalhost(urlOf(config))) + path,
      expires_at: isoTime(expiresAt),
    };
    if (args.has("--json")) printJson(link);
    else printFields(Object.entries(link));
    return 0;
  } finally {
    await close();
  }
}

/** Finds a person by their e-mail address, which is not case-sensitive. */
async function personIdOf(api: Api, person: string): Promise<string> {
  if (!person.includes("@")) return person;
  const people = await listAll(api, PEOPLE);
  const found = people.find(({ email }) => String(email).toLowerCase() === person.toLowerCase());
  if (found === undefined) throw new StartupError(`There is no person with the e-mail address ${person}.`);
  return String(found["person_id"]);
}
