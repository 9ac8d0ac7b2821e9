import { createHash } from "node:crypto";
import { networkOf } from "../../../kernel/data/addresses.ts";
import { ApiError } from "../../../kernel/errors.ts";
import { AttemptLimiter } from "../../../kernel/http/access/guard.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { isEmail } from "../../../kernel/mail/address.ts";
import { onOneLine } from "../../../kernel/one-line.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { DAY_MS, HOUR_MS } from "../../../kernel/time/units.ts";
import type { PageDeps } from "../ports.ts";
import type { PageRow } from "../store.ts";
import type { SubscriberRow, SubscriberStore } from "./store.ts";

/** Maximum number of confirmed subscribers of a page: an update of an incident is that many e-mails. */
export const SUBSCRIBERS_MAX = 1_000;
/** Maximum number of unconfirmed addresses of a page, which anyone can enter. */
export const UNCONFIRMED_MAX = 200;
/** Addresses that unsubscribed from a page and are remembered, the last ones: five times the subscribers that it can have. */
export const UNSUBSCRIBED_MAX = 5 * SUBSCRIBERS_MAX;
/** Time in which an address can be confirmed, in milliseconds; then it is removed. */
export const CONFIRMATION_MS = DAY_MS;
/** Time before another e-mail asks the same address for a confirmation, in milliseconds. */
export const REPEAT_MS = HOUR_MS;
/** Maximum number of subscriptions that a client network can request within {@link WINDOW_MS}. */
export const REQUESTS_MAX = 5;
const WINDOW_MS = HOUR_MS;
/** Maximum number of e-mails that ask one address for a confirmation within {@link WINDOW_MS}, over all pages. */
export const ADDRESS_REQUESTS_MAX = 3;

/** The context of sealed tokens, so that no other sealed text is one. */
const TOKEN_CONTEXT = "status-subscriber";

interface SubscriptionDeps
  extends Pick<Kernel, "writer" | "clock" | "vault">,
    Pick<PageDeps, "outbox" | "publicUrl"> {
  readonly subscribers: SubscriberStore;
}

/** What a link does: it confirms an address, or ends the subscription. */
export type SubscriptionAction = "confirm" | "unsubscribe";

/** Subscriptions to the incidents of status pages by e-mail, with confirmation (double opt-in). */
export class Subscriptions {
  private readonly attempts: AttemptLimiter;
  private readonly addresses: AttemptLimiter;

  constructor(private readonly deps: SubscriptionDeps) {
    this.attempts = new AttemptLimiter(deps.clock, REQUESTS_MAX, WINDOW_MS);
    this.addresses = new AttemptLimiter(deps.clock, ADDRESS_REQUESTS_MAX, WINDOW_MS);
  }

  /** Whether they are offered. Links in e-mails need the server's own address: that of a request can be forged. */
  get available(): boolean {
    return this.deps.outbox.available && this.deps.publicUrl() !== null;
  }

  /**
   * Stores an unconfirmed address and sends it a link. Does the same for an address that has subscribed, so that nobody learns
   * who has; such an address gets no e-mail.
   * @throws ApiError `validation_error` for an invalid address, `rate_limit_exceeded`
   */
  async request(page: PageRow, email: string, clientAddress: string): Promise<void> {
    if (!isEmail(email)) throw new ApiError("validation_error", "This is not a valid e-mail address.");
    const waitSeconds = this.attempts.take(networkOf(clientAddress));
    if (waitSeconds > 0)
      throw new ApiError(
        "rate_limit_exceeded",
        "Too many subscriptions from your network. Try again later.",
        {
          retryAfterSeconds: waitSeconds,
        },
      );
    await this.deps.writer.submit((tx) => this.store(tx, page, email.toLowerCase()));
  }

  private store(tx: Tx, page: PageRow, email: string): void {
    const { subscribers, outbox, publicUrl } = this.deps;
    const known = subscribers.findByEmail(page.ref, email);
    if (known !== null && (known.confirmedAt !== null || tx.now - known.createdAt < REPEAT_MS)) return;
    const isFull =
      subscribers.confirmedCount(page.ref) >= SUBSCRIBERS_MAX ||
      subscribers.unconfirmedCount(page.ref) >= UNCONFIRMED_MAX;
    if (known === null && isFull)
      throw new ApiError(
        "rate_limit_exceeded",
        "This page accepts no more subscriptions now. Try again tomorrow.",
        {
          retryAfterSeconds: CONFIRMATION_MS / 1000,
        },
      );
    // Like a known address: nothing tells whether it gets an e-mail.
    if (this.addresses.takeIn(tx, email) > 0) return;
    const { ref: pageRef, accountRef, projectRef, slug } = page;
    // A repeated request extends the time of the links that were sent before.
    if (known !== null) subscribers.renew(tx, tx.now, known.ref);
    else subscribers.insert(tx, { pageRef, accountRef, projectRef, email, createdAt: tx.now });
    const subscriber = subscribers.findByEmail(pageRef, email);
    if (subscriber === null) throw new Error("a subscriber was not stored");
    const title = subjectText(page.settings.title);
    const link = this.linkOf(`${publicUrl()}/status/${slug}`, subscriber);
    outbox.enqueue(tx, accountRef, {
      to: email,
      subject: `[${title}] Confirm your subscription`,
      text: `Confirm that you want an e-mail about each incident of ${title}:\n\n${link}\n\nThe link is valid for 24 hours. If you did not request this, ignore this e-mail.\n`,
    });
  }

  /** Link to the page on which a subscriber confirms or unsubscribes. `address`: URL of the status page. */
  linkOf(address: string, { ref }: SubscriberRow): string {
    const sealed = this.deps.vault.seal(String(ref), TOKEN_CONTEXT);
    return `${address}/subscription?token=${Buffer.from(sealed).toString("base64url")}`;
  }

  /**
   * The subscriber that a token was made for; null if the token is invalid, or the subscription has ended. The path of a link
   * does not count: links in old e-mails work after the slug has changed, and while the page is hidden.
   */
  find(token: string): SubscriberRow | null {
    const row = this.deps.subscribers.find(this.refOf(token));
    if (row === null) return null;
    const isExpired = row.confirmedAt === null && row.createdAt < this.deps.clock.now() - CONFIRMATION_MS;
    return isExpired ? null : row;
  }

  /** Adds subscribers who have confirmed elsewhere. Nobody gets an e-mail. */
  import(tx: Tx, page: PageRow, addresses: readonly ImportedSubscriber[]): ImportedSubscribers {
    const { subscribers } = this.deps;
    const { ref: pageRef, accountRef, projectRef } = page;
    const rejected: ImportedSubscribers["rejected"][number][] = [];
    let count = subscribers.confirmedCount(pageRef);
    let imported = 0;
    for (const [index, { email: written, confirmedAt }] of addresses.entries()) {
      const email = written.trim().toLowerCase();
      if (!isEmail(email)) rejected.push({ index, reason: "invalid_address" });
      else if ((subscribers.findByEmail(pageRef, email)?.confirmedAt ?? null) !== null) continue;
      else if (subscribers.hasUnsubscribed(pageRef, digestOf(pageRef, email)) > 0)
        rejected.push({ index, reason: "unsubscribed" });
      else if (count >= SUBSCRIBERS_MAX) rejected.push({ index, reason: "page_full" });
      else {
        const times = { createdAt: tx.now, confirmedAt: confirmedAt ?? tx.now, importedAt: tx.now };
        subscribers.insertConfirmed(tx, { pageRef, accountRef, projectRef, email, ...times });
        count += 1;
        imported += 1;
      }
    }
    return { imported, known: addresses.length - imported - rejected.length, rejected };
  }

  private refOf(token: string): number {
    try {
      return Number(this.deps.vault.open(Buffer.from(token, "base64url"), TOKEN_CONTEXT));
    } catch {
      return 0;
    }
  }

  /** Confirms an address, or ends a subscription. Repeating it changes nothing. Returns false if the page is full. */
  act(subscriber: SubscriberRow, action: SubscriptionAction): Promise<boolean> {
    const { subscribers, writer } = this.deps;
    const { ref, pageRef, email, confirmedAt } = subscriber;
    return writer.submit((tx) => {
      if (action === "unsubscribe") this.unsubscribe(tx, subscriber);
      else if (confirmedAt === null) {
        if (subscribers.confirmedCount(pageRef) >= SUBSCRIBERS_MAX) return false;
        subscribers.confirm(tx, tx.now, ref);
        subscribers.removeUnsubscribed(tx, pageRef, digestOf(pageRef, email));
      }
      return true;
    });
  }

  /** Ends a subscription. The address is remembered as a digest, so that an import does not add it again. */
  private unsubscribe(tx: Tx, { ref, pageRef, projectRef, email }: SubscriberRow): void {
    const { subscribers } = this.deps;
    // The page may have been deleted meanwhile, and its subscribers with it.
    if (subscribers.remove(tx, ref) === 0) return;
    subscribers.insertUnsubscribed(tx, pageRef, projectRef, digestOf(pageRef, email));
    if (subscribers.unsubscribedCount(pageRef) > UNSUBSCRIBED_MAX)
      subscribers.removeFirstUnsubscribed(tx, pageRef);
  }
}

/** Bytes of a digest of an address. */
const DIGEST_BYTES = 16;

/** Digest of an address of a page. Without a key, which a restore without the master key would change. */
function digestOf(pageRef: number, email: string): Uint8Array {
  return createHash("sha256").update(`${pageRef} ${email}`).digest().subarray(0, DIGEST_BYTES);
}

/** Addresses that one request imports: some milliseconds. */
export const IMPORTED_MAX = 200;

/** An address whose owner has confirmed it elsewhere. */
export interface ImportedSubscriber {
  readonly email: string;
  /** Epoch milliseconds; null: at a time that is not known. */
  readonly confirmedAt: number | null;
}

/** Why an address was not imported. */
export const IMPORT_REJECTIONS = ["invalid_address", "page_full", "unsubscribed"] as const;
type ImportRejection = (typeof IMPORT_REJECTIONS)[number];

/** What became of imported addresses. */
export interface ImportedSubscribers {
  readonly imported: number;
  /** Those that had subscribed already. */
  readonly known: number;
  readonly rejected: readonly { readonly index: number; readonly reason: ImportRejection }[];
}

/** Headers with which mail clients offer to unsubscribe with one click (RFC 8058). */
export function unsubscribeHeaders(link: string): Readonly<Record<string, string>> {
  return { "List-Unsubscribe": `<${link}>`, "List-Unsubscribe-Post": "List-Unsubscribe=One-Click" };
}

/** A subject is one line, and a title can have several. */
export function subjectText(text: string): string {
  return onOneLine(text, " ").toWellFormed();
}
