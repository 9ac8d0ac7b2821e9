import { type Static, Type } from "@sinclair/typebox";
import { dateTime, flag, named, oneOf, orNull, patchOf, refersTo, text } from "../../kernel/data/schema.ts";

/** Maximum number of characters of a page's texts. */
export const PAGE_LENGTHS_MAX = { title: 100, description: 500, footer: 300, groupName: 100 } as const;
/** Maximum size of a logo in bytes: an icon of 256 × 256 pixels fits. It is stored with the page's settings. */
export const LOGO_BYTES_MAX = 32 * 1024;
/** Maximum number of characters of a website's URL. */
const WEBSITE_LENGTH_MAX = 500;
/** Base64 has 4 characters for each 3 bytes; the prefix names the type. */
const LOGO_LENGTH_MAX = Math.ceil(LOGO_BYTES_MAX / 3) * 4 + "data:image/svg+xml;base64,".length;

/** Default number of pages in a list. */
export const PAGE_LIST_LIMIT = 50;
/** Maximum number of groups of a page. */
export const GROUPS_MAX = 50;
/** Maximum number of monitors of a group. */
export const GROUP_MONITORS_MAX = 50;

const Slug = Type.String({
  minLength: 3,
  maxLength: 60,
  pattern: "^[a-z0-9-]*$",
  errorMessage: "must be 3 to 60 of the characters a-z, 0-9 and -",
  description: "Last part of the page's path, `/status/{slug}`; unique on the server.",
  examples: ["acme"],
});
const Title = text({
  min: 1,
  max: PAGE_LENGTHS_MAX.title,
  description: "Title of the page.",
  examples: ["Acme"],
});

const Group = Type.Object(
  {
    name: text({
      min: 0,
      max: PAGE_LENGTHS_MAX.groupName,
      description: "Heading of the group; empty for none.",
      examples: ["Shop"],
    }),
    monitor_ids: Type.Array(
      Type.String({
        maxLength: 64,
        examples: ["0190a0a0-0000-7000-8000-000000000000"],
        ...refersTo("monitors"),
      }),
      {
        maxItems: GROUP_MONITORS_MAX,
        errorMessage: `must be at most ${GROUP_MONITORS_MAX} monitor ids`,
        description: "Ids of the monitors, in the order in which the page shows them.",
      },
    ),
  },
  { errorMessage: "must be an object with name and monitor_ids" },
);

const SETTINGS = {
  description: text({
    min: 0,
    max: PAGE_LENGTHS_MAX.description,
    description: "Text below the title, as plain text with links.",
    examples: ["Current status of our services."],
  }),
  groups: Type.Array(Group, {
    maxItems: GROUPS_MAX,
    errorMessage: `must be at most ${GROUPS_MAX} groups, each with name and monitor_ids`,
    description: "Groups of monitors, in the order in which the page shows them.",
  }),
  color: orNull(
    Type.String({ pattern: "^#[0-9a-fA-F]{6}$", errorMessage: "must be a color such as #0f766e" }),
    { description: "Color of the page's icon, in hexadecimal; null for the default.", examples: ["#0f766e"] },
  ),
  logo: orNull(
    Type.String({
      maxLength: LOGO_LENGTH_MAX,
      errorMessage: `must be a data URI of at most ${LOGO_BYTES_MAX / 1024} KiB`,
    }),
    {
      description: `Icon of the page, as a base64 data URI of a PNG, JPEG, WebP or SVG image, at most ${LOGO_BYTES_MAX / 1024} KiB; null for the first letter of the title.`,
      examples: [null],
    },
  ),
  website_url: orNull(
    Type.String({
      maxLength: WEBSITE_LENGTH_MAX,
      errorMessage: `must be an http or https URL of at most ${WEBSITE_LENGTH_MAX} characters`,
    }),
    { description: "URL of your website, linked in the page's header.", examples: ["https://acme.example"] },
  ),
  show_latency: flag({
    description: "Whether the page shows the latency of each monitor, except heartbeats.",
  }),
  show_urls: flag({
    description: "Whether the page shows the URL of each monitor, and the host of a monitor without a name.",
  }),
  publish_incidents: oneOf(["none", "manual", "outages", "all"], {
    errorMessage: "must be one of none, manual, outages, all",
    description:
      "Incidents on the page. `manual`: manual incidents that are public. `outages`: also the outages of the page's monitors, with their duration. `all`: also the automatic incidents of these outages, with their updates.",
    examples: ["outages"],
  }),
  footer: text({
    min: 0,
    max: PAGE_LENGTHS_MAX.footer,
    description: "Text at the end of the page, as plain text with links.",
    examples: ["Acme Ltd"],
  }),
  index: flag({ description: "Whether search engines may index the page." }),
  published: flag({ description: "Whether the page is public; otherwise its address responds with 404." }),
};
const Settings = Type.Object(SETTINGS);

/** Body of a request that creates a page. */
export const StatusPageCreateBody = Type.Composite(
  [Type.Object({ slug: Slug, title: Title }), Type.Partial(Settings)],
  { $id: "StatusPageCreateBody" },
);

/** Body of a request that updates a page: any of its settings. */
export const StatusPageUpdateBody = patchOf("StatusPageUpdateBody", StatusPageCreateBody);

/** Settings of a page, without its slug. */
export type PageSettings = Static<typeof Settings> & { title: string };

/** Defaults of omitted settings. */
export const PAGE_DEFAULTS: Omit<PageSettings, "title"> = {
  description: "",
  groups: [],
  color: null,
  logo: null,
  website_url: null,
  show_latency: false,
  show_urls: false,
  publish_incidents: "outages",
  footer: "",
  index: false,
  published: true,
};

const EXAMPLE_TIME = "2030-01-31T12:00:00.000Z";

const PAGE = {
  id: Type.String({ description: "Id of the page.", examples: ["page_0190a0a0000070008000000000000000"] }),
  slug: Slug,
  url: Type.String({
    description: "Public URL of the page.",
    examples: ["https://ninefold.example.com/status/acme"],
  }),
  title: Title,
  ...SETTINGS,
  created_at: dateTime({ description: "Time of creation.", examples: [EXAMPLE_TIME] }),
  updated_at: dateTime({ description: "Time of the last update.", examples: [EXAMPLE_TIME] }),
};

export const StatusPage = named("StatusPage", PAGE);
export type StatusPage = Static<typeof StatusPage>;

const { groups: _groups, logo: _logo, ...SUMMARY } = PAGE;
/** A status page in a list: without its groups, which contain up to 2,500 monitor ids, and without its logo. */
export const StatusPageSummary = named("StatusPageSummary", SUMMARY);
export type StatusPageSummary = Static<typeof StatusPageSummary>;

/** Path of a public page: its slug, with `.json` for data. */
export const PublicPageParams = Type.Object({ page: Type.String({ examples: ["acme"] }) });
export const PublicIncidentParams = Type.Object({
  page: Type.String({ examples: ["acme"] }),
  incident: Type.String({
    description: "Id of the incident, with `.json` for data.",
    examples: ["inc_01a1fc2c30c071d9bf080e3cb4a7b202"],
  }),
});
export const SubscriptionQuery = Type.Object({
  token: Type.Optional(
    Type.String({ maxLength: 200, description: "Token of the link in an e-mail.", examples: ["AbCd"] }),
  ),
});
export const BadgeParams = Type.Object({
  page: Type.String({ examples: ["acme"] }),
  badge: Type.String({
    description: "Position of the monitor on the page and format, such as `1.svg` or `1.json`.",
    examples: ["1.svg"],
  }),
});

const GROUP_DESCRIPTION = "Position of the group on the page, from 1";
export const PublicGroupParams = Type.Object({
  page: Type.String({ examples: ["acme"] }),
  group: Type.String({
    description: `${GROUP_DESCRIPTION}, with or without \`.json\`.`,
    examples: ["1.json"],
  }),
});
export const GroupBadgeParams = Type.Object({
  page: Type.String({ examples: ["acme"] }),
  group: Type.String({ description: `${GROUP_DESCRIPTION}.`, examples: ["1"] }),
});

/** Metrics that a badge can show. */
export const METRICS = [
  "status",
  "uptime-24h",
  "uptime-7d",
  "uptime-30d",
  "uptime-90d",
  "latency",
  "cert",
  "domain",
] as const;

/** Maximum number of characters of a badge's label. */
export const BADGE_LABEL_MAX = 60;
export const BADGE_STYLES = ["flat", "flat-square", "for-the-badge"] as const;

const BADGE_LOOK = {
  style: Type.Optional(
    oneOf(BADGE_STYLES, {
      description: "Style of the image, by default `flat`.",
      examples: ["flat-square"],
    }),
  ),
  label: Type.Optional(
    text({
      min: 1,
      max: BADGE_LABEL_MAX,
      description:
        "Text on the left side, by default the name of the monitor and the metric, the title of the page, or the name of the group.",
      examples: ["API"],
    }),
  ),
};

/** How a badge of a page or a group looks. */
export const SummaryBadgeQuery = Type.Object(BADGE_LOOK);
/** Longest name of a zone. */
const ZONE_LENGTH_MAX = 64;

/** Query of pages for people. */
export const ZoneQuery = Type.Object({
  tz: Type.Optional(
    text({
      min: 0,
      max: ZONE_LENGTH_MAX,
      description:
        "Time zone of the times in the texts of the page, an IANA name; that of the project by default, and for an unknown name. Bars and JSON stay in UTC.",
      examples: ["Europe/Berlin"],
    }),
  ),
});

export const BadgeQuery = Type.Object({
  ...BADGE_LOOK,
  metric: Type.Optional(
    oneOf(METRICS, {
      description:
        "Metric of the badge, by default `status`. `latency` requires that the page shows latencies.",
      examples: ["uptime-30d"],
    }),
  ),
});

export const StatusPageDeleted = named("StatusPageDeleted", { deleted: Type.Literal(true) });
