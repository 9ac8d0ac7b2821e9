import { errorText } from "../errors.ts";
import type { Kernel } from "../kernel.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { AttemptListener } from "../outbound/notification.ts";
import { backoffMs } from "../outbound/retries.ts";
import { laneName } from "../scheduler/dispatcher.ts";
import type { Job, JobOutcome, WorkGate } from "../scheduler/scheduler.ts";
import type { Tx } from "../storage/tx.ts";
import { HOUR_MS, MINUTE_MS } from "../time/units.ts";
import { faultOf, MAIL_FAULTS, type Mailer, type MailFault, type MailMessage } from "./smtp.ts";

/** Concurrent e-mails: mail servers limit connections. */
export const MAIL_CONCURRENCY = 4;
/** Attempts before an e-mail fails, about a day and a half after the first. */
export const MAIL_ATTEMPTS_MAX = 40;
/** The same if the mail server rejects the message itself: about half an hour, in which a filter may change its mind. */
export const MAIL_REJECTIONS_MAX = 12;
/** Wait after a failed attempt, doubled each time up to the second value. */
const RETRY_MS = 1_000;
const RETRY_MAX_MS = HOUR_MS;
/** While no mail server is configured, a queued message looks for one so often. */
const NO_SERVER_MS = MINUTE_MS;

/** Attempts before an e-mail fails, by what the last one was about. */
const ATTEMPTS_MAX: Readonly<Record<MailFault, number>> = {
  recipient: 1,
  message: MAIL_REJECTIONS_MAX,
  server: MAIL_ATTEMPTS_MAX,
};

/** The kind of the durable job that sends one e-mail. */
export const MAIL_JOB = "mail.send";

/** All recipients of an alert of a project, of whom each gets a message of its own. */
export interface MailAudience {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly addresses: readonly string[];
}

/** The address that gets a message of an audience now, which was queued for one of its addresses; null: nobody. */
export type RecipientChoice = (audience: MailAudience, to: string) => string | null;

/** Queues e-mails. */
export interface MailQueue {
  /** Whether a mail server is configured. Without one, operations that need mail must be rejected beforehand. */
  readonly available: boolean;
  /**
   * Queues a message in the unit of work that causes it. It waits while the account it is sent for is suspended. `audience`: who
   * gets it is decided again at each attempt. Returns its id.
   */
  enqueue(tx: Tx, accountRef: number, message: MailMessage, audience?: MailAudience): string;
}

/** What the mail server did with a message that was sent once. */
export interface MailTrial {
  /** Status of its response; null without one. */
  readonly status: number | null;
  readonly response: string | null;
  /** Null if the message was accepted. */
  readonly error: string | null;
}

/** Attempts since the start of the process. */
export interface MailHealth {
  readonly sent: number;
  readonly failures: number;
  /** Messages that were given up, by what the last attempt was about. */
  readonly givenUp: Readonly<Record<MailFault, number>>;
  /**
   * Time of the first failed attempt since the last message was accepted, epoch milliseconds; null if there was none.
   * Rejected recipients do not count.
   */
  readonly failingSince: number | null;
  /** Error of the last attempt; null if it succeeded. */
  readonly lastError: string | null;
}

/** E-mails that go out for sure: each is a durable job, sealed, retried until the mail server takes it. */
export interface Outbox extends MailQueue {
  /** Removes a queued message that a newer one supersedes. Returns whether it was still queued, or being sent. */
  withdraw(tx: Tx, id: string): boolean;
  /** Registers a listener to the attempts of all messages. */
  onAttempt(listener: AttemptListener): void;
  /** Decides at each attempt who gets messages with an audience: people leave while messages wait. */
  chooseRecipients(choice: RecipientChoice): void;
  /** Looks whether a mail server is configured now: then it sends what waits. */
  settingsChanged(): void;
  /** Sends a message immediately and once, without storing it. */
  trial(message: MailMessage): Promise<MailTrial>;
  readonly health: MailHealth;
}

/** What the outbox is built on. */
export interface OutboxDeps extends Pick<Kernel, "scheduler" | "vault" | "clock" | "ids" | "log" | "gate"> {
  /** Null when no mail server is configured: then messages queued earlier wait until there is one. It may change. */
  readonly mailer: () => Mailer | null;
}

/** Registers the mail job and returns the outbox. */
export function createOutbox(deps: OutboxDeps): Outbox {
  const { scheduler, vault, ids, gate } = deps;
  const mailer = (): Mailer | null => {
    const current = deps.mailer();
    return current === null || gate === null ? current : behind(gate, current);
  };
  const health = new Health(deps);
  const listeners: AttemptListener[] = [];
  let recipientOf: RecipientChoice = (_, to) => to;
  let trials = 0;
  let isRegistered = false;
  const settingsChanged = (): void => {
    if (isRegistered || deps.mailer() === null) return;
    isRegistered = true;
    scheduler.register(MAIL_JOB, {
      concurrency: MAIL_CONCURRENCY,
      run: (job) => deliver(deps, mailer(), job, { health, listeners, recipientOf }),
    });
  };
  settingsChanged();
  return {
    settingsChanged,
    get available() {
      return deps.mailer() !== null;
    },
    enqueue(tx, accountRef, message, audience) {
      const key = ids.uuidV7();
      const sealed = vault.seal(JSON.stringify({ ...message, audience }), `mail:${key}`);
      const payload = { sealed: Buffer.from(sealed).toString("base64") };
      scheduler.enqueue(tx, MAIL_JOB, key, tx.now, payload, laneName(accountRef, "mail"));
      return key;
    },
    withdraw: (tx, id) => scheduler.cancel(tx, MAIL_JOB, id),
    onAttempt: (listener) => listeners.push(listener),
    chooseRecipients(choice) {
      recipientOf = choice;
    },
    async trial(message) {
      const current = mailer();
      if (current === null) return failed("this server has no mail server configured");
      if (trials >= MAIL_CONCURRENCY) return failed("other tests are in progress: retry in a minute");
      trials += 1;
      try {
        const response = await current.send(message);
        health.record(null);
        return { status: Number(/^\d{3}/.exec(response)?.[0] ?? 250), response, error: null };
      } catch (error) {
        health.record(error);
        return { ...failed(publicError(error)), status: responseCodeOf(error) };
      } finally {
        trials -= 1;
      }
    },
    health,
  };
}

/** Hands messages over only when the gate lets them pass. */
function behind(gate: Pick<WorkGate, "pass">, mailer: Mailer): Mailer {
  return {
    async send(message) {
      await gate.pass(null);
      return mailer.send(message);
    },
  };
}

/** Counts attempts, and notices when all of them fail. */
class Health implements MailHealth {
  sent = 0;
  failures = 0;
  readonly givenUp = { recipient: 0, message: 0, server: 0 };
  failingSince: number | null = null;
  lastError: string | null = null;

  constructor(private readonly deps: Pick<OutboxDeps, "clock">) {}

  /** `error`: null if the message was accepted. */
  record(error: unknown): void {
    if (error === null) {
      this.sent += 1;
      this.failingSince = null;
      this.lastError = null;
    } else {
      this.failures += 1;
      // A server that rejects one recipient works.
      if (faultOf(error) !== "recipient") this.failingSince ??= this.deps.clock.now();
      this.lastError = errorText(error);
    }
  }
}

function failed(error: string): MailTrial {
  return { status: null, response: null, error };
}

/** What the account that a message is sent for may know: the mail server's response, but not where the server is. */
function publicError(error: unknown): string {
  const { response, code } = error as { response?: unknown; code?: unknown };
  if (code === "EAUTH") return "the mail server rejected the login of this server";
  return typeof response === "string" ? response : "the mail server could not be reached";
}

function responseCodeOf(error: unknown): number | null {
  const { responseCode, code } = error as { responseCode?: unknown; code?: unknown };
  return typeof responseCode === "number" && code !== "EAUTH" ? responseCode : null;
}

/** Declares the metrics of e-mails. */
export function declareMailMetrics(metrics: Metrics, { health }: Outbox): void {
  metrics.number("ninefold_mail_sent_total", "E-mails that the mail server accepted.", () => health.sent);
  metrics.number(
    "ninefold_mail_failures_total",
    "Attempts to send an e-mail that failed.",
    () => health.failures,
  );
  metrics.declare({
    name: "ninefold_mail_given_up_total",
    help: "E-mails that were given up, by reason: the mail server rejected the recipient, or the message, or failed at every attempt.",
    type: "counter",
    labels: ["reason"],
    samples: () => MAIL_FAULTS.map((reason) => ({ labels: { reason }, value: health.givenUp[reason] })),
  });
  const help = "1 while attempts to send e-mails fail, 0 otherwise.";
  metrics.number("ninefold_mail_failing", help, () => Number(health.failingSince !== null));
}

async function deliver(
  deps: OutboxDeps,
  mailer: Mailer | null,
  job: Job,
  {
    health,
    listeners,
    recipientOf,
  }: {
    readonly health: Health;
    readonly listeners: readonly AttemptListener[];
    readonly recipientOf: RecipientChoice;
  },
): Promise<JobOutcome> {
  const { key, attempt } = job;
  if (mailer === null) return { retryAt: deps.clock.now() + NO_SERVER_MS, attempt };
  const { sealed } = job.payload as { sealed: string };
  const recordOf = (error: string | null) => (tx: Tx) => {
    for (const listener of listeners) listener(tx, key, error);
  };
  const { audience, ...message }: MailMessage & { readonly audience?: MailAudience } = JSON.parse(
    deps.vault.open(Buffer.from(sealed, "base64"), `mail:${key}`),
  );
  const to = audience === undefined ? message.to : recipientOf(audience, message.to);
  if (to === null)
    return { record: recordOf("the recipient may not receive alerts of the project any more") };
  try {
    await mailer.send({ ...message, to });
    health.record(null);
    return { record: recordOf(null) };
  } catch (error) {
    health.record(error);
    const record = recordOf(publicError(error));
    // The mail server's words may repeat the address, never the text; they help the operator, who sees this log.
    const fields = { mail: key, attempt: attempt + 1, error: errorText(error) };
    const fault = faultOf(error);
    if (attempt + 1 >= ATTEMPTS_MAX[fault]) {
      health.givenUp[fault] += 1;
      deps.log.error("an e-mail was given up", fields);
      return { record };
    }
    deps.log.warn("an e-mail could not be sent yet", fields);
    return { retryAt: deps.clock.now() + backoffMs(attempt + 1, RETRY_MS, RETRY_MAX_MS), record };
  }
}
