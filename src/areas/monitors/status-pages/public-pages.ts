import { ApiError } from "../../../kernel/errors.ts";
import { TaggedText } from "../../../kernel/http/responses/etag.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { DAY_MS } from "../history/days.ts";
import { INCIDENT_UPDATES_MAX } from "../incidents/incidents.ts";
import type { MonitorParts } from "../ports.ts";
import { type BadgeMetric, badgeJson, badgeOf, badgeSvg } from "./badge.ts";
import { type CachedPage, StatusCache } from "./cache.ts";
import { incidentOf, loadEvents, loadPositions, type ShownIncident } from "./events.ts";
import { incidentJson, statusFeed, statusJson } from "./feed.ts";
import { incidentHtml, statusHtml } from "./html.ts";
import type { PageRow, PageStore } from "./store.ts";
import { TextBudget } from "./text-budget.ts";
import { buildView, monitorAt, type ShownMonitor, uptimeOfHours, type ViewParts } from "./view.ts";

/** How long what a page shows stands, however many clients request it. */
export const RENDER_INTERVAL_MS = 10_000;

interface StatusParts extends ViewParts, Pick<MonitorParts, "owners" | "stopped" | "statusStyle"> {
  readonly pages: PageStore;
  readonly clock: Clock;
}

const HOURS = { "uptime-24h": 24, "uptime-7d": 7 * 24, "uptime-30d": 30 * 24 } as const;
const SLUG = /^[a-z0-9-]{3,60}$/;
const BADGE = /^([1-9][0-9]{0,3})\.(svg|json)$/;

/** StatusPages as everyone sees them: cached, and rendered in slices of the event loop. */
export class PublicStatusPages {
  private readonly cache = new StatusCache();

  constructor(private readonly parts: StatusParts) {}

  /** What is at a slug has changed. */
  invalidate(tx: Tx, slug: string): void {
    tx.afterCommit(() => this.cache.drop(slug));
  }

  /** A project's pages are removed. */
  invalidateProject(tx: Tx, projectRef: number): void {
    tx.afterCommit(() => this.cache.dropProject(projectRef));
  }

  /** @throws ApiError `not_found`, as all of these do: for what is unknown as for what is not published. */
  async html(slug: string): Promise<TaggedText> {
    const cached = this.at(slug);
    return this.cache.text(cached, "html", async () => {
      const view = await buildView(this.parts, cached.page, cached.at);
      return new TaggedText(await statusHtml(view, this.parts.statusStyle));
    });
  }

  async json(slug: string): Promise<TaggedText> {
    const cached = this.at(slug);
    return this.cache.text(cached, "json", async () => {
      const view = await buildView(this.parts, cached.page, cached.at);
      return new TaggedText(await statusJson(view));
    });
  }

  /** `baseUrl`: where the client reaches the server, in the client's words. */
  async feed(slug: string, baseUrl: string): Promise<TaggedText> {
    const cached = this.at(slug);
    const render = async () => {
      const { page, at: now } = cached;
      const positions = await loadPositions(this.parts, page);
      const events = await loadEvents(this.parts, page, { now, positions, budget: new TextBudget() });
      return new TaggedText(await statusFeed(events, `${baseUrl}/status/${slug}`));
    };
    return this.cache.text(cached, "feed", render, baseUrl);
  }

  /** The page of one incident, as HTML or as data. */
  async incident(slug: string, incidentId: string, form: "html" | "json"): Promise<TaggedText> {
    const cached = this.at(slug);
    return this.cache.text(cached, `incident ${incidentId} ${form}`, async () => {
      const { page } = cached;
      const incident = await incidentOf(this.parts, page, incidentId, INCIDENT_UPDATES_MAX);
      if (incident === null) throw new ApiError("not_found", "There is no such incident on this page.");
      return new TaggedText(textOf(page, incident, form, this.parts.statusStyle));
    });
  }

  /** `name`: the place on the page, and the form. */
  async badge(
    slug: string,
    name: string,
    metric: BadgeMetric,
  ): Promise<{ readonly text: TaggedText; readonly isSvg: boolean }> {
    const cached = this.at(slug);
    const [, number, form] = BADGE.exec(name) ?? [];
    const isHidden = metric === "latency" && !cached.page.settings.show_latency;
    if (number === undefined || isHidden) throw missingBadge();
    const isSvg = form === "svg";
    const text = await this.cache.text(cached, `badge ${name} ${metric}`, async () => {
      const monitor = await monitorAt(this.parts, cached.page, Number(number), cached.at);
      if (monitor === null) throw missingBadge();
      const badge = badgeOf({ monitor, metric, ...this.measured(monitor, metric, cached.at) });
      return new TaggedText(isSvg ? badgeSvg(badge) : badgeJson(badge));
    });
    return { text, isSvg };
  }

  private measured({ row, uptime }: ShownMonitor, metric: BadgeMetric, now: number) {
    const hours = metric in HOURS ? HOURS[metric as keyof typeof HOURS] : null;
    const endsAt = row.certificate?.notAfter ?? null;
    return {
      uptime: hours === null ? uptime : uptimeOfHours(this.parts, row, now, hours),
      certificateDays: endsAt === null ? null : Math.floor((endsAt - now) / DAY_MS),
    };
  }

  private at(slug: string): CachedPage {
    const now = this.parts.clock.now();
    const known = this.cache.find(slug);
    // A clock that was set back makes nothing last longer.
    if (known !== null && Math.abs(now - known.at) < RENDER_INTERVAL_MS && this.isVisible(known.page))
      return known;
    this.cache.drop(slug);
    const page = SLUG.test(slug) ? this.parts.pages.at(slug) : null;
    if (page === null || !this.isVisible(page))
      throw new ApiError("not_found", "There is no status page here.");
    return this.cache.add(page, now);
  }

  private isVisible({ settings, projectRef, accountRef }: PageRow): boolean {
    const { stopped, owners } = this.parts;
    return settings.published && !stopped.has(projectRef) && !owners.account(accountRef).suspended;
  }
}

function textOf(page: PageRow, incident: ShownIncident, form: "html" | "json", style: string): string {
  return form === "html" ? incidentHtml(page, incident, style) : incidentJson(incident);
}

function missingBadge(): ApiError {
  return new ApiError("not_found", "There is no such badge.");
}
