import type { HttpResponse } from "../processes/connection.ts";
import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  Recorded,
  type Target,
  type TargetRequest,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const ACCOUNTS = 6;
/** Below the limit of an account, above which a new session ends the oldest. */
const SESSIONS_MAX = 12;
/** Maximum of rejected logins of a verification: after ten the server rejects all logins of this machine. */
const REJECTIONS_MAX = 8;
/** Above the limit of logins a minute: nothing was done. */
const TOO_MANY = 429;
/** Ended sessions that are verified again after later kills. */
const ENDED_KEPT = 10;
/** Headers that the server's pages send. */
const PAGE = { "X-Ninefold-Session": "1" };

/** A session, by its cookie. */
interface Opened {
  readonly cookie: string;
  state: "open" | "ended" | "in doubt";
}

interface Link {
  readonly token: string;
  state: "fresh" | "used" | "in doubt";
}

/** One operation at a time per account, so that sessions can be identified. */
interface User {
  readonly key: string;
  busy: boolean;
  sessions: Opened[];
  links: Link[];
  /** Logins without a response: their cookies are unknown. */
  unknown: number;
  endedBefore: Opened[];
}

/**
 * Browsers that log in by keys and links, and log out. An acknowledged session exists, an ended one stays
 * ended, and a link opens one session, at any kill of the server.
 */
export class SessionWorkload extends Recorded implements Workload {
  readonly name = "sessions";
  readonly weight = 1;
  private users: User[] = [];

  async prepare(target: Target): Promise<void> {
    for (let index = 0; index < ACCOUNTS; index += 1) {
      // This tier, because only operators create links.
      const key = await createAccount(target, `sessions-${index}@example.com`, "unlimited");
      const user: User = { key, busy: false, sessions: [], links: [], unknown: 0, endedBefore: [] };
      await this.logIn(user, { key }, target);
      this.users.push(user);
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const user = random.pick(this.users);
    if (user.busy) return;
    user.busy = true;
    try {
      await this.actAs(user, target, random);
    } finally {
      user.busy = false;
    }
  }

  async verify(target: Target): Promise<string[]> {
    let rejections = 0;
    for (const user of this.users) {
      await this.compareSessions(user, target);
      // Links in doubt first: they can have been used.
      for (const link of user.links.toSorted((a) => (a.state === "in doubt" ? -1 : 1))) {
        if (rejections < REJECTIONS_MAX) rejections += await this.compareLink(user, link, target);
      }
      await this.endAll(user, target);
    }
    return this.problems.splice(0).map((problem) => `sessions: ${problem}`);
  }

  private async actAs(user: User, target: Target, random: Random): Promise<void> {
    const open = user.sessions.filter(({ state }) => state === "open");
    const isFull = user.sessions.length + user.unknown >= SESSIONS_MAX;
    const choice = random.below(10);
    const link = user.links.find(({ state }) => state === "fresh");
    // One stays, so that there is always a session that must survive a kill.
    if (open.length > 1 && (choice < 4 || isFull)) await this.end(random.pick(open), target);
    else if (isFull) return;
    else if (choice < 6) await this.logIn(user, { key: user.key }, target);
    else if (link !== undefined && choice < 9) await this.follow(user, link, target);
    else await this.makeLink(user, target);
  }

  private async end(session: Opened, target: Target): Promise<void> {
    session.state = "in doubt";
    const response = await target.send({
      ...asPage({ cookie: session.cookie }),
      method: "DELETE",
      path: "/v1/session",
    });
    if (this.counted(response))
      session.state = response?.status === 204 ? "ended" : this.odd(response, "open");
    else if (response !== null) session.state = "open";
  }

  /** Returns the response's status; null without one. */
  private async logIn(user: User, body: object, target: Target): Promise<number | null> {
    const response = await target.send(logInWith(body));
    if (response?.status === TOO_MANY) return TOO_MANY;
    if (this.counted(response)) this.keep(user, response);
    else if (response === null) user.unknown += 1;
    return response?.status ?? null;
  }

  private keep(user: User, response: HttpResponse | null): void {
    const [cookie = ""] = response?.headers.get("set-cookie")?.split(";") ?? [];
    if (response?.status === 201) user.sessions.push({ cookie, state: "open" });
    else this.odd(response, null);
  }

  private async follow(user: User, link: Link, target: Target): Promise<void> {
    link.state = "in doubt";
    const status = await this.logIn(user, { link: link.token }, target);
    if (status !== null) link.state = status === UNAVAILABLE || status === TOO_MANY ? "fresh" : "used";
  }

  private async makeLink(user: User, target: Target): Promise<void> {
    const response = await target.send({ method: "POST", path: "/v1/admin/login-links", key: user.key });
    if (!this.counted(response)) return;
    const token = String(bodyOf(response as HttpResponse)["url"]).split("/setup/")[1];
    if (token === undefined) this.odd(response, null);
    else user.links.push({ token, state: "fresh" });
  }

  private async compareSessions({ sessions, endedBefore }: User, target: Target): Promise<void> {
    for (const session of [...sessions, ...endedBefore]) {
      const isOpen = await this.isOpen(session, target);
      if (session.state === "in doubt" && !isOpen) this.counts.happened += 1;
      if (session.state === "open" && !isOpen) this.problems.push("one that was opened is not there");
      if (session.state === "ended" && isOpen) this.problems.push("one that was ended works again");
      session.state = isOpen ? "open" : "ended";
    }
  }

  /** Returns the number of log-ins that were rejected. */
  private async compareLink(user: User, link: Link, target: Target): Promise<number> {
    const response = await target.ask(logInWith({ link: link.token }));
    // A later verification checks it.
    if (response.status === TOO_MANY) return 0;
    if (response.status === 201) {
      this.keep(user, response);
      if (link.state === "used") {
        this.problems.push("a link has opened a second session");
        return 0;
      }
      // It was not used.
      if (link.state === "in doubt") user.unknown -= 1;
      link.state = "used";
      return this.compareLink(user, link, target);
    }
    if (response.status !== 401) this.odd(response, null);
    if (link.state === "fresh") this.problems.push("a link that was made and not used opens nothing");
    if (link.state === "in doubt") this.counts.happened += 1;
    link.state = "used";
    return 1;
  }

  /** Ends remaining sessions and verifies it: the next load starts without any. */
  private async endAll(user: User, target: Target): Promise<void> {
    const response = await target.ask({ method: "DELETE", path: "/v1/sessions", key: user.key });
    const ended = Number(bodyOf(response)["ended"]);
    const open = user.sessions.filter(({ state }) => state === "open");
    if (!(ended >= open.length && ended <= open.length + user.unknown)) {
      this.problems.push(
        `${ended} were there, ${open.length} to ${open.length + user.unknown} would be right`,
      );
    }
    for (const session of open) {
      session.state = "ended";
      if (await this.isOpen(session, target)) this.problems.push("one works after all were ended");
    }
    user.endedBefore = [...user.endedBefore, ...user.sessions].slice(-ENDED_KEPT);
    Object.assign(user, { sessions: [], unknown: 0 });
    // Unused ones are used after the next kill.
    user.links = user.links.filter(({ state }) => state === "fresh");
  }

  private async isOpen({ cookie }: Opened, target: Target): Promise<boolean> {
    const request = { ...asPage({ cookie }), method: "GET", path: "/v1/session" } as const;
    const response = await target.ask(request);
    if (response.status !== 200) this.odd(response, null);
    return bodyOf(response)["session"] !== null;
  }

  /** Whether a response says that something was done or rejected. */
  private counted(response: HttpResponse | null): boolean {
    if (response === null) this.counts.inDoubt += 1;
    if (response === null || response.status === UNAVAILABLE) return false;
    this.counts.acknowledged += 1;
    return true;
  }

  private odd<T>(response: HttpResponse | null, value: T): T {
    this.problems.push(`unexpected response ${response?.status} ${response?.text}`);
    return value;
  }
}

function asPage({ cookie }: { cookie?: string }): Pick<TargetRequest, "key" | "headers"> {
  return { key: null, headers: { ...PAGE, ...(cookie === undefined ? {} : { Cookie: cookie }) } };
}

function logInWith(body: object): TargetRequest {
  return { ...asPage({}), method: "POST", path: "/v1/session", body };
}
