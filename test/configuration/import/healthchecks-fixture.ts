const check = {
  n_pings: 0,
  status: "new",
  started: false,
  last_ping: null,
  next_ping: null,
  manual_resume: false,
  methods: "",
  subject: "",
  subject_fail: "",
  start_kw: "",
  success_kw: "",
  failure_kw: "",
  filter_subject: false,
  filter_body: false,
  filter_http_body: false,
  filter_default_fail: false,
  tags: "",
  desc: "",
  channels: "",
};

function addresses(uuid: string) {
  const update_url = `https://hc.example.com/api/v3/checks/${uuid}`;
  return {
    uuid,
    badge_url: `https://hc.example.com/b/2/${uuid}.svg`,
    ping_url: `https://hc.example.com/ping/${uuid}`,
    update_url,
    pause_url: `${update_url}/pause`,
    resume_url: `${update_url}/resume`,
  };
}

const OPS = "1f1f9f0a-4a6c-4f6a-9c0e-0d9b6f1b2a11";
const SMS = "2f0c1b5c-9d56-4a4e-8a0d-4a2b31bd51a3";
const CALL = "3b9f5c5e-2b1d-4d1c-8d54-6f6d1c2f7e90";

/** `GET /api/v3/checks/`. */
export const CHECKS = {
  checks: [
    {
      ...check,
      ...addresses("31365bce-8da9-4729-8ff3-aaa71d56b712"),
      name: "Database backup",
      slug: "database-backup",
      tags: "prod db",
      desc: "Dumps **everything**",
      grace: 1_800,
      n_pings: 214,
      status: "up",
      last_ping: "2030-03-10T03:15:02+00:00",
      next_ping: "2030-03-11T03:15:02+00:00",
      last_duration: 41,
      channels: `${OPS},${SMS},${CALL}`,
      timeout: 86_400,
    },
    {
      ...check,
      ...addresses("803f680d-e89b-492b-82ef-2be7b774a92d"),
      name: "Nightly report",
      slug: "nightly-report",
      grace: 3_600,
      status: "paused",
      manual_resume: true,
      methods: "POST",
      success_kw: "SUCCESS",
      filter_body: true,
      schedule: "15 3 * * *",
      tz: "Europe/Riga",
    },
    {
      ...check,
      ...addresses("f618072a-7bde-4eee-af63-71a77c5723bc"),
      name: "Weekdays",
      slug: "weekdays",
      grace: 600,
      schedule: "Mon..Fri 09:00",
      tz: "UTC",
    },
    {
      ...check,
      ...addresses("9b1a6f0e-6c1e-4f0e-9d0c-51d8f7a5f0c4"),
      name: "Database backup",
      slug: "database-backup",
      grace: 60,
      timeout: 60,
    },
  ],
} as const;

/** `GET /api/v3/channels/`. */
export const CHANNELS = {
  channels: [
    { id: OPS, name: "Ops", kind: "slack" },
    { id: SMS, name: "", kind: "sms" },
    { id: CALL, name: "On call", kind: "telegram" },
  ],
} as const;
