import { readFileSync } from "node:fs";
import { PROVIDERS, type Provider } from "../areas/catch/domain.ts";
import type { Received } from "../areas/catch/providers/extracted-fields.ts";
import {
  canBeVerified,
  canVerifySignatures,
  detectProvider,
  PRESETS,
  type Preset,
  verify,
} from "../areas/catch/providers/presets.ts";
import { UsageError } from "../config/command-line.ts";
import { readText } from "../config/sources.ts";
import { errorText, StartupError } from "../kernel/errors.ts";
import { createSystemClock } from "../kernel/time/clock.ts";
import type { Arguments } from "./arguments.ts";
import { print } from "./output.ts";

/** Largest body, larger than any that a server accepts or sends. */
export const BODY_BYTES_MAX = 8 * 1024 * 1024;

/** A request with the preset and the secret that it is verified with. */
interface Signed {
  readonly preset: Preset;
  readonly secret: string;
  readonly received: Received;
}

/**
 * `ninefold verify-signature FILE`: verifies the signature of a webhook, and says why it is not valid: a missing header, a
 * timestamp out of the tolerance, a body that was changed on the way, or another secret. Returns the exit code: 0 if it is valid.
 */
export function verifySignature(args: Arguments): number {
  const [file = ""] = args.words;
  const secretFile = args.text("--secret-file");
  if (secretFile === null)
    throw new UsageError("verify-signature needs --secret-file FILE. Try ninefold verify-signature --help.");
  const headers = readHeaders(args.texts("--header"));
  const name = providerOf(args.text("--provider"), headers);
  const url = args.text("--url");
  const target = url === null ? null : URL.parse(url);
  if (url !== null && target === null) throw new UsageError("--url must be the URL that the sender calls.");
  const received: Received = {
    headers,
    body: readBody(file),
    receivedAt: createSystemClock().now(),
    method: "POST",
    publicUrl: target?.origin ?? null,
    target: target === null ? "/" : target.pathname + target.search,
  };
  // An editor ends a file with a line break, which is not part of the secret.
  const secret = readText(secretFile, "--secret-file").trim();
  const problem = problemOf(name, { preset: PRESETS[name], secret, received }, args.has("--any-age"));
  print(problem === null ? `valid: signed by ${name}\n` : `not valid: ${problem}\n`);
  return problem === null ? 0 : 1;
}

/** Why a signature is not valid; null if it is. */
function problemOf(name: Provider, signed: Signed, anyAge: boolean): string | null {
  const { preset, secret, received } = signed;
  const missing = missingHeaders(preset, received.headers);
  if (missing.length > 0)
    return `the request has no header ${missing.join(" and ")}, which ${name} sends. Pass it with --header, or name another --provider.`;
  if (!canBeVerified(preset, secret))
    return `this cannot be a signing secret of ${name}: it is incomplete, or another kind of key. Copy the signing secret of this endpoint.`;
  if (isValid(signed)) return null;
  const undated = { ...signed, preset: withoutTolerance(preset) };
  if (isValid(undated))
    return anyAge
      ? null
      : "the signature matches, but its timestamp is too far from the clock of this machine. Compare the clocks (timedatectl). For a stored request, add --any-age.";
  const form = BODY_FORMS.find(([, changed]) => {
    const body = changed(received.body);
    return body !== null && isValid({ ...undated, received: { ...received, body } });
  });
  if (form !== undefined)
    return `the signature matches the body ${form[0]}. The body was changed on its way: verify the exact bytes that arrive, before they are parsed.`;
  return "the signature is of another secret, or of another body. Compare the secret with that of this endpoint, in the same environment, and verify the exact bytes that arrive.";
}

function isValid({ preset, secret, received }: Signed): boolean {
  return verify(preset, [secret], { ...received }) === "valid";
}

/** The headers that a request lacks for any of a sender's schemes: those of the scheme that lacks the fewest. */
function missingHeaders({ schemes, ownSignature }: Preset, headers: Headers): readonly string[] {
  if (ownSignature !== null) return [];
  const missing = schemes.map((scheme) => scheme.headers.filter((header) => !headers.has(header)));
  return missing.sort((a, b) => a.length - b.length)[0] ?? [];
}

function withoutTolerance(preset: Preset): Preset {
  const { schemes, ownSignature } = preset;
  return {
    ...preset,
    schemes: schemes.map((scheme) => ({ ...scheme, tolerance_seconds: 0 })),
    ownSignature: ownSignature === null ? null : { ...ownSignature, toleranceSeconds: 0 },
  };
}

/** Ways in which bodies are changed between a sender and the code that verifies them. */
const BODY_FORMS: readonly (readonly [form: string, changed: (body: Uint8Array) => Uint8Array | null])[] = [
  ["without the line break at its end", (body) => asText(body, (text) => text.replace(/\r?\n$/, ""))],
  ["with a line break at its end", (body) => asText(body, (text) => `${text}\n`)],
  ["with \\n as line breaks", (body) => asText(body, (text) => text.replaceAll("\r\n", "\n"))],
  ["as compact JSON", (body) => asText(body, (text) => JSON.stringify(JSON.parse(text)))],
  ["as JSON with two spaces", (body) => asText(body, (text) => JSON.stringify(JSON.parse(text), null, 2))],
  ["as the JSON that Python writes", (body) => asText(body, (text) => pythonJson(JSON.parse(text)))],
];

function asText(body: Uint8Array, change: (text: string) => string): Uint8Array | null {
  try {
    return Buffer.from(change(Buffer.from(body).toString("utf8")));
  } catch {
    return null;
  }
}

/** JSON with a blank after each colon and comma, as `json.dumps` writes it. */
function pythonJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${pythonJson(member)}`,
  );
  return `{${members.join(", ")}}`;
}

function providerOf(name: string | null, headers: Headers): Provider {
  if (name === null) return detectProvider(headers) ?? "standard";
  const provider = PROVIDERS.find((provider) => provider === name);
  // Certificates are fetched by servers only.
  const known = PROVIDERS.filter(
    (provider) =>
      canVerifySignatures(PRESETS[provider]) && PRESETS[provider].ownSignature?.certificate === undefined,
  );
  if (provider === undefined || !known.includes(provider))
    throw new UsageError(`--provider must be one of ${known.join(", ")}.`);
  return provider;
}

function readHeaders(lines: readonly string[]): Headers {
  const headers = new Headers();
  for (const line of lines) {
    const at = line.indexOf(":");
    try {
      headers.append(line.slice(0, at).trim(), line.slice(at + 1).trim());
    } catch {
      throw new UsageError("--header must be a header of the request, such as 'Webhook-Id: msg_1'.");
    }
  }
  return headers;
}

function readBody(path: string): Uint8Array {
  let body: Uint8Array;
  try {
    body = readFileSync(path);
  } catch (error) {
    throw new StartupError(`${path} cannot be read (${errorText(error)}).`);
  }
  if (body.length > BODY_BYTES_MAX) throw new StartupError(`${path} is larger than ${BODY_BYTES_MAX} bytes.`);
  return body;
}
