import { call } from "../core/api.ts";
import { openSession } from "../core/login.ts";
import { passkeyProblem } from "../core/passkeys.ts";
import { go } from "../core/route.ts";
import { mayCall, session, showError } from "../core/session.ts";
import { resume } from "../core/step-up.ts";
import { toast } from "../core/toasts.ts";

/** Opens the console: reads the session, and continues what the browser left for. */
export async function open(): Promise<void> {
  const by = await openSession();
  if (!session.peek()) return;
  try {
    if (by === "link") await leadToPasskey();
    const done = await resume();
    if (done !== null) await showDone(done);
  } catch (error) {
    showError(error);
  }
}

/** A login link leads to a passkey: of an account without people, or of the person who follows it. */
async function leadToPasskey(): Promise<void> {
  if (passkeyProblem() !== null) return;
  if (session.peek()?.person !== undefined) {
    const { passkeys } = await call("people.me.passkeys.list", {});
    if (!passkeys.some(({ usable }) => usable)) go(["profile"]);
  } else if (mayCall("people.create")) {
    const { people } = await call("people.list", { query: { limit: 1 } });
    if (people.length === 0) go(["profile"]);
  }
}

/** Members of responses that are shown once. */
const SECRETS = ["secret", "new_secret", "api_key", "key", "invitation_url", "url"] as const;

/** Shows the outcome of a request that was repeated after the login at a provider. */
async function showDone({ method, answer }: { method: string; answer: unknown }): Promise<void> {
  if (method === "GET") {
    toast("Your login is confirmed. Try it again.");
    return;
  }
  const members = typeof answer === "object" && answer !== null ? answer : {};
  const secret = SECRETS.map((name) => Reflect.get(members, name)).find((value) => typeof value === "string");
  if (secret === undefined) toast("Your login is confirmed, and it is done.");
  else (await import("../pages/keys/secret.tsx")).openSecret("Done", secret);
}
