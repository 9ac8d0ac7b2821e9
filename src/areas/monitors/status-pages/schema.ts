import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, text } from "../../../kernel/data/schema.ts";
import { NextCursor, pageQuery } from "../../../kernel/http/requests/pagination.ts";
import { LIST_LIMIT } from "../schema.ts";

/** Bounds of what a page says: what fits a page that people read. */
export const PAGE_LENGTHS_MAX = { title: 100, description: 500, footer: 300, groupName: 100 } as const;
/** Groups of a page, and monitors of a group. */
export const GROUPS_MAX = 50;
/** See {@link GROUPS_MAX}. */
export const GROUP_MONITORS_MAX = 50;

const flag = (description: string) => Type.Boolean({ errorMessage: "must be true or false", description });

const Slug = Type.String({
  minLength: 3,
  maxLength: 60,
  pattern: "^[a-z0-9-]*$",
  errorMessage: "must be 3 to 60 of the characters a-z, 0-9 and -",
  description: "Where the page is: `/status/{slug}`. Unique on the server.",
  examples: ["acme"],
});
const Title = text({ min: 1, max: PAGE_LENGTHS_MAX.title, examples: ["Acme"] });

const Group = Type.Object(
  {
    name: text({
      min: 0,
      max: PAGE_LENGTHS_MAX.groupName,
      description: "Empty for none.",
      examples: ["Shop"],
    }),
    monitor_ids: Type.Array(
      Type.String({ maxLength: 64, examples: ["0190a0a0-0000-7000-8000-000000000000"] }),
      {
        maxItems: GROUP_MONITORS_MAX,
        errorMessage: `must be at most ${GROUP_MONITORS_MAX} ids of monitors`,
      },
    ),
  },
  { errorMessage: "must be an object with name and monitor_ids" },
);

const SETTINGS = {
  description: text({ min: 0, max: PAGE_LENGTHS_MAX.description, examples: ["What we run, and how it is."] }),
  groups: Type.Array(Group, {
    maxItems: GROUPS_MAX,
    errorMessage: `must be at most ${GROUPS_MAX} groups, each with name and monitor_ids`,
    description: "What is shown, in its order.",
  }),
  show_latency: flag("Whether latencies are shown."),
  show_urls: flag("Whether addresses are shown, and hosts in the place of names that were not given."),
  publish_incidents: oneOf(["none", "manual", "all"], {
    errorMessage: "must be one of none, manual, all",
    description:
      "`manual`: those that people have told and made public. `all`: those of its monitors besides.",
    examples: ["manual"],
  }),
  footer: text({ min: 0, max: PAGE_LENGTHS_MAX.footer, examples: ["Acme Ltd"] }),
  index: flag("Whether search engines may list it."),
  published: flag("Whether anybody sees it."),
};
const Settings = Type.Object(SETTINGS);

/** Body of a page's creation. */
export const StatusPageCreateBody = Type.Composite(
  [Type.Object({ slug: Slug, title: Title }), Type.Partial(Settings)],
  { $id: "StatusPageCreateBody" },
);
export type StatusPageCreateBody = Static<typeof StatusPageCreateBody>;

/** Body of a page's change: any of these. */
export const StatusPageUpdateBody = Type.Composite(
  [Type.Partial(Type.Object({ slug: Slug, title: Title })), Type.Partial(Settings)],
  { $id: "StatusPageUpdateBody" },
);
export type StatusPageUpdateBody = Static<typeof StatusPageUpdateBody>;

/** What was set about a page, beside its slug. */
export type PageSettings = Static<typeof Settings> & { title: string };

/** What a page has where its user sets nothing. */
export const PAGE_DEFAULTS: Omit<PageSettings, "title"> = {
  description: "",
  groups: [],
  show_latency: false,
  show_urls: false,
  publish_incidents: "manual",
  footer: "",
  index: false,
  published: true,
};

const Timestamp = Type.String({ format: "date-time", examples: ["2030-01-31T12:00:00.000Z"] });

const PAGE = {
  id: Type.String({ examples: ["page_0190a0a0000070008000000000000000"] }),
  slug: Slug,
  url: Type.String({ examples: ["https://ninefold.example.com/status/acme"] }),
  title: Title,
  ...SETTINGS,
  created_at: Timestamp,
  updated_at: Timestamp,
};

/** A status page, as its owner sees it. */
export const StatusPage = named("StatusPage", PAGE);
export type StatusPage = Static<typeof StatusPage>;

const { groups: _, ...SUMMARY } = PAGE;
/** A status page as lists return it: without its groups, which name up to 2,500 monitors. */
export const StatusPageSummary = named("StatusPageSummary", SUMMARY);
export type StatusPageSummary = Static<typeof StatusPageSummary>;

/** A project's pages, newest first. */
export const StatusPageList = named("StatusPageList", {
  pages: Type.Array(StatusPageSummary),
  cursor: NextCursor,
});
/** Query of a list of pages. */
export const StatusPageQuery = pageQuery(LIST_LIMIT);
/** Path of a page of the API. */
export const StatusPageParams = Type.Object({ page_id: Type.String({ maxLength: 64 }) });

/** What is public: the last segments of its addresses. */
export const PublicPageParams = Type.Object({ page: Type.String({ examples: ["acme"] }) });
/** See {@link PublicPageParams}. */
export const PublicIncidentParams = Type.Object({
  page: Type.String({ examples: ["acme"] }),
  incident: Type.String({
    description: "The incident's id.",
    examples: ["inc_01a1fc2c30c071d9bf080e3cb4a7b202"],
  }),
});
/** See {@link PublicPageParams}. */
export const BadgeParams = Type.Object({
  page: Type.String({ examples: ["acme"] }),
  badge: Type.String({ description: "`1.svg`, `1.json`: the place on the page.", examples: ["1.svg"] }),
});

/** What a badge can say. */
export const METRICS = [
  "status",
  "uptime-24h",
  "uptime-7d",
  "uptime-30d",
  "uptime-90d",
  "latency",
  "cert",
] as const;

/** Query of a badge. */
export const BadgeQuery = Type.Object({
  metric: Type.Optional(
    oneOf(METRICS, {
      errorMessage: `must be one of ${METRICS.join(", ")}`,
      description: "`status` unless given. `latency` only where the page shows latencies.",
      examples: ["uptime-30d"],
    }),
  ),
});

/** Answer to a deletion. */
export const StatusPageDeleted = named("StatusPageDeleted", { deleted: Type.Literal(true) });
