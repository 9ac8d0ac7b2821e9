import type { Clock } from "../../kernel/clock.ts";
import { ApiError } from "../../kernel/errors.ts";
import { TaggedText } from "../../kernel/http/etag.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { DAY_MS } from "./days.ts";
import type { PageRow, PageStore } from "./page-store.ts";
import type { MonitorParts } from "./ports.ts";
import { type BadgeMetric, badgeJson, badgeOf, badgeSvg } from "./status-badge.ts";
import { statusFeed, statusJson } from "./status-feed.ts";
import { statusHtml } from "./status-html.ts";
import { type ShownMonitor, type StatusView, uptimeOfHours, type ViewParts, viewOf } from "./status-view.ts";

/** How long what a page shows stands, however many look at it. */
export const RENDERED_MS = 10_000;
/** Pages kept rendered, some hundred kilobytes each; the oldest are dropped first. */
const RENDERED_MAX = 100;

/** A page at a moment, and its texts once somebody has asked for them. */
interface Rendered {
  readonly view: StatusView;
  readonly at: number;
  html?: TaggedText;
  json?: TaggedText;
}

interface StatusParts extends ViewParts, Pick<MonitorParts, "owners" | "stopped" | "statusStyle"> {
  readonly pages: PageStore;
  readonly clock: Clock;
}

const HOURS = { "uptime-24h": 24, "uptime-7d": 7 * 24, "uptime-30d": 30 * 24 } as const;
const SLUG = /^[a-z0-9-]{3,60}$/;
const BADGE = /^([1-9][0-9]{0,3})\.(svg|json)$/;

/** Pages as everybody sees them. */
export class StatusPages {
  private readonly rendered = new Map<string, Rendered>();

  constructor(private readonly parts: StatusParts) {}

  /** What stands at a slug is not what it was. */
  changedAt(tx: Tx, slug: string): void {
    tx.afterCommit(() => this.rendered.delete(slug));
  }

  /** A project's pages are removed. */
  removedOf(tx: Tx, projectRef: number): void {
    tx.afterCommit(() => {
      for (const [slug, { view }] of this.rendered)
        if (view.page.projectRef === projectRef) this.rendered.delete(slug);
    });
  }

  /** @throws ApiError `not_found`, as all of these do: for what is unknown as for what is not published. */
  html(slug: string): TaggedText {
    const one = this.at(slug);
    one.html ??= new TaggedText(statusHtml(one.view, this.parts.statusStyle));
    return one.html;
  }

  json(slug: string): TaggedText {
    const one = this.at(slug);
    one.json ??= new TaggedText(statusJson(one.view));
    return one.json;
  }

  /** `origin`: where the client reaches the server. It is the client's word, so that nothing of this is kept for others. */
  feed(slug: string, origin: string): TaggedText {
    return new TaggedText(statusFeed(this.at(slug).view, `${origin}/status/${slug}`));
  }

  /** `name`: the place on the page, and the form. */
  badge(slug: string, name: string, metric: BadgeMetric): { text: TaggedText; isSvg: boolean } {
    const [, number, form] = BADGE.exec(name) ?? [];
    const { view } = this.at(slug);
    const shown = view.groups.flatMap(({ monitors }) => monitors);
    const monitor = shown.find((one) => one.number === Number(number));
    const isHidden = metric === "latency" && !view.page.settings.show_latency;
    if (monitor === undefined || isHidden) throw new ApiError("not_found", "There is no such badge.");
    const badge = badgeOf({ monitor, metric, ...this.figuresOf(view, monitor, metric) });
    const isSvg = form === "svg";
    return { text: new TaggedText(isSvg ? badgeSvg(badge) : badgeJson(badge)), isSvg };
  }

  private figuresOf({ now }: StatusView, { row, uptime }: ShownMonitor, metric: BadgeMetric) {
    const hours = metric in HOURS ? HOURS[metric as keyof typeof HOURS] : null;
    const endsAt = row.certificate?.notAfter ?? null;
    return {
      uptime: hours === null ? uptime : uptimeOfHours(this.parts, row, now, hours),
      certificateDays: endsAt === null ? null : Math.floor((endsAt - now) / DAY_MS),
    };
  }

  private at(slug: string): Rendered {
    const now = this.parts.clock.now();
    const known = this.rendered.get(slug);
    // A clock that was set back makes nothing last longer.
    if (known !== undefined && Math.abs(now - known.at) < RENDERED_MS && this.isSeen(known.view.page))
      return known;
    this.rendered.delete(slug);
    const page = SLUG.test(slug) ? this.parts.pages.at(slug) : null;
    if (page === null || !this.isSeen(page)) throw new ApiError("not_found", "There is no status page here.");
    const fresh: Rendered = { view: viewOf(this.parts, page, now), at: now };
    const [oldest] = this.rendered.keys();
    if (oldest !== undefined && this.rendered.size >= RENDERED_MAX) this.rendered.delete(oldest);
    this.rendered.set(slug, fresh);
    return fresh;
  }

  private isSeen({ settings, projectRef, accountRef }: PageRow): boolean {
    const { stopped, owners } = this.parts;
    return settings.published && !stopped.has(projectRef) && !owners.account(accountRef).suspended;
  }
}
