import { networkOf } from "../../kernel/data/addresses.ts";
import { ApiError, errorText } from "../../kernel/errors.ts";
import { AttemptLimiter } from "../../kernel/http/access/guard.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { MailQueue } from "../../kernel/mail/outbox.ts";
import { keyDigest } from "../../kernel/secrets/key-format.ts";
import { type Clock, realDelay } from "../../kernel/time/clock.ts";
import {
  EMAIL_LINK_MS,
  EMAIL_LINKS_MAX,
  EMAIL_LINKS_WINDOW_MS,
  setCookie,
  TOKEN_BYTES,
  TOKEN_LENGTH,
} from "./domain.ts";
import { loginMail } from "./mails.ts";
import type { SessionAccounts, SessionPeople } from "./ports.ts";

/** What links by e-mail are built on. */
export interface EmailLinksDeps extends Pick<Kernel, "clock" | "ids" | "writer" | "log"> {
  readonly people: SessionPeople;
  readonly accounts: SessionAccounts;
  readonly outbox: MailQueue;
  /** Whether the configuration permits them. */
  readonly emailLinks: boolean;
  /** The clock of the limits. */
  readonly limitClock: Pick<Clock, "monotonic">;
}

/** The browser that requests a link. */
interface EmailLinkRequest {
  readonly email: string;
  readonly clientAddress: string;
  /** Name and value of the cookie that binds links to this browser; null for a browser without it. */
  readonly cookieName: string;
  readonly cookie: string | null;
  /** What links begin with. */
  readonly linkUrl: string;
}

/** Shortest and longest time until a requested link is created, in milliseconds of real time. */
const DELAY_MS = { least: 20, more: 180 };

/** Links that are sent by e-mail and log in the browser that has requested them. */
export class EmailLinks {
  private readonly toAddresses: AttemptLimiter;
  private readonly fromNetworks: AttemptLimiter;

  constructor(private readonly deps: EmailLinksDeps) {
    this.toAddresses = new AttemptLimiter(deps.limitClock, EMAIL_LINKS_MAX, EMAIL_LINKS_WINDOW_MS);
    this.fromNetworks = new AttemptLimiter(deps.limitClock, EMAIL_LINKS_MAX, EMAIL_LINKS_WINDOW_MS);
  }

  /** Whether the server sends them. */
  get available(): boolean {
    return this.deps.emailLinks && this.deps.outbox.available;
  }

  /**
   * Sends a link to an address, if somebody has it. Returns the header that sets the browser's cookie. Nothing that it does for
   * a known address alone happens before the response, so that nobody learns who is known.
   * @throws ApiError `not_found` if the server sends none, `rate_limit_exceeded` for a network with too many.
   */
  request({ email, clientAddress, cookieName, cookie, linkUrl }: EmailLinkRequest): string {
    if (!this.available)
      throw new ApiError("not_found", "This server sends no login links by e-mail. Log in another way.");
    const retryAfterSeconds = this.fromNetworks.take(networkOf(clientAddress));
    if (retryAfterSeconds > 0) {
      const message = `Too many login links were requested from this address. Retry in ${retryAfterSeconds} s.`;
      throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds });
    }
    const { ids, clock } = this.deps;
    // A browser keeps its cookie, so that each of several links works there.
    const token =
      cookie?.length === TOKEN_LENGTH ? cookie : Buffer.from(ids.bytes(TOKEN_BYTES)).toString("base64url");
    if (this.toAddresses.take(email.toLowerCase()) === 0)
      clock.track(this.send(email, keyDigest(token), linkUrl));
    return setCookie(cookieName, token, EMAIL_LINK_MS / 1_000);
  }

  private async send(email: string, browserHash: Uint8Array, linkUrl: string): Promise<void> {
    const { people, accounts, outbox, writer, log, ids } = this.deps;
    await realDelay(DELAY_MS.least + ids.fraction() * DELAY_MS.more);
    try {
      await writer.submit((tx) => {
        const expiresAt = tx.now + EMAIL_LINK_MS;
        const link = people.createEmailLink(tx, email, { browserHash, expiresAt });
        if (link === null) return;
        const url = `${linkUrl}/dashboard/#/login/${link.token}`;
        const account = accounts.account(link.accountRef).email;
        outbox.enqueue(tx, link.accountRef, loginMail({ to: link.email, account, url }));
      });
    } catch (error) {
      log.warn("a login link could not be sent", { error: errorText(error) });
    }
  }
}
