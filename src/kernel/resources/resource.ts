import {
  type Static,
  type TObject,
  type TProperties,
  type TSchema,
  type TString,
  Type,
} from "@sinclair/typebox";
import { changed } from "../audit/change.ts";
import { idParams, NextCursor, named } from "../data/schema.ts";
import { prefixedId } from "../data/uuid.ts";
import { ApiError, type ErrorCode } from "../errors.ts";
import type { Method } from "../http/api.ts";
import type { OperationSpec } from "../http/operation.ts";
import type { Call } from "../http/requests/call.ts";
import { pageOf, pageQuery, pageStart } from "../http/requests/pagination.ts";
import type { FileFacts, ResourceFacts } from "../http/resource-facts.ts";
import { reply, withJson } from "../http/responses/response.ts";
import type { Ids } from "../ids.ts";
import type { AuditChange, Fields, Tx } from "../storage/tx.ts";
import type { Done, ResourceContext, ResourceDeclaration, VerbSpec } from "./declaration.ts";
import { MANAGED, type ManagedBy, managedView, SECRET_DIGEST } from "./managed.ts";
import type { ResourceRow } from "./table.ts";

/** The input of a request, which its schemas have checked. */
export interface Input {
  readonly call: Call;
  readonly params: Readonly<Record<string, string>>;
  readonly query: object;
  readonly body: object;
}

/** An operation of a resource. */
export interface ResourceOperation {
  readonly method: Method;
  readonly path: string;
  readonly op: OperationSpec;
  readonly schemas: {
    readonly params?: TObject<Record<string, TString>>;
    readonly query?: TObject;
    readonly body?: TObject;
    readonly response: TSchema | Readonly<Record<number, TSchema>>;
  };
  readonly handler: (input: Input) => unknown;
}

/** Declares a resource: {@link resourceRoutes} makes its operations. */
export function resource<
  Row extends ResourceRow,
  View extends TObject,
  Body extends TObject,
  Patch extends TObject,
  ListRow extends ResourceRow = Row,
  Item extends TObject = View,
  Filters extends TProperties = Record<never, never>,
  Creation = Static<Body>,
  Change = Static<Patch>,
  Raw extends string = never,
>(
  ids: Ids,
  declaration: ResourceDeclaration<Row, ListRow, View, Item, Filters, Body, Patch, Creation, Change, Raw>,
) {
  const { store, title, type, name, limit, path, list, raw, secrets } = declaration;
  const file = fileFacts(declaration);
  const shownMore = { ...(file && MANAGED), ...(secrets && SECRET_DIGEST) };
  const schema = extended(declaration.schema, shownMore);
  const itemSchema = list.item === undefined ? schema : extended(list.item, shownMore);
  type Shown = Omit<Static<View>, Raw>;
  let nextRef = store.highestRef() + 1;

  /** The number and the id of a new row. */
  function identify(): Pick<ResourceRow, "ref" | "id"> {
    return { ref: nextRef++, id: prefixedId(declaration.idPrefix, ids.uuidV7()) };
  }
  /** @throws ApiError `not_found`, also for a row of another project. */
  function find(projectRef: number, id: string): Row {
    const row = store.find(id);
    if (row !== null && row.projectRef === projectRef) return row;
    throw new ApiError("not_found", `There is no ${title} with this id in this project.`);
  }
  function assertNameFree(row: Row): void {
    if (name.taken === null) return;
    const holder = name.holder(row);
    if (holder === null || holder.ref === row.ref) return;
    throw new ApiError(name.taken, name.message(holder), { extras: name.extras?.(holder) ?? {} });
  }
  function auditedFields(shown: Shown, row: Row, done: Done): Fields {
    if (declaration.audited !== undefined) return declaration.audited(shown, row, done);
    const { id, created_at, updated_at, ...settings } = shown as Record<string, unknown>;
    return settings;
  }
  function audited(row: Row, done: Done, before: Fields | null, after: Fields | null): AuditChange {
    return { summary: declaration.summary(row, done), target: { type, id: row.id }, before, after };
  }
  /** What every resource shows beside its own fields. */
  function moreOf(row: ResourceRow, { caller }: ResourceContext): object {
    const digest = secrets?.digests.of(caller, declaration.access.area, row.id, secrets.of(row as Row));
    return { ...managedView(row.managedBy), ...digest };
  }
  function responseOf(context: ResourceContext, status: 200 | 201, summary: Shown, row: Row): object {
    const shown = { ...summary, ...moreOf(row, context) };
    if (raw !== undefined) return withJson(status, shown, raw.field as never, raw.json(row));
    return status === 200 ? shown : reply(status, shown);
  }

  function pageFor(
    context: ResourceContext,
    query: Static<TObject<Filters>> & { limit?: number; cursor?: string },
  ): object {
    const { limit: items = list.limit, cursor } = query;
    const page = { before: pageStart(cursor), rowsMax: items + 1 };
    const { ref: projectRef } = context.caller.project;
    const rows = list.rows?.(context, page, query) ?? store.page(projectRef, page.before, page.rowsMax);
    const { items: shown, ...next } = pageOf<ResourceRow>(rows, items, ({ ref }) => [ref]);
    const view = (list.view ?? declaration.view) as (row: ResourceRow, context: ResourceContext) => object;
    return { [list.key]: shown.map((row) => ({ ...view(row, context), ...moreOf(row, context) })), ...next };
  }
  function read(context: ResourceContext, id: string): object {
    const row = find(context.caller.project.ref, id);
    const view = declaration.read.view ?? declaration.view;
    return responseOf(context, 200, view(row, context), row);
  }
  function create(context: ResourceContext, fields: Creation, managedBy: ManagedBy): object {
    const { tx, caller } = context;
    const owner = { accountRef: caller.account.ref, projectRef: caller.project.ref };
    const identity = { ...identify(), ...owner, managedBy, createdAt: tx.now, updatedAt: tx.now };
    const row = declaration.create.row(context, fields, identity);
    assertNameFree(row);
    limit?.assertCapacity(caller);
    store.insert(tx, row);
    declaration.create.created?.(context, row, fields);
    const after = find(row.projectRef, row.id);
    const shown = declaration.view(after, context);
    tx.audit(audited(after, "created", null, auditedFields(shown, after, "created")));
    return responseOf(context, 201, shown, after);
  }
  function change(context: ResourceContext, id: string, fields: Change): object {
    const { tx, caller } = context;
    const before = find(caller.project.ref, id);
    // What the row shows may depend on others, which the change is about to replace.
    const was = auditedFields(declaration.view(before, context), before, "changed");
    const row = declaration.change.row(context, before, fields);
    assertNameFree(row);
    store.update(tx, row);
    declaration.change.changed?.(context, row, fields, before);
    const after = find(row.projectRef, id);
    const shown = declaration.view(after, context);
    const entry = audited(after, "changed", was, auditedFields(shown, after, "changed"));
    tx.audit(declaration.change.isHidden?.(fields) === true ? entry : changed(entry));
    return responseOf(context, 200, shown, after);
  }
  function remove(context: ResourceContext, id: string): void {
    const { tx, caller } = context;
    const row = find(caller.project.ref, id);
    const was = auditedFields(declaration.view(row, context), row, "deleted");
    if (declaration.delete?.remove === undefined) store.remove(tx, row.ref);
    else declaration.delete.remove(context, row);
    tx.audit(audited(row, "deleted", was, null));
  }

  /** Runs work on the body, as `prepare` returns it, in one unit of work. */
  function perform(
    { prepare }: { prepare?(body: object, call: Call): unknown },
    { call, body }: Input,
    work: (context: ResourceContext, fields: unknown) => object,
  ): Promise<object> {
    const run = (fields: unknown) => call.perform((tx) => work(contextOf(tx, call), fields));
    const fields = prepare?.(body, call) ?? body;
    return fields instanceof Promise ? fields.then(run) : run(fields);
  }
  const specOf = (verb: string, spec: VerbSpec, ...implied: (ErrorCode | null | undefined)[]) =>
    operationSpec(declaration, verb, spec, implied);
  const idOf = ({ params }: Input): string => params[`${type}_id`] ?? "";
  const params = idParams(type);
  const onePath = `${path}/:${type}_id`;
  const items = Type.Array(itemSchema);
  const createBody = extended(declaration.create.body, file === null ? {} : MANAGED);

  const operations: ResourceOperation[] = [
    {
      method: "GET",
      path,
      op: specOf("list", list),
      schemas: {
        query: Type.Object({ ...list.filters, ...pageQuery(list.limit).properties }),
        response: named(list.schema, { [list.key]: items, cursor: NextCursor }),
      },
      handler: ({ call, query }) => call.read((tx) => pageFor(contextOf(tx, call), query as never)),
    },
    {
      method: "GET",
      path: onePath,
      op: specOf("read", declaration.read, "not_found"),
      schemas: { params, response: schema },
      handler: (input) => input.call.read((tx) => read(contextOf(tx, input.call), idOf(input))),
    },
    {
      method: "POST",
      path,
      op: { ...specOf("create", declaration.create, limit?.code, name.taken), ...(file && { file }) },
      schemas: { body: createBody, response: { 201: schema } },
      handler(input) {
        const { managed_by: managedBy = null, ...body } = input.body as { managed_by?: "apply" };
        return perform(declaration.create, { ...input, body }, (context, fields) =>
          create(context, fields as Creation, managedBy),
        );
      },
    },
    {
      method: "PATCH",
      path: onePath,
      op: specOf(declaration.change.verb, declaration.change, "not_found", name.taken),
      schemas: { params, body: declaration.change.body, response: schema },
      handler: (input) =>
        perform(declaration.change, input, (context, fields) =>
          change(context, idOf(input), fields as Change),
        ),
    },
  ];
  if (declaration.delete !== null) {
    const { schema: deleted } = declaration.delete;
    operations.push({
      method: "DELETE",
      path: onePath,
      op: specOf("delete", declaration.delete, "not_found"),
      schemas: { params, response: deleted ?? { 204: Type.Object({}) } },
      handler: (input) =>
        input.call.perform((tx) => {
          remove(contextOf(tx, input.call), idOf(input));
          return deleted === null ? reply(204, {}) : { deleted: true };
        }),
    });
  }
  return { facts: declaration as ResourceFacts, operations, identify, find };
}

/** How the resource stands in a configuration file. */
function fileFacts({ file, list, name }: ResourceFacts): FileFacts | null {
  return file === null ? null : { section: list.key, name: name.field, ...file };
}

/** A schema with further properties, under the same name. */
function extended(schema: TObject, more: TProperties): TObject {
  if (Object.keys(more).length === 0) return schema;
  const { properties, required: _, ...options } = schema;
  return Type.Object({ ...properties, ...more }, options);
}

function contextOf(tx: Tx, call: Call): ResourceContext {
  return { tx, call, caller: call.caller };
}

/** `implied`: the errors that follow from the declaration. */
function operationSpec(
  facts: ResourceFacts,
  verb: string,
  { summary, description, example, errors = [], bodyLimits, role, secret }: VerbSpec,
  implied: readonly (ErrorCode | null | undefined)[],
): OperationSpec {
  const { area, ...charged } = facts.access;
  const isRead = verb === "list" || verb === "read";
  return {
    name: `${facts.operations}.${verb}`,
    summary,
    ...(description === undefined ? {} : { description }),
    ...(example === undefined ? {} : { example }),
    ...(bodyLimits === undefined ? {} : { bodyLimits }),
    ...(role === undefined ? {} : { role }),
    ...(secret === undefined ? {} : { secret }),
    access: `${area}:${isRead ? "read" : "write"}`,
    ...charged,
    audit: isRead ? "no" : "yes",
    errors: [...implied.filter((code) => code != null), ...errors],
    resource: facts,
  };
}
