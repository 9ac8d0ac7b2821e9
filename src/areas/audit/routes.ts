import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import { textStream } from "../../kernel/http/responses/text-stream.ts";
import {
  AdminEntryQuery,
  AdminExportQuery,
  AuditEntry,
  AuditPage,
  EntryParams,
  EntryQuery,
  ExportQuery,
} from "./schema.ts";
import type { AuditService, Reader } from "./service.ts";

const READ = { access: "audit:read" } as const;
const ADMIN = { access: "operator" } as const;

const LIST_NOTE =
  "Each entry was written in the transaction of its change. Where no index leads to what is asked for, a page ends after 5,000 entries that were looked at, however few are on it, and one with 256 KiB of `before` and `after` ends there: continue with its `cursor`.";
const EXPORT = {
  responseTypes: ["application/x-ndjson", "text/csv"],
  errors: ["conflict"],
} as const;
const EXPORT_NOTE = "At most 1,000,000 entries; one export at a time per account.";

/** Declares the audit log: an account's own, and everybody's for the operator. */
export function auditRoutes(api: Api, audit: AuditService) {
  return [ownRoutes(api, audit), adminRoutes(api, audit)];
}

function ownRoutes(api: Api, audit: AuditService) {
  return new Elysia({ prefix: "/v1/audit", tags: ["Audit"] })
    .use(api)
    .get("", ({ call, query }) => audit.list(call.caller, query), {
      op: {
        ...READ,
        name: "audit.list",
        summary: "List who changed what, newest first",
        description: `A key of one project sees what was changed in it. ${LIST_NOTE}`,
      },
      query: EntryQuery,
      response: AuditPage,
    })
    .get("/export", ({ call, query }) => exported(call, audit, call.caller, query), {
      op: {
        ...READ,
        ...EXPORT,
        name: "audit.export",
        summary: "Download the audit log, oldest first",
        description: EXPORT_NOTE,
      },
      query: ExportQuery,
    })
    .get("/:sequence", ({ call, params }) => audit.get(call.caller, params.sequence), {
      op: { ...READ, name: "audit.read", summary: "Read one entry of the audit log", errors: ["not_found"] },
      params: EntryParams,
      response: AuditEntry,
    });
}

function adminRoutes(api: Api, audit: AuditService) {
  return new Elysia({ prefix: "/v1/admin/audit", tags: ["Operator"] })
    .use(api)
    .get("", ({ query }) => audit.list("operator", query), {
      op: {
        ...ADMIN,
        name: "admin.audit.list",
        summary: "List who changed what in all accounts, newest first",
        description: `With what the server did by itself. ${LIST_NOTE}`,
      },
      query: AdminEntryQuery,
      response: AuditPage,
    })
    .get("/export", ({ call, query }) => exported(call, audit, "operator", query), {
      op: {
        ...ADMIN,
        ...EXPORT,
        name: "admin.audit.export",
        summary: "Download the audit log of all accounts, oldest first",
        description: EXPORT_NOTE,
      },
      query: AdminExportQuery,
    })
    .get("/:sequence", ({ params }) => audit.get("operator", params.sequence), {
      op: {
        ...ADMIN,
        name: "admin.audit.read",
        summary: "Read one entry of any account's audit log",
        errors: ["not_found"],
      },
      params: EntryParams,
      response: AuditEntry,
    });
}

const TYPES = { jsonl: "application/x-ndjson", csv: "text/csv; charset=utf-8" } as const;

function exported(call: Call, audit: AuditService, reader: Reader, query: AdminExportQuery) {
  const { format = "jsonl" } = query;
  const body = textStream(call, audit.export(call.caller, reader, query));
  const name = `attachment; filename="audit.${format}"`;
  return reply(200, body, { "content-type": TYPES[format], "content-disposition": name });
}
