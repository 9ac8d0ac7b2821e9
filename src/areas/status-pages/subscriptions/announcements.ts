import type { Kernel } from "../../../kernel/kernel.ts";
import type { MailMessage } from "../../../kernel/mail/smtp.ts";
import { laneName } from "../../../kernel/scheduler/dispatcher.ts";
import type { Job, JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { type EventDeps, loadIncident, type ShownIncident } from "../events.ts";
import { IMPACT_LABELS } from "../labels.ts";
import type { AnnouncedIncident, PageDeps } from "../ports.ts";
import type { PageRow, PageStore } from "../store.ts";
import type { SubscriberRow, SubscriberStore } from "./store.ts";
import { type Subscriptions, subjectText, unsubscribeHeaders } from "./subscriptions.ts";

/** E-mails queued in one unit of work: a few milliseconds. */
export const MAILS_PER_UNIT = 100;

/** The job that sends the e-mails about one change of an incident. */
const ANNOUNCEMENT = "monitors.announcement";
const CONCURRENT_JOBS = 2;
/** Longest part of a title in a subject. */
const SUBJECT_TITLE_MAX = 120;

/** A change of an incident that subscribers of status pages are notified of. */
interface Announcement {
  readonly projectRef: number;
  readonly incidentId: string;
  readonly status: AnnouncedIncident["status"];
  /** Text of the update; empty for none. */
  readonly message: string;
  /** Subscribers up to this number have their e-mail. */
  readonly after: number;
}

/**
 * Queues the notification of subscribers in the unit of work of the change, unless the incident has never been public. Costs one
 * lookup for a project without subscribers. Whether a page shows the incident is decided when the e-mails are written.
 */
export function announce(
  tx: Tx,
  {
    subscribers,
    scheduler,
    ids,
  }: { readonly subscribers: SubscriberStore } & Pick<Kernel, "scheduler" | "ids">,
  { projectRef, id, status, announced }: AnnouncedIncident,
  message = "",
): void {
  const owner = announced ? subscribers.ownerOf(projectRef) : null;
  if (owner === null) return;
  const payload: Announcement = { projectRef, incidentId: id, status, message, after: 0 };
  scheduler.enqueue(tx, ANNOUNCEMENT, ids.uuidV7(), tx.now, payload, laneName(owner.accountRef, "announce"));
}

interface AnnouncementDeps extends EventDeps, Pick<PageDeps, "outbox" | "publicUrl" | "isStopped"> {
  readonly scheduler: Kernel["scheduler"];
  readonly clock: Kernel["clock"];
  readonly pages: PageStore;
  readonly subscribers: SubscriberStore;
  readonly subscriptions: Subscriptions;
}

/** Registers the job. Each run queues some e-mails, and the outcome that records them says where the next one continues. */
export function registerAnnouncements(deps: AnnouncementDeps): void {
  deps.scheduler.register(ANNOUNCEMENT, { concurrency: CONCURRENT_JOBS, run: (job) => run(deps, job) });
}

async function run(deps: AnnouncementDeps, job: Job): Promise<JobOutcome> {
  const payload = job.payload as Announcement;
  const { projectRef, after } = payload;
  const { subscribers, outbox, clock, isStopped } = deps;
  const publicUrl = deps.publicUrl();
  if (!outbox.available || publicUrl === null || isStopped(projectRef)) return {};
  const found = subscribers.after(projectRef, after, MAILS_PER_UNIT);
  const last = found.at(-1);
  if (last === undefined) return {};
  const mails: [SubscriberRow, MailMessage][] = [];
  for (const [pageRef, ofPage] of Map.groupBy(found, (subscriber) => subscriber.pageRef)) {
    const compose = await mailOf(deps, deps.pages.withRef(pageRef), payload, publicUrl);
    if (compose !== null) for (const subscriber of ofPage) mails.push([subscriber, compose(subscriber)]);
  }
  return {
    record(tx) {
      for (const [{ accountRef }, mail] of mails) outbox.enqueue(tx, accountRef, mail);
    },
    ...(found.length < MAILS_PER_UNIT
      ? {}
      : { retryAt: clock.now(), payload: { ...payload, after: last.ref }, attempt: 0 }),
  };
}

/** Composes the e-mails to the subscribers of a page; null if the page does not show the incident. */
async function mailOf(
  deps: AnnouncementDeps,
  page: PageRow | null,
  { incidentId, status, message }: Announcement,
  publicUrl: string,
): Promise<((subscriber: SubscriberRow) => MailMessage) | null> {
  if (page === null || !page.settings.published) return null;
  const incident = await loadIncident(deps, page, incidentId, 0);
  if (incident === null) return null;
  const address = `${publicUrl}/status/${page.slug}`;
  const title = subjectText(page.settings.title);
  const heading = subjectText(incident.title);
  const state = capitalized(status);
  const lines = [
    heading,
    [state, ...(status === "resolved" ? [] : [IMPACT_LABELS[incident.impact]]), ...affected(incident)].join(
      " · ",
    ),
    ...(message === "" ? [] : ["", message]),
    "",
    `${address}/incidents/${incident.id}`,
    "",
    `You get this e-mail because you subscribed to the status of ${title}.`,
  ];
  return (subscriber) => {
    const unsubscribe = deps.subscriptions.linkOf(address, subscriber);
    return {
      to: subscriber.email,
      subject: `[${title}] ${state}: ${[...heading].slice(0, SUBJECT_TITLE_MAX).join("")}`,
      text: `${[...lines, `Unsubscribe: ${unsubscribe}`].join("\n")}\n`,
      headers: unsubscribeHeaders(unsubscribe),
    };
  };
}

function affected({ names }: ShownIncident): string[] {
  return names === "" ? [] : [`Affects ${names}`];
}

function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
