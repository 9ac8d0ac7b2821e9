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
  "Each entry was stored in the transaction of its change. A page ends after 5,000 scanned entries, even if few of them match the filters, and after 256 KiB of `before` and `after`: continue with its `cursor`.";
const EXPORT = {
  responseTypes: ["application/x-ndjson", "text/csv"],
  errors: ["conflict"],
} as const;
const EXPORT_NOTE = "At most 1,000,000 entries; one export at a time per account.";

/** Declares the audit log of an account, and that of all accounts for the operator. */
export function auditRoutes(api: Api, audit: AuditService) {
  return [accountRoutes(api, audit), adminRoutes(api, audit)];
}

function accountRoutes(api: Api, audit: AuditService) {
  return new Elysia({ prefix: "/v1/audit", tags: ["Audit"] })
    .get(
      "",
      api.endpoint(
        {
          ...READ,
          name: "audit.list",
          summary: "List audit log entries, newest first",
          description: `A key of one project lists the changes in that project. ${LIST_NOTE}`,
          query: EntryQuery,
          response: AuditPage,
        },
        ({ call, query }) => audit.list(call.caller, query),
      ),
    )
    .get(
      "/export",
      api.endpoint(
        {
          ...READ,
          ...EXPORT,
          name: "audit.export",
          summary: "Download the audit log, oldest first",
          description: EXPORT_NOTE,
          query: ExportQuery,
        },
        ({ call, query }) => exported(call, audit, call.caller, query),
      ),
    )
    .get(
      "/:sequence",
      api.endpoint(
        {
          ...READ,
          name: "audit.read",
          summary: "Get an audit log entry",
          description:
            "Use it to link to an entry. Entries of other accounts are 404. A key of one project, or without the scope `*`, cannot read entries of other projects either.",
          errors: ["not_found"],
          params: EntryParams,
          response: AuditEntry,
        },
        ({ call, params }) => audit.get(call.caller, params.sequence),
      ),
    );
}

function adminRoutes(api: Api, audit: AuditService) {
  return new Elysia({ prefix: "/v1/admin/audit", tags: ["Operator"] })
    .get(
      "",
      api.endpoint(
        {
          ...ADMIN,
          name: "admin.audit.list",
          summary: "List audit log entries of all accounts, newest first",
          description: `Includes entries of the server itself. ${LIST_NOTE}`,
          query: AdminEntryQuery,
          response: AuditPage,
        },
        ({ query }) => audit.list("operator", query),
      ),
    )
    .get(
      "/export",
      api.endpoint(
        {
          ...ADMIN,
          ...EXPORT,
          name: "admin.audit.export",
          summary: "Download the audit log of all accounts, oldest first",
          description: EXPORT_NOTE,
          query: AdminExportQuery,
        },
        ({ call, query }) => exported(call, audit, "operator", query),
      ),
    )
    .get(
      "/:sequence",
      api.endpoint(
        {
          ...ADMIN,
          name: "admin.audit.read",
          summary: "Get an audit log entry of any account",
          description:
            "Finds entries of all accounts and of the server itself by their number. The entries of a deleted account are removed, so they are 404.",
          errors: ["not_found"],
          params: EntryParams,
          response: AuditEntry,
        },
        ({ params }) => audit.get("operator", params.sequence),
      ),
    );
}

const TYPES = { jsonl: "application/x-ndjson", csv: "text/csv; charset=utf-8" } as const;

function exported(call: Call, audit: AuditService, reader: Reader, query: AdminExportQuery) {
  const { format = "jsonl" } = query;
  const body = textStream(call, audit.export(call.caller, reader, query));
  const name = `attachment; filename="audit.${format}"`;
  return reply(200, body, { "content-type": TYPES[format], "content-disposition": name });
}
