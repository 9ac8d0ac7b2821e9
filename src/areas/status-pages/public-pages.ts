import { ApiError } from "../../kernel/errors.ts";
import { TaggedText } from "../../kernel/http/responses/etag.ts";
import { type Affected, ANYONE, type Tx } from "../../kernel/storage/tx.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Icon, iconOf } from "./brand.ts";
import { type CachedPage, StatusCache } from "./cache.ts";
import { type EventDeps, loadEvents, loadIncident, loadPositions, type PageEvents } from "./events.ts";
import type { PageDeps } from "./ports.ts";
import {
  type Badge,
  type BadgeMetric,
  type BadgeStyle,
  badgeJson,
  badgeOf,
  badgeSvg,
  summaryBadge,
} from "./rendering/badge.ts";
import { maintenanceCalendar } from "./rendering/calendar.ts";
import { groupJson, incidentJson, statusFeed, statusJson } from "./rendering/feed.ts";
import { incidentHtml, type PageAssets, statusHtml } from "./rendering/html.ts";
import { PageTimes, zoneNamed } from "./rendering/times.ts";
import type { PageRow, PageStore } from "./store.ts";
import { TextBudget } from "./text-budget.ts";
import {
  buildGroup,
  buildView,
  monitorAt,
  type PageSummary,
  type ShownMonitor,
  summarize,
  uptimeOfHours,
} from "./view.ts";

/** Time for which a rendered page is served from the cache, in milliseconds. */
export const RENDER_INTERVAL_MS = 10_000;

interface StatusDeps
  extends EventDeps,
    Pick<PageDeps, "owners" | "isStopped" | "incidents" | "statusStyle" | "brand" | "timeZoneOf"> {
  readonly pages: PageStore;
  readonly clock: Clock;
  /** Subscriptions to a page by e-mail. */
  readonly subscriptions: { readonly available: boolean };
}

const HOURS = { "uptime-24h": 24, "uptime-7d": 7 * 24, "uptime-30d": 30 * 24 } as const;
/** Texts of a page in zones that readers have chosen, each of which replaces another one: few readers choose one within seconds. */
const ZONE_SLOTS = 8;
const SLUG = /^[a-z0-9-]{3,60}$/;
const BADGE = /^([1-9][0-9]{0,3})\.(svg|json)$/;
const GROUP = /^[1-9][0-9]?$/;

/** How a badge looks. */
export interface BadgeLook {
  readonly style?: BadgeStyle;
  /** Absent: the text of the badge itself. */
  readonly label?: string | undefined;
}

/** What a badge shows, and how. */
export interface BadgeOptions extends BadgeLook {
  readonly metric?: BadgeMetric;
}

type BadgeFormat = "svg" | "json";

/** Public side of status pages: cached texts, rendered in slices of the event loop. */
export class PublicStatusPages {
  private readonly cache = new StatusCache();
  /** States of the cached pages, of which badges with any label are made. */
  private readonly summaries = new WeakMap<CachedPage, Promise<PageSummary>>();

  constructor(private readonly deps: StatusDeps) {}

  /** Drops the cached texts of a slug after the commit. */
  invalidate(tx: Tx, slug: string): void {
    tx.afterCommit(() => this.cache.drop(slug));
  }

  /** Drops the cached texts of all pages of a project after the commit. */
  invalidateProject(tx: Tx, projectRef: number): void {
    tx.afterCommit(() => this.cache.dropProject(projectRef));
  }

  /** Returns the page as HTML, with times in the zone that the reader has chosen. @throws ApiError `not_found` for an unknown and an unpublished page alike, as all methods below */
  async html(slug: string, tz?: string): Promise<TaggedText> {
    const cached = this.cachedPage(slug);
    const assets = this.assetsOf(cached.page, tz);
    const render = async () => {
      const view = await buildView(this.deps, cached.page, cached.at);
      return new TaggedText(await statusHtml(view, assets));
    };
    return this.cache.text(cached, `html${slotOf(assets.times)}`, render, assets.times.zone);
  }

  /** Returns the page as JSON. */
  async json(slug: string): Promise<TaggedText> {
    const cached = this.cachedPage(slug);
    return this.cache.text(cached, "json", async () => {
      const view = await buildView(this.deps, cached.page, cached.at);
      return new TaggedText(await statusJson(view));
    });
  }

  /** Returns the Atom feed. `baseUrl` is the URL of the server as the client reaches it. */
  async feed(slug: string, baseUrl: string): Promise<TaggedText> {
    const cached = this.cachedPage(slug);
    const render = async () =>
      new TaggedText(await statusFeed(await this.eventsOf(cached), `${baseUrl}/status/${slug}`));
    return this.cache.text(cached, "feed", render, baseUrl);
  }

  /** Returns the maintenance windows as an iCalendar object. `baseUrl` is as for the feed. */
  async calendar(slug: string, baseUrl: string): Promise<TaggedText> {
    const cached = this.cachedPage(slug);
    const render = async () =>
      new TaggedText(maintenanceCalendar(await this.eventsOf(cached), `${baseUrl}/status/${slug}`));
    return this.cache.text(cached, "calendar", render, baseUrl);
  }

  /** Returns the page of an incident as HTML or JSON. */
  async incident(
    slug: string,
    incidentId: string,
    format: "html" | "json",
    tz?: string,
  ): Promise<TaggedText> {
    const cached = this.cachedPage(slug);
    const { page } = cached;
    const assets = this.assetsOf(page, format === "html" ? tz : undefined);
    const render = async () => {
      const incident = await loadIncident(this.deps, page, incidentId, this.deps.incidents.updatesMax);
      if (incident === null)
        throw new ApiError("not_found", "This status page has no incident with this id.");
      return new TaggedText(
        format === "html" ? incidentHtml(page, incident, assets) : incidentJson(incident),
      );
    };
    const name = `incident ${incidentId} ${format}${slotOf(assets.times)}`;
    return this.cache.text(cached, name, render, assets.times.zone);
  }

  /** The account whose data a page shows; anyone's without such a page. */
  accountOf(slug: string): Affected {
    return this.visiblePage(slug)?.page.accountRef ?? ANYONE;
  }

  /** Returns the settings of a page. */
  find(slug: string): PageRow {
    return this.cachedPage(slug).page;
  }

  /** Returns the icon of a page: its logo, or the first letter of its title. */
  icon(slug: string): Icon {
    return iconOf(this.cachedPage(slug).page.settings);
  }

  /** Returns a badge. `name` consists of the position on the page and the format, such as `1.svg`. */
  async badge(
    slug: string,
    name: string,
    { metric = "status", style = "flat", label }: BadgeOptions,
  ): Promise<{ readonly text: TaggedText; readonly isSvg: boolean }> {
    const cached = this.cachedPage(slug);
    const [, number, format] = BADGE.exec(name) ?? [];
    const isHidden = metric === "latency" && !cached.page.settings.show_latency;
    if (number === undefined || isHidden) throw badgeNotFound();
    const isSvg = format === "svg";
    const render = async () => {
      const monitor = await monitorAt(this.deps, cached.page, Number(number), cached.at);
      if (monitor === null) throw badgeNotFound();
      const badge = badgeOf({ monitor, metric, ...this.valuesOf(monitor, metric, cached.at) });
      return drawn(badge, isSvg ? "svg" : "json", { style, label });
    };
    const variant = JSON.stringify([style, label]);
    return { text: await this.cache.text(cached, `badge ${name} ${metric}`, render, variant), isSvg };
  }

  /** Returns the badge of a page. */
  async pageBadge(slug: string, format: BadgeFormat, look: BadgeLook): Promise<TaggedText> {
    const cached = this.cachedPage(slug);
    const render = async () =>
      drawn(summaryBadge(cached.page.settings.title, await this.summaryOf(cached)), format, look);
    return this.cache.text(cached, `badge ${format}`, render, JSON.stringify(look));
  }

  /** Returns the group at a position as JSON. */
  async group(slug: string, position: string): Promise<TaggedText> {
    const cached = this.cachedPage(slug);
    const number = groupNumber(position);
    return this.cache.text(cached, `group ${number}`, async () => {
      const view = await buildGroup(this.deps, cached.page, number, cached.at);
      if (view === null) throw groupNotFound();
      return new TaggedText(await groupJson(view));
    });
  }

  /** Returns the badge of the group at a position. */
  async groupBadge(
    slug: string,
    position: string,
    format: BadgeFormat,
    look: BadgeLook,
  ): Promise<TaggedText> {
    const cached = this.cachedPage(slug);
    const number = groupNumber(position);
    const render = async () => {
      const { groups } = await this.summaryOf(cached);
      const group = groups.find((shown) => shown.number === number);
      if (group === undefined) throw groupNotFound();
      return drawn(summaryBadge(group.name || cached.page.settings.title, group), format, look);
    };
    return this.cache.text(cached, `group ${number} badge ${format}`, render, JSON.stringify(look));
  }

  private summaryOf(cached: CachedPage): Promise<PageSummary> {
    const known = this.summaries.get(cached);
    if (known !== undefined) return known;
    const summary = summarize(this.deps, cached.page, cached.at);
    this.summaries.set(cached, summary);
    return summary;
  }

  private async eventsOf({ page, at: now }: CachedPage): Promise<PageEvents> {
    const positions = await loadPositions(this.deps, page);
    return loadEvents(this.deps, page, { now, positions, budget: new TextBudget() });
  }

  /** `tz`: the zone that the reader has chosen. A name that is none has no effect. */
  private assetsOf({ projectRef }: PageRow, tz: string | undefined): PageAssets {
    const chosen = tz === undefined ? null : zoneNamed(tz);
    const times = new PageTimes(chosen ?? this.deps.timeZoneOf(projectRef), chosen !== null);
    return { style: this.deps.statusStyle, hasMail: this.deps.subscriptions.available, times };
  }

  private valuesOf({ monitor, uptime }: ShownMonitor, metric: BadgeMetric, now: number) {
    const hours = metric in HOURS ? HOURS[metric as keyof typeof HOURS] : null;
    return {
      uptime: hours === null ? uptime : uptimeOfHours(monitor, now, hours),
      certificateDays: monitor.certificateDays(now),
      domainDays: monitor.domainDays(now),
    };
  }

  private cachedPage(slug: string): CachedPage {
    const found = this.visiblePage(slug);
    if (found === null)
      throw new ApiError("not_found", "No status page is published at this address. Check the slug.");
    return found;
  }

  private visiblePage(slug: string): CachedPage | null {
    const now = this.deps.clock.now();
    const known = this.cache.find(slug);
    // The absolute difference: a clock that is set back must not extend the cache time.
    if (known !== null && Math.abs(now - known.at) < RENDER_INTERVAL_MS && this.isVisible(known.page))
      return known;
    this.cache.drop(slug);
    const page = SLUG.test(slug) ? this.deps.pages.findBySlug(slug) : null;
    return page === null || !this.isVisible(page) ? null : this.cache.add(this.branded(page), now);
  }

  /** A page with the brand of the server where it has nothing of its own. */
  private branded(page: PageRow): PageRow {
    const { color, logo, website_url } = page.settings;
    const brand = this.deps.brand();
    const branding = {
      color: color ?? brand.color,
      logo: logo ?? brand.logo,
      website_url: website_url ?? brand.website_url,
    };
    return { ...page, settings: { ...page.settings, ...branding } };
  }

  private isVisible({ settings, projectRef, accountRef }: PageRow): boolean {
    const { isStopped, owners } = this.deps;
    return settings.published && !isStopped(projectRef) && !owners.account(accountRef).suspended;
  }
}

/** Where the text of a chosen zone is in the cache, which so has a limit; empty for the project's zone. */
function slotOf({ zone, isChosen }: PageTimes): string {
  if (!isChosen) return "";
  const sum = [...zone].reduce((total, character) => total + character.charCodeAt(0), 0);
  return ` zone ${sum % ZONE_SLOTS}`;
}

function drawn(badge: Badge, format: BadgeFormat, { style, label = badge.label }: BadgeLook): TaggedText {
  const labeled = { ...badge, label };
  return new TaggedText(format === "svg" ? badgeSvg(labeled, style) : badgeJson(labeled));
}

/** @throws ApiError `not_found` */
function groupNumber(position: string): number {
  if (!GROUP.test(position)) throw groupNotFound();
  return Number(position);
}

function groupNotFound(): ApiError {
  return new ApiError(
    "not_found",
    "This status page has no group at this address. Use a position on the page, from 1.",
  );
}

function badgeNotFound(): ApiError {
  return new ApiError(
    "not_found",
    "This status page has no badge at this address. Use a position on the page and `.svg` or `.json`.",
  );
}
