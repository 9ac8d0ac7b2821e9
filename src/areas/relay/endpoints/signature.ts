import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf } from "../../../kernel/data/schema.ts";
import { invalidField } from "../../../kernel/errors.ts";
import {
  SIGNATURE_SCHEMES,
  type Signature,
  type SignatureScheme,
  STANDARD,
} from "../../../kernel/outbound/signature-schemes.ts";
import { isServerHeader } from "../deliveries/reserved-headers.ts";

/** Longest `prefix` of a signature. */
export const PREFIX_LENGTH_MAX = 100;

const headerName = (description: string, example: string) =>
  Type.String({
    pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$",
    maxLength: 128,
    errorMessage: `must be the name of a header such as ${example}`,
    description,
    examples: [example],
  });

/** How the messages of an endpoint are signed. */
export const EndpointSignature = named(
  "RelaySignature",
  {
    scheme: oneOf(SIGNATURE_SCHEMES, {
      errorMessage: `must be ${SIGNATURE_SCHEMES.join(", ")}`,
      description:
        "`standard` and `ed25519` sign by Standard Webhooks, with a shared secret or a private key. The others sign as the receiver knows it from another sender, with the text of `secret` as the key.",
      examples: ["hmac-sha256-hex"],
    }),
    header: Type.Optional(
      headerName("Header of the signature. Required for `hmac-*` and `stripe`.", "X-Signature"),
    ),
    prefix: Type.Optional(
      Type.String({
        pattern: `^[!-~][ -~]{0,${PREFIX_LENGTH_MAX - 1}}$`,
        maxLength: PREFIX_LENGTH_MAX,
        errorMessage: `must be 1 to ${PREFIX_LENGTH_MAX} printable ASCII characters, the first one not a space`,
        description: "Text before the signature. Only for `hmac-*`.",
        examples: ["sha256="],
      }),
    ),
    timestamp_header: Type.Optional(
      headerName(
        "Header of the time in epoch seconds. With it, `<time>.<body>` is signed in place of the body. Only for `hmac-*`.",
        "X-Timestamp",
      ),
    ),
    grace: Type.Optional(
      oneOf(["new", "old"], {
        errorMessage: "must be new or old",
        description:
          "Secret that signs for the grace time after a rotation. Default: `new`. Only for `hmac-*`, whose receivers read one signature.",
        examples: ["new"],
      }),
    ),
  },
  {
    errorMessage: "must be an object with scheme, or null",
    description: "Signature of the messages; null for `standard`.",
  },
);
type EndpointSignature = Static<typeof EndpointSignature>;

/** Fields that a scheme has besides its name. */
const FIELDS: Readonly<Record<SignatureScheme, readonly (keyof Signature)[]>> = {
  standard: [],
  "hmac-sha256-hex": ["header", "prefix", "timestamp_header", "grace"],
  "hmac-sha256-base64": ["header", "prefix", "timestamp_header", "grace"],
  stripe: ["header"],
  ed25519: [],
};

/** The signature of an endpoint. `setting`: null without one. */
export function signatureOf(setting: EndpointSignature | null): Signature {
  return setting ?? STANDARD;
}

/** Checks a signature. @throws ApiError `validation_error` naming the field */
export function assertSignature({ scheme, ...fields }: EndpointSignature): void {
  const allowed = FIELDS[scheme];
  for (const name of ["header", "prefix", "timestamp_header", "grace"] as const)
    if (fields[name] !== undefined && !allowed.includes(name))
      throw invalidField(`signature.${name}`, `does not apply to the scheme ${scheme}: omit it`);
  const { header, timestamp_header: timestamp } = fields;
  if (header === undefined && allowed.includes("header"))
    throw invalidField("signature.header", `is required for the scheme ${scheme}`);
  for (const [name, value] of Object.entries({ header, timestamp_header: timestamp })) {
    if (value !== undefined && isTaken(value))
      throw invalidField(
        `signature.${name}`,
        "must not be a header that has another meaning: choose another name",
      );
  }
  if (header !== undefined && header.toLowerCase() === timestamp?.toLowerCase())
    throw invalidField("signature.timestamp_header", "must differ from header");
}

/** `webhook-*` belongs to Standard Webhooks, also with underscores, which many receivers read as dashes. */
function isTaken(name: string): boolean {
  return isServerHeader(name) || /^webhook[-_]/i.test(name);
}
