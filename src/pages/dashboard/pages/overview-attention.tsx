import type { ComponentChildren } from "preact";
import type { Overview } from "../../../client/generated/api.ts";
import { call } from "../core/api.ts";
import { count, formatNumber, instant, SECOND_MS, span } from "../core/format.ts";
import { now } from "../core/now.ts";
import { go, href } from "../core/route.ts";
import { Button } from "../ui/button.tsx";
import { Status, type Tone } from "../ui/status.tsx";

/** Something that needs attention, with what can be done about it. */
interface Item {
  readonly state: string;
  readonly tone: Tone;
  readonly title: string;
  /** Address of its page. */
  readonly to?: string;
  readonly text: string;
  readonly actions: ComponentChildren;
}

/** Age above which a waiting item counts as late. */
const LATE_MS = 10 * 60_000;
/** Age above which the last update of a public incident is old. */
const QUIET_MS = 30 * 60_000;
const LONG_QUEUE = 10;
/** Credits below this share of the monthly credits are low. */
const LOW_SHARE = 0.1;

/** Everything that needs attention, the worst first; or that nothing does. */
export function Attention({ of, onDone }: { of: Overview; onDone: () => void }) {
  const items = [...incidentItems(of, onDone), ...failureItems(of), ...stateItems(of)];
  const title = `${count(items.length, "thing needs", "things need")} attention`;
  return (
    <section class={`panel flush attention ${items.length === 0 ? "" : "bad"}`}>
      <header>
        <h2>{items.length === 0 ? "Nothing needs attention" : title}</h2>
      </header>
      <ul>
        {items.map((item, at) => (
          <li key={`${at} ${item.title}`}>
            <Status state={item.state} tone={item.tone} />
            <p>
              <strong>{item.to === undefined ? item.title : <a href={item.to}>{item.title}</a>}</strong>{" "}
              <span class="quiet">{item.text}</span>
            </p>
            <div class="actions">{item.actions}</div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Open({ to, children = "Open" }: { to: string; children?: ComponentChildren }) {
  return (
    <a class="button" href={to}>
      {children}
    </a>
  );
}

const joined = (...parts: readonly (string | null | false)[]): string => parts.filter(Boolean).join(" · ");
/** At least a second: what happened after the clock's last tick is new, not of the future. */
const ageOf = (at: string): string => span(Math.max(SECOND_MS, now.value - instant(at)));

type OpenIncident = NonNullable<NonNullable<Overview["pulse"]>["incidents"]>[number];

/** Open incidents; heartbeats that are down are one item. */
function incidentItems({ pulse, incidents_open }: Overview, onDone: () => void): Item[] {
  const { incidents = [] } = pulse ?? {};
  const heartbeats = incidents.filter(({ monitor_type }) => monitor_type === "heartbeat");
  const missed = heartbeats.length > 1 ? heartbeats : [];
  const items = incidents
    .filter((incident) => !missed.includes(incident))
    .map((incident) => incidentItem(incident, onDone));
  const actions = <Open to={href(["monitors", "incidents"], { status: "open" })} />;
  const down = { state: "down", tone: "bad", actions } as const;
  const text = joined(...missed.map(({ title, started_at }) => `${title}, ${ageOf(started_at)}`));
  if (missed.length > 0) items.push({ ...down, title: `${missed.length} heartbeats are down`, text });
  const older = pulse?.incidents === undefined ? 0 : incidents_open - incidents.length;
  if (older > 0) items.push({ ...down, title: count(older, "older open incident"), text: "" });
  return items;
}

function incidentItem(incident: OpenIncident, onDone: () => void): Item {
  const { id, title, status, cause, acknowledged_at, started_at, updated_at } = incident;
  const isManual = incident.monitor_type === null;
  const word = updated_at ?? started_at;
  const isQuiet = incident.public && now.value - instant(word) > QUIET_MS;
  const acknowledge = async (): Promise<void> => {
    await call("monitors.incidents.acknowledge", { params: { incident_id: id } });
    onDone();
    go(["monitors", "incidents", id]);
  };
  const needsPerson = acknowledged_at === null && !isManual;
  const to = href(["monitors", "incidents", id]);
  return {
    to,
    state: isManual ? "incident" : "down",
    tone: isManual ? "warn" : "bad",
    title,
    text: joined(
      cause?.replace(/\.$/, "") ?? null,
      `for ${ageOf(started_at)}`,
      incident.public && `public, ${status}, last update ${ageOf(word)} ago`,
      needsPerson && "not acknowledged",
    ),
    actions: (
      <>
        {needsPerson ? (
          <Button kind="primary" operation="monitors.incidents.acknowledge" onClick={acknowledge}>
            Acknowledge
          </Button>
        ) : null}
        <Open to={to}>{isQuiet ? "Post an update" : "Open"}</Open>
      </>
    ),
  };
}

/** Targets and buckets whose deliveries failed. */
function failureItems({ relay, catch: inbox }: Overview): Item[] {
  const { failing: targets = [] } = relay ?? {};
  const { failing: buckets = [] } = inbox ?? {};
  return [
    ...targets.map(({ endpoint_id, name, target_url, failed, since, response_status, error }) => ({
      title: `${count(failed, "delivery", "deliveries")} to ${name ?? target_url} failed`,
      text: joined(String(response_status ?? error ?? ""), `first ${ageOf(since)} ago`),
      to: ["relay"],
      query: endpoint_id === null ? { target: target_url } : { endpoint: endpoint_id },
    })),
    ...buckets.map(({ bucket_id, name, failed }) => ({
      title: `${count(failed, "event")} of ${name ?? bucket_id} not delivered`,
      text: "",
      to: ["catch", bucket_id],
      query: {},
    })),
  ].map(({ to, query, ...item }) => ({
    ...item,
    state: "failed",
    tone: "bad",
    actions: <Open to={href(to, { status: "failed", ...query })} />,
  }));
}

/** States of services that need attention. */
function stateItems(all: Overview): Item[] {
  const { pulse, relay, catch: inbox, witness, meter, latch, keys, mail, backups } = all;
  const items: Item[] = [];
  const add = (state: string, tone: Tone, title: string, text: string, ...to: string[]): void => {
    items.push({ state, tone, title, text, actions: <Open to={href(to)} /> });
  };
  const addLate = (since: string | null | undefined, title: string, page: string): void => {
    const waited = since ? now.value - instant(since) : 0;
    if (waited > LATE_MS) add("late", "bad", title, `the oldest for ${span(waited)}`, page);
  };
  for (const { name, error } of pulse?.channels_failing ?? [])
    add("failing", "bad", `Channel ${name} does not receive alerts`, error, "monitors", "channels");
  if (mail?.failing_since)
    add("failing", "bad", "E-mails are not sent", `for ${ageOf(mail.failing_since)}`, "metrics");
  addLate(relay?.retrying_since, "Deliveries wait for retries", "relay");
  addLate(inbox?.pending_since, "Inbound events are pending", "catch");
  addLate(witness?.buffered_since, "Receipts wait for storage", "notary");
  if (meter !== undefined && meter.balance < meter.monthly_credits * LOW_SHARE) {
    const credits = `${formatNumber(meter.balance)} of ${formatNumber(meter.monthly_credits)} a month`;
    add("low", "warn", "Account credits are low", credits, "meters");
  }
  if (backups?.overdue === true) add("overdue", "warn", "The backup is overdue", "", "backups");
  const expiring = keys?.ending_soon ?? 0;
  if (expiring > 0)
    add("expiring", "warn", `${count(expiring, "key expires", "keys expire")} within 7 days`, "", "keys");
  const waiting = latch?.waiting ?? 0;
  if (waiting > LONG_QUEUE) add("queueing", "warn", `${waiting} requests wait for locks`, "", "locks");
  return items;
}
