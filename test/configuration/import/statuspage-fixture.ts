/** Responses of Statuspage's API as it documents them, with the times of a test server's clock in mind: March 2026. */
export const PAGE = {
  id: "kctbh9vrtdwd",
  created_at: "2024-01-01T00:00:00Z",
  updated_at: "2026-03-01T00:00:00Z",
  name: "Acme",
  page_description: "The status of Acme.",
  headline: null,
  branding: "basic",
  subdomain: "acme",
  domain: "status.acme.example",
  url: "https://status.acme.example",
  support_url: "https://acme.example/help",
  hidden_from_search: false,
  time_zone: "Europe/Berlin",
  css_body_background_color: "FFFFFF",
  activity_score: 12,
};

const component = (id: string, name: string, position: number, more: object = {}) => ({
  id,
  page_id: PAGE.id,
  group_id: null,
  created_at: "2024-01-01T00:00:00Z",
  updated_at: "2026-03-01T00:00:00Z",
  group: false,
  name,
  description: null,
  position,
  status: "operational",
  showcase: true,
  only_show_if_degraded: false,
  automation_email: `component+${id}@notifications.statuspage.io`,
  start_date: "2024-01-01",
  ...more,
});

export const COMPONENTS = [
  component("c2", "Website", 2, { description: "The shop" }),
  component("c1", "API", 1, { group_id: "g1", status: "major_outage" }),
  component("g1", "Services", 1, { group: true }),
  component("c3", "Worker", 3, {
    group_id: "g1",
    status: "degraded_performance",
    only_show_if_degraded: true,
  }),
];

export const GROUPS = [
  {
    id: "g1",
    page_id: PAGE.id,
    name: "Services",
    description: null,
    components: ["c1", "c3"],
    position: 1,
    created_at: "2024-01-01T00:00:00Z",
    updated_at: "2024-01-01T00:00:00Z",
  },
];

const update = (status: string, body: string, display_at: string) => ({
  id: crypto.randomUUID(),
  incident_id: "i1",
  status,
  body,
  display_at,
  created_at: display_at,
  updated_at: display_at,
  affected_components: [],
  deliver_notifications: true,
});

const incident = (id: string, name: string, more: object) => ({
  id,
  page_id: PAGE.id,
  name,
  status: "resolved",
  impact: "minor",
  created_at: "2026-03-01T10:00:00.123+01:00",
  updated_at: "2026-03-01T12:00:00Z",
  monitoring_at: null,
  resolved_at: null,
  started_at: "2026-03-01T10:00:00.123+01:00",
  shortlink: "https://stspg.io/abc",
  metadata: {},
  scheduled_for: null,
  scheduled_until: null,
  components: [],
  incident_updates: [],
  ...more,
});

/** The newest first, as the API has them. */
export const INCIDENTS = [
  incident("i5", "Move of the database", {
    status: "scheduled",
    impact: "maintenance",
    scheduled_for: "2026-03-20T22:00:00Z",
    scheduled_until: "2026-03-20T23:00:00Z",
    components: [{ id: "c1", name: "API" }],
  }),
  incident("i4", "API down", {
    status: "identified",
    impact: "critical",
    started_at: "2026-03-10T11:30:00Z",
    components: [{ id: "c1", name: "API" }],
    incident_updates: [
      update("identified", "It is the database.", "2026-03-10T11:40:00Z"),
      update("investigating", "We look into it.", "2026-03-10T11:31:00Z"),
    ],
  }),
  incident("i3", "Slow", {
    started_at: "2026-03-02T10:00:00Z",
    status: "postmortem",
    resolved_at: "2026-03-02T11:00:00Z",
    components: [
      { id: "c2", name: "Website" },
      { id: "gone", name: "Gone" },
    ],
    postmortem_body: "What happened.",
    incident_updates: [
      update("postmortem", "What happened.", "2026-03-03T10:00:00Z"),
      update("resolved", "It works again.", "2026-03-02T11:00:00Z"),
      update("investigating", "Back again.", "2026-03-02T10:40:00Z"),
      update("resolved", "It works.", "2026-03-02T10:30:00Z"),
    ],
  }),
  incident("i2", "Slow", { resolved_at: "2026-03-01T10:30:00Z" }),
  incident("i1", "Long ago", { started_at: "2023-01-01T00:00:00Z", resolved_at: "2023-01-01T01:00:00Z" }),
  incident("i0", "Upgrade", {
    impact: "maintenance",
    status: "completed",
    scheduled_for: "2026-02-01T00:00:00Z",
    scheduled_until: "2026-02-01T01:00:00Z",
  }),
];

export const SUBSCRIBERS = [
  {
    id: "s1",
    mode: "email",
    email: "Ann@example.com",
    created_at: "2025-02-01T12:00:00Z",
    quarantined_at: null,
  },
  { id: "s2", mode: "sms", phone_number: "5551234", created_at: "2025-02-01T12:00:00Z" },
  {
    id: "s3",
    mode: "email",
    email: "bob@example.com",
    created_at: "2025-02-02T12:00:00Z",
    quarantined_at: "2025-03-01T00:00:00Z",
  },
  {
    id: "s4",
    mode: "email",
    email: "cleo@example.com",
    created_at: "2025-02-03T12:00:00Z",
    quarantined_at: null,
  },
];
