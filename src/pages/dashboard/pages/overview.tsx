import type { ComponentChildren } from "preact";
import type { Overview } from "../../../client/generated/api.ts";
import { call, requestOf } from "../core/api.ts";
import { count, formatNumber, instant, span } from "../core/format.ts";
import { minute } from "../core/now.ts";
import { useResource } from "../core/resource.ts";
import { session } from "../core/session.ts";
import { Empty, Loaded } from "../ui/feedback.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Page, Panel } from "../ui/page.tsx";
import { Status, type Tone } from "../ui/status.tsx";
import { Ago } from "../ui/time.tsx";
import { LastHour, OpenIncidents } from "./overview-monitors.tsx";
import { AuditList } from "./server/audit-list.tsx";

const AREAS = ["meter", "projects", "keys", "gate", "latch", "pulse", "relay", "catch", "witness", "audit"];

/** The overview of all services. */
export function OverviewPage() {
  const overview = useResource("overview", AREAS, (signal) => call("overview.read", {}, signal));
  return (
    <Page title="Overview" request={requestOf("overview.read", {})}>
      <Loaded of={overview} missing={<NoOverview />}>
        {(data) => (
          <div class="stack">
            {isUntouched(data) ? <FirstSteps /> : null}
            <div class="cards">
              {cardsOf(data).map((card) => (
                <CardView key={card.path} {...card} />
              ))}
            </div>
            {data.pulse === undefined || data.pulse.total + data.incidents_open === 0 ? null : (
              <div class="halves">
                {data.pulse.total === 0 ? null : <LastHour />}
                <OpenIncidents open={data.incidents_open} />
              </div>
            )}
            {data.recent.length === 0 ? null : (
              <Panel title="Latest changes" actions={<a href="#/audit">View all</a>}>
                <AuditList entries={data.recent} />
              </Panel>
            )}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function NoOverview() {
  return (
    <Empty icon="overview" title={`Welcome${session.value?.email ? `, ${session.value.email}` : ""}`}>
      Choose a service in the sidebar.
    </Empty>
  );
}

/** Whether the services that most users start with are readable and empty. */
function isUntouched({ keys, gate, pulse, meter }: Overview): boolean {
  return keys?.total === 0 && gate?.total === 0 && pulse?.total === 0 && meter?.meters === 0;
}

function FirstSteps() {
  return (
    <Empty icon="overview" title="Get started">
      Create <a href="#/keys?new=1">a key</a> for your program, <a href="#/flags?new=1">a flag</a>,{" "}
      <a href="#/monitors?new=1">a monitor</a> for a URL, or <a href="#/catch?new=1">a bucket</a> that
      receives webhooks.
    </Empty>
  );
}

interface Card {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly value: ComponentChildren;
  readonly line: string;
  /** The worst of several states. */
  readonly state: readonly [word: string, tone: Tone];
}

function CardView({ path, title, icon, value, line, state: [word, tone] }: Card) {
  return (
    <a class="card" href={`#/${path}`}>
      <Icon name={icon} />
      <h2>{title}</h2>
      <Status state={word} tone={tone} />
      <span class="figure">{value}</span>
      <span class="line">{line}</span>
    </a>
  );
}

const FINE = ["fine", "good"] as const;
const LONG_QUEUE = 10;
/** Age above which a waiting item counts as stuck. */
const LATE_MS = 10 * 60 * 1000;
/** Credits below this share of the monthly credits are low. */
const LOW_SHARE = 0.1;

/** Time that the oldest item has been waiting; null below the threshold. */
function lateBy(since: string | null): string | null {
  const waited = since === null ? 0 : minute.value - instant(since);
  return waited > LATE_MS ? span(waited) : null;
}

/** The cards of the services that the session can read. */
function cardsOf(all: Overview): Card[] {
  return [...accountCards(all), ...stateCards(all), ...trafficCards(all), ...serverCards(all)];
}

function accountCards({ meter, projects, keys, gate }: Overview): Card[] {
  const cards: Card[] = [];
  const hasNoEnd = session.value?.tier === "unlimited";
  if (meter) {
    const { balance, monthly_credits, meters } = meter;
    const isLow = balance < monthly_credits * LOW_SHARE;
    cards.push({
      path: "meters",
      title: "Meters",
      icon: "meters",
      value: formatNumber(hasNoEnd ? meters : balance),
      line: hasNoEnd
        ? "meters · credits unlimited"
        : `credits${isLow ? ` of ${formatNumber(monthly_credits)} a month` : ""} · ${count(meters, "meter")}`,
      state: isLow ? ["low", "warn"] : FINE,
    });
  }
  if (projects)
    cards.push({
      path: "projects",
      title: "Projects",
      icon: "projects",
      value: formatNumber(projects.total),
      line: projects.total === 1 ? "project" : "projects",
      state: FINE,
    });
  if (keys)
    cards.push({
      path: "keys",
      title: "Keys",
      icon: "keys",
      value: formatNumber(keys.total),
      line:
        keys.ending_soon > 0
          ? `active · ${count(keys.ending_soon, "expires", "expire")} within 7 days`
          : "active",
      state: keys.ending_soon > 0 ? ["ending", "warn"] : FINE,
    });
  if (gate)
    cards.push({
      path: "flags",
      title: "Flags",
      icon: "flags",
      value: formatNumber(gate.on),
      line: `on · ${formatNumber(gate.total)} in total`,
      state: FINE,
    });
  return cards;
}

function stateCards({ latch, pulse, incidents_open }: Overview): Card[] {
  const cards: Card[] = [];
  if (latch)
    cards.push({
      path: "locks",
      title: "Locks",
      icon: "locks",
      value: formatNumber(latch.held),
      line: `held · ${formatNumber(latch.waiting)} waiting`,
      state: latch.waiting > LONG_QUEUE ? ["queueing", "warn"] : FINE,
    });
  if (pulse)
    cards.push({
      path: "monitors",
      title: "Monitors",
      icon: "monitors",
      value: (
        <>
          {formatNumber(pulse.up)} <small>/ {formatNumber(pulse.total)}</small>
        </>
      ),
      line: incidents_open > 0 ? `up · ${count(incidents_open, "open incident")}` : "up",
      state: pulse.down > 0 ? ["down", "bad"] : FINE,
    });
  return cards;
}

function trafficCards({ relay, catch: inbox, witness }: Overview): Card[] {
  const cards: Card[] = [];
  if (relay) {
    const late = lateBy(relay.retrying_since);
    cards.push({
      path: "relay",
      title: "Relay",
      icon: "relay",
      value: formatNumber(relay.scheduled),
      line: lineOf(
        "scheduled",
        late && `retrying for ${late}`,
        `${formatNumber(relay.failed)} failed in 24 h`,
      ),
      state: stateOf(relay.failed, late),
    });
  }
  if (inbox) {
    const late = lateBy(inbox.pending_since);
    const failed = inbox.failed_24h;
    cards.push({
      path: "catch",
      title: "Catch",
      icon: "catch",
      value: formatNumber(inbox.pending),
      line: lineOf("pending", late && `oldest for ${late}`, `${formatNumber(failed)} failed in 24 h`),
      state: stateOf(failed, late),
    });
  }
  if (witness) {
    const late = lateBy(witness.buffered_since);
    const waiting = witness.buffered > 0 && `${formatNumber(witness.buffered)} waiting for storage`;
    cards.push({
      path: "notary",
      title: "Notary",
      icon: "notary",
      value: formatNumber(witness.receipts),
      line: lineOf("receipts", waiting && (late === null ? waiting : `${waiting} for ${late}`)),
      state: waiting ? ["buffered", late === null ? "warn" : "bad"] : FINE,
    });
  }
  return cards;
}

function lineOf(...parts: readonly (string | false | null)[]): string {
  return parts.filter(Boolean).join(" · ");
}

function stateOf(failed: number, late: string | null): Card["state"] {
  if (failed > 0) return ["failed", "bad"];
  return late === null ? FINE : ["late", "bad"];
}

function serverCards({ backups, mail }: Overview): Card[] {
  const cards: Card[] = [];
  // Only a mail server that fails is worth a card.
  if (mail?.failing_since)
    cards.push({
      path: "metrics",
      title: "E-mail",
      icon: "metrics",
      value: <Ago at={mail.failing_since} never="none" />,
      line: "e-mails are not sent since then",
      state: ["failing", "bad"],
    });
  if (!backups) return cards;
  const { scheduled, last_at, overdue } = backups;
  return [
    ...cards,
    {
      path: "backups",
      title: "Backups",
      icon: "backups",
      value: <Ago at={last_at} never="none" />,
      line: scheduled ? "last backup" : "no backup folder",
      state: overdue ? ["overdue", "warn"] : scheduled ? FINE : ["off", "idle"],
    },
  ];
}
