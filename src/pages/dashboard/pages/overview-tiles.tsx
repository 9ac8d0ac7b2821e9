import type { ComponentChildren } from "preact";
import type { Overview } from "../../../client/generated/api.ts";
import type { Bar } from "../charts/bar.ts";
import { Bars } from "../charts/bars.tsx";
import { call } from "../core/api.ts";
import { count, formatNumber, HOUR_MS } from "../core/format.ts";
import { minute } from "../core/now.ts";
import { useResource } from "../core/resource.ts";
import { href } from "../core/route.ts";
import { mayCall, session } from "../core/session.ts";
import { shortTime } from "../core/times.ts";
import { Ago } from "../ui/time.tsx";

/** Lengths of the periods, and of their bars. */
const PERIODS = {
  "1h": [HOUR_MS, HOUR_MS / 24],
  "24h": [24 * HOUR_MS, HOUR_MS],
  "7d": [168 * HOUR_MS, 6 * HOUR_MS],
} as const;

/** What happened in an interval. */
interface Sample {
  readonly at: number;
  readonly number: number;
  readonly failed: number;
}

interface Tile {
  readonly page: string;
  readonly title: string;
  readonly value: ComponentChildren;
  readonly line: string;
  readonly samples?: readonly Sample[] | undefined;
}

/** A number for each service, with its course in the period if the server has it. */
export function Tiles({ of, period }: { of: Overview; period: keyof typeof PERIODS }) {
  const { data } = useResource(
    `activity ${period}`,
    [],
    (signal) => readActivity(period, signal),
    minute.value,
  );
  const [length, step] = PERIODS[period];
  return (
    <div class="cards">
      {tilesOf(of, data ?? {}).map(({ page, title, value, line, samples }) => (
        <a key={page} class="card" href={href([page])}>
          <h2>{title}</h2>
          <span class="figure">{value}</span>
          <span class="line">{line}</span>
          {samples === undefined ? null : (
            <Bars
              bars={barsOf(samples, step)}
              places={Math.round(length / step)}
              label={`${title}, last ${period}`}
            />
          )}
        </a>
      ))}
    </div>
  );
}

type Activity = Readonly<Partial<Record<"credits" | "deliveries", readonly Sample[]>>>;

/** Read once a minute. Credits are counted by the hour: they have no course of a single hour. */
async function readActivity(period: keyof typeof PERIODS, signal: AbortSignal): Promise<Activity> {
  const [length, step] = PERIODS[period];
  const until = minute.value - (minute.value % step) + step;
  const since = until - length;
  const [usage, stats] = await Promise.all([
    mayCall("meter.usage.project") && step >= HOUR_MS
      ? call(
          "meter.usage.project",
          { query: { from: new Date(since).toISOString(), granularity: "hour" } },
          signal,
        )
      : null,
    mayCall("relay.stats")
      ? call("relay.stats", { query: { since, until, filter: "deliveries" } }, signal)
      : null,
  ]);
  return {
    ...(usage && {
      credits: usage.data.map(({ from, deducted }) => ({
        at: Date.parse(from),
        number: deducted,
        failed: 0,
      })),
    }),
    ...(stats && {
      deliveries: stats.points.map(({ at, delivered, failed }) => ({
        at,
        number: delivered + failed,
        failed,
      })),
    }),
  };
}

/** A bar for each step up to now; failures are the red part of a bar. */
function barsOf(samples: readonly Sample[], step: number): Bar[] {
  const sums = Map.groupBy(samples, ({ at }) => at - (at % step));
  const last = minute.value - (minute.value % step);
  const bars = Array.from({ length: 28 }, (_, at) => {
    const from = last - (27 - at) * step;
    const within = sums.get(from) ?? [];
    return { from, number: sumOf(within, "number"), failed: sumOf(within, "failed") };
  });
  const most = Math.max(1, ...bars.map(({ number }) => number));
  return bars.map(({ from, number, failed }) => ({
    height: number / most,
    badHeight: failed / most,
    tone: number === 0 ? "none" : "idle",
    title: `${shortTime(from)}: ${formatNumber(number)}${failed === 0 ? "" : `, ${failed} failed`}`,
  }));
}

function sumOf(samples: readonly Sample[], what: "number" | "failed"): number {
  return samples.reduce((sum, sample) => sum + sample[what], 0);
}

/** The tiles of the services that the session can read. */
function tilesOf(all: Overview, { credits, deliveries }: Activity): Tile[] {
  const { meter, keys, gate, latch, relay, catch: inbox, witness, backups } = all;
  const number = formatNumber;
  const isUnlimited = session.value?.tier === "unlimited";
  const tiles: (Tile | undefined | null | false)[] = [
    meter && {
      page: "meters",
      title: "Credits used",
      value: credits === undefined ? "–" : number(sumOf(credits, "number")),
      line: `${count(meter.meters, "meter")} · ${isUnlimited ? "unlimited" : `${number(meter.balance)} account`} credits`,
      samples: credits,
    },
    relay && {
      page: "relay",
      title: "Deliveries",
      value: deliveries === undefined ? "–" : number(sumOf(deliveries, "number")),
      line: `${number(relay.failed)} failed in 24 h · ${number(relay.scheduled)} scheduled`,
      samples: deliveries,
    },
    inbox && {
      page: "catch",
      title: "Inbound events",
      value: number(inbox.delivered + inbox.pending + inbox.failed),
      line: `${number(inbox.failed)} failed · ${number(inbox.pending)} pending`,
    },
    keys && {
      page: "keys",
      title: "Keys",
      value: number(keys.total),
      line: keys.ending_soon > 0 ? `${count(keys.ending_soon, "expires", "expire")} within 7 days` : "active",
    },
    gate && {
      page: "flags",
      title: "Flags",
      value: `${number(gate.on)} on`,
      line: `of ${count(gate.total, "flag")}`,
    },
    latch && {
      page: "locks",
      title: "Locks",
      value: `${number(latch.held)} held`,
      line: `${number(latch.waiting)} waiting`,
    },
    witness && {
      page: "notary",
      title: "Receipts",
      value: number(witness.receipts),
      line: witness.buffered > 0 ? `${number(witness.buffered)} waiting for storage` : "all stored",
    },
    backups && {
      page: "backups",
      title: "Last backup",
      value: <Ago at={backups.last_at} never="none" />,
      line: backups.scheduled ? "scheduled" : "no backup folder",
    },
  ];
  return tiles.filter((tile) => Boolean(tile)) as Tile[];
}
