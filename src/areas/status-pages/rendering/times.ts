import { html, Markup } from "../../../kernel/data/markup.ts";
import { isTimeZone } from "../../../kernel/scheduler/calendar.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import { DAY_MS, dayOf } from "../../../kernel/time/units.ts";
import { offsetMs, UTC } from "../../../kernel/time/zone.ts";
import { clockText, timeText, weekdayText } from "./dates.ts";

/** The times of a page in a time zone. Bars stay in UTC, by which days are counted. */
export class PageTimes {
  /** `isChosen`: whether the reader has chosen the zone, which links then keep. */
  constructor(
    readonly zone: string,
    readonly isChosen: boolean,
  ) {}

  /** What addresses of the page end with. */
  get query(): string {
    return this.isChosen ? `?tz=${encodeURIComponent(this.zone)}` : "";
  }

  /** `10 Mar, 13:00`. */
  time(epochMs: number): Markup {
    return html`<time datetime="${isoTime(epochMs)}">${timeText(this.local(epochMs))}</time>`;
  }

  /** `13:00`. */
  clock(epochMs: number): Markup {
    return html`<time datetime="${isoTime(epochMs)}">${clockText(this.local(epochMs))}</time>`;
  }

  /** The end of a period: its date is omitted on the day of the start. */
  endOf(startsAt: number, endsAt: number): Markup {
    return this.dayOf(startsAt) === this.dayOf(endsAt) ? this.clock(endsAt) : this.time(endsAt);
  }

  /** `Tue 10 March`. */
  weekday(epochMs: number): string {
    return weekdayText(this.local(epochMs));
  }

  /** The day of a time in the zone, as the start of that date in UTC. */
  dayOf(epochMs: number): number {
    return dayOf(this.local(epochMs));
  }

  /** The last days up to a time, the newest first, as {@link dayOf}. */
  daysUpTo(epochMs: number, count: number): number[] {
    const last = this.dayOf(epochMs);
    return Array.from({ length: count }, (_, index) => last - index * DAY_MS);
  }

  /** A time whose parts in UTC are those in the zone. */
  private local(epochMs: number): number {
    return epochMs + offsetMs(epochMs, this.zone);
  }
}

let known: ReadonlyMap<string, string> | null = null;

/** The time zones of the list of the form, by their names in lower case. */
function knownZones(): ReadonlyMap<string, string> {
  known ??= new Map([UTC, ...Intl.supportedValuesOf("timeZone")].map((name) => [name.toLowerCase(), name]));
  return known;
}

/** The time zone that a reader has chosen; null for a name that is none. */
export function zoneNamed(text: string): string | null {
  return knownZones().get(text.toLowerCase()) ?? (isTimeZone(text) ? text : null);
}

let options: string | null = null;

/** The form with which a reader chooses another zone. It works without a script. */
export function zoneForm(zone: string): Markup {
  options ??= [...knownZones().values()].map((name) => `<option>${name}</option>`).join("\n");
  const chosen = `<option>${zone}</option>`;
  const isListed = options.includes(chosen);
  const list = isListed ? options.replace(chosen, chosen.replace(">", " selected>")) : options;
  return html`<form class="zone" method="get">
<label for="tz">Time zone</label>
<select id="tz" name="tz">
${isListed ? null : html`<option selected>${zone}</option>\n`}${new Markup(list)}
</select>
<button type="submit">Show</button>
</form>
`;
}
