import type { TSchema } from "@sinclair/typebox";
import fc from "fast-check";
import { openHttpApi } from "../../src/api/http-api.ts";
import { applyPlans } from "../../src/configuration/apply.ts";
import { exportProject, textOf } from "../../src/configuration/export.ts";
import { type Kind, kindsOf } from "../../src/configuration/kinds.ts";
import { planOf, type Step } from "../../src/configuration/plan.ts";
import { readConfiguration, type SecretSource } from "../../src/configuration/read.ts";
import { ProjectApi, projectsOf } from "../../src/configuration/server.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import type { Client } from "../support/client.ts";
import type { TestServer } from "../support/server.ts";

/** A secret that every field accepts that is neither a URL nor a token. */
export const SECRET_TEXT = `whsec_${Buffer.alloc(32).toString("base64")}`;
const SECRET_URL = "https://hooks.example.com/services/T0/B0/secret";
const SECRET_TOKEN = "123456:AbCdEf";

/** A client certificate and its key. */
export const CLIENT = new CertificateAuthority().issue("client", null);

/** The secret that a field gets, by the end of its name. */
export function secretFor(name: string): string {
  if (/_?url$/i.test(name)) return SECRET_URL;
  // Responses have no values of the headers of monitors.
  if (/_accept$/i.test(name)) return "text/plain";
  if (/_chat_id$/i.test(name)) return "-100";
  if (/_client_key$/i.test(name)) return CLIENT.key;
  return /(^|_)token$/i.test(name) ? SECRET_TOKEN : SECRET_TEXT;
}

/** An environment in which every variable is set. */
export const SECRETS: SecretSource = {
  variable: secretFor,
  file: () => SECRET_TEXT,
};

/** The commands, run in this process. */
export class Configured {
  readonly kinds: readonly Kind[];
  private readonly api;

  constructor(server: TestServer, key: string) {
    this.kinds = kindsOf(server.server.app.http.routes);
    this.api = openHttpApi({ url: server.url, key });
  }

  kind(section: string): Kind {
    const found = this.kinds.find((kind) => kind.section === section);
    if (found === undefined) throw new Error(`there is no section ${section}`);
    return found;
  }

  read(text: string) {
    return readConfiguration("f.yaml", text, this.kinds, SECRETS);
  }

  private plans(text: string, prune: boolean) {
    return planOf({ api: this.api, kinds: this.kinds, path: "f.yaml", prune }, this.read(text));
  }

  async plan(text: string, prune = false): Promise<readonly Step[]> {
    return (await this.plans(text, prune)).flatMap(({ steps }) => steps);
  }

  async warnings(text: string, prune = false): Promise<readonly string[]> {
    return (await this.plans(text, prune)).flatMap(({ warnings }) => warnings);
  }

  /** Each step as a line. */
  async lines(text: string, prune = false): Promise<string[]> {
    const steps = await this.plan(text, prune);
    return steps.map(({ action, kind, name, fields }) =>
      [action, `${kind}.${name}`, ...fields.map(({ field }) => field)].join(" "),
    );
  }

  /** `onPlan` runs between plan and apply. */
  async apply(
    text: string,
    prune = false,
    onStep: Parameters<typeof applyPlans>[3] = () => undefined,
    onPlan: () => Promise<void> = () => Promise.resolve(),
  ): Promise<void> {
    const plans = await this.plans(text, prune);
    await onPlan();
    await applyPlans(this.api, plans, null, onStep);
  }

  async export(slug = "default"): Promise<string> {
    const project = (await projectsOf(this.api)).find((one) => one.slug === slug);
    if (project === undefined) throw new Error(`there is no project ${slug}`);
    return textOf([await exportProject(new ProjectApi(this.api, project), this.kinds)]);
  }
}

/** Values that depend on a format or on other fields, by the name of the field. */
const TEMPLATES = fc.constantFrom({ id: { $: "/data/id", default: [1] } }, [{ $: "/id" }, "no"], null);
const SPECIAL: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  url: fc.constantFrom("https://example.com/", "https://example.com/hooks?x=1"),
  target_url: fc.constantFrom("https://example.com/in"),
  webhook_url: fc.constant("https://example.com/alerts"),
  website_url: fc.constant("https://acme.example/"),
  host: fc.constant("db.example.com"),
  resolver: fc.constant("1.1.1.1:53"),
  cron: fc.constantFrom("0 3 * * *", "@daily"),
  schedule: fc.constantFrom("30 2 * * *", "0 0 * * 1"),
  ping_id: fc.uuid(),
  tz: fc.constantFrom("UTC", "Europe/Berlin"),
  probes: fc.constant(["local"]),
  time_zone: fc.constantFrom("UTC", "Europe/Berlin"),
  retry_schedule: fc.constantFrom(["5s"], ["5s", "2h"]),
  headers: fc.constantFrom({ "X-Source": SECRET_TEXT }, { Accept: "text/plain", "X-Token": SECRET_TOKEN }),
  filter: fc.constantFrom({ amount: { $gte: 5 } }, { kind: "a" }),
  tls_client_certificate: fc.constant(CLIENT.cert),
  method: fc.constantFrom("GET", "PUT", "PROPFIND"),
  json_path: fc.constant("$.status"),
  accept_status: fc.constantFrom(["200"], ["200-299", "404"]),
  to: fc.constant(["ann@example.com"]),
  chat_id: fc.constant("-100"),
  starts_at: fc.constantFrom("2030-01-31T22:00:00Z", "2030-01-31T22:00:00.000Z", 1_900_000_000_000),
  ends_at: fc.constantFrom("2030-01-31T23:30:00+01:00", 1_950_000_000_000),
  previous_expires_at: fc.constant("2026-03-20T12:00:00Z"),
  logo: fc.constant(
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  ),
  template: fc.constant("{timestamp}.{body}"),
  schema: fc.constantFrom({ type: "object", properties: { amount: { multipleOf: 0.1 } } }, {}, null),
  example: fc.constantFrom({ amount: 1.5, deep: [{ a: null }, "1.10"] }, {}, null),
  event_id: fc.constant("/id"),
  event_type: fc.constant("invoice.paid"),
  provider: fc.constantFrom("stripe", "github", "custom", "meta"),
  variants: fc.constantFrom({ on: true, off: false }, { a: true, b: false }),
  default: fc.constantFrom({ variant: "on" }, true),
  off_variant: fc.constantFrom("off", null),
  when: fc.constant([{ attribute: "plan", op: "in", values: ["pro", 3, true] }]),
  serve: fc.constantFrom(
    { variant: "on" },
    {
      split: [
        { variant: "on", weight: 1 },
        { variant: null, weight: 3 },
      ],
    },
  ),
  metadata: fc.constantFrom({ owner: "shop" }, {}),
  payload: fc.constantFrom({}, { env: "prod" }, { deep: [{ a: null }, "1.10"] }),
  endpoint: fc.constant("https://s3.example.com"),
  bucket: fc.constant("receipts"),
  region: fc.constant("eu-central-1"),
  prefix: fc.constantFrom("acme", "shop"),
};

/** A value that a schema accepts, with secrets that {@link SECRETS} has. `idsOf`: ids that can be referred to. */
export function valuesFor(
  name: string,
  schema: TSchema,
  idsOf: (section: string) => readonly string[],
): fc.Arbitrary<unknown> {
  const section: unknown = schema["x-resource"];
  if (typeof section === "string") return fc.constantFrom(...idsOf(section));
  if (schema["writeOnly"] === true || schema["x-secret-if"] !== undefined)
    return fc.constant(secretFor(name));
  // Of a bucket's signature it is a text, of an endpoint a body.
  const special = name === "template" && schema["type"] !== "string" ? TEMPLATES : SPECIAL[name];
  if (special !== undefined) return special;
  if (schema["const"] !== undefined) return fc.constant(schema["const"]);
  const { anyOf, items, properties, required = [] } = schema;
  if (anyOf !== undefined) return fc.oneof(...(anyOf as TSchema[]).map((one) => valuesFor(name, one, idsOf)));
  switch (schema["type"]) {
    case "null":
      return fc.constant(null);
    case "boolean":
      return fc.boolean();
    case "integer":
    case "number":
      return fc.integer({ min: schema["minimum"] ?? 0, max: Math.min(schema["maximum"] ?? 1_000, 2 ** 31) });
    case "array":
      return fc.uniqueArray(valuesFor(name, items, idsOf), {
        minLength: schema["minItems"] ?? 0,
        maxLength: Math.min(schema["maxItems"] ?? 3, 3),
        comparator: "SameValue",
        selector: (one) => JSON.stringify(one),
      });
    case "object": {
      const own = Object.entries<TSchema>(properties ?? {}).map(([key, member]) => [
        key,
        valuesFor(key, member, idsOf),
      ]);
      return fc.record(Object.fromEntries(own), { requiredKeys: required });
    }
    default:
      return textOfSchema(schema);
  }
}

/** Texts that YAML could take for something else, where the schema accepts any. */
const AMBIGUOUS = [
  "no",
  "012",
  "3.10",
  "0x1F",
  "null",
  "~",
  "2026-01-01",
  "a: b",
  "- x",
  " # y",
  "'\"",
  "é\u2028ü",
  "true",
];

function textOfSchema({ pattern, minLength = 0, maxLength = 20 }: TSchema): fc.Arbitrary<string> {
  const fits = (text: string) => text.length >= minLength && text.length <= maxLength;
  if (typeof pattern === "string" && !pattern.startsWith("^[^"))
    return fc.stringMatching(new RegExp(pattern)).filter(fits);
  const ambiguous = AMBIGUOUS.filter(
    (text) => fits(text) && (pattern === undefined || !text.includes("\u2028")),
  );
  return fc.oneof(
    fc.constantFrom(...ambiguous),
    fc.string({ minLength, maxLength: Math.min(maxLength, 30) }),
  );
}

/** Creates a resource without the fields that the server rejects in combination. Returns its fields; null for none. */
export async function createFitting(
  client: Client,
  { method, path }: { readonly method: string; readonly path: string },
  base: Readonly<Record<string, unknown>>,
  optional: Readonly<Record<string, unknown>>,
): Promise<{ readonly body: Record<string, unknown>; readonly sent: Record<string, unknown> }> {
  const more: Record<string, unknown> = { ...optional };
  for (;;) {
    const sent = { ...base, ...more };
    const answer = await client.send(method, path, sent);
    if (answer.status < 300) return { body: answer.body, sent };
    const named = Object.keys((answer.body["fields"] ?? {}) as object).map(
      (key) => key.split(/[.[]/)[0] ?? key,
    );
    const [first] = [...named.filter((one) => one in more), ...Object.keys(more)];
    if (first === undefined) throw new Error(`${method} ${path}: ${answer.text}`);
    delete more[first];
  }
}
