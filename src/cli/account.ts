import { UsageError } from "../config/command-line.ts";
import { StartupError } from "../kernel/errors.ts";
import { type ListSpec, listAll, pathSegment, showAnswer, showList, withApi } from "./api.ts";
import type { Given } from "./arguments.ts";
import type { Api, JsonObject } from "./http-api.ts";

const ACCOUNTS: ListSpec = { path: "/v1/admin/accounts", items: "accounts", cursor: "cursor" };
const COLUMNS = ["user_id", "email", "tier", "balance", "suspended", "created_at"];

/** `ninefold account create EMAIL`. Resolves to the exit code. */
export async function accountCreate(given: Given): Promise<number> {
  const body = { email: given.words[0], ...termsOf(given), tier: given.text("--tier") ?? "free" };
  const account = await withApi(given, (api) => api.send("POST", ACCOUNTS.path, body));
  showAnswer(given, account, ["user_id", "email", "tier", "balance", "api_key"]);
  return 0;
}

/** `ninefold account list`. Resolves to the exit code. */
export async function accountList(given: Given): Promise<number> {
  const accounts = await withApi(given, (api) => listAll(api, ACCOUNTS));
  showList(given, ACCOUNTS, accounts, COLUMNS);
  return 0;
}

/** `ninefold account set USER`. Resolves to the exit code. */
export async function accountSet(given: Given): Promise<number> {
  const change = termsOf(given);
  if (Object.keys(change).length === 0) {
    throw new UsageError("account set needs --tier, --balance or --suspended: what is to change.");
  }
  const account = await withApi(given, async (api) => {
    const userId = await userIdOf(api, given.words[0] ?? "");
    return api.send("PATCH", `${ACCOUNTS.path}/${pathSegment("USER", userId)}`, change);
  });
  showAnswer(given, account, COLUMNS);
  return 0;
}

/** `ninefold account reset-key USER`. Resolves to the exit code. */
export async function accountResetKey(given: Given): Promise<number> {
  const reset = await withApi(given, async (api) => {
    const userId = await userIdOf(api, given.words[0] ?? "");
    return api.send("POST", `${ACCOUNTS.path}/${pathSegment("USER", userId)}/reset-key`);
  });
  showAnswer(given, reset, ["user_id", "api_key", "reset_at"]);
  return 0;
}

function termsOf(given: Given): JsonObject {
  const tier = given.text("--tier");
  const balance = given.integer("--balance");
  const suspended = given.text("--suspended");
  return {
    ...(tier === null ? {} : { tier }),
    ...(balance === null ? {} : { balance }),
    ...(suspended === null ? {} : { suspended: suspended === "true" }),
  };
}

/** An e-mail address stands for its account; addresses compare without case. */
async function userIdOf(api: Api, user: string): Promise<string> {
  if (!user.includes("@")) return user;
  const accounts = await listAll(api, ACCOUNTS);
  const found = accounts.find(({ email }) => String(email).toLowerCase() === user.toLowerCase());
  if (found === undefined) throw new StartupError(`There is no account with the e-mail address ${user}.`);
  return String(found["user_id"]);
}
