import type { Api } from "../api/http-api.ts";
import { UsageError } from "../config/command-line.ts";
import { StartupError } from "../kernel/errors.ts";
import { type ListSpec, listAll, listing, pathSegment, printingResponse, withApi } from "./api.ts";
import type { Arguments } from "./arguments.ts";
import { printBytes } from "./output.ts";

const ACCOUNTS: ListSpec = { path: "/v1/admin/accounts", items: "accounts", cursor: "cursor" };
const COLUMNS = ["user_id", "email", "tier", "balance", "suspended", "created_at"];

/** `ninefold account create EMAIL`. */
export const accountCreate = printingResponse(["user_id", "email", "tier", "balance", "api_key"], (args) => {
  const body = { email: args.words[0], ...termsOf(args), tier: args.text("--tier") ?? "free" };
  return (api) => api.send("POST", ACCOUNTS.path, body);
});

/** `ninefold account list`. */
export const accountList = listing(ACCOUNTS, COLUMNS);

/** `ninefold account set USER`. */
export const accountSet = printingResponse(COLUMNS, (args) => {
  const change = { email: args.text("--email") ?? undefined, ...termsOf(args) };
  if (Object.values(change).every((value) => value === undefined)) {
    throw new UsageError("account set needs at least one of --email, --tier, --balance and --suspended.");
  }
  return async (api) => api.send("PATCH", await pathOf(api, args), change);
});

/** The last line of a complete export begins with this. */
const EXPORT_END = '{"type":"end"';
/** Bytes of an export that are searched for its last line. */
const EXPORT_END_BYTES = 512;

/** `ninefold account export USER`: prints everything of an account, one JSON object per line. */
export function accountExport(args: Arguments): Promise<number> {
  return withApi(args, async (api) => {
    let last = Buffer.alloc(0);
    await api.stream(`${await pathOf(api, args)}/export`, (bytes) => {
      last = Buffer.concat([last, bytes.subarray(-EXPORT_END_BYTES)]).subarray(-EXPORT_END_BYTES);
      printBytes(bytes);
    });
    const [end = ""] = last.toString().trimEnd().split("\n").slice(-1);
    if (!end.startsWith(EXPORT_END))
      throw new StartupError("The export is incomplete: its last line is missing. Try again.");
    return 0;
  });
}

/** `ninefold account delete USER --yes`. */
export const accountDelete = printingResponse(["user_id", "deleted_at"], (args) => {
  if (!args.has("--yes")) {
    throw new UsageError(
      "account delete removes everything of the account and cannot be undone. Confirm it with --yes.",
    );
  }
  return async (api) => api.send("DELETE", await pathOf(api, args));
});

/** `ninefold account reset-key USER`. */
export const accountResetKey = printingResponse(
  ["user_id", "api_key", "reset_at"],
  (args) => async (api) => api.send("POST", `${await pathOf(api, args)}/reset-key`),
);

/** The account fields given as options; JSON omits undefined ones. */
function termsOf(args: Arguments) {
  const suspended = args.text("--suspended");
  return {
    tier: args.text("--tier") ?? undefined,
    balance: args.integer("--balance") ?? undefined,
    suspended: suspended === null ? undefined : suspended === "true",
  };
}

async function pathOf(api: Api, { words: [user = ""] }: Arguments): Promise<string> {
  return `${ACCOUNTS.path}/${pathSegment("USER", await userIdOf(api, user))}`;
}

/** Finds an account by its e-mail address, which is not case-sensitive. */
async function userIdOf(api: Api, user: string): Promise<string> {
  if (!user.includes("@")) return user;
  const accounts = await listAll(api, ACCOUNTS);
  const found = accounts.find(({ email }) => String(email).toLowerCase() === user.toLowerCase());
  if (found === undefined) throw new StartupError(`There is no account with the e-mail address ${user}.`);
  return String(found["user_id"]);
}
