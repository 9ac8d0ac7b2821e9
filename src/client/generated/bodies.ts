// Written by `bun codegen/main.ts` from test/golden/openapi.json. Change the schemas of the areas instead.

/** A field of a request body. */
export interface BodyField {
  readonly type: "string" | "integer" | "number" | "boolean" | "array" | "object" | "any";
  readonly nullable?: true;
  readonly required?: true;
  readonly description?: string;
  readonly example?: string;
  /** Example of an array of possible values. */
  readonly choice?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: RegExp;
  readonly format?: string;
  readonly enum?: readonly (string | number)[];
  /** Pattern of the items of an array. */
  readonly items?: RegExp;
}

/** Fields of the JSON body of each operation. A field of an object has its path as its name: `uses.remaining`. */
export const BODIES = {
  "admin.accounts.create": {
    email: { type: "string", required: true, format: "email", maxLength: 254 },
    tier: { type: "string", required: true, enum: ["free", "starter", "pro", "scale", "unlimited"] },
    balance: {
      type: "integer",
      description: "Initial credits. Default: the tier's monthly credits.",
      minimum: 0,
      maximum: 9007199254740991,
    },
  },
  "admin.accounts.update": {
    email: { type: "string", format: "email", maxLength: 254 },
    tier: { type: "string", enum: ["free", "starter", "pro", "scale", "unlimited"] },
    balance: { type: "integer", minimum: 0, maximum: 9007199254740991 },
    suspended: { type: "boolean" },
  },
  "admin.clock.advance": {
    advance_ms: {
      type: "integer",
      required: true,
      description: "Milliseconds by which to advance the clock.",
      minimum: 0,
      maximum: 3153600000000,
    },
  },
  "admin.login_links.create": {
    minutes: {
      type: "integer",
      description: "Minutes for which the link is valid. Default 30.",
      minimum: 1,
      maximum: 1440,
    },
  },
  "admin.settings.test_mail": {
    to: {
      type: "string",
      required: true,
      description: "Recipient of the test.",
      example: "ada@example.com",
      format: "email",
      maxLength: 254,
    },
  },
  "admin.settings.update": {
    smtp_url: {
      type: "string",
      nullable: true,
      description:
        "Mail server: `smtp://user:password@host:587`, or `smtps://host:465`. Needs `mail_from`; null for the default.",
      example: "smtp://user:password@mail.example.com:587",
      minLength: 1,
      maxLength: 2000,
    },
    mail_from: {
      type: "string",
      nullable: true,
      description: "Sender of e-mails; null for the default.",
      example: "Ninefold <ninefold@example.com>",
      minLength: 1,
      maxLength: 2000,
    },
    public_url: {
      type: "string",
      nullable: true,
      description: "URL at which browsers and senders reach this server; null for the default.",
      example: "https://ninefold.example.com",
      minLength: 1,
      maxLength: 2000,
    },
    brand_color: {
      type: "string",
      nullable: true,
      description: "Color of status pages without their own, in hexadecimal; null for the default.",
      example: "#0f766e",
      pattern: /^#[0-9a-fA-F]{6}$/,
    },
    brand_logo: {
      type: "string",
      nullable: true,
      description:
        "Logo of status pages without their own, as a base64 data URI of a PNG, JPEG, WebP or SVG image, at most 32 KiB; null for none.",
      maxLength: 44000,
    },
    brand_website: {
      type: "string",
      nullable: true,
      description: "Website that status pages without their own link; null for the default.",
      example: "https://acme.example",
      minLength: 1,
      maxLength: 2000,
    },
    backup_dir: {
      type: "string",
      nullable: true,
      description: "Folder of this machine for scheduled backups; null for the default.",
      example: "/var/backups/ninefold",
      minLength: 1,
      maxLength: 2000,
    },
    backup_cron: {
      type: "string",
      nullable: true,
      description: "Cron expression of the backups, in UTC; null for the default.",
      example: "0 3 * * *",
      minLength: 1,
      maxLength: 2000,
    },
    backup_keep: {
      type: "integer",
      nullable: true,
      description: "Number of backups to keep; null for the default.",
      minimum: 1,
      maximum: 10000,
    },
    archive: {
      type: "string",
      nullable: true,
      description: "Archive of all changes: `s3://bucket/prefix`; null for the default.",
      example: "s3://backups/ninefold",
      minLength: 1,
      maxLength: 2000,
    },
    archive_endpoint: {
      type: "string",
      nullable: true,
      description: "URL of the object store; null for the default.",
      example: "https://s3.example.com",
      minLength: 1,
      maxLength: 2000,
    },
    archive_region: {
      type: "string",
      nullable: true,
      description: "Region of the object store; null for the default.",
      example: "eu-central-1",
      minLength: 1,
      maxLength: 2000,
    },
    archive_interval: {
      type: "integer",
      nullable: true,
      description: "Seconds between two objects of the archive; null for the default.",
      minimum: 1,
      maximum: 3600,
    },
    archive_keep: {
      type: "integer",
      nullable: true,
      description: "Days of which the archive can restore any time; null for the default.",
      minimum: 1,
      maximum: 3650,
    },
    archive_access_key_id: {
      type: "string",
      nullable: true,
      description: "Access key of the object store; null for the default.",
      example: "AKIAEXAMPLE",
      minLength: 1,
      maxLength: 2000,
    },
    archive_secret_access_key: {
      type: "string",
      nullable: true,
      description: "Secret key of the object store; null for the default.",
      example: "secret",
      minLength: 1,
      maxLength: 2000,
    },
  },
  "catch.buckets.create": {
    state: {
      type: "string",
      description: "`paused` (initially) stores events and forwards none; `live` forwards them.",
      enum: ["paused", "live"],
    },
    target_url: {
      type: "string",
      nullable: true,
      description:
        "HTTPS URL that events are forwarded to. Null with `targets`; optional with `delivery: pull`.",
      example: "https://example.com/webhooks",
      maxLength: 2048,
    },
    delivery: {
      type: "string",
      description:
        "`push` forwards events to `target_url` or `targets`. `pull` stores them until a client fetches and acknowledges them.",
      enum: ["push", "pull"],
    },
    provider: {
      type: "string",
      nullable: true,
      description:
        "Provider whose signatures are verified; it cannot be changed. Without one, Stripe, GitHub, Shopify and Svix are detected by their headers.",
      example: "stripe",
      maxLength: 64,
    },
    signing_secret: {
      type: "string",
      nullable: true,
      description: "Signing secret of the provider, stored encrypted and not returned; null removes it.",
      minLength: 1,
      maxLength: 512,
    },
    name: {
      type: "string",
      nullable: true,
      description: "Optional name, unique within the project.",
      example: "shop",
      minLength: 1,
      maxLength: 100,
    },
    verification_mode: {
      type: "string",
      description:
        "`mark` (default) stores requests with an invalid signature; `reject` does not, and they are free of charge.",
      enum: ["mark", "reject"],
    },
    response: {
      type: "object",
      nullable: true,
      description:
        "Response to stored requests, as `status`, `content_type` and `body`; null for the default JSON.",
    },
    "response.status": { type: "integer", minimum: 200, maximum: 299 },
    "response.content_type": {
      type: "string",
      enum: ["text/plain", "application/json", "application/xml", "text/xml"],
    },
    "response.body": { type: "string", nullable: true, example: "ok", minLength: 0, maxLength: 4096 },
    invalid_status: {
      type: "number",
      nullable: true,
      description:
        "Status of responses to requests with an invalid signature. Default: 200; 401 for `discord`.",
      enum: [200, 400, 401, 403],
    },
    overload_status: {
      type: "number",
      description:
        "Status of responses to `rate_limited`, `panic_mode` and `insufficient_balance`. Default: 200; with 429 or 503, providers retry.",
      enum: [200, 429, 503],
    },
    previous_signing_secret: {
      type: "string",
      nullable: true,
      description: "Previous secret, which is also valid until `previous_expires_at`.",
      minLength: 1,
      maxLength: 512,
    },
    previous_expires_at: {
      type: "string",
      nullable: true,
      description: "End of the validity of the previous secret, as RFC 3339, at most 30 days ahead.",
      example: "2026-03-10T12:00:00Z",
      maxLength: 64,
    },
    deduplicate_hours: {
      type: "integer",
      description:
        "Time for which a repeated event ID is detected and free of charge, in hours. Default: 0, disabled.",
      minimum: 0,
      maximum: 168,
    },
    retention_hours: {
      type: "integer",
      nullable: true,
      description: "Retention of events, in hours, at most the tier's; null for the tier's.",
      minimum: 1,
    },
    methods: {
      type: "array",
      description:
        "Methods of requests that are stored; others are `ignored`. Default: POST, PUT, PATCH, DELETE.",
      choice: ["POST"],
      enum: ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"],
    },
    signature: {
      type: "object",
      nullable: true,
      description: "Recipe for signatures of a sender without a preset.",
    },
    "signature.header": {
      type: "string",
      required: true,
      description: "Name of the signature's header.",
      example: "X-Signature",
      pattern: /^[A-Za-z0-9!#$%&'*+.^_`|~-]*$/,
      minLength: 1,
      maxLength: 100,
    },
    "signature.algorithm": {
      type: "string",
      required: true,
      description:
        "For `ed25519` and `ecdsa-p256-sha256` the secret is the public key (raw, SPKI or PEM). With `token` the header is the secret.",
      enum: ["hmac-sha256", "hmac-sha1", "hmac-sha512", "ed25519", "ecdsa-p256-sha256", "token"],
    },
    "signature.encoding": {
      type: "string",
      description: "Encoding of the signature. Default: `hex`.",
      enum: ["hex", "base64", "base64url"],
    },
    "signature.prefix": {
      type: "string",
      description: "Prefix of each signature, such as `sha256=`.",
      minLength: 1,
      maxLength: 100,
    },
    "signature.separator": {
      type: "string",
      description: "Separator between signatures. Default: a comma.",
      minLength: 1,
      maxLength: 100,
    },
    "signature.pairs": {
      type: "string",
      description: "Separator of a header that is a list of `k=v`.",
      enum: [",", ";"],
    },
    "signature.signature_key": {
      type: "string",
      description: "With `pairs`: key of the signature.",
      minLength: 1,
      maxLength: 100,
    },
    "signature.timestamp_key": {
      type: "string",
      description: "With `pairs`: key of the timestamp.",
      minLength: 1,
      maxLength: 100,
    },
    "signature.timestamp_header": {
      type: "string",
      description: "Name of the timestamp's header.",
      example: "X-Signature",
      pattern: /^[A-Za-z0-9!#$%&'*+.^_`|~-]*$/,
      minLength: 1,
      maxLength: 100,
    },
    "signature.timestamp_format": {
      type: "string",
      description: "Format of the timestamp. Default: `unix`.",
      enum: ["unix", "unix_ms", "rfc3339"],
    },
    "signature.tolerance_seconds": {
      type: "integer",
      description: "Tolerance of a signature's timestamp, in seconds; 0 for any age. Default: 300.",
      minimum: 0,
      maximum: 86400,
    },
    "signature.template": {
      type: "string",
      description:
        "Signed content: text that contains `{body}` once, and `{timestamp}`, `{id:<header>}`, `{url}`, `{method}` or `{path}` as needed.",
      example: "{timestamp}.{body}",
      minLength: 1,
      maxLength: 500,
    },
    "signature.secret_encoding": {
      type: "string",
      description: "Encoding of the secret. Default: `text`.",
      enum: ["text", "base64", "hex", "whsec"],
    },
    "signature.event_id": {
      type: "string",
      description:
        "Source of the event's ID: `header:name`, or a JSON pointer into the body, of up to 8 levels.",
      example: "/id",
      minLength: 1,
      maxLength: 200,
    },
    "signature.event_type": {
      type: "string",
      description: "Source of the event's type, like `event_id`.",
      example: "/id",
      minLength: 1,
      maxLength: 200,
    },
    challenge: {
      type: "object",
      nullable: true,
      description: "Challenge that the sender requires before it sends events.",
    },
    "challenge.token": {
      type: "string",
      description:
        "Verify token of `meta`, `strava` and `websub`, as you entered it there. It is not returned.",
      example: "a-token-of-yours",
      minLength: 1,
      maxLength: 512,
    },
    "challenge.query": {
      type: "string",
      description:
        "For other senders: query parameter of a GET request that the bucket returns the value of.",
      example: "challenge",
      pattern: /^[A-Za-z0-9._~-]*$/,
      minLength: 1,
      maxLength: 100,
    },
    "challenge.pointer": {
      type: "string",
      description:
        "For other senders: JSON pointer to the value in the body of a POST request that the bucket returns. Without `when`, the body must have no other member.",
      example: "/challenge",
      minLength: 1,
      maxLength: 200,
    },
    "challenge.when": {
      type: "object",
      description:
        "With `pointer`: condition on the body that challenges fulfill and events do not, like the `filter` of a target.",
    },
    "challenge.origins": {
      type: "array",
      description:
        "For senders of CloudEvents: values of `WebHook-Request-Origin` that may send to the bucket; `*` for any.",
      items: /^(\*|[A-Za-z0-9._-]*)$/,
    },
    "challenge.as": { type: "string", enum: ["text", "json"] },
    "challenge.field": {
      type: "string",
      description: "Name of the member that contains the value, with `as: json`.",
      minLength: 1,
      maxLength: 100,
    },
    auto_confirm: {
      type: "boolean",
      description:
        "With the provider `sns`: whether a subscription of the topic is confirmed as soon as its message arrives. Default: false.",
    },
    forward: {
      type: "object",
      nullable: true,
      description:
        "Parts of the request that are forwarded, in addition to the body, to `target_url` and `targets`; null for none.",
    },
    "forward.method": {
      type: "boolean",
      description:
        "Whether events are forwarded with the method of their request, in place of POST. GET and HEAD have no body.",
    },
    "forward.path": {
      type: "boolean",
      description: "Whether the path below that of the bucket is appended to the path of the target.",
    },
    "forward.query": { type: "boolean", description: "Whether the query is appended to that of the target." },
    "forward.headers": {
      type: "array",
      description:
        "Names of headers that are forwarded, in addition to the type and encoding of the content and those of the provider; a `*` at the end stands for any rest. Headers that may contain a secret, such as `Authorization`, are forwarded only by their full name; headers of the connection, `X-Svc-*` and `webhook-*` never.",
      items: /^[A-Za-z0-9!#$%&'+.^_`|~-]*\*?$/,
    },
    targets: {
      type: "array",
      description:
        "Endpoints that receive the events, in place of `target_url`: at most 10, each with a delivery of its own. `[]` for none.",
    },
    retry_schedule: {
      type: "array",
      nullable: true,
      description:
        "Delay before each retry, such as `5m`: at most `24h` each and `7d` in total; `[]` for no retries. With a schedule, 410 and addresses that are not allowed end the retries, delays vary by a tenth, and `Retry-After` can extend them. Default: exactly `1s`, `5s`, `25s`, whatever the failure.",
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
  },
  "catch.buckets.update": {
    state: {
      type: "string",
      description: "`paused` (initially) stores events and forwards none; `live` forwards them.",
      enum: ["paused", "live"],
    },
    target_url: {
      type: "string",
      nullable: true,
      description:
        "HTTPS URL that events are forwarded to. Null with `targets`; optional with `delivery: pull`.",
      example: "https://example.com/webhooks",
      maxLength: 2048,
    },
    delivery: {
      type: "string",
      description:
        "`push` forwards events to `target_url` or `targets`. `pull` stores them until a client fetches and acknowledges them.",
      enum: ["push", "pull"],
    },
    signing_secret: {
      type: "string",
      nullable: true,
      description: "Signing secret of the provider, stored encrypted and not returned; null removes it.",
      minLength: 1,
      maxLength: 512,
    },
    name: {
      type: "string",
      nullable: true,
      description: "Optional name, unique within the project.",
      example: "shop",
      minLength: 1,
      maxLength: 100,
    },
    verification_mode: {
      type: "string",
      description:
        "`mark` (default) stores requests with an invalid signature; `reject` does not, and they are free of charge.",
      enum: ["mark", "reject"],
    },
    response: {
      type: "object",
      nullable: true,
      description:
        "Response to stored requests, as `status`, `content_type` and `body`; null for the default JSON.",
    },
    "response.status": { type: "integer", minimum: 200, maximum: 299 },
    "response.content_type": {
      type: "string",
      enum: ["text/plain", "application/json", "application/xml", "text/xml"],
    },
    "response.body": { type: "string", nullable: true, example: "ok", minLength: 0, maxLength: 4096 },
    invalid_status: {
      type: "number",
      nullable: true,
      description:
        "Status of responses to requests with an invalid signature. Default: 200; 401 for `discord`.",
      enum: [200, 400, 401, 403],
    },
    overload_status: {
      type: "number",
      description:
        "Status of responses to `rate_limited`, `panic_mode` and `insufficient_balance`. Default: 200; with 429 or 503, providers retry.",
      enum: [200, 429, 503],
    },
    previous_signing_secret: {
      type: "string",
      nullable: true,
      description: "Previous secret, which is also valid until `previous_expires_at`.",
      minLength: 1,
      maxLength: 512,
    },
    previous_expires_at: {
      type: "string",
      nullable: true,
      description: "End of the validity of the previous secret, as RFC 3339, at most 30 days ahead.",
      example: "2026-03-10T12:00:00Z",
      maxLength: 64,
    },
    deduplicate_hours: {
      type: "integer",
      description:
        "Time for which a repeated event ID is detected and free of charge, in hours. Default: 0, disabled.",
      minimum: 0,
      maximum: 168,
    },
    retention_hours: {
      type: "integer",
      nullable: true,
      description: "Retention of events, in hours, at most the tier's; null for the tier's.",
      minimum: 1,
    },
    methods: {
      type: "array",
      description:
        "Methods of requests that are stored; others are `ignored`. Default: POST, PUT, PATCH, DELETE.",
      choice: ["POST"],
      enum: ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"],
    },
    signature: {
      type: "object",
      nullable: true,
      description: "Recipe for signatures of a sender without a preset.",
    },
    "signature.header": {
      type: "string",
      required: true,
      description: "Name of the signature's header.",
      example: "X-Signature",
      pattern: /^[A-Za-z0-9!#$%&'*+.^_`|~-]*$/,
      minLength: 1,
      maxLength: 100,
    },
    "signature.algorithm": {
      type: "string",
      required: true,
      description:
        "For `ed25519` and `ecdsa-p256-sha256` the secret is the public key (raw, SPKI or PEM). With `token` the header is the secret.",
      enum: ["hmac-sha256", "hmac-sha1", "hmac-sha512", "ed25519", "ecdsa-p256-sha256", "token"],
    },
    "signature.encoding": {
      type: "string",
      description: "Encoding of the signature. Default: `hex`.",
      enum: ["hex", "base64", "base64url"],
    },
    "signature.prefix": {
      type: "string",
      description: "Prefix of each signature, such as `sha256=`.",
      minLength: 1,
      maxLength: 100,
    },
    "signature.separator": {
      type: "string",
      description: "Separator between signatures. Default: a comma.",
      minLength: 1,
      maxLength: 100,
    },
    "signature.pairs": {
      type: "string",
      description: "Separator of a header that is a list of `k=v`.",
      enum: [",", ";"],
    },
    "signature.signature_key": {
      type: "string",
      description: "With `pairs`: key of the signature.",
      minLength: 1,
      maxLength: 100,
    },
    "signature.timestamp_key": {
      type: "string",
      description: "With `pairs`: key of the timestamp.",
      minLength: 1,
      maxLength: 100,
    },
    "signature.timestamp_header": {
      type: "string",
      description: "Name of the timestamp's header.",
      example: "X-Signature",
      pattern: /^[A-Za-z0-9!#$%&'*+.^_`|~-]*$/,
      minLength: 1,
      maxLength: 100,
    },
    "signature.timestamp_format": {
      type: "string",
      description: "Format of the timestamp. Default: `unix`.",
      enum: ["unix", "unix_ms", "rfc3339"],
    },
    "signature.tolerance_seconds": {
      type: "integer",
      description: "Tolerance of a signature's timestamp, in seconds; 0 for any age. Default: 300.",
      minimum: 0,
      maximum: 86400,
    },
    "signature.template": {
      type: "string",
      description:
        "Signed content: text that contains `{body}` once, and `{timestamp}`, `{id:<header>}`, `{url}`, `{method}` or `{path}` as needed.",
      example: "{timestamp}.{body}",
      minLength: 1,
      maxLength: 500,
    },
    "signature.secret_encoding": {
      type: "string",
      description: "Encoding of the secret. Default: `text`.",
      enum: ["text", "base64", "hex", "whsec"],
    },
    "signature.event_id": {
      type: "string",
      description:
        "Source of the event's ID: `header:name`, or a JSON pointer into the body, of up to 8 levels.",
      example: "/id",
      minLength: 1,
      maxLength: 200,
    },
    "signature.event_type": {
      type: "string",
      description: "Source of the event's type, like `event_id`.",
      example: "/id",
      minLength: 1,
      maxLength: 200,
    },
    challenge: {
      type: "object",
      nullable: true,
      description: "Challenge that the sender requires before it sends events.",
    },
    "challenge.token": {
      type: "string",
      description:
        "Verify token of `meta`, `strava` and `websub`, as you entered it there. It is not returned.",
      example: "a-token-of-yours",
      minLength: 1,
      maxLength: 512,
    },
    "challenge.query": {
      type: "string",
      description:
        "For other senders: query parameter of a GET request that the bucket returns the value of.",
      example: "challenge",
      pattern: /^[A-Za-z0-9._~-]*$/,
      minLength: 1,
      maxLength: 100,
    },
    "challenge.pointer": {
      type: "string",
      description:
        "For other senders: JSON pointer to the value in the body of a POST request that the bucket returns. Without `when`, the body must have no other member.",
      example: "/challenge",
      minLength: 1,
      maxLength: 200,
    },
    "challenge.when": {
      type: "object",
      description:
        "With `pointer`: condition on the body that challenges fulfill and events do not, like the `filter` of a target.",
    },
    "challenge.origins": {
      type: "array",
      description:
        "For senders of CloudEvents: values of `WebHook-Request-Origin` that may send to the bucket; `*` for any.",
      items: /^(\*|[A-Za-z0-9._-]*)$/,
    },
    "challenge.as": { type: "string", enum: ["text", "json"] },
    "challenge.field": {
      type: "string",
      description: "Name of the member that contains the value, with `as: json`.",
      minLength: 1,
      maxLength: 100,
    },
    auto_confirm: {
      type: "boolean",
      description:
        "With the provider `sns`: whether a subscription of the topic is confirmed as soon as its message arrives. Default: false.",
    },
    forward: {
      type: "object",
      nullable: true,
      description:
        "Parts of the request that are forwarded, in addition to the body, to `target_url` and `targets`; null for none.",
    },
    "forward.method": {
      type: "boolean",
      description:
        "Whether events are forwarded with the method of their request, in place of POST. GET and HEAD have no body.",
    },
    "forward.path": {
      type: "boolean",
      description: "Whether the path below that of the bucket is appended to the path of the target.",
    },
    "forward.query": { type: "boolean", description: "Whether the query is appended to that of the target." },
    "forward.headers": {
      type: "array",
      description:
        "Names of headers that are forwarded, in addition to the type and encoding of the content and those of the provider; a `*` at the end stands for any rest. Headers that may contain a secret, such as `Authorization`, are forwarded only by their full name; headers of the connection, `X-Svc-*` and `webhook-*` never.",
      items: /^[A-Za-z0-9!#$%&'+.^_`|~-]*\*?$/,
    },
    targets: {
      type: "array",
      description:
        "Endpoints that receive the events, in place of `target_url`: at most 10, each with a delivery of its own. `[]` for none.",
    },
    retry_schedule: {
      type: "array",
      nullable: true,
      description:
        "Delay before each retry, such as `5m`: at most `24h` each and `7d` in total; `[]` for no retries. With a schedule, 410 and addresses that are not allowed end the retries, delays vary by a tenth, and `Retry-After` can extend them. Default: exactly `1s`, `5s`, `25s`, whatever the failure.",
    },
  },
  "catch.events.ack": {
    result: { type: "string", required: true, enum: ["delivered", "failed"] },
    response_status: {
      type: "integer",
      description: "HTTP status with which the event was processed.",
      minimum: 100,
      maximum: 599,
    },
    error: {
      type: "string",
      description: "Reason of the failure.",
      example: "no response",
      minLength: 1,
      maxLength: 500,
    },
    duration_ms: { type: "integer", minimum: 0, maximum: 86400000 },
  },
  "catch.replays.start": {
    since: {
      type: "string",
      description: "Start of the time of receipt, inclusive, as RFC 3339.",
      example: "2026-03-10T12:00:00Z",
      maxLength: 64,
    },
    until: {
      type: "string",
      description: "End of the time of receipt, exclusive, as RFC 3339.",
      example: "2026-03-11T12:00:00Z",
      maxLength: 64,
    },
    status: { type: "string", enum: ["pending", "delivered", "failed"] },
    provider: {
      type: "string",
      description: "Provider of the events, such as `stripe`.",
      example: "stripe",
      maxLength: 64,
    },
    event_type: { type: "string", minLength: 1, maxLength: 200 },
    event_ids: { type: "array", description: "IDs of the events to replay. Replaces the other filters." },
    endpoint_id: {
      type: "string",
      description:
        "Target of the bucket: only events that it would accept now and never got are sent, and only to it.",
      maxLength: 64,
    },
    per_second: { type: "integer", description: "Maximum number sent per second.", minimum: 1, maximum: 100 },
    dry_run: { type: "boolean", description: "If true, returns only the number of matches." },
  },
  check: {
    secret: {
      type: "string",
      description: "Secret of the key. Required without `checks`.",
      example: "acme_live_zyxw",
      minLength: 1,
      maxLength: 512,
    },
    meta: {
      type: "object",
      nullable: true,
      description: "The client that sent the key. Stored as `last_used_ip` and `last_used_ua`.",
    },
    "meta.ip": { type: "string", nullable: true, minLength: 0, maxLength: 64 },
    "meta.user_agent": {
      type: "string",
      nullable: true,
      description: "User agent of the client, cut to 1024 characters.",
    },
    require: {
      type: "any",
      nullable: true,
      description:
        "What the key must have: each text must be among its scopes, its permissions or those of its roles. A list of which it must have all, or an object with exactly one of `and` and `or`, whose items are texts (1 to 255 characters) and such objects (at most 4 levels and 50 texts).",
    },
    cost: {
      type: "integer",
      nullable: true,
      description: "Number of the key's `uses` that the verification costs, if they are limited. Default 1.",
      minimum: 0,
      maximum: 1000000,
    },
    ratelimits: {
      type: "array",
      nullable: true,
      description: "Extra limits of the key to apply, or a different cost for an automatic one.",
    },
    deduct: { type: "object", nullable: true, description: "Credits to deduct from the meter immediately." },
    "deduct.amount": { type: "integer", required: true, minimum: 1, maximum: 9007199254740991 },
    "deduct.meter_id": {
      type: "string",
      description: "Id of the meter; by default the key's `meter_id`, or its `owner_id` if it has none.",
      example: "customer-42",
      pattern: /^[a-zA-Z0-9_-]{1,64}$/,
    },
    hold: {
      type: "object",
      nullable: true,
      description:
        "Credits to hold in the meter for a later capture or release. Cannot be combined with `deduct`.",
    },
    "hold.amount": { type: "integer", required: true, minimum: 1, maximum: 9007199254740991 },
    "hold.meter_id": {
      type: "string",
      description: "Id of the meter; by default the key's `meter_id`, or its `owner_id` if it has none.",
      example: "customer-42",
      pattern: /^[a-zA-Z0-9_-]{1,64}$/,
    },
    "hold.ttl_seconds": {
      type: "integer",
      description: "Time until the hold expires, in seconds.",
      minimum: 1,
      maximum: 86400,
    },
    "hold.hold_id": {
      type: "string",
      description: "Id of the hold, unique in the project. Default: a UUID.",
      pattern: /^[A-Za-z0-9_-]{1,64}$/,
    },
    flags: {
      type: "array",
      nullable: true,
      description: "Keys of the flags to evaluate for the key's owner.",
      items: /^[a-z0-9][a-z0-9_-]{0,63}$/,
    },
    context: {
      type: "object",
      nullable: true,
      description:
        "Additional evaluation context of the flags: any JSON with at most 8 levels. `targetingKey` defaults to the key's `owner_id`, or its id without an owner. `key` is always set to the key's id, owner, environment and metadata.",
    },
    "context.targetingKey": {
      type: "string",
      nullable: true,
      description: "Id of the subject, such as a user; null like none.",
    },
    checks: {
      type: "array",
      description:
        "Checks to run one after another, in place of all other fields. Each has the effects of those before it.",
    },
  },
  "gate.preview": {
    contexts: {
      type: "array",
      required: true,
      description: "Evaluation contexts, such as attributes of users: JSON objects with at most 8 levels.",
    },
    definition: {
      type: "object",
      description:
        "Fields of a save. Omitted fields stay as they are, null restores the default; `enabled` of a new flag is true.",
    },
    "definition.enabled": {
      type: "boolean",
      description: "Whether the flag is on. While it is off, `off_variant` is served to everyone.",
    },
    "definition.description": {
      type: "string",
      nullable: true,
      description:
        "Description for people. Omit it to leave it unchanged; null removes it. The same applies to all fields below.",
      minLength: 0,
      maxLength: 256,
    },
    "definition.type": {
      type: "string",
      nullable: true,
      description: "Type of the values. Default: `boolean`.",
      enum: ["boolean", "string", "number", "object"],
    },
    "definition.variants": {
      type: "object",
      nullable: true,
      description:
        "Values by name, at most 16 KiB each. Default: `on` true and `off` false; required for other types than `boolean`.",
    },
    "definition.default": {
      type: "object",
      nullable: true,
      description:
        "Result if no rule matches. Default: the variant `on`; required for other types than `boolean`.",
    },
    "definition.default.variant": {
      type: "string",
      description: "Name of the variant that is served to everyone.",
      example: "on",
      pattern: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
    },
    "definition.default.split": {
      type: "array",
      description: "Variants with weights, instead of `variant`.",
    },
    "definition.default.by": {
      type: "string",
      description:
        "Name of the attribute that is hashed. Default: `targetingKey`. If it is missing, empty or an object, the next rule applies; in `default`, `off_variant`.",
      example: "plan",
      minLength: 1,
      maxLength: 128,
    },
    "definition.default.seed": {
      type: "string",
      description: "Seed of the hash: splits with the same seed assign alike. Default: the flag's key.",
      example: "spring-rollout",
      minLength: 0,
      maxLength: 128,
    },
    "definition.default.hash": {
      type: "string",
      description: "Hash algorithm: MurmurHash3 x86 32 over UTF-8.",
    },
    "definition.off_variant": {
      type: "string",
      nullable: true,
      description:
        "Name of the variant that is served while the flag is off. Null serves no value, so that the caller uses its own default. Default: `off`; null if you set `variants`.",
      example: "on",
      pattern: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
    },
    "definition.rules": {
      type: "array",
      nullable: true,
      description: "Rules in the order in which they are evaluated: `name`, `when` and `serve`.",
    },
    "definition.tags": {
      type: "array",
      nullable: true,
      description: "Tags by which flags can be listed.",
      items: /^[a-z0-9][a-z0-9:_.-]{0,49}$/,
    },
    "definition.metadata": {
      type: "object",
      nullable: true,
      description: "Your own data, 2 KiB as JSON, returned with every evaluation.",
    },
    "definition.server_only": {
      type: "boolean",
      nullable: true,
      description:
        "Whether the flag is hidden from evaluations by keys without `gate:read`, such as those in browsers.",
    },
    "definition.archived": {
      type: "boolean",
      nullable: true,
      description: "Whether the flag is omitted from lists and never evaluated.",
    },
  },
  "gate.proposals.create": {
    enabled: {
      type: "boolean",
      description: "Whether the flag is on. While it is off, `off_variant` is served to everyone.",
    },
    description: {
      type: "string",
      nullable: true,
      description:
        "Description for people. Omit it to leave it unchanged; null removes it. The same applies to all fields below.",
      minLength: 0,
      maxLength: 256,
    },
    type: {
      type: "string",
      nullable: true,
      description: "Type of the values. Default: `boolean`.",
      enum: ["boolean", "string", "number", "object"],
    },
    variants: {
      type: "object",
      nullable: true,
      description:
        "Values by name, at most 16 KiB each. Default: `on` true and `off` false; required for other types than `boolean`.",
    },
    default: {
      type: "object",
      nullable: true,
      description:
        "Result if no rule matches. Default: the variant `on`; required for other types than `boolean`.",
    },
    "default.variant": {
      type: "string",
      description: "Name of the variant that is served to everyone.",
      example: "on",
      pattern: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
    },
    "default.split": { type: "array", description: "Variants with weights, instead of `variant`." },
    "default.by": {
      type: "string",
      description:
        "Name of the attribute that is hashed. Default: `targetingKey`. If it is missing, empty or an object, the next rule applies; in `default`, `off_variant`.",
      example: "plan",
      minLength: 1,
      maxLength: 128,
    },
    "default.seed": {
      type: "string",
      description: "Seed of the hash: splits with the same seed assign alike. Default: the flag's key.",
      example: "spring-rollout",
      minLength: 0,
      maxLength: 128,
    },
    "default.hash": { type: "string", description: "Hash algorithm: MurmurHash3 x86 32 over UTF-8." },
    off_variant: {
      type: "string",
      nullable: true,
      description:
        "Name of the variant that is served while the flag is off. Null serves no value, so that the caller uses its own default. Default: `off`; null if you set `variants`.",
      example: "on",
      pattern: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
    },
    rules: {
      type: "array",
      nullable: true,
      description: "Rules in the order in which they are evaluated: `name`, `when` and `serve`.",
    },
    tags: {
      type: "array",
      nullable: true,
      description: "Tags by which flags can be listed.",
      items: /^[a-z0-9][a-z0-9:_.-]{0,49}$/,
    },
    metadata: {
      type: "object",
      nullable: true,
      description: "Your own data, 2 KiB as JSON, returned with every evaluation.",
    },
    server_only: {
      type: "boolean",
      nullable: true,
      description:
        "Whether the flag is hidden from evaluations by keys without `gate:read`, such as those in browsers.",
    },
    archived: {
      type: "boolean",
      nullable: true,
      description: "Whether the flag is omitted from lists and never evaluated.",
    },
    scheduled: {
      type: "array",
      nullable: true,
      description:
        "Changes that apply later, at most 20, which replace those of before. Archiving a flag drops them.",
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
    delete: {
      type: "boolean",
      description: "Whether the flag is to be deleted. Then no other field of the flag is allowed.",
    },
    comment: {
      type: "string",
      nullable: true,
      description: "Reason, for those who decide.",
      example: "After the campaign",
      minLength: 0,
      maxLength: 1000,
    },
  },
  "gate.proposals.reject": {
    comment: {
      type: "string",
      nullable: true,
      description: "Reason of the rejection.",
      example: "After the campaign",
      minLength: 0,
      maxLength: 1000,
    },
  },
  "gate.save": {
    flag_key: {
      type: "string",
      required: true,
      description: "Key of the flag, unique within the project; `config` is reserved.",
      example: "new-checkout",
      pattern: /^[a-z0-9][a-z0-9_-]{0,63}$/,
    },
    enabled: {
      type: "boolean",
      required: true,
      description: "Whether the flag is on. While it is off, `off_variant` is served to everyone.",
    },
    description: {
      type: "string",
      nullable: true,
      description:
        "Description for people. Omit it to leave it unchanged; null removes it. The same applies to all fields below.",
      minLength: 0,
      maxLength: 256,
    },
    type: {
      type: "string",
      nullable: true,
      description: "Type of the values. Default: `boolean`.",
      enum: ["boolean", "string", "number", "object"],
    },
    variants: {
      type: "object",
      nullable: true,
      description:
        "Values by name, at most 16 KiB each. Default: `on` true and `off` false; required for other types than `boolean`.",
    },
    default: {
      type: "object",
      nullable: true,
      description:
        "Result if no rule matches. Default: the variant `on`; required for other types than `boolean`.",
    },
    "default.variant": {
      type: "string",
      description: "Name of the variant that is served to everyone.",
      example: "on",
      pattern: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
    },
    "default.split": { type: "array", description: "Variants with weights, instead of `variant`." },
    "default.by": {
      type: "string",
      description:
        "Name of the attribute that is hashed. Default: `targetingKey`. If it is missing, empty or an object, the next rule applies; in `default`, `off_variant`.",
      example: "plan",
      minLength: 1,
      maxLength: 128,
    },
    "default.seed": {
      type: "string",
      description: "Seed of the hash: splits with the same seed assign alike. Default: the flag's key.",
      example: "spring-rollout",
      minLength: 0,
      maxLength: 128,
    },
    "default.hash": { type: "string", description: "Hash algorithm: MurmurHash3 x86 32 over UTF-8." },
    off_variant: {
      type: "string",
      nullable: true,
      description:
        "Name of the variant that is served while the flag is off. Null serves no value, so that the caller uses its own default. Default: `off`; null if you set `variants`.",
      example: "on",
      pattern: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
    },
    rules: {
      type: "array",
      nullable: true,
      description: "Rules in the order in which they are evaluated: `name`, `when` and `serve`.",
    },
    tags: {
      type: "array",
      nullable: true,
      description: "Tags by which flags can be listed.",
      items: /^[a-z0-9][a-z0-9:_.-]{0,49}$/,
    },
    metadata: {
      type: "object",
      nullable: true,
      description: "Your own data, 2 KiB as JSON, returned with every evaluation.",
    },
    server_only: {
      type: "boolean",
      nullable: true,
      description:
        "Whether the flag is hidden from evaluations by keys without `gate:read`, such as those in browsers.",
    },
    archived: {
      type: "boolean",
      nullable: true,
      description: "Whether the flag is omitted from lists and never evaluated.",
    },
    scheduled: {
      type: "array",
      nullable: true,
      description:
        "Changes that apply later, at most 20, which replace those of before. Archiving a flag drops them.",
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
    if_version: {
      type: "integer",
      nullable: true,
      description:
        "Expected version of the flag. If the flag has another version, the save is rejected with 409 `conflict`.",
      minimum: 0,
      maximum: 9007199254740991,
    },
  },
  "keys.create": {
    prefix: {
      type: "string",
      required: true,
      description: "Start of the secret. A key with the prefix `sm` is a Bearer credential of this API.",
      example: "acme_live",
      pattern: /^[a-z0-9_]{1,32}$/,
    },
    name: {
      type: "string",
      required: true,
      description: "Name of the key.",
      example: "Warehouse",
      minLength: 1,
      maxLength: 255,
    },
    scopes: {
      type: "array",
      required: true,
      description: "Scopes of the key: of this API for the prefix `sm`, otherwise any texts.",
    },
    environment: {
      type: "string",
      nullable: true,
      description: "Tag by which keys can be listed.",
      example: "live",
      minLength: 1,
      maxLength: 255,
    },
    metadata: {
      type: "object",
      nullable: true,
      description: "Your own data: strings by name, at most 16384 characters as JSON.",
    },
    expires_at: {
      type: "string",
      nullable: true,
      description: "Time at which the key expires. Null: never.",
      maxLength: 64,
      format: "date-time",
    },
    owner_id: {
      type: "string",
      nullable: true,
      description: "Id of your customer who owns the key.",
      example: "acme",
      pattern: /^[A-Za-z0-9_.:@-]{1,255}$/,
    },
    meter_id: {
      type: "string",
      nullable: true,
      description: "Id of the meter that is charged for uses of the key.",
      example: "acme",
      pattern: /^[a-zA-Z0-9_-]{1,64}$/,
    },
    enabled: {
      type: "boolean",
      nullable: true,
      description: "Whether the key works. False pauses it. Default true.",
    },
    ratelimits: {
      type: "array",
      nullable: true,
      description:
        "Rate limits of the key. Those of more than an hour survive a restart; the others are full after it.",
    },
    uses: {
      type: "object",
      nullable: true,
      description: "Number of times the key can be used. Null: unlimited.",
    },
    "uses.remaining": {
      type: "integer",
      required: true,
      description: "Number of uses left.",
      minimum: 0,
      maximum: 9007199254740991,
    },
    "uses.refill": { type: "object", nullable: true, description: "Recurring refill of the uses." },
    "uses.refill.every": {
      type: "string",
      required: true,
      description: "Period of the refills, at 00:00 UTC. Several missed refills count once.",
      example: "month",
      enum: ["day", "month"],
    },
    "uses.refill.amount": {
      type: "integer",
      required: true,
      description: "Number of uses after a refill. A refill does not lower a higher number.",
      minimum: 1,
      maximum: 9007199254740991,
    },
    "uses.refill.day": {
      type: "integer",
      description:
        "Day of the month on which a monthly refill happens; the last day in shorter months. Default 1. Not allowed with `every: day`.",
      minimum: 1,
      maximum: 31,
    },
    allowed_ips: {
      type: "array",
      nullable: true,
      description: "IP addresses and CIDR ranges from which the key can be used. Empty: any address.",
    },
    permissions: {
      type: "array",
      nullable: true,
      description:
        "Permissions of the key in addition to its scopes: any texts, with `*` as in scopes. Not for the prefix `sm`.",
    },
    roles: {
      type: "array",
      nullable: true,
      description:
        "Names of roles of the key's project, whose permissions the key has; of the default project for a key of the account. Not for the prefix `sm`.",
      items: /^[A-Za-z0-9_.:-]{1,128}$/,
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
  },
  "keys.import": { keys: { type: "array", required: true, description: "Keys to import." } },
  "keys.patch": {
    name: {
      type: "string",
      description: "Name of the key.",
      example: "Warehouse",
      minLength: 1,
      maxLength: 255,
    },
    scopes: {
      type: "array",
      description: "Scopes of the key: of this API for the prefix `sm`, otherwise any texts.",
    },
    environment: {
      type: "string",
      nullable: true,
      description: "Tag by which keys can be listed.",
      example: "live",
      minLength: 1,
      maxLength: 255,
    },
    metadata: {
      type: "object",
      nullable: true,
      description: "Your own data: strings by name, at most 16384 characters as JSON.",
    },
    expires_at: {
      type: "string",
      nullable: true,
      description: "Time at which the key expires. Null: never.",
      maxLength: 64,
      format: "date-time",
    },
    owner_id: {
      type: "string",
      nullable: true,
      description: "Id of your customer who owns the key.",
      example: "acme",
      pattern: /^[A-Za-z0-9_.:@-]{1,255}$/,
    },
    meter_id: {
      type: "string",
      nullable: true,
      description: "Id of the meter that is charged for uses of the key.",
      example: "acme",
      pattern: /^[a-zA-Z0-9_-]{1,64}$/,
    },
    enabled: {
      type: "boolean",
      nullable: true,
      description: "Whether the key works. False pauses it. Default true.",
    },
    ratelimits: {
      type: "array",
      nullable: true,
      description:
        "Rate limits of the key. Those of more than an hour survive a restart; the others are full after it.",
    },
    uses: {
      type: "object",
      nullable: true,
      description: "Number of times the key can be used. Null: unlimited.",
    },
    "uses.remaining": {
      type: "integer",
      required: true,
      description: "Number of uses left.",
      minimum: 0,
      maximum: 9007199254740991,
    },
    "uses.refill": { type: "object", nullable: true, description: "Recurring refill of the uses." },
    "uses.refill.every": {
      type: "string",
      required: true,
      description: "Period of the refills, at 00:00 UTC. Several missed refills count once.",
      example: "month",
      enum: ["day", "month"],
    },
    "uses.refill.amount": {
      type: "integer",
      required: true,
      description: "Number of uses after a refill. A refill does not lower a higher number.",
      minimum: 1,
      maximum: 9007199254740991,
    },
    "uses.refill.day": {
      type: "integer",
      description:
        "Day of the month on which a monthly refill happens; the last day in shorter months. Default 1. Not allowed with `every: day`.",
      minimum: 1,
      maximum: 31,
    },
    allowed_ips: {
      type: "array",
      nullable: true,
      description: "IP addresses and CIDR ranges from which the key can be used. Empty: any address.",
    },
    permissions: {
      type: "array",
      nullable: true,
      description:
        "Permissions of the key in addition to its scopes: any texts, with `*` as in scopes. Not for the prefix `sm`.",
    },
    roles: {
      type: "array",
      nullable: true,
      description:
        "Names of roles of the key's project, whose permissions the key has; of the default project for a key of the account. Not for the prefix `sm`.",
      items: /^[A-Za-z0-9_.:-]{1,128}$/,
    },
  },
  "keys.platform.rotate": {
    grace_hours: {
      type: "number",
      description:
        "Hours for which older keys continue to work; 0 revokes them immediately. Default: as configured on the server (7 days).",
      minimum: 0,
      maximum: 168,
    },
  },
  "keys.revoke_owned": {
    owner_id: { type: "string", required: true, example: "acme", pattern: /^[A-Za-z0-9_.:@-]{1,255}$/ },
  },
  "keys.roles.save": {
    description: {
      type: "string",
      nullable: true,
      description: "Description of the role; null for none.",
      example: "Writes documents.",
      minLength: 0,
      maxLength: 500,
    },
    permissions: {
      type: "array",
      required: true,
      description: "Permissions of the keys that have the role: any texts, with `*` as in scopes.",
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
  },
  "keys.rotate": {
    grace_hours: {
      type: "number",
      description: "Hours for which the old key continues to work.",
      minimum: 1,
      maximum: 720,
    },
  },
  "keys.verify": {
    secret: { type: "string", required: true, minLength: 1 },
    meta: {
      type: "object",
      nullable: true,
      description: "The client that sent the key. Stored as `last_used_ip` and `last_used_ua`.",
    },
    "meta.ip": { type: "string", nullable: true, minLength: 0, maxLength: 64 },
    "meta.user_agent": {
      type: "string",
      nullable: true,
      description: "User agent of the client, cut to 1024 characters.",
    },
    require: {
      type: "any",
      nullable: true,
      description:
        "What the key must have: each text must be among its scopes, its permissions or those of its roles. A list of which it must have all, or an object with exactly one of `and` and `or`, whose items are texts (1 to 255 characters) and such objects (at most 4 levels and 50 texts).",
    },
    cost: {
      type: "integer",
      nullable: true,
      description: "Number of the key's `uses` that the verification costs, if they are limited. Default 1.",
      minimum: 0,
      maximum: 1000000,
    },
    ratelimits: {
      type: "array",
      nullable: true,
      description: "Extra limits of the key to apply, or a different cost for an automatic one.",
    },
  },
  "latch.acquire": {
    ttl: {
      type: "integer",
      description: "Time until the lock expires if it is not released, in milliseconds.",
      minimum: 1000,
      maximum: 900000,
    },
    timeout: {
      type: "integer",
      description:
        "Maximum time to wait for the lock, in milliseconds: 0 to try once without waiting, or 1000 to 900000.",
      minimum: 0,
      maximum: 900000,
    },
    mode: {
      type: "string",
      description:
        "`exclusive`: one holder. `shared`: a read lock, which up to 1,000 requests of this mode hold together.",
      enum: ["exclusive", "shared"],
    },
    token: {
      type: "string",
      description:
        "Token for the lock, chosen by you; generated by default. With the token of the current holder, the request returns immediately and restarts the TTL.",
      example: "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10",
      pattern: /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/,
    },
  },
  "latch.extend": {
    token: { type: "string", required: true, example: "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10" },
    ttl: {
      type: "integer",
      required: true,
      description: "Time until the lock expires, in milliseconds from now: longer or shorter than before.",
      minimum: 1000,
      maximum: 900000,
    },
  },
  "latch.force": {
    fencing_token: { type: "integer", required: true, minimum: 1, maximum: 9007199254740991 },
  },
  "latch.release": {
    token: { type: "string", required: true, example: "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10" },
  },
  "meter.alert.project.set": {
    threshold: {
      type: "integer",
      required: true,
      description: "Available credits below which the alert is sent.",
      minimum: 1,
      maximum: 9007199254740991,
    },
    webhook_url: {
      type: "string",
      required: true,
      description: "URL that receives the alert as a signed webhook.",
      example: "https://example.com/low",
      maxLength: 2048,
    },
  },
  "meter.alert.set": {
    threshold: {
      type: "integer",
      required: true,
      description: "Available credits below which the alert is sent.",
      minimum: 1,
      maximum: 9007199254740991,
    },
    webhook_url: {
      type: "string",
      required: true,
      description: "URL that receives the alert as a signed webhook.",
      example: "https://example.com/low",
      maxLength: 2048,
    },
  },
  "meter.deduct": {
    amount: {
      type: "integer",
      required: true,
      description: "Credits; 1 or more.",
      maximum: 9007199254740991,
    },
  },
  "meter.holds.capture": {
    amount: {
      type: "integer",
      description: "Credits to deduct; 0 releases the hold. Default: all credits of the hold.",
      minimum: 0,
      maximum: 9007199254740991,
    },
    final: {
      type: "boolean",
      description: "Whether to release the rest; false keeps it on hold, at most 1000 times.",
    },
    over: {
      type: "string",
      description:
        "If the amount exceeds the hold: `reject` (default, 400), or `cap`, which also takes available credits and returns the missing rest as `shortfall`.",
      enum: ["reject", "cap"],
    },
  },
  "meter.holds.create": {
    amount: {
      type: "integer",
      required: true,
      description: "Credits; 1 or more.",
      maximum: 9007199254740991,
    },
    ttl_seconds: {
      type: "integer",
      description: "Time until the hold expires, in seconds.",
      minimum: 1,
      maximum: 86400,
    },
    hold_id: {
      type: "string",
      description: "Id of the hold, unique in the project. Default: a UUID.",
      pattern: /^[A-Za-z0-9_-]{1,64}$/,
    },
    at_most: {
      type: "boolean",
      description: "Whether to hold the available credits, at least 1, if they are less than the amount.",
    },
    metadata: { type: "object", description: "Your own data: at most 10 strings by name, 1 KiB as JSON." },
  },
  "meter.holds.extend": {
    ttl_seconds: {
      type: "integer",
      required: true,
      description: "Time until the hold expires, in seconds.",
      minimum: 1,
      maximum: 86400,
    },
  },
  "meter.own.deduct": {
    amount: {
      type: "integer",
      required: true,
      description: "Credits; 1 or more.",
      maximum: 9007199254740991,
    },
  },
  "meter.own.refill": {
    amount: {
      type: "integer",
      required: true,
      description: "Credits; 1 or more.",
      maximum: 9007199254740991,
    },
  },
  "meter.plan.set": {
    amount: {
      type: "integer",
      required: true,
      description: "Credits; 1 or more.",
      maximum: 9007199254740991,
    },
    every: {
      type: "string",
      required: true,
      description: "Period of the refills, which run at 00:00 UTC.",
      enum: ["day", "week", "month"],
    },
    mode: {
      type: "string",
      description: "`raise` sets a lower balance to the amount; `add` adds the amount.",
      enum: ["raise", "add"],
    },
    day: {
      type: "integer",
      description: "Day of the month (the last day in shorter months) or of the week. Default: 1.",
      minimum: 1,
      maximum: 31,
    },
    carry_max: {
      type: "integer",
      description:
        "With `add`: maximum balance to carry over, in credits. A higher balance is reduced first, but not below the held credits.",
      minimum: 0,
      maximum: 9007199254740991,
    },
    start_now: { type: "boolean", description: "Whether to make the first refill immediately." },
  },
  "meter.refill": {
    amount: {
      type: "integer",
      required: true,
      description: "Credits; 1 or more.",
      maximum: 9007199254740991,
    },
  },
  "meter.reset": { balance: { type: "integer", required: true, minimum: 0, maximum: 9007199254740991 } },
  "monitors.channels.change": {
    name: {
      type: "string",
      description: "Name of the channel.",
      example: "shop",
      minLength: 1,
      maxLength: 100,
    },
    config: {
      type: "object",
      description: "Configuration that the kind requires. Responses show secrets as `[secret]`.",
    },
    "config.url": {
      type: "string",
      description: "URL that receives the messages. All kinds except `email`; optional for `telegram`.",
      example: "https://hooks.slack.com/services/T0/B0/x",
      minLength: 1,
      maxLength: 2048,
    },
    "config.token": {
      type: "string",
      description: "Access token, for `telegram` and `gotify`; optional for `ntfy`.",
      minLength: 1,
      maxLength: 256,
    },
    "config.chat_id": {
      type: "string",
      description: "Telegram chat: its number, or `@` and the name of a channel. Only for `telegram`.",
      minLength: 1,
      maxLength: 64,
    },
    "config.to": {
      type: "array",
      description:
        "Recipients, for `email`: the e-mail address of the account, or addresses of its people. Channels of the operator can use any addresses.",
    },
    default: { type: "boolean", description: "Whether monitors without `channels` use the channel." },
    events: {
      type: "array",
      description: "Events that the channel is notified of.",
      choice: [
        "monitor.down",
        "monitor.up",
        "monitor.certificate",
        "observer.offline",
        "monitor.overdue",
        "monitor.runs_exceeded",
        "probe.offline",
        "probe.online",
        "monitor.unknown",
        "monitor.domain",
      ],
      enum: [
        "monitor.down",
        "monitor.up",
        "monitor.degraded",
        "monitor.recovered",
        "monitor.certificate",
        "monitor.domain",
        "monitor.flapping",
        "monitor.acknowledged",
        "monitor.overdue",
        "monitor.runs_exceeded",
        "monitor.unknown",
        "probe.offline",
        "probe.online",
        "observer.offline",
        "maintenance.started",
        "maintenance.ended",
        "catch.failed",
      ],
    },
    remind: {
      type: "string",
      description: "Time after which an alert is repeated while a target stays down; `never` by default.",
      example: "6h",
      enum: ["never", "1h", "6h", "1d"],
    },
    escalate: {
      type: "array",
      description:
        "Who else is notified while an outage is neither acknowledged nor over. Channels that were notified also get the recovery.",
    },
    quiet_hours: {
      type: "object",
      nullable: true,
      description:
        "Hours of every day in which the channel gets nothing, and its escalation waits. What it missed follows in one message at their end. Null: none.",
    },
    "quiet_hours.from": {
      type: "string",
      required: true,
      description: "Start of the quiet hours, as `HH:MM`.",
      example: "22:00",
      pattern: /^([01][0-9]|2[0-3]):[0-5][0-9]$/,
    },
    "quiet_hours.to": {
      type: "string",
      required: true,
      description: "End of the quiet hours, as `HH:MM`; before `from` if they span midnight.",
      example: "07:00",
      pattern: /^([01][0-9]|2[0-3]):[0-5][0-9]$/,
    },
    "quiet_hours.time_zone": {
      type: "string",
      required: true,
      description: "Time zone of both, as an IANA name. Changes between summer and winter time are followed.",
      example: "Europe/Berlin",
      minLength: 1,
      maxLength: 64,
    },
    group_ms: {
      type: "integer",
      description:
        "Time for which the alerts of several monitors are collected into one message, in milliseconds, from the first one on. 0: each is sent immediately.",
      minimum: 0,
      maximum: 300000,
    },
  },
  "monitors.channels.create": {
    name: {
      type: "string",
      required: true,
      description: "Name of the channel.",
      example: "shop",
      minLength: 1,
      maxLength: 100,
    },
    kind: {
      type: "string",
      required: true,
      enum: ["webhook", "slack", "discord", "telegram", "ntfy", "gotify", "apprise", "email"],
    },
    config: {
      type: "object",
      required: true,
      description: "Configuration that the kind requires. Responses show secrets as `[secret]`.",
    },
    "config.url": {
      type: "string",
      description: "URL that receives the messages. All kinds except `email`; optional for `telegram`.",
      example: "https://hooks.slack.com/services/T0/B0/x",
      minLength: 1,
      maxLength: 2048,
    },
    "config.token": {
      type: "string",
      description: "Access token, for `telegram` and `gotify`; optional for `ntfy`.",
      minLength: 1,
      maxLength: 256,
    },
    "config.chat_id": {
      type: "string",
      description: "Telegram chat: its number, or `@` and the name of a channel. Only for `telegram`.",
      minLength: 1,
      maxLength: 64,
    },
    "config.to": {
      type: "array",
      description:
        "Recipients, for `email`: the e-mail address of the account, or addresses of its people. Channels of the operator can use any addresses.",
    },
    default: { type: "boolean", description: "Whether monitors without `channels` use the channel." },
    events: {
      type: "array",
      description: "Events that the channel is notified of.",
      choice: [
        "monitor.down",
        "monitor.up",
        "monitor.certificate",
        "observer.offline",
        "monitor.overdue",
        "monitor.runs_exceeded",
        "probe.offline",
        "probe.online",
        "monitor.unknown",
        "monitor.domain",
      ],
      enum: [
        "monitor.down",
        "monitor.up",
        "monitor.degraded",
        "monitor.recovered",
        "monitor.certificate",
        "monitor.domain",
        "monitor.flapping",
        "monitor.acknowledged",
        "monitor.overdue",
        "monitor.runs_exceeded",
        "monitor.unknown",
        "probe.offline",
        "probe.online",
        "observer.offline",
        "maintenance.started",
        "maintenance.ended",
        "catch.failed",
      ],
    },
    remind: {
      type: "string",
      description: "Time after which an alert is repeated while a target stays down; `never` by default.",
      example: "6h",
      enum: ["never", "1h", "6h", "1d"],
    },
    escalate: {
      type: "array",
      description:
        "Who else is notified while an outage is neither acknowledged nor over. Channels that were notified also get the recovery.",
    },
    quiet_hours: {
      type: "object",
      nullable: true,
      description:
        "Hours of every day in which the channel gets nothing, and its escalation waits. What it missed follows in one message at their end. Null: none.",
    },
    "quiet_hours.from": {
      type: "string",
      required: true,
      description: "Start of the quiet hours, as `HH:MM`.",
      example: "22:00",
      pattern: /^([01][0-9]|2[0-3]):[0-5][0-9]$/,
    },
    "quiet_hours.to": {
      type: "string",
      required: true,
      description: "End of the quiet hours, as `HH:MM`; before `from` if they span midnight.",
      example: "07:00",
      pattern: /^([01][0-9]|2[0-3]):[0-5][0-9]$/,
    },
    "quiet_hours.time_zone": {
      type: "string",
      required: true,
      description: "Time zone of both, as an IANA name. Changes between summer and winter time are followed.",
      example: "Europe/Berlin",
      minLength: 1,
      maxLength: 64,
    },
    group_ms: {
      type: "integer",
      description:
        "Time for which the alerts of several monitors are collected into one message, in milliseconds, from the first one on. 0: each is sent immediately.",
      minimum: 0,
      maximum: 300000,
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
  },
  "monitors.create": {
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
    url: { type: "string", description: "URL to check. Required for `http`.", minLength: 1 },
    interval: {
      type: "integer",
      description:
        "Time between checks, in milliseconds; raised to the minimum of the tier, with a `warning`. Required for `http`, `tcp`, `dns` and `icmp`; a `domain` is checked once a day.",
      minimum: 15000,
      maximum: 86400000,
    },
    type: {
      type: "string",
      description:
        "`http` requests a URL, `tcp` connects to a port, `dns` looks up records, `icmp` sends packets by ping, `domain` asks when a registered name expires, `heartbeat` waits for pings, `manual` has the state of the incidents that name it. Default `http`; fixed after creation.",
      enum: ["http", "tcp", "dns", "icmp", "domain", "heartbeat", "manual"],
    },
    slug: {
      type: "string",
      description: "Heartbeats only: name in `ping_slug_url`, unique within the project.",
      example: "nightly-backup",
      pattern: /^[a-z0-9_-]{1,64}$/,
    },
    period_ms: {
      type: "integer",
      description: "Heartbeats only: time between pings, in milliseconds. Default 86400000.",
      minimum: 60000,
      maximum: 31536000000,
    },
    schedule: {
      type: "string",
      description:
        "Heartbeats only, instead of `period_ms`: times of pings, as a cron expression with five fields.",
      example: "30 2 * * *",
      minLength: 1,
      maxLength: 256,
    },
    tz: {
      type: "string",
      description: "Time zone of `schedule`, as an IANA name. Default `UTC`.",
      example: "Europe/Berlin",
      minLength: 1,
      maxLength: 64,
    },
    grace_ms: {
      type: "integer",
      description:
        "Heartbeats only: maximum delay of a ping, and maximum duration of a run without `start_grace_ms`, in milliseconds. Default 3600000.",
      minimum: 60000,
      maximum: 31536000000,
    },
    start_grace_ms: {
      type: "integer",
      nullable: true,
      description:
        "Heartbeats only: maximum duration of a run from its start, in milliseconds. A run that starts in time postpones the deadline of its success. Null: `grace_ms`, and nothing is postponed.",
      minimum: 60000,
      maximum: 31536000000,
    },
    max_runs_per_period: {
      type: "integer",
      nullable: true,
      description:
        "Heartbeats only: runs that may begin in a period, or between two times of the `schedule`. One more is an alert, once per period. Null: any number.",
      minimum: 1,
      maximum: 10000,
    },
    ping_id: {
      type: "string",
      description:
        "Heartbeats only: UUID of `ping_url`, such as that of a check of Healthchecks. It must not be in use on the server. Default: a new one.",
      pattern: /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/,
    },
    push_token: {
      type: "string",
      description:
        "Heartbeats only: token of a push monitor of Uptime Kuma, whose URL `/api/push/{token}` then pings the heartbeat. It must not be in use on the server.",
      pattern: /^[A-Za-z0-9_-]{10,64}$/,
    },
    method: {
      type: "string",
      description: "HTTP method of checks, in capital letters; `GET` by default. Not `CONNECT` or `TRACE`.",
      example: "GET",
      pattern: /^[A-Z][A-Z0-9_-]{0,31}$/,
    },
    timeout: {
      type: "integer",
      description: "Timeout of a check, in milliseconds; 10000 by default.",
      minimum: 1000,
      maximum: 30000,
    },
    consecutive_threshold: {
      type: "integer",
      description: "Consecutive failures after which the target is down; 1 by default.",
      minimum: 1,
      maximum: 10,
    },
    cooldown_ms: {
      type: "integer",
      description:
        "Time before the alert to `webhook_url` is repeated while the target stays down, in milliseconds; 300000 by default.",
      minimum: 60000,
      maximum: 3600000,
    },
    email_alert: {
      type: "boolean",
      description:
        "Whether the e-mail address of the account is notified once per outage. Tiers pro and scale.",
    },
    notify_recovery: {
      type: "boolean",
      description: "Whether the webhook and the e-mail also report recovery.",
    },
    group: {
      type: "string",
      nullable: true,
      description: "Group under which the monitor is listed.",
      example: "checkout",
      minLength: 1,
      maxLength: 60,
    },
    retry_interval: {
      type: "integer",
      nullable: true,
      description:
        "Time between checks from the first failure until the target is down, in milliseconds; at most `interval`. Null: `interval`.",
      minimum: 5000,
      maximum: 300000,
    },
    down_interval: {
      type: "integer",
      nullable: true,
      description:
        "Time between checks while the target is down, in milliseconds; at most `interval`. Null: `interval`.",
      minimum: 5000,
      maximum: 86400000,
    },
    notify_after_ms: {
      type: "integer",
      description:
        "Time that a target must be down before anyone is notified, in milliseconds; 0 by default. If it recovers before, nobody is notified of the outage or of the recovery.",
      minimum: 0,
      maximum: 86400000,
    },
    recovery_threshold: {
      type: "integer",
      description: "Consecutive successes after which a target that is down is up; 1 by default.",
      minimum: 1,
      maximum: 10,
    },
    degraded_ms: {
      type: "integer",
      nullable: true,
      description: "Latency above which a check is slow, in milliseconds; less than `timeout`.",
      minimum: 1,
      maximum: 30000,
    },
    notify_degraded: {
      type: "boolean",
      description:
        "Whether channels are notified when the target becomes slow, and when its latency is normal again.",
    },
    accept_status: {
      type: "array",
      nullable: true,
      description: "Response statuses that count as up; null for all below 400.",
      items: /^[1-9][0-9]{2}(-[1-9][0-9]{2})?$/,
    },
    host: {
      type: "string",
      description:
        "Name or address of the host; for `dns` the name that is looked up. Required for `tcp`, `dns`, `icmp`, and `domain`.",
      example: "db.example.com",
      minLength: 1,
      maxLength: 253,
    },
    port: {
      type: "integer",
      description: "Port of the host. Required for `tcp`.",
      minimum: 1,
      maximum: 65535,
    },
    record_type: {
      type: "string",
      description: "Type of the records. Required for `dns`.",
      enum: ["A", "AAAA", "CAA", "CNAME", "MX", "NS", "PTR", "SOA", "SRV", "TXT"],
    },
    record_value: {
      type: "string",
      nullable: true,
      description:
        "Value that one of the records must have, as in a zone file, such as `10 mail.example.com`; null for any.",
      example: "192.0.2.10",
      minLength: 1,
      maxLength: 1024,
    },
    match: {
      type: "string",
      description:
        "How records are compared: one of them is the `record_value` (`exact`, the default), or has it in it (`contains`), or all of them together are the `record_values` (`set`).",
      enum: ["exact", "contains", "set"],
    },
    record_values: {
      type: "array",
      nullable: true,
      description: "Values of all records, in any order. Required with the `match` `set`.",
    },
    resolver: {
      type: "string",
      nullable: true,
      description:
        "Name server that is queried, by UDP and, for long responses, by TCP: host, or host and port. Null: those of the machine that checks.",
      example: "1.1.1.1:53",
      minLength: 1,
      maxLength: 260,
    },
    packets: {
      type: "integer",
      description: "Packets that a check of an `icmp` monitor sends, 200 ms apart; 3 by default.",
      minimum: 1,
      maximum: 10,
    },
    max_loss_percent: {
      type: "integer",
      description:
        "Share of the packets that may be lost, in percent; with more, the target is down. 99 by default: one response is enough.",
      minimum: 0,
      maximum: 99,
    },
    keyword: {
      type: "string",
      nullable: true,
      description:
        "Text that must appear in the first 64 KiB of the body; for `tcp` in the first 4 KiB that the server sends.",
      minLength: 1,
      maxLength: 256,
    },
    keyword_absent: {
      type: "string",
      nullable: true,
      description: "Text that must not appear in the first 64 KiB of the body.",
      minLength: 1,
      maxLength: 256,
    },
    keywords_all: {
      type: "array",
      nullable: true,
      description: "Texts that must all appear in the first 64 KiB of the body.",
    },
    keywords_any: {
      type: "array",
      nullable: true,
      description: "Texts of which at least one must appear in the first 64 KiB of the body.",
    },
    json_path: {
      type: "string",
      nullable: true,
      description: "Path of a value in a JSON response.",
      example: "$.status",
      minLength: 1,
      maxLength: 256,
    },
    json_op: {
      type: "string",
      nullable: true,
      description: "Comparison of the value at `json_path`; `==` by default.",
      enum: ["==", "!=", "<", "<=", ">", ">=", "contains", "exists"],
    },
    json_value: {
      type: "any",
      nullable: true,
      description: "Value that the value at `json_path` is compared with.",
      example: "UP",
    },
    probes: {
      type: "array",
      description:
        "Names of the probes that check the target; `local` is this server, and the default. Not for heartbeats.",
    },
    confirm: {
      type: "string",
      description:
        "How many of the probes with a recent result must see the target down before it is down; `majority` by default.",
      enum: ["any", "majority", "all"],
    },
    tls: {
      type: "any",
      nullable: true,
      description:
        "TLS of the port: from the start (`direct`, or `true`), or after the command of a mail protocol. Null: none.",
      example: "direct",
    },
    tls_verify: {
      type: "boolean",
      description:
        "Whether the target is down if its certificate is not valid; `true` by default. Its expiry is watched in any case.",
    },
    tls_client_certificate: {
      type: "string",
      nullable: true,
      description:
        "Certificate that checks present to the server if it requests one, with intermediate certificates, PEM. Requires `tls_client_key`.",
      minLength: 1,
      maxLength: 10000,
    },
    tls_expiry_days: {
      type: "integer",
      description:
        "Days before expiry of the certificate at which channels are notified; 0 for never, 14 by default.",
      minimum: 0,
      maximum: 90,
    },
    channels: {
      type: "array",
      nullable: true,
      description: "Ids of the channels that are notified; null for the project's default channels.",
    },
    name: {
      type: "string",
      description: "Name of the monitor, unique in the project. Without one, the host is shown.",
      example: "shop",
      minLength: 1,
      maxLength: 100,
    },
    headers: { type: "object", description: "Headers that each check sends. Tiers pro and scale." },
    tls_client_key: {
      type: "string",
      description:
        "Private key of `tls_client_certificate`, PEM without a passphrase. Stored encrypted, and never shown.",
      minLength: 1,
      maxLength: 8192,
    },
    body: {
      type: "string",
      description: "Body that checks send, except with the methods `GET` and `HEAD`.",
      maxLength: 10000,
    },
    webhook_url: {
      type: "string",
      description: "URL that receives alerts as signed webhooks. Tier starter and higher.",
      minLength: 1,
    },
    depends_on: {
      type: "string",
      nullable: true,
      description:
        "Id of the monitor that this one depends on. While that one fails, failures of this one cause no alerts.",
      maxLength: 64,
    },
  },
  "monitors.incidents.change": {
    title: {
      type: "string",
      description: "Title of the incident.",
      example: "Payments fail",
      minLength: 1,
      maxLength: 200,
    },
    impact: { type: "string", description: "Severity of the incident.", enum: ["degraded", "outage"] },
    monitor_ids: {
      type: "array",
      description: "Ids of the affected monitors. An automatic incident has the monitor that opened it.",
    },
    public: { type: "boolean", description: "Whether status pages show the incident." },
  },
  "monitors.incidents.create": {
    title: {
      type: "string",
      required: true,
      description: "Title of the incident.",
      example: "Payments fail",
      minLength: 1,
      maxLength: 200,
    },
    message: {
      type: "string",
      description: "Text of the update, shown on status pages as plain text with links.",
      example: "Our provider has an outage.",
      minLength: 0,
      maxLength: 5000,
    },
    impact: { type: "string", description: "Severity of the incident.", enum: ["degraded", "outage"] },
    monitor_ids: {
      type: "array",
      description: "Ids of the affected monitors. An automatic incident has the monitor that opened it.",
    },
    public: { type: "boolean", description: "Whether status pages show the incident." },
    started_at: {
      type: "string",
      description:
        "Time at which an incident of the past began, now by default. With it, nobody is notified of the creation.",
      example: "2025-01-31T12:00:00Z",
      maxLength: 64,
      format: "date-time",
    },
    resolved_at: {
      type: "string",
      description: "Time at which an incident of the past was resolved. It is open by default.",
      example: "2025-01-31T12:40:00Z",
      maxLength: 64,
      format: "date-time",
    },
    updates: {
      type: "array",
      description:
        "Updates of an incident of the past, oldest first, in place of `message`. The first one with the status `resolved` resolves it.",
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
  },
  "monitors.incidents.snooze": {
    for_ms: {
      type: "integer",
      description: "Time for which nobody is notified again, in milliseconds.",
      minimum: 60000,
      maximum: 604800000,
    },
  },
  "monitors.incidents.update": {
    status: {
      type: "string",
      required: true,
      description: "Progress of work on the incident.",
      enum: ["investigating", "identified", "monitoring", "resolved"],
    },
    message: {
      type: "string",
      description: "Text of the update, shown on status pages as plain text with links.",
      example: "Our provider has an outage.",
      minLength: 0,
      maxLength: 5000,
    },
  },
  "monitors.maintenance.create": {
    title: {
      type: "string",
      required: true,
      description: "Title of the maintenance.",
      example: "shop",
      minLength: 1,
      maxLength: 100,
    },
    message: {
      type: "string",
      description: "Details, as plain text.",
      example: "The shop moves to a larger machine.",
      minLength: 0,
      maxLength: 5000,
    },
    monitor_ids: {
      type: "array",
      description: "Ids of the monitors that cause no alerts during the window; empty for an announcement.",
    },
    public: { type: "boolean", description: "Whether status pages show the maintenance." },
    starts_at: {
      type: "string",
      description: "Start of the window, RFC 3339.",
      example: "2030-01-31T22:00:00Z",
      maxLength: 64,
      format: "date-time",
    },
    ends_at: {
      type: "string",
      description: "End of the window, RFC 3339.",
      example: "2030-01-31T23:00:00Z",
      maxLength: 64,
      format: "date-time",
    },
    schedule: {
      type: "string",
      description: "Cron expression for the start of each window, instead of `starts_at` and `ends_at`.",
      minLength: 1,
      maxLength: 256,
    },
    tz: {
      type: "string",
      description: "Time zone of `schedule`; `UTC` by default.",
      minLength: 1,
      maxLength: 64,
    },
    duration_ms: {
      type: "integer",
      description: "Duration of each window of `schedule`, in milliseconds.",
      minimum: 60000,
      maximum: 604800000,
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
  },
  "monitors.maintenance.update": {
    title: {
      type: "string",
      description: "Title of the maintenance.",
      example: "shop",
      minLength: 1,
      maxLength: 100,
    },
    message: {
      type: "string",
      description: "Details, as plain text.",
      example: "The shop moves to a larger machine.",
      minLength: 0,
      maxLength: 5000,
    },
    monitor_ids: {
      type: "array",
      description: "Ids of the monitors that cause no alerts during the window; empty for an announcement.",
    },
    public: { type: "boolean", description: "Whether status pages show the maintenance." },
    starts_at: {
      type: "string",
      description: "Start of the window, RFC 3339.",
      example: "2030-01-31T22:00:00Z",
      maxLength: 64,
      format: "date-time",
    },
    ends_at: {
      type: "string",
      description: "End of the window, RFC 3339.",
      example: "2030-01-31T23:00:00Z",
      maxLength: 64,
      format: "date-time",
    },
    schedule: {
      type: "string",
      description: "Cron expression for the start of each window, instead of `starts_at` and `ends_at`.",
      minLength: 1,
      maxLength: 256,
    },
    tz: {
      type: "string",
      description: "Time zone of `schedule`; `UTC` by default.",
      minLength: 1,
      maxLength: 64,
    },
    duration_ms: {
      type: "integer",
      description: "Duration of each window of `schedule`, in milliseconds.",
      minimum: 60000,
      maximum: 604800000,
    },
  },
  "monitors.pages.create": {
    slug: {
      type: "string",
      required: true,
      description: "Last part of the page's path, `/status/{slug}`; unique on the server.",
      example: "acme",
      pattern: /^[a-z0-9-]*$/,
      minLength: 3,
      maxLength: 60,
    },
    title: {
      type: "string",
      required: true,
      description: "Title of the page.",
      example: "Acme",
      minLength: 1,
      maxLength: 100,
    },
    description: {
      type: "string",
      description: "Text below the title, as plain text with links.",
      example: "Current status of our services.",
      minLength: 0,
      maxLength: 500,
    },
    groups: { type: "array", description: "Groups of monitors, in the order in which the page shows them." },
    color: {
      type: "string",
      nullable: true,
      description: "Color of the page's icon, in hexadecimal; null for the default.",
      example: "#0f766e",
      pattern: /^#[0-9a-fA-F]{6}$/,
    },
    logo: {
      type: "string",
      nullable: true,
      description:
        "Icon of the page, as a base64 data URI of a PNG, JPEG, WebP or SVG image, at most 32 KiB; null for the first letter of the title.",
      maxLength: 43718,
    },
    website_url: {
      type: "string",
      nullable: true,
      description: "URL of your website, linked in the page's header.",
      example: "https://acme.example",
      maxLength: 500,
    },
    show_latency: {
      type: "boolean",
      description: "Whether the page shows the latency of each monitor, except heartbeats.",
    },
    show_urls: {
      type: "boolean",
      description:
        "Whether the page shows the URL of each monitor, and the host of a monitor without a name.",
    },
    publish_incidents: {
      type: "string",
      description:
        "Incidents on the page. `manual`: manual incidents that are public. `outages`: also the outages of the page's monitors, with their duration. `all`: also the automatic incidents of these outages, with their updates.",
      example: "outages",
      enum: ["none", "manual", "outages", "all"],
    },
    footer: {
      type: "string",
      description: "Text at the end of the page, as plain text with links.",
      example: "Acme Ltd",
      minLength: 0,
      maxLength: 300,
    },
    index: { type: "boolean", description: "Whether search engines may index the page." },
    published: {
      type: "boolean",
      description: "Whether the page is public; otherwise its address responds with 404.",
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
  },
  "monitors.pages.subscribers.import": {
    subscribers: { type: "array", required: true, description: "Subscribers of another status page." },
  },
  "monitors.pages.update": {
    slug: {
      type: "string",
      description: "Last part of the page's path, `/status/{slug}`; unique on the server.",
      example: "acme",
      pattern: /^[a-z0-9-]*$/,
      minLength: 3,
      maxLength: 60,
    },
    title: {
      type: "string",
      description: "Title of the page.",
      example: "Acme",
      minLength: 1,
      maxLength: 100,
    },
    description: {
      type: "string",
      description: "Text below the title, as plain text with links.",
      example: "Current status of our services.",
      minLength: 0,
      maxLength: 500,
    },
    groups: { type: "array", description: "Groups of monitors, in the order in which the page shows them." },
    color: {
      type: "string",
      nullable: true,
      description: "Color of the page's icon, in hexadecimal; null for the default.",
      example: "#0f766e",
      pattern: /^#[0-9a-fA-F]{6}$/,
    },
    logo: {
      type: "string",
      nullable: true,
      description:
        "Icon of the page, as a base64 data URI of a PNG, JPEG, WebP or SVG image, at most 32 KiB; null for the first letter of the title.",
      maxLength: 43718,
    },
    website_url: {
      type: "string",
      nullable: true,
      description: "URL of your website, linked in the page's header.",
      example: "https://acme.example",
      maxLength: 500,
    },
    show_latency: {
      type: "boolean",
      description: "Whether the page shows the latency of each monitor, except heartbeats.",
    },
    show_urls: {
      type: "boolean",
      description:
        "Whether the page shows the URL of each monitor, and the host of a monitor without a name.",
    },
    publish_incidents: {
      type: "string",
      description:
        "Incidents on the page. `manual`: manual incidents that are public. `outages`: also the outages of the page's monitors, with their duration. `all`: also the automatic incidents of these outages, with their updates.",
      example: "outages",
      enum: ["none", "manual", "outages", "all"],
    },
    footer: {
      type: "string",
      description: "Text at the end of the page, as plain text with links.",
      example: "Acme Ltd",
      minLength: 0,
      maxLength: 300,
    },
    index: { type: "boolean", description: "Whether search engines may index the page." },
    published: {
      type: "boolean",
      description: "Whether the page is public; otherwise its address responds with 404.",
    },
  },
  "monitors.probes.create": {
    name: {
      type: "string",
      required: true,
      description: "Name of the probe, unique in the project. It cannot be changed.",
      example: "fra",
      pattern: /^[a-z0-9][a-z0-9-]{0,31}$/,
      minLength: 1,
      maxLength: 32,
    },
    location: {
      type: "string",
      nullable: true,
      description: "Where the probe is, for people.",
      example: "Frankfurt",
      minLength: 1,
      maxLength: 100,
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
  },
  "monitors.probes.update": {
    location: {
      type: "string",
      nullable: true,
      description: "Where the probe is, for people.",
      example: "Frankfurt",
      minLength: 1,
      maxLength: 100,
    },
  },
  "monitors.update": {
    url: { type: "string", description: "URL to check. Required for `http`.", minLength: 1 },
    interval: {
      type: "integer",
      description:
        "Time between checks, in milliseconds; raised to the minimum of the tier, with a `warning`. Required for `http`, `tcp`, `dns` and `icmp`; a `domain` is checked once a day.",
      minimum: 15000,
      maximum: 86400000,
    },
    type: {
      type: "string",
      description:
        "`http` requests a URL, `tcp` connects to a port, `dns` looks up records, `icmp` sends packets by ping, `domain` asks when a registered name expires, `heartbeat` waits for pings, `manual` has the state of the incidents that name it. Default `http`; fixed after creation.",
      enum: ["http", "tcp", "dns", "icmp", "domain", "heartbeat", "manual"],
    },
    slug: {
      type: "string",
      nullable: true,
      description: "Heartbeats only: name in `ping_slug_url`, unique within the project.",
      example: "nightly-backup",
      pattern: /^[a-z0-9_-]{1,64}$/,
    },
    period_ms: {
      type: "integer",
      description: "Heartbeats only: time between pings, in milliseconds. Default 86400000.",
      minimum: 60000,
      maximum: 31536000000,
    },
    schedule: {
      type: "string",
      description:
        "Heartbeats only, instead of `period_ms`: times of pings, as a cron expression with five fields.",
      example: "30 2 * * *",
      minLength: 1,
      maxLength: 256,
    },
    tz: {
      type: "string",
      description: "Time zone of `schedule`, as an IANA name. Default `UTC`.",
      example: "Europe/Berlin",
      minLength: 1,
      maxLength: 64,
    },
    grace_ms: {
      type: "integer",
      description:
        "Heartbeats only: maximum delay of a ping, and maximum duration of a run without `start_grace_ms`, in milliseconds. Default 3600000.",
      minimum: 60000,
      maximum: 31536000000,
    },
    start_grace_ms: {
      type: "integer",
      nullable: true,
      description:
        "Heartbeats only: maximum duration of a run from its start, in milliseconds. A run that starts in time postpones the deadline of its success. Null: `grace_ms`, and nothing is postponed.",
      minimum: 60000,
      maximum: 31536000000,
    },
    max_runs_per_period: {
      type: "integer",
      nullable: true,
      description:
        "Heartbeats only: runs that may begin in a period, or between two times of the `schedule`. One more is an alert, once per period. Null: any number.",
      minimum: 1,
      maximum: 10000,
    },
    method: {
      type: "string",
      description: "HTTP method of checks, in capital letters; `GET` by default. Not `CONNECT` or `TRACE`.",
      example: "GET",
      pattern: /^[A-Z][A-Z0-9_-]{0,31}$/,
    },
    timeout: {
      type: "integer",
      description: "Timeout of a check, in milliseconds; 10000 by default.",
      minimum: 1000,
      maximum: 30000,
    },
    consecutive_threshold: {
      type: "integer",
      description: "Consecutive failures after which the target is down; 1 by default.",
      minimum: 1,
      maximum: 10,
    },
    cooldown_ms: {
      type: "integer",
      description:
        "Time before the alert to `webhook_url` is repeated while the target stays down, in milliseconds; 300000 by default.",
      minimum: 60000,
      maximum: 3600000,
    },
    email_alert: {
      type: "boolean",
      description:
        "Whether the e-mail address of the account is notified once per outage. Tiers pro and scale.",
    },
    notify_recovery: {
      type: "boolean",
      description: "Whether the webhook and the e-mail also report recovery.",
    },
    group: {
      type: "string",
      nullable: true,
      description: "Group under which the monitor is listed.",
      example: "checkout",
      minLength: 1,
      maxLength: 60,
    },
    retry_interval: {
      type: "integer",
      nullable: true,
      description:
        "Time between checks from the first failure until the target is down, in milliseconds; at most `interval`. Null: `interval`.",
      minimum: 5000,
      maximum: 300000,
    },
    down_interval: {
      type: "integer",
      nullable: true,
      description:
        "Time between checks while the target is down, in milliseconds; at most `interval`. Null: `interval`.",
      minimum: 5000,
      maximum: 86400000,
    },
    notify_after_ms: {
      type: "integer",
      description:
        "Time that a target must be down before anyone is notified, in milliseconds; 0 by default. If it recovers before, nobody is notified of the outage or of the recovery.",
      minimum: 0,
      maximum: 86400000,
    },
    recovery_threshold: {
      type: "integer",
      description: "Consecutive successes after which a target that is down is up; 1 by default.",
      minimum: 1,
      maximum: 10,
    },
    degraded_ms: {
      type: "integer",
      nullable: true,
      description: "Latency above which a check is slow, in milliseconds; less than `timeout`.",
      minimum: 1,
      maximum: 30000,
    },
    notify_degraded: {
      type: "boolean",
      description:
        "Whether channels are notified when the target becomes slow, and when its latency is normal again.",
    },
    accept_status: {
      type: "array",
      nullable: true,
      description: "Response statuses that count as up; null for all below 400.",
      items: /^[1-9][0-9]{2}(-[1-9][0-9]{2})?$/,
    },
    host: {
      type: "string",
      description:
        "Name or address of the host; for `dns` the name that is looked up. Required for `tcp`, `dns`, `icmp`, and `domain`.",
      example: "db.example.com",
      minLength: 1,
      maxLength: 253,
    },
    port: {
      type: "integer",
      description: "Port of the host. Required for `tcp`.",
      minimum: 1,
      maximum: 65535,
    },
    record_type: {
      type: "string",
      description: "Type of the records. Required for `dns`.",
      enum: ["A", "AAAA", "CAA", "CNAME", "MX", "NS", "PTR", "SOA", "SRV", "TXT"],
    },
    record_value: {
      type: "string",
      nullable: true,
      description:
        "Value that one of the records must have, as in a zone file, such as `10 mail.example.com`; null for any.",
      example: "192.0.2.10",
      minLength: 1,
      maxLength: 1024,
    },
    match: {
      type: "string",
      description:
        "How records are compared: one of them is the `record_value` (`exact`, the default), or has it in it (`contains`), or all of them together are the `record_values` (`set`).",
      enum: ["exact", "contains", "set"],
    },
    record_values: {
      type: "array",
      nullable: true,
      description: "Values of all records, in any order. Required with the `match` `set`.",
    },
    resolver: {
      type: "string",
      nullable: true,
      description:
        "Name server that is queried, by UDP and, for long responses, by TCP: host, or host and port. Null: those of the machine that checks.",
      example: "1.1.1.1:53",
      minLength: 1,
      maxLength: 260,
    },
    packets: {
      type: "integer",
      description: "Packets that a check of an `icmp` monitor sends, 200 ms apart; 3 by default.",
      minimum: 1,
      maximum: 10,
    },
    max_loss_percent: {
      type: "integer",
      description:
        "Share of the packets that may be lost, in percent; with more, the target is down. 99 by default: one response is enough.",
      minimum: 0,
      maximum: 99,
    },
    keyword: {
      type: "string",
      nullable: true,
      description:
        "Text that must appear in the first 64 KiB of the body; for `tcp` in the first 4 KiB that the server sends.",
      minLength: 1,
      maxLength: 256,
    },
    keyword_absent: {
      type: "string",
      nullable: true,
      description: "Text that must not appear in the first 64 KiB of the body.",
      minLength: 1,
      maxLength: 256,
    },
    keywords_all: {
      type: "array",
      nullable: true,
      description: "Texts that must all appear in the first 64 KiB of the body.",
    },
    keywords_any: {
      type: "array",
      nullable: true,
      description: "Texts of which at least one must appear in the first 64 KiB of the body.",
    },
    json_path: {
      type: "string",
      nullable: true,
      description: "Path of a value in a JSON response.",
      example: "$.status",
      minLength: 1,
      maxLength: 256,
    },
    json_op: {
      type: "string",
      nullable: true,
      description: "Comparison of the value at `json_path`; `==` by default.",
      enum: ["==", "!=", "<", "<=", ">", ">=", "contains", "exists"],
    },
    json_value: {
      type: "any",
      nullable: true,
      description: "Value that the value at `json_path` is compared with.",
      example: "UP",
    },
    probes: {
      type: "array",
      description:
        "Names of the probes that check the target; `local` is this server, and the default. Not for heartbeats.",
    },
    confirm: {
      type: "string",
      description:
        "How many of the probes with a recent result must see the target down before it is down; `majority` by default.",
      enum: ["any", "majority", "all"],
    },
    tls: {
      type: "any",
      nullable: true,
      description:
        "TLS of the port: from the start (`direct`, or `true`), or after the command of a mail protocol. Null: none.",
      example: "direct",
    },
    tls_verify: {
      type: "boolean",
      description:
        "Whether the target is down if its certificate is not valid; `true` by default. Its expiry is watched in any case.",
    },
    tls_client_certificate: {
      type: "string",
      nullable: true,
      description:
        "Certificate that checks present to the server if it requests one, with intermediate certificates, PEM. Requires `tls_client_key`.",
      minLength: 1,
      maxLength: 10000,
    },
    tls_expiry_days: {
      type: "integer",
      description:
        "Days before expiry of the certificate at which channels are notified; 0 for never, 14 by default.",
      minimum: 0,
      maximum: 90,
    },
    channels: {
      type: "array",
      nullable: true,
      description: "Ids of the channels that are notified; null for the project's default channels.",
    },
    name: {
      type: "string",
      nullable: true,
      description: "Name of the monitor, unique in the project. Without one, the host is shown.",
      example: "shop",
      minLength: 1,
      maxLength: 100,
    },
    headers: {
      type: "object",
      nullable: true,
      description: "Headers that each check sends. Tiers pro and scale.",
    },
    tls_client_key: {
      type: "string",
      nullable: true,
      description:
        "Private key of `tls_client_certificate`, PEM without a passphrase. Stored encrypted, and never shown.",
      minLength: 1,
      maxLength: 8192,
    },
    body: {
      type: "string",
      nullable: true,
      description: "Body that checks send, except with the methods `GET` and `HEAD`.",
      maxLength: 10000,
    },
    webhook_url: {
      type: "string",
      nullable: true,
      description: "URL that receives alerts as signed webhooks. Tier starter and higher.",
      minLength: 1,
    },
    depends_on: {
      type: "string",
      nullable: true,
      description:
        "Id of the monitor that this one depends on. While that one fails, failures of this one cause no alerts.",
      maxLength: 64,
    },
    active: { type: "boolean", description: "Whether the monitor is active: checked, or waiting for pings." },
  },
  "ofrep.bulk": {
    context: {
      type: "object",
      nullable: true,
      description: "Evaluation context, such as attributes of a user: any JSON object with at most 8 levels.",
    },
    "context.targetingKey": {
      type: "string",
      nullable: true,
      description: "Id of the subject, such as a user; null like none.",
    },
  },
  "ofrep.evaluate": {
    context: {
      type: "object",
      nullable: true,
      description: "Evaluation context, such as attributes of a user: any JSON object with at most 8 levels.",
    },
    "context.targetingKey": {
      type: "string",
      nullable: true,
      description: "Id of the subject, such as a user; null like none.",
    },
  },
  "people.create": {
    email: {
      type: "string",
      required: true,
      description: "Unique in the account, regardless of case.",
      example: "ann@example.com",
      format: "email",
      maxLength: 254,
    },
    name: {
      type: "string",
      description: "Name of the person.",
      example: "Ann",
      minLength: 1,
      maxLength: 100,
    },
    role: {
      type: "string",
      nullable: true,
      description:
        "Role for the account. Null if `projects` is a list. Nobody grants a role above their own.",
      example: "editor",
      enum: ["viewer", "responder", "editor", "admin", "owner"],
    },
    projects: {
      type: "any",
      description: "`all`, the default, or the only projects in which the person has a role.",
      example: "all",
    },
  },
  "people.me.passkeys.create": {
    credential: {
      type: "object",
      required: true,
      description: "The credential, as `toJSON()` of the browser returns it.",
    },
    "credential.id": { type: "string", required: true, minLength: 1, maxLength: 2048 },
    "credential.rawId": { type: "string", required: true, minLength: 1, maxLength: 2048 },
    "credential.type": { type: "string", required: true },
    "credential.clientExtensionResults": { type: "object" },
    "credential.authenticatorAttachment": { type: "string", maxLength: 64 },
    "credential.response": { type: "object", required: true },
    "credential.response.clientDataJSON": { type: "string", required: true, maxLength: 16384 },
    "credential.response.attestationObject": { type: "string", required: true, maxLength: 16384 },
    "credential.response.transports": { type: "array" },
    name: {
      type: "string",
      description: "Name of the passkey.",
      example: "Phone",
      minLength: 1,
      maxLength: 100,
    },
  },
  "people.me.passkeys.update": {
    name: {
      type: "string",
      required: true,
      description: "Name of the passkey.",
      example: "Phone",
      minLength: 1,
      maxLength: 100,
    },
  },
  "people.me.update": {
    name: {
      type: "string",
      nullable: true,
      description: "Your name; null removes it.",
      example: "Ann",
      minLength: 1,
      maxLength: 100,
    },
  },
  "people.update": {
    name: {
      type: "string",
      nullable: true,
      description: "Name of the person; null removes it.",
      example: "Ann",
      minLength: 1,
      maxLength: 100,
    },
    role: {
      type: "string",
      nullable: true,
      description:
        "Role for the account. Null if `projects` is a list. Nobody grants a role above their own.",
      example: "editor",
      enum: ["viewer", "responder", "editor", "admin", "owner"],
    },
    projects: {
      type: "any",
      description: "`all`, the default, or the only projects in which the person has a role.",
      example: "all",
    },
    disabled: {
      type: "boolean",
      description: "Whether the person cannot log in. Disabling ends their sessions immediately.",
    },
  },
  "probe.results.create": {
    results: { type: "array", required: true, description: "At most 500 results." },
    run: {
      type: "string",
      description: "Identifies the process of the probe, for `sent_ms`.",
      minLength: 1,
      maxLength: 64,
    },
    sent_ms: {
      type: "integer",
      description:
        "Time of the request by the monotonic clock of the process, in milliseconds: shows how long it was on its way.",
      minimum: 0,
      maximum: 9007199254740991,
    },
  },
  "projects.create": {
    name: { type: "string", required: true, example: "Shop", minLength: 1, maxLength: 100 },
    description: { type: "string", nullable: true, minLength: 0, maxLength: 500 },
    time_zone: {
      type: "string",
      description:
        "Time zone of times in texts for people: alerts, e-mails and status pages. An IANA name; `UTC` by default. JSON, stored errors and bars stay in UTC.",
      example: "Europe/Berlin",
      minLength: 1,
      maxLength: 64,
    },
  },
  "projects.keys.create": {
    prefix: {
      type: "string",
      required: true,
      description: "Start of the secret. A key with the prefix `sm` is a Bearer credential of this API.",
      example: "acme_live",
      pattern: /^[a-z0-9_]{1,32}$/,
    },
    name: {
      type: "string",
      required: true,
      description: "Name of the key.",
      example: "Warehouse",
      minLength: 1,
      maxLength: 255,
    },
    scopes: {
      type: "array",
      required: true,
      description: "Scopes of the key: of this API for the prefix `sm`, otherwise any texts.",
    },
    environment: {
      type: "string",
      nullable: true,
      description: "Tag by which keys can be listed.",
      example: "live",
      minLength: 1,
      maxLength: 255,
    },
    metadata: {
      type: "object",
      nullable: true,
      description: "Your own data: strings by name, at most 16384 characters as JSON.",
    },
    expires_at: {
      type: "string",
      nullable: true,
      description: "Time at which the key expires. Null: never.",
      maxLength: 64,
      format: "date-time",
    },
    owner_id: {
      type: "string",
      nullable: true,
      description: "Id of your customer who owns the key.",
      example: "acme",
      pattern: /^[A-Za-z0-9_.:@-]{1,255}$/,
    },
    meter_id: {
      type: "string",
      nullable: true,
      description: "Id of the meter that is charged for uses of the key.",
      example: "acme",
      pattern: /^[a-zA-Z0-9_-]{1,64}$/,
    },
    enabled: {
      type: "boolean",
      nullable: true,
      description: "Whether the key works. False pauses it. Default true.",
    },
    ratelimits: {
      type: "array",
      nullable: true,
      description:
        "Rate limits of the key. Those of more than an hour survive a restart; the others are full after it.",
    },
    uses: {
      type: "object",
      nullable: true,
      description: "Number of times the key can be used. Null: unlimited.",
    },
    "uses.remaining": {
      type: "integer",
      required: true,
      description: "Number of uses left.",
      minimum: 0,
      maximum: 9007199254740991,
    },
    "uses.refill": { type: "object", nullable: true, description: "Recurring refill of the uses." },
    "uses.refill.every": {
      type: "string",
      required: true,
      description: "Period of the refills, at 00:00 UTC. Several missed refills count once.",
      example: "month",
      enum: ["day", "month"],
    },
    "uses.refill.amount": {
      type: "integer",
      required: true,
      description: "Number of uses after a refill. A refill does not lower a higher number.",
      minimum: 1,
      maximum: 9007199254740991,
    },
    "uses.refill.day": {
      type: "integer",
      description:
        "Day of the month on which a monthly refill happens; the last day in shorter months. Default 1. Not allowed with `every: day`.",
      minimum: 1,
      maximum: 31,
    },
    allowed_ips: {
      type: "array",
      nullable: true,
      description: "IP addresses and CIDR ranges from which the key can be used. Empty: any address.",
    },
    permissions: {
      type: "array",
      nullable: true,
      description:
        "Permissions of the key in addition to its scopes: any texts, with `*` as in scopes. Not for the prefix `sm`.",
    },
    roles: {
      type: "array",
      nullable: true,
      description:
        "Names of roles of the key's project, whose permissions the key has; of the default project for a key of the account. Not for the prefix `sm`.",
      items: /^[A-Za-z0-9_.:-]{1,128}$/,
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
  },
  "projects.update": {
    name: { type: "string", example: "Shop", minLength: 1, maxLength: 100 },
    description: { type: "string", nullable: true, minLength: 0, maxLength: 500 },
    time_zone: {
      type: "string",
      description:
        "Time zone of times in texts for people: alerts, e-mails and status pages. An IANA name; `UTC` by default. JSON, stored errors and bars stay in UTC.",
      example: "Europe/Berlin",
      minLength: 1,
      maxLength: 64,
    },
    review: {
      type: "boolean",
      description:
        "Whether changes of flags are proposals that somebody else must approve. Switching it off requires the scope `*`.",
    },
  },
  "relay.endpoints.change": {
    url: {
      type: "string",
      description: "URL that receives the messages. A change also applies to pending deliveries.",
      example: "https://example.com/hooks",
      minLength: 1,
    },
    event_types: {
      type: "array",
      description:
        "Types of messages that the endpoint receives. `a.*` matches every type that starts with `a.`. Empty: all types except `ninefold.*`.",
      items: /^[A-Za-z0-9_.-]{1,128}(\.\*)?$/,
    },
    channels: {
      type: "array",
      description: "The message goes to endpoints that share a channel with it, or have none.",
      items: /^[A-Za-z0-9_.-]{1,128}$/,
    },
    filter: {
      type: "object",
      nullable: true,
      description:
        "Condition on the payload: field names mapped to required values, or operators such as `$gte` and `$or`.",
    },
    description: {
      type: "string",
      nullable: true,
      description: "Description for people.",
      example: "Bookkeeping",
      minLength: 0,
      maxLength: 500,
    },
    format: {
      type: "string",
      description:
        "Format of the body: an object with `type`, `timestamp` and `data` (`envelope`), or the payload alone (`raw`).",
      enum: ["envelope", "raw"],
    },
    template: {
      type: "any",
      nullable: true,
      description:
        'JSON body in which each `{"$": "/data/id"}` is replaced by the value at this JSON pointer of `{id, type, timestamp, data}`; `default` next to `$` replaces a missing value. `format` is then ignored.',
    },
    signature: {
      type: "object",
      nullable: true,
      description: "Signature of the messages; null for `standard`.",
    },
    "signature.scheme": {
      type: "string",
      required: true,
      description:
        "`standard` and `ed25519` sign by Standard Webhooks, with a shared secret or a private key. The others sign as the receiver knows it from another sender, with the text of `secret` as the key.",
      example: "hmac-sha256-hex",
      enum: ["standard", "hmac-sha256-hex", "hmac-sha256-base64", "stripe", "ed25519"],
    },
    "signature.header": {
      type: "string",
      description: "Header of the signature. Required for `hmac-*` and `stripe`.",
      example: "X-Signature",
      pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/,
      maxLength: 128,
    },
    "signature.prefix": {
      type: "string",
      description: "Text before the signature. Only for `hmac-*`.",
      example: "sha256=",
      pattern: /^[!-~][ -~]{0,99}$/,
      maxLength: 100,
    },
    "signature.timestamp_header": {
      type: "string",
      description:
        "Header of the time in epoch seconds. With it, `<time>.<body>` is signed in place of the body. Only for `hmac-*`.",
      example: "X-Timestamp",
      pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/,
      maxLength: 128,
    },
    "signature.grace": {
      type: "string",
      description:
        "Secret that signs for the grace time after a rotation. Default: `new`. Only for `hmac-*`, whose receivers read one signature.",
      example: "new",
      enum: ["new", "old"],
    },
    retry_schedule: {
      type: "array",
      description:
        "Delay before each retry, such as `5m`: at most `24h` each and `7d` in total; `[]` for no retries. Default: `1s`, `5s`, `25s`; to endpoints, the Standard Webhooks schedule.",
    },
    timeout_ms: {
      type: "integer",
      description: "Timeout of an attempt, in milliseconds. Default: 15000.",
      minimum: 1000,
      maximum: 30000,
    },
    max_per_second: {
      type: "integer",
      nullable: true,
      description: "Maximum attempts per second; further deliveries wait. Null (default) for no limit.",
      minimum: 1,
      maximum: 1000,
    },
    max_concurrency: {
      type: "integer",
      description:
        "Maximum concurrent attempts. Default: 16; with 1 the endpoint receives its deliveries in order.",
      minimum: 1,
      maximum: 64,
    },
    order_by: {
      type: "string",
      nullable: true,
      description:
        "JSON pointer to the text or number in the payload that orders messages: those with the same value are sent one after another. `order_key` of a message wins.",
      pattern: /^(?:$|\/(?:[^~]|~[01])*$)/,
      maxLength: 512,
    },
    order_wait_ms: {
      type: "integer",
      description:
        "Time after its first attempt for which an unfinished delivery holds the others of its order key, in milliseconds. Default: 3600000.",
      minimum: 0,
      maximum: 86400000,
    },
    disable_after_hours: {
      type: "integer",
      description:
        "Hours of continuous failure after which the endpoint is disabled; 0 for never. Default: 120.",
      minimum: 0,
      maximum: 720,
    },
    notify_email: {
      type: "boolean",
      description: "Whether the account receives an e-mail when the endpoint is disabled. Default: true.",
    },
    keep_responses: {
      type: "boolean",
      description: "Whether the log of attempts stores responses. Default: true.",
    },
    name: {
      type: "string",
      nullable: true,
      description: "Optional name, unique within the project.",
      example: "bookkeeping",
      minLength: 1,
      maxLength: 100,
    },
    owner_id: {
      type: "string",
      nullable: true,
      description:
        "Id of your customer to whom the endpoint belongs: it receives only messages with this `owner_id`. It cannot be changed.",
      example: "acme",
      pattern: /^[A-Za-z0-9_.:@-]{1,255}$/,
    },
    metadata: {
      type: "object",
      nullable: true,
      description: "Your own data: strings by name, at most 16384 characters as JSON.",
    },
    headers: {
      type: "object",
      description:
        "Request headers: at most 50, each at most 4096 printable ASCII characters; stored encrypted. `X-Svc-*`, `X-Ninefold-Hops`, `webhook-*`, `Host`, `Content-Length` and headers of the connection are ignored, and named in `warnings`.",
    },
    state: {
      type: "string",
      description:
        "`paused` holds deliveries back until the endpoint is `live`. `live` also enables a disabled endpoint.",
      enum: ["live", "paused"],
    },
    secret: {
      type: "string",
      description:
        "New signing secret, in the form that `signature` needs. For 24 hours, messages are also signed with the old one.",
      maxLength: 256,
    },
  },
  "relay.endpoints.create": {
    url: {
      type: "string",
      required: true,
      description: "URL that receives the messages. A change also applies to pending deliveries.",
      example: "https://example.com/hooks",
      minLength: 1,
    },
    event_types: {
      type: "array",
      description:
        "Types of messages that the endpoint receives. `a.*` matches every type that starts with `a.`. Empty: all types except `ninefold.*`.",
      items: /^[A-Za-z0-9_.-]{1,128}(\.\*)?$/,
    },
    channels: {
      type: "array",
      description: "The message goes to endpoints that share a channel with it, or have none.",
      items: /^[A-Za-z0-9_.-]{1,128}$/,
    },
    filter: {
      type: "object",
      nullable: true,
      description:
        "Condition on the payload: field names mapped to required values, or operators such as `$gte` and `$or`.",
    },
    description: {
      type: "string",
      nullable: true,
      description: "Description for people.",
      example: "Bookkeeping",
      minLength: 0,
      maxLength: 500,
    },
    format: {
      type: "string",
      description:
        "Format of the body: an object with `type`, `timestamp` and `data` (`envelope`), or the payload alone (`raw`).",
      enum: ["envelope", "raw"],
    },
    template: {
      type: "any",
      nullable: true,
      description:
        'JSON body in which each `{"$": "/data/id"}` is replaced by the value at this JSON pointer of `{id, type, timestamp, data}`; `default` next to `$` replaces a missing value. `format` is then ignored.',
    },
    signature: {
      type: "object",
      nullable: true,
      description: "Signature of the messages; null for `standard`.",
    },
    "signature.scheme": {
      type: "string",
      required: true,
      description:
        "`standard` and `ed25519` sign by Standard Webhooks, with a shared secret or a private key. The others sign as the receiver knows it from another sender, with the text of `secret` as the key.",
      example: "hmac-sha256-hex",
      enum: ["standard", "hmac-sha256-hex", "hmac-sha256-base64", "stripe", "ed25519"],
    },
    "signature.header": {
      type: "string",
      description: "Header of the signature. Required for `hmac-*` and `stripe`.",
      example: "X-Signature",
      pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/,
      maxLength: 128,
    },
    "signature.prefix": {
      type: "string",
      description: "Text before the signature. Only for `hmac-*`.",
      example: "sha256=",
      pattern: /^[!-~][ -~]{0,99}$/,
      maxLength: 100,
    },
    "signature.timestamp_header": {
      type: "string",
      description:
        "Header of the time in epoch seconds. With it, `<time>.<body>` is signed in place of the body. Only for `hmac-*`.",
      example: "X-Timestamp",
      pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/,
      maxLength: 128,
    },
    "signature.grace": {
      type: "string",
      description:
        "Secret that signs for the grace time after a rotation. Default: `new`. Only for `hmac-*`, whose receivers read one signature.",
      example: "new",
      enum: ["new", "old"],
    },
    retry_schedule: {
      type: "array",
      description:
        "Delay before each retry, such as `5m`: at most `24h` each and `7d` in total; `[]` for no retries. Default: `1s`, `5s`, `25s`; to endpoints, the Standard Webhooks schedule.",
    },
    timeout_ms: {
      type: "integer",
      description: "Timeout of an attempt, in milliseconds. Default: 15000.",
      minimum: 1000,
      maximum: 30000,
    },
    max_per_second: {
      type: "integer",
      nullable: true,
      description: "Maximum attempts per second; further deliveries wait. Null (default) for no limit.",
      minimum: 1,
      maximum: 1000,
    },
    max_concurrency: {
      type: "integer",
      description:
        "Maximum concurrent attempts. Default: 16; with 1 the endpoint receives its deliveries in order.",
      minimum: 1,
      maximum: 64,
    },
    order_by: {
      type: "string",
      nullable: true,
      description:
        "JSON pointer to the text or number in the payload that orders messages: those with the same value are sent one after another. `order_key` of a message wins.",
      pattern: /^(?:$|\/(?:[^~]|~[01])*$)/,
      maxLength: 512,
    },
    order_wait_ms: {
      type: "integer",
      description:
        "Time after its first attempt for which an unfinished delivery holds the others of its order key, in milliseconds. Default: 3600000.",
      minimum: 0,
      maximum: 86400000,
    },
    disable_after_hours: {
      type: "integer",
      description:
        "Hours of continuous failure after which the endpoint is disabled; 0 for never. Default: 120.",
      minimum: 0,
      maximum: 720,
    },
    notify_email: {
      type: "boolean",
      description: "Whether the account receives an e-mail when the endpoint is disabled. Default: true.",
    },
    keep_responses: {
      type: "boolean",
      description: "Whether the log of attempts stores responses. Default: true.",
    },
    name: {
      type: "string",
      nullable: true,
      description: "Optional name, unique within the project.",
      example: "bookkeeping",
      minLength: 1,
      maxLength: 100,
    },
    owner_id: {
      type: "string",
      nullable: true,
      description:
        "Id of your customer to whom the endpoint belongs: it receives only messages with this `owner_id`. It cannot be changed.",
      example: "acme",
      pattern: /^[A-Za-z0-9_.:@-]{1,255}$/,
    },
    metadata: {
      type: "object",
      nullable: true,
      description: "Your own data: strings by name, at most 16384 characters as JSON.",
    },
    headers: {
      type: "object",
      description:
        "Request headers: at most 50, each at most 4096 printable ASCII characters; stored encrypted. `X-Svc-*`, `X-Ninefold-Hops`, `webhook-*`, `Host`, `Content-Length` and headers of the connection are ignored, and named in `warnings`.",
    },
    state: {
      type: "string",
      description:
        "`paused` holds deliveries back until the endpoint is `live`. `live` also enables a disabled endpoint.",
      enum: ["live", "paused"],
    },
    secret: {
      type: "string",
      description:
        "Secret to use: `whsec_` and the base64 of 24 to 64 bytes; with a `signature` of `hmac-*` or `stripe`, 8 to 256 printable characters; with `ed25519`, `whsk_` and the base64 of 32 bytes. Default: a generated one.",
      maxLength: 256,
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
  },
  "relay.endpoints.preview": {
    event_type: {
      type: "string",
      description: "Type of the event: letters, digits, `_`, `.` and `-`; must not start with `ninefold.`.",
      example: "invoice.paid",
      pattern: /^[A-Za-z0-9_.-]{1,128}$/,
      maxLength: 128,
    },
    payload: { type: "object", description: "Payload of the previewed message. Requires `event_type`." },
    message_id: {
      type: "string",
      description: "Message to preview, in place of `event_type` and `payload`.",
      maxLength: 64,
    },
    template: {
      type: "any",
      nullable: true,
      description: "Template to try; null for `format`. Default: that of the endpoint.",
    },
  },
  "relay.endpoints.recover": {
    since: {
      type: "integer",
      required: true,
      description:
        "Earliest time at which the messages were accepted, in epoch milliseconds. Messages of more than 7 days ago are not sent: whether they were delivered is not stored any more.",
      minimum: 0,
      maximum: 253402300799999,
    },
    until: {
      type: "integer",
      description: "Time before which the messages were accepted, in epoch milliseconds. Default: now.",
      minimum: 0,
      maximum: 253402300799999,
    },
    per_second: { type: "integer", description: "Maximum number sent per second.", minimum: 1, maximum: 100 },
    dry_run: { type: "boolean", description: "If true, returns only the number of matches." },
  },
  "relay.endpoints.secret.rotate": {
    grace_hours: {
      type: "integer",
      description: "Time for which deliveries are also signed with the old secret, in hours.",
      minimum: 0,
      maximum: 168,
    },
    secret: {
      type: "string",
      description:
        "Secret to use: `whsec_` and the base64 of 24 to 64 bytes; with a `signature` of `hmac-*` or `stripe`, 8 to 256 printable characters; with `ed25519`, `whsk_` and the base64 of 32 bytes. Default: a generated one.",
      maxLength: 256,
    },
  },
  "relay.endpoints.test": {
    event_type: {
      type: "string",
      description: "Type of the event: letters, digits, `_`, `.` and `-`; must not start with `ninefold.`.",
      example: "invoice.paid",
      pattern: /^[A-Za-z0-9_.-]{1,128}$/,
      maxLength: 128,
    },
    payload: { type: "object" },
  },
  "relay.event_types.import": {
    openapi: {
      type: "object",
      required: true,
      description: "OpenAPI document (3.1) whose `webhooks` are imported.",
    },
    dry_run: {
      type: "boolean",
      description: "Whether to return what would happen, and change nothing. Default: false.",
    },
  },
  "relay.event_types.save": {
    description: {
      type: "string",
      nullable: true,
      description: "Description for your customers; null for none.",
      example: "An invoice was paid in full.",
      minLength: 0,
      maxLength: 1000,
    },
    schema: {
      type: "object",
      nullable: true,
      description:
        "JSON Schema (2020-12) of the payloads; null for none. `format` is a note; `pattern`, `patternProperties`, `$dynamicRef`, `$id` and references to other documents are rejected.",
    },
    example: {
      type: "object",
      nullable: true,
      description: "Payload for documentation and test events; null for none.",
    },
    enforce: {
      type: "boolean",
      description:
        "Whether messages that do not fit the schema are rejected; otherwise they are reported. Default: false.",
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
  },
  "relay.messages.batch": { messages: { type: "array", required: true } },
  "relay.messages.resend": {
    endpoint_id: {
      type: "string",
      description:
        "Endpoint to send to, whether its delivery failed or not, or it has none. Default: all endpoints where it failed.",
      maxLength: 64,
    },
  },
  "relay.messages.send": {
    event_type: {
      type: "string",
      required: true,
      description: "Type of the event: letters, digits, `_`, `.` and `-`; must not start with `ninefold.`.",
      example: "invoice.paid",
      pattern: /^[A-Za-z0-9_.-]{1,128}$/,
      maxLength: 128,
    },
    payload: { type: "object", required: true },
    owner_id: {
      type: "string",
      description:
        "Id of the customer to whose endpoints the message goes. Without it, the message goes to endpoints without an owner.",
      example: "acme",
      pattern: /^[A-Za-z0-9_.:@-]{1,255}$/,
    },
    channels: {
      type: "array",
      description: "The message goes to endpoints that share a channel with it, or have none.",
      items: /^[A-Za-z0-9_.-]{1,128}$/,
    },
    message_id: {
      type: "string",
      description:
        "ID of the message, chosen by you and sent as `webhook-id`. Sending the same ID again creates nothing.",
      example: "invoice-1042-paid",
      pattern: /^[A-Za-z0-9_-]{1,64}$/,
      maxLength: 64,
    },
    order_key: {
      type: "string",
      description:
        "Key of the order: an endpoint receives messages with the same key one after another, as they were accepted.",
      example: "customer-17",
      minLength: 1,
      maxLength: 128,
    },
    delay: {
      type: "string",
      description:
        "Delay before the first attempt, from `0s` (immediately) to `30d`. Required unless `at` is given.",
      example: "15m",
      pattern: /^[0-9]{1,9}[smhd]$/,
    },
    at: {
      type: "integer",
      description:
        "Time of the first attempt, in epoch milliseconds, at most 30 days ahead; a past time means now. Replaces `delay`.",
      minimum: 0,
      maximum: 253402300799999,
    },
    deduplication_id: {
      type: "string",
      description:
        "Key that creates only one delivery: for `deduplicate_hours`, further requests with it return the first delivery, free of charge.",
      example: "invoice-1042-reminder",
      minLength: 1,
      maxLength: 255,
    },
  },
  "relay.portal.create": {
    owner_id: {
      type: "string",
      required: true,
      description: "Id of the customer who manages its endpoints with the link.",
      example: "acme",
      pattern: /^[A-Za-z0-9_.:@-]{1,255}$/,
    },
    expires_in: {
      type: "string",
      description: "Lifetime of the link, from `1m` to `7d`. Default: `24h`; at most that of your key.",
      example: "2h",
      pattern: /^[0-9]{1,9}[smhd]$/,
    },
    event_types: {
      type: "array",
      description: "Event types that the page offers to choose from. Default: the customer enters them.",
      items: /^[A-Za-z0-9_.-]{1,128}(\.\*)?$/,
    },
  },
  "relay.portal.endpoints.change": {
    url: {
      type: "string",
      description: "URL that receives the messages. A change also applies to pending deliveries.",
      example: "https://example.com/hooks",
      minLength: 1,
    },
    description: {
      type: "string",
      nullable: true,
      description: "Description for people.",
      example: "Bookkeeping",
      minLength: 0,
      maxLength: 500,
    },
    event_types: {
      type: "array",
      description:
        "Types of messages that the endpoint receives. `a.*` matches every type that starts with `a.`. Empty: all types except `ninefold.*`.",
      items: /^[A-Za-z0-9_.-]{1,128}(\.\*)?$/,
    },
    state: {
      type: "string",
      description:
        "`paused` holds deliveries back until the endpoint is `live`. `live` also enables a disabled endpoint.",
      enum: ["live", "paused"],
    },
  },
  "relay.portal.endpoints.create": {
    url: {
      type: "string",
      required: true,
      description: "URL that receives the messages. A change also applies to pending deliveries.",
      example: "https://example.com/hooks",
      minLength: 1,
    },
    description: {
      type: "string",
      nullable: true,
      description: "Description for people.",
      example: "Bookkeeping",
      minLength: 0,
      maxLength: 500,
    },
    event_types: {
      type: "array",
      description:
        "Types of messages that the endpoint receives. `a.*` matches every type that starts with `a.`. Empty: all types except `ninefold.*`.",
      items: /^[A-Za-z0-9_.-]{1,128}(\.\*)?$/,
    },
    state: {
      type: "string",
      description:
        "`paused` holds deliveries back until the endpoint is `live`. `live` also enables a disabled endpoint.",
      enum: ["live", "paused"],
    },
  },
  "relay.portal.endpoints.recover": {
    since: {
      type: "integer",
      required: true,
      description:
        "Earliest time at which the messages were accepted, in epoch milliseconds. Messages of more than 7 days ago are not sent: whether they were delivered is not stored any more.",
      minimum: 0,
      maximum: 253402300799999,
    },
    until: {
      type: "integer",
      description: "Time before which the messages were accepted, in epoch milliseconds. Default: now.",
      minimum: 0,
      maximum: 253402300799999,
    },
    per_second: { type: "integer", description: "Maximum number sent per second.", minimum: 1, maximum: 10 },
    dry_run: { type: "boolean", description: "If true, returns only the number of matches." },
  },
  "relay.portal.endpoints.secret.rotate": {
    grace_hours: {
      type: "integer",
      description: "Time for which deliveries are also signed with the old secret, in hours.",
      minimum: 0,
      maximum: 168,
    },
    secret: {
      type: "string",
      description:
        "Secret to use: `whsec_` and the base64 of 24 to 64 bytes; with a `signature` of `hmac-*` or `stripe`, 8 to 256 printable characters; with `ed25519`, `whsk_` and the base64 of 32 bytes. Default: a generated one.",
      maxLength: 256,
    },
  },
  "relay.portal.endpoints.test": {
    event_type: {
      type: "string",
      description: "Type of the event: letters, digits, `_`, `.` and `-`; must not start with `ninefold.`.",
      example: "invoice.paid",
      pattern: /^[A-Za-z0-9_.-]{1,128}$/,
      maxLength: 128,
    },
  },
  "relay.portal.revoke": {
    owner_id: { type: "string", required: true, example: "acme", pattern: /^[A-Za-z0-9_.:@-]{1,255}$/ },
  },
  "relay.resends.start": {
    status: { type: "string" },
    relay_ids: { type: "array", description: "IDs of the deliveries to resend. Replaces the other filters." },
    endpoint_id: { type: "string", description: "Only deliveries to this endpoint.", maxLength: 64 },
    event_type: {
      type: "string",
      description: "Returns only events of this type, such as `monitor.down`.",
      minLength: 1,
      maxLength: 128,
    },
    since: {
      type: "integer",
      description: "Start of the creation time, inclusive, in epoch milliseconds.",
      minimum: 0,
      maximum: 253402300799999,
    },
    until: {
      type: "integer",
      description: "End of the creation time, exclusive, in epoch milliseconds.",
      minimum: 0,
      maximum: 253402300799999,
    },
    filter: {
      type: "string",
      description:
        "`pulse` includes only alerts: messages to notification channels, and alerts of meters. `deliveries` omits them.",
      enum: ["pulse", "deliveries"],
    },
    error: {
      type: "string",
      description: "Only deliveries that failed for this reason.",
      enum: ["timeout", "network", "http", "blocked", "disabled"],
    },
    response_status: {
      type: "string",
      description: "Only deliveries whose last response has this HTTP status, or a status of this class.",
      example: "5xx",
      pattern: /^[1-5]([0-9][0-9]|xx)$/,
    },
    target_url: {
      type: "string",
      description: "Only deliveries to exactly this URL.",
      example: "https://example.com/hooks",
      maxLength: 2048,
    },
    per_second: { type: "integer", description: "Maximum number sent per second.", minimum: 1, maximum: 100 },
    dry_run: { type: "boolean", description: "If true, returns only the number of matches." },
  },
  "relay.schedule": {
    target_url: {
      type: "string",
      required: true,
      description: "URL of the request: `http` or `https`, at most 2048 characters.",
      example: "https://example.com/hooks",
      minLength: 1,
    },
    method: {
      type: "string",
      required: true,
      description: "HTTP method of the request.",
      enum: ["GET", "POST", "PUT", "PATCH", "DELETE"],
    },
    delay: {
      type: "string",
      description:
        "Delay before the first attempt, from `0s` (immediately) to `30d`. Required unless `at` is given.",
      example: "15m",
      pattern: /^[0-9]{1,9}[smhd]$/,
    },
    at: {
      type: "integer",
      description:
        "Time of the first attempt, in epoch milliseconds, at most 30 days ahead; a past time means now. Replaces `delay`.",
      minimum: 0,
      maximum: 253402300799999,
    },
    payload: { type: "object", description: "JSON body of the request, `{}` by default. Not sent with GET." },
    body_base64: {
      type: "string",
      description:
        "Body as base64, at most 750000 bytes when decoded. Replaces `payload`; set `Content-Type` in `headers`.",
      example: "PGludm9pY2UvPg==",
    },
    headers: {
      type: "object",
      description:
        "Request headers: at most 50, each at most 4096 printable ASCII characters; stored encrypted. `X-Svc-*`, `X-Ninefold-Hops`, `webhook-*`, `Host`, `Content-Length` and headers of the connection are ignored, and named in `warnings`.",
    },
    retry_schedule: {
      type: "array",
      description:
        "Delay before each retry, such as `5m`: at most `24h` each and `7d` in total; `[]` for no retries. Default: `1s`, `5s`, `25s`; to endpoints, the Standard Webhooks schedule.",
    },
    timeout_ms: {
      type: "integer",
      description: "Timeout of an attempt, in milliseconds. Default: 15000.",
      minimum: 1000,
      maximum: 30000,
    },
    deduplication_id: {
      type: "string",
      description:
        "Key that creates only one delivery: for `deduplicate_hours`, further requests with it return the first delivery, free of charge.",
      example: "invoice-1042-reminder",
      minLength: 1,
      maxLength: 255,
    },
    deduplication: {
      type: "string",
      description:
        "`content` creates only one delivery of the same method, `target_url` and body within `deduplicate_hours`. Replaces `deduplication_id`.",
    },
    deduplicate_hours: {
      type: "integer",
      description:
        "Hours for which `deduplication_id` or `deduplication` creates no second delivery. Default: 24.",
      minimum: 1,
      maximum: 168,
    },
    callback_url: {
      type: "string",
      description:
        "URL that receives the outcome of the delivery, once it is delivered or has failed, as a signed message.",
      example: "https://example.com/outcomes",
      minLength: 1,
    },
    failure_callback_url: {
      type: "string",
      description: "URL that receives the outcome of a failed delivery, in place of `callback_url`.",
      example: "https://example.com/outcomes",
      minLength: 1,
    },
  },
  "relay.schedules.create": {
    name: {
      type: "string",
      nullable: true,
      description: "Optional name, unique within the project.",
      example: "shop",
      minLength: 1,
      maxLength: 100,
    },
    cron: {
      type: "string",
      required: true,
      description:
        "Cron expression: minute, hour, day of the month, month, day of the week; or `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`. Accepts names (`MON-FRI`), steps (`5/15`), `L` for the last day of the month and `MON#1` for the first Monday.",
      example: "0 9 * * MON-FRI",
      minLength: 1,
      maxLength: 256,
    },
    time_zone: {
      type: "string",
      description: "IANA time zone of `cron`. Default: `UTC`.",
      example: "Europe/Berlin",
      minLength: 1,
      maxLength: 64,
    },
    target_url: {
      type: "string",
      description: "URL that each run is sent to. Required unless `event_type` is given.",
      example: "https://example.com/hooks",
      minLength: 1,
    },
    method: {
      type: "string",
      description: "HTTP method of each run. Default: `POST`.",
      enum: ["GET", "POST", "PUT", "PATCH", "DELETE"],
    },
    event_type: {
      type: "string",
      description:
        "Type of the message that each run sends to all matching endpoints. Replaces `target_url`.",
      pattern: /^[A-Za-z0-9_.-]{1,128}$/,
      maxLength: 128,
    },
    payload: { type: "object", description: "JSON body of each run, `{}` by default. Not sent with GET." },
    headers: {
      type: "object",
      description: "Request headers, with the same reserved names as in `POST /v1/relay`.",
    },
    state: {
      type: "string",
      description: "`paused` stops the runs until the schedule is `live`.",
      enum: ["live", "paused"],
    },
    missed: {
      type: "string",
      description:
        "Handling of times that passed more than a minute ago while the server was down: one run for all of them (`once`, default), or none (`skip`).",
      enum: ["once", "skip"],
    },
    overlap: {
      type: "string",
      description:
        "`skip` omits a run while the previous one, including its retries, is not finished. Default: `allow`.",
      enum: ["allow", "skip"],
    },
    starts_at: {
      type: "integer",
      nullable: true,
      description: "Earliest time of a run, in epoch milliseconds.",
      minimum: 0,
      maximum: 253402300799999,
    },
    ends_at: {
      type: "integer",
      nullable: true,
      description: "Latest time of a run, in epoch milliseconds.",
      minimum: 0,
      maximum: 253402300799999,
    },
    retry_schedule: {
      type: "array",
      nullable: true,
      description: "Delay before each retry of a run, as in `POST /v1/relay`; null for the default.",
    },
    callback_url: {
      type: "string",
      nullable: true,
      description: "URL that receives the outcome of each run with a `target_url`; null for none.",
      example: "https://example.com/outcomes",
      minLength: 1,
    },
    failure_callback_url: {
      type: "string",
      nullable: true,
      description:
        "URL that receives the outcome of a failed run, in place of `callback_url`; null for none.",
      example: "https://example.com/outcomes",
      minLength: 1,
    },
    managed_by: {
      type: "string",
      description:
        "`apply` for a resource that `ninefold apply` has created, and that `ninefold apply --prune` may delete.",
    },
  },
  "relay.schedules.update": {
    name: {
      type: "string",
      nullable: true,
      description: "Optional name, unique within the project.",
      example: "shop",
      minLength: 1,
      maxLength: 100,
    },
    cron: {
      type: "string",
      description:
        "Cron expression: minute, hour, day of the month, month, day of the week; or `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`. Accepts names (`MON-FRI`), steps (`5/15`), `L` for the last day of the month and `MON#1` for the first Monday.",
      example: "0 9 * * MON-FRI",
      minLength: 1,
      maxLength: 256,
    },
    time_zone: {
      type: "string",
      description: "IANA time zone of `cron`. Default: `UTC`.",
      example: "Europe/Berlin",
      minLength: 1,
      maxLength: 64,
    },
    target_url: {
      type: "string",
      description: "URL that each run is sent to. Required unless `event_type` is given.",
      example: "https://example.com/hooks",
      minLength: 1,
    },
    method: {
      type: "string",
      description: "HTTP method of each run. Default: `POST`.",
      enum: ["GET", "POST", "PUT", "PATCH", "DELETE"],
    },
    event_type: {
      type: "string",
      description:
        "Type of the message that each run sends to all matching endpoints. Replaces `target_url`.",
      pattern: /^[A-Za-z0-9_.-]{1,128}$/,
      maxLength: 128,
    },
    payload: { type: "object", description: "JSON body of each run, `{}` by default. Not sent with GET." },
    headers: {
      type: "object",
      description: "Request headers, with the same reserved names as in `POST /v1/relay`.",
    },
    state: {
      type: "string",
      description: "`paused` stops the runs until the schedule is `live`.",
      enum: ["live", "paused"],
    },
    missed: {
      type: "string",
      description:
        "Handling of times that passed more than a minute ago while the server was down: one run for all of them (`once`, default), or none (`skip`).",
      enum: ["once", "skip"],
    },
    overlap: {
      type: "string",
      description:
        "`skip` omits a run while the previous one, including its retries, is not finished. Default: `allow`.",
      enum: ["allow", "skip"],
    },
    starts_at: {
      type: "integer",
      nullable: true,
      description: "Earliest time of a run, in epoch milliseconds.",
      minimum: 0,
      maximum: 253402300799999,
    },
    ends_at: {
      type: "integer",
      nullable: true,
      description: "Latest time of a run, in epoch milliseconds.",
      minimum: 0,
      maximum: 253402300799999,
    },
    retry_schedule: {
      type: "array",
      nullable: true,
      description: "Delay before each retry of a run, as in `POST /v1/relay`; null for the default.",
    },
    callback_url: {
      type: "string",
      nullable: true,
      description: "URL that receives the outcome of each run with a `target_url`; null for none.",
      example: "https://example.com/outcomes",
      minLength: 1,
    },
    failure_callback_url: {
      type: "string",
      nullable: true,
      description:
        "URL that receives the outcome of a failed run, in place of `callback_url`; null for none.",
      example: "https://example.com/outcomes",
      minLength: 1,
    },
  },
  "relay.secret.rotate": {
    grace_hours: {
      type: "integer",
      description: "Time for which deliveries are also signed with the old secret, in hours.",
      minimum: 0,
      maximum: 168,
    },
    secret: {
      type: "string",
      description: "Secret to use: `whsec_` and the base64 of 24 to 64 bytes. Default: a generated one.",
      maxLength: 94,
    },
  },
  "session.create": {
    key: { type: "string", description: "A key of this API.", example: "sm_4fJ9…_1c2d3e4f", maxLength: 255 },
    link: {
      type: "string",
      description: "The token of a login link, which follows `#/setup/`. Alternative to `key`.",
      maxLength: 255,
    },
    email_link: {
      type: "string",
      description:
        "The token of a login link that was sent by e-mail, which follows `#/login/`. Only in the browser that requested it. Alternative to `key`.",
      maxLength: 255,
    },
    proxy: {
      type: "boolean",
      description: "Logs in the person whom the header of a trusted proxy names. Alternative to `key`.",
    },
  },
  "session.email.create": {
    email: {
      type: "string",
      required: true,
      description: "Address that the link is sent to.",
      example: "ann@example.com",
      format: "email",
      maxLength: 254,
    },
  },
  "session.invitation.accept": {
    token: {
      type: "string",
      required: true,
      description: "Token of the invitation, which follows `#/invitation/`.",
      maxLength: 86,
    },
    credential: {
      type: "object",
      required: true,
      description: "The credential, as `toJSON()` of the browser returns it.",
    },
    "credential.id": { type: "string", required: true, minLength: 1, maxLength: 2048 },
    "credential.rawId": { type: "string", required: true, minLength: 1, maxLength: 2048 },
    "credential.type": { type: "string", required: true },
    "credential.clientExtensionResults": { type: "object" },
    "credential.authenticatorAttachment": { type: "string", maxLength: 64 },
    "credential.response": { type: "object", required: true },
    "credential.response.clientDataJSON": { type: "string", required: true, maxLength: 16384 },
    "credential.response.attestationObject": { type: "string", required: true, maxLength: 16384 },
    "credential.response.transports": { type: "array" },
    name: {
      type: "string",
      description: "Name of the person.",
      example: "Ann",
      minLength: 1,
      maxLength: 100,
    },
  },
  "session.invitation.read": {
    token: {
      type: "string",
      required: true,
      description: "Token of the invitation, which follows `#/invitation/`.",
      maxLength: 86,
    },
  },
  "session.passkey.create": {
    credential: {
      type: "object",
      required: true,
      description: "The credential, as `toJSON()` of the browser returns it.",
    },
    "credential.id": { type: "string", required: true, minLength: 1, maxLength: 2048 },
    "credential.rawId": { type: "string", required: true, minLength: 1, maxLength: 2048 },
    "credential.type": { type: "string", required: true },
    "credential.clientExtensionResults": { type: "object" },
    "credential.authenticatorAttachment": { type: "string", maxLength: 64 },
    "credential.response": { type: "object", required: true },
    "credential.response.clientDataJSON": { type: "string", required: true, maxLength: 16384 },
    "credential.response.authenticatorData": { type: "string", required: true, maxLength: 16384 },
    "credential.response.signature": { type: "string", required: true, maxLength: 16384 },
    "credential.response.userHandle": { type: "string", nullable: true, maxLength: 16384 },
  },
  "session.switch": {
    user_id: {
      type: "string",
      required: true,
      description: "Account of `session.accounts`.",
      example: "usr_3vQ8Zk2mX7cB4nL9pS1t",
      maxLength: 64,
    },
  },
  signup: {
    email: { type: "string", required: true, format: "email", maxLength: 254 },
    tier: { type: "string", required: true, enum: ["free", "pro"] },
  },
  "witness.accept_fork": {
    chain_id: {
      type: "string",
      required: true,
      description: "Id of the chain.",
      example: "wc_u7Qk1xR0aZ3mB9cV5nL2pS8tY4hW6dEf",
      maxLength: 64,
    },
  },
  "witness.config.set": {
    endpoint: {
      type: "string",
      required: true,
      description: "URL of the S3-compatible server. Objects are addressed path style.",
      maxLength: 2048,
    },
    bucket: { type: "string", required: true, pattern: /^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/ },
    region: { type: "string", required: true, pattern: /^[A-Za-z0-9_-]{1,64}$/ },
    accessKeyId: { type: "string", required: true, pattern: /^[\x21-\x2b\x2d\x2e\x30-\x7e]{16,128}$/ },
    secretAccessKey: { type: "string", required: true, pattern: /^[\x21-\x7e]{16,256}$/ },
    prefix: {
      type: "string",
      description:
        "Folders before `witness/receipts/` in object names. Chains that share a bucket need different prefixes.",
      pattern: /^[A-Za-z0-9._/-]*$/,
      maxLength: 512,
    },
  },
  "witness.index.set": {
    fields: {
      type: "array",
      description: "JSON Pointers (RFC 6901) to the values of logs that are indexed from now on.",
      items: /^\/([^~]|~[01])*$/,
    },
    retain_days: {
      type: "integer",
      description: "Days after which the texts of logs are deleted; 0: never.",
      minimum: 0,
      maximum: 36500,
    },
  },
  "witness.init": {
    origin: {
      type: "string",
      description:
        "Name of the chain in its checkpoints, such as `example.com/audit`: a URL without scheme. `ninefold/<chain_id>` by default. It cannot be changed.",
      example: "example.com/audit",
      pattern: /^[\x21-\x2a\x2c-\x7e]{1,255}$/,
    },
  },
  "witness.log": {
    log: {
      type: "object",
      description:
        "Entry to log. Send numbers that JSON parsers cannot represent exactly as strings. Required without `content_hash`.",
    },
    content_hash: {
      type: "string",
      description:
        "SHA-256 of what the receipt is for, instead of `log`. For a JSON log, hash the UTF-8 of `JSON.stringify(log)`.",
      example: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
      pattern: /^[0-9a-f]{64}$/,
    },
    note: {
      type: "string",
      description: "Note on the `content_hash`, such as the name of a file. No hash covers it.",
      example: "contract-7.pdf",
      minLength: 1,
      maxLength: 200,
    },
    salt: {
      type: "boolean",
      description:
        "Adds the member `$salt` with 22 random characters to the log, so that a deleted log cannot be guessed from its hash.",
    },
  },
  "witness.receipts.redact": {
    reason: {
      type: "string",
      required: true,
      description: "Why the text is deleted. It is logged in the chain, so do not name a person.",
      example: "erasure request 2026-117",
      minLength: 1,
      maxLength: 200,
    },
  },
  "witness.tlog.set": {
    public: {
      type: "boolean",
      required: true,
      description: "Whether checkpoint, tiles and entries can be read without a key.",
    },
  },
  "witness.verify": {
    receipt: { type: "any", required: true, description: "Receipt as the server returned it." },
    log: { type: "any", description: "Log of a receipt without one, to compare it with the hash." },
  },
  "witness.witnesses.set": {
    witnesses: { type: "array", required: true, description: "At most 8; an empty list removes all." },
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, BodyField>>>>;
