/** A part of the API, as its description orders it. */
export interface ApiArea {
  readonly name: string;
  /** Markdown. */
  readonly description: string;
}

const SYSTEM: ApiArea = { name: "System", description: "The server itself." };

/** The parts of the API, by the segment after `/v1/` that leads to them, in the order in which they are described. */
const AREAS: readonly (readonly [segment: string, area: ApiArea])[] = [
  [
    "meter",
    {
      name: "Meter",
      description:
        "The account's own credit balance, and a meter for each of your end users or tenants: atomic deduct, refill and reset, with a ledger of every change.",
    },
  ],
  [
    "projects",
    {
      name: "Projects",
      description:
        "Namespaces. Which project a request works in follows from its key: a project's key in that project, every other key in the default one.",
    },
  ],
  [
    "keys",
    {
      name: "Keys",
      description:
        "Rotation of the platform key, and managed keys with scopes, for this API or for your own: created, rotated, revoked at once, verified.",
    },
  ],
  ["gate", { name: "Flags", description: "Boolean feature flags of a project, evaluated from memory." }],
  [
    "latch",
    {
      name: "Locks",
      description:
        "Distributed locks with first-come-first-served waiters, automatic expiry, and fencing tokens that rise for ever.",
    },
  ],
  [
    "pulse",
    {
      name: "Monitors",
      description: "Scheduled checks of URLs, with alerts by webhook and e-mail, history and uptime.",
    },
  ],
  [
    "relay",
    {
      name: "Relay",
      description: "Webhooks that are sent later: signed, at least once, with every attempt on record.",
    },
  ],
  [
    "catch",
    {
      name: "Catch",
      description:
        "Buckets that receive webhooks of others, keep them, verify their signatures, forward and replay them.",
    },
  ],
  [
    "witness",
    {
      name: "Notary",
      description:
        "A chain of Ed25519-signed receipts for JSON log entries, which anyone can verify with the public key.",
    },
  ],
  ["signup", { name: "Signup", description: "Where the operator has opened it: an account of one's own." }],
  [
    "admin",
    {
      name: "Operator",
      description: "Accounts and the test clock. For keys of the operator's account only.",
    },
  ],
  ["ping", SYSTEM],
];

/** Every part, in order. */
export const API_AREAS: readonly ApiArea[] = AREAS.map(([, area]) => area);

/** The part that a path belongs to, by its segment after `/v1/`; a project's keys belong to the keys. */
export function areaOfPath(path: string): ApiArea {
  const segments = path.split("/");
  const segment = segments.at(-1) === "keys" ? "keys" : segments[2];
  return AREAS.find(([name]) => name === segment)?.[1] ?? SYSTEM;
}
