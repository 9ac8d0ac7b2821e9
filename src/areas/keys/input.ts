import { parseDateTime } from "../../kernel/date-time.ts";
import { invalidField } from "../../kernel/errors.ts";
import { METADATA_LENGTH_MAX, USER_AGENT_KEPT } from "./domain.ts";
import type { KeyCreateInput } from "./schema.ts";
import type { KeyTerms } from "./service.ts";
import type { ClientMeta } from "./uses.ts";

/**
 * The terms in a creation's body, with what a schema cannot say checked.
 * @throws ApiError `validation_error`
 */
export function readTerms(body: KeyCreateInput, now: number): KeyTerms {
  const { prefix, name, scopes, environment = null, metadata = null, expires_at = null } = body;
  if (metadata !== null && JSON.stringify(metadata).length > METADATA_LENGTH_MAX) {
    throw invalidField("metadata", `must have at most ${METADATA_LENGTH_MAX} characters as JSON`);
  }
  return { prefix, name, scopes, environment, metadata, expiresAt: readExpiry(expires_at, now) };
}

function readExpiry(text: string | null, now: number): number | null {
  if (text === null) return null;
  const moment = parseDateTime(text);
  if (moment === null) {
    throw invalidField("expires_at", "must be an RFC 3339 date-time, such as 2030-01-31T12:00:00Z");
  }
  if (moment <= now) throw invalidField("expires_at", "must be in the future");
  return moment;
}

/**
 * The moment behind the cursor of a list of keys: the `created_at` of the last item.
 * @throws ApiError `validation_error`
 */
export function readKeyCursor(cursor: string | undefined): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER;
  const moment = parseDateTime(cursor);
  if (moment === null)
    throw invalidField("cursor", "must be the next_cursor of the page before, a date-time");
  return moment;
}

/** What a verification's body tells of the client. */
export function readClient(
  meta: { ip?: string | null; user_agent?: string | null } | null | undefined,
): ClientMeta {
  const agent = meta?.user_agent ?? null;
  return { ip: meta?.ip ?? null, userAgent: agent === null ? null : kept(agent) };
}

/** Cut so that no character is halved, and lone halves of the caller's own replaced: the file holds whole ones only. */
function kept(agent: string): string {
  const whole = agent.toWellFormed();
  return whole.length <= USER_AGENT_KEPT
    ? whole
    : [...whole.slice(0, 2 * USER_AGENT_KEPT)].slice(0, USER_AGENT_KEPT).join("").toWellFormed();
}
