// Operations of the console that the generated list of operations does not have yet. What stands there goes before what
// stands here.
import type { PageQuery, Route } from "../../../client/generated/operations.ts";
import type { Tier } from "../../../client/generated/parts.ts";

/** Who is logged in, and what they may do. */
export interface Session {
  user_id: string;
  email: string;
  tier: Tier;
  operator: boolean;
  key_id: string | null;
  key_name: string | null;
  scopes: string[];
  project_id: string | null;
  expires_at: string;
  version: string;
}

/** A row of the audit log. */
export interface AuditEntry {
  sequence: string;
  at: string;
  action: string;
  summary: string;
  actor: { type: string; key_id?: string | null; key_name?: string | null; user_id?: string | null };
  project_id: string | null;
  target: { type: string; id: string } | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  ip?: string | null;
  user_agent?: string | null;
  request_id: string | null;
}

/** What there is at a glance; an area that may not be read is left out. */
export interface Overview {
  meter?: { balance: number; meters: number };
  projects?: { total: number };
  keys?: { total: number; ending_soon: number };
  gate?: { total: number; on: number };
  latch?: { held: number; waiting: number };
  pulse?: { total: number; up: number; down: number };
  relay?: { scheduled: number; failed: number };
  catch?: { pending: number; failed: number; delivered: number };
  witness?: { receipts: number; buffered: number };
  incidents_open: number;
  recent: AuditEntry[];
}

/** A tenant meter in the list of them. */
export interface MeterItem {
  meter_id: string;
  balance: number;
  available?: number;
  updated_at: string;
}

/** A lock that is held. */
export interface HeldLock {
  key: string;
  fencing_token: number;
  acquired_at: number;
  expires_at: number;
  queue_depth: number;
}

/** A file of the folder of backups. */
export interface BackupFile {
  name: string;
  size: number;
  created_at: string;
}

/** How the server is. */
export interface ServerStatus {
  version: string;
  started_at: string;
  [name: string]: unknown;
}

type AuditQuery = PageQuery & {
  action?: string | undefined;
  actor?: string | undefined;
  target_type?: string | undefined;
  target_id?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
};

interface Page {
  cursor?: string | null;
}

/** Method and path of each, in the form of the generated list. */
export const PENDING = {
  "session.create": "POST /v1/session" as Route<Session, never, { key: string } | { link: string }>,
  "session.read": "GET /v1/session" as Route<{ session: Session | null }>,
  "session.end": "DELETE /v1/session" as Route<undefined>,
  "sessions.end": "DELETE /v1/sessions" as Route<{ ended: number }>,
  "overview.read": "GET /v1/overview" as Route<Overview>,
  "audit.list": "GET /v1/audit" as Route<Page & { entries: AuditEntry[] }, never, undefined, AuditQuery>,
  "meter.list": "GET /v1/meter" as Route<
    Page & { meters: MeterItem[] },
    never,
    undefined,
    PageQuery & { prefix?: string | undefined }
  >,
  "latch.list": "GET /v1/latch" as Route<Page & { locks: HeldLock[] }, never, undefined, PageQuery>,
  "latch.force": "POST /v1/latch/{key}/force-release" as Route<
    { status: "released" },
    "key",
    { fencing_token: number }
  >,
  "admin.backups.list": "GET /v1/admin/backups" as Route<{ backups: BackupFile[] }>,
  "admin.backups.create": "POST /v1/admin/backups" as Route<unknown>,
  "admin.status": "GET /v1/admin/status" as Route<ServerStatus>,
};
