import { apiOf } from "../api/folder-api.ts";
import type { App } from "../app.ts";
import { StartupError } from "../kernel/errors.ts";
import { applyPlans, createsKeys } from "./apply.ts";
import { readFile } from "./file.ts";
import { kindsOf } from "./kinds.ts";
import { planOf } from "./plan.ts";

/**
 * Applies a configuration file to a server before its first request, as its operator. Nothing is deleted.
 * @throws StartupError for a mistake in the file, and at the first failure.
 */
export async function applyAtStart(app: App, path: string): Promise<void> {
  const kinds = kindsOf(app.http.routes);
  const api = apiOf(app, app.accounts.operatorKey());
  const plans = await planOf({ api, kinds, path, prune: false }, readFile(path, kinds));
  if (createsKeys(plans))
    throw new StartupError(
      `${path} creates keys, whose secrets would be lost at a start: use ninefold apply with --secrets-out.`,
    );
  await applyPlans(api, plans, null, () => undefined);
}
