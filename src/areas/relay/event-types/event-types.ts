import { parseNearly } from "../../../json-text.ts";
import { changed } from "../../../kernel/audit/change.ts";
import { slices } from "../../../kernel/background/time-slices.ts";
import type { Caller } from "../../../kernel/callers/caller.ts";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import { pageStart, pageWithin } from "../../../kernel/http/requests/pagination.ts";
import { type Reply, reply } from "../../../kernel/http/responses/response.ts";
import { type CompiledSchema, compileSchema } from "../../../kernel/json-schema/compile.ts";
import { type SchemaError, validate } from "../../../kernel/json-schema/validate.ts";
import { LruMap } from "../../../kernel/limits/lru-map.ts";
import type { Tiers } from "../../../kernel/limits/tiers.ts";
import { managedView } from "../../../kernel/resources/managed.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import { LIST_LIMIT } from "../deliveries/schema.ts";
import { NOTICE_PREFIX } from "../endpoints/registry.ts";
import { webhooksOf } from "./openapi.ts";
import {
  EXAMPLE_BYTES_MAX,
  type PortalEventTypePage,
  type RelayEventType,
  type RelayEventTypeBody,
  type RelayEventTypePage,
  type RelayEventTypeQuery,
  type RelayEventTypesImported,
  TYPE_DESCRIPTION_LENGTH_MAX,
} from "./schema.ts";
import type { EventTypeRow, EventTypeStore } from "./store.ts";

/** Types in memory: of most, only that messages are not checked by them. */
const REMEMBERED_MAX = 20_000;
/** Schemas in memory, up to some hundred kilobytes each. */
const COMPILED_MAX = 100;
/** Schemas and examples of a page, in characters. A longer page ends early. */
const PAGE_LENGTH_MAX = 512 * 1024;
/** Types of an import: each is some statements of one unit of work. */
export const IMPORTED_TYPES_MAX = 1_000;
/** Schemas and examples of an import, in characters: several webhooks may share a part of the document. */
export const IMPORTED_LENGTH_MAX = 4 * 1024 * 1024;
/** Hours of `invalid_24h`. */
const INVALID_HOURS = 24;

/** An error of a payload, as responses show it. */
export interface SchemaProblem {
  readonly field: string;
  readonly message: string;
}

/** The result of a check. */
export interface SchemaCheck {
  readonly problems: readonly SchemaProblem[];
  /** Whether the message must not be sent. */
  readonly isRejected: boolean;
}

const FITS: SchemaCheck = { problems: [], isRejected: false };

/** How messages of a type are checked. */
interface Checked {
  readonly isEnforced: boolean;
}

/** A save, checked. */
interface Prepared {
  readonly description: string | null;
  readonly enforce: boolean;
  readonly managed_by: EventTypeRow["managed_by"];
  /** JSON. */
  readonly schema: string | null;
  readonly example: string | null;
}

/** An import, read. */
interface PreparedImport {
  readonly ready: readonly { readonly name: string; readonly prepared: Prepared }[];
  readonly skipped: readonly { readonly name: string; readonly reason: string }[];
}

/**
 * Checks a type as far as its name and schema alone tell.
 *
 * @throws ApiError `validation_error` for a name of notices, and for a schema that cannot be used
 */
export function assertDescribable({ name, schema }: RelayEventTypeBody & { readonly name: string }): void {
  assertNotReserved(name);
  if (schema != null) compileSchema("schema", schema);
}

function assertNotReserved(name: string): void {
  if (!name.startsWith(NOTICE_PREFIX)) return;
  throw invalidField("name", `must not start with ${NOTICE_PREFIX}: these types are reserved for notices`);
}

const TYPE_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** The types of messages that projects describe. */
export class EventTypes {
  /** By project and name; null for a type that messages are not checked by. */
  private readonly known = new LruMap<string, Checked | null>(REMEMBERED_MAX);
  private readonly compiled = new LruMap<string, CompiledSchema>(COMPILED_MAX);

  constructor(private readonly deps: { readonly types: EventTypeStore; readonly tiers: Tiers }) {}

  /** Checks a save. @throws ApiError `validation_error` */
  async prepare(name: string, body: RelayEventTypeBody): Promise<Prepared> {
    assertNotReserved(name);
    const { description = null, schema = null, example = null, enforce = false, managed_by = null } = body;
    const compiled = schema === null ? null : compileSchema("schema", schema);
    const exampleText = example === null ? null : JSON.stringify(example);
    if (exampleText !== null && Buffer.byteLength(exampleText) > EXAMPLE_BYTES_MAX)
      throw invalidField("example", `must be at most ${EXAMPLE_BYTES_MAX} bytes as JSON`);
    if (compiled !== null && example !== null) {
      const problems = (await validate(compiled, example)).map((error) => problemOf("example", error));
      if (problems.length > 0) throw rejectedBy(problems);
    }
    return {
      description,
      enforce,
      managed_by,
      schema: schema === null ? null : JSON.stringify(schema),
      example: exampleText,
    };
  }

  /** Creates or replaces a type, and brings an archived one back. @throws ApiError `event_type_limit_exceeded` */
  save(
    tx: Tx,
    { account, project }: Caller,
    name: string,
    { enforce, managed_by, ...prepared }: Prepared,
  ): Reply<201, RelayEventType> | Reply<200, RelayEventType> {
    const { types, tiers } = this.deps;
    const before = types.find(project.ref, name);
    if (before === null || before.archived === 1) {
      const most = tiers[account.tier].eventTypes;
      if (types.count(project.ref, 0) >= most)
        throw new ApiError(
          "event_type_limit_exceeded",
          `Your tier allows ${most} event types in a project. Archive one, or move to a larger tier.`,
        );
    }
    types.save(tx, {
      ...prepared,
      name,
      enforce: enforce ? 1 : 0,
      archived: 0,
      managed_by: before === null ? managed_by : before.managed_by,
      created_at: before?.created_at ?? tx.now,
      updated_at: tx.now,
      projectRef: project.ref,
    });
    this.forget(tx, project.ref, name);
    const shown = this.read(project.ref, name, tx.now);
    const about = { target: { type: "event_type", id: name } };
    if (before === null) {
      tx.audit({ ...about, summary: `Event type ${name} created`, before: null, after: shown });
      return reply(201, shown);
    }
    const { updated_at: _, invalid_24h: __, ...after } = shown;
    const { updated_at: ___, invalid_24h: ____, ...shownBefore } = this.view(project.ref, before, tx.now);
    tx.audit(changed({ ...about, summary: `Event type ${name} changed`, before: shownBefore, after }));
    return reply(200, shown);
  }

  /** Reads the webhooks of an OpenAPI document, in time slices. */
  async prepareImport(document: object): Promise<PreparedImport> {
    const ready: PreparedImport["ready"][number][] = [];
    const skipped: PreparedImport["skipped"][number][] = [];
    let length = 0;
    for (const webhook of webhooksOf(document)) {
      if (slices.isOver) await slices.next();
      const { name } = webhook;
      if (ready.length >= IMPORTED_TYPES_MAX || length > IMPORTED_LENGTH_MAX)
        skipped.push({
          name,
          reason: "the document has too many webhooks, or they share too much: import it in parts",
        });
      else if ("reason" in webhook) skipped.push(webhook);
      else if (!TYPE_NAME.test(name))
        skipped.push({ name, reason: "the name must be 1 to 128 letters, digits, _, . and -" });
      else
        try {
          const { description, schema, example } = webhook;
          const imported = {
            description: description?.slice(0, TYPE_DESCRIPTION_LENGTH_MAX) ?? null,
            schema,
            example,
          };
          const prepared = await this.prepare(name, imported);
          ready.push({ name, prepared });
          length += (prepared.schema?.length ?? 0) + (prepared.example?.length ?? 0);
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          skipped.push({ name, reason: error.message });
        }
    }
    return { ready, skipped };
  }

  /** Saves the types of an import; `enforce` and archived types stay as they are. With `dry_run`, nothing is saved. */
  importAll(
    tx: Tx,
    caller: Caller,
    { ready, skipped }: PreparedImport,
    isDryRun: boolean,
  ): RelayEventTypesImported {
    const result: RelayEventTypesImported = {
      created: [],
      updated: [],
      unchanged: [],
      skipped: [...skipped],
    };
    const { types, tiers } = this.deps;
    let free = tiers[caller.account.tier].eventTypes - types.count(caller.project.ref, 0);
    for (const { name, prepared } of ready) {
      const before = types.find(caller.project.ref, name);
      const isSame =
        before?.description === prepared.description &&
        before.schema === prepared.schema &&
        before.example === prepared.example;
      if (isSame) result.unchanged.push(name);
      else if (before === null && free <= 0)
        result.skipped.push({ name, reason: "the tier's limit of event types is reached" });
      else {
        if (before === null) free -= 1;
        result[before === null ? "created" : "updated"].push(name);
        if (!isDryRun) this.saveImported(tx, caller, name, prepared, before);
      }
    }
    const { created, updated } = result;
    const isChange = !isDryRun && created.length + updated.length > 0;
    const target = { type: "event_type", id: "import" };
    const after = { created: created.length, updated: updated.length };
    tx.audit(isChange ? { summary: "Event types imported", target, before: null, after } : null);
    return result;
  }

  private saveImported(
    tx: Tx,
    { project }: Caller,
    name: string,
    { description, schema, example }: Prepared,
    before: EventTypeRow | null,
  ): void {
    this.deps.types.save(tx, {
      name,
      description,
      schema,
      example,
      enforce: before?.enforce ?? 0,
      archived: before?.archived ?? 0,
      managed_by: before?.managed_by ?? null,
      created_at: before?.created_at ?? tx.now,
      updated_at: tx.now,
      projectRef: project.ref,
    });
    this.forget(tx, project.ref, name);
  }

  /** A page of a project's types, newest first. @throws ApiError `validation_error` for a foreign cursor */
  list(projectRef: number, query: RelayEventTypeQuery, now: number): RelayEventTypePage {
    const { rows, ...next } = this.page(projectRef, query, () => true);
    return { event_types: rows.map((row) => this.view(projectRef, row, now)), ...next };
  }

  /** A page of the types that a portal link offers, newest first. @throws ApiError `validation_error` for a foreign cursor */
  offered(
    projectRef: number,
    query: Omit<RelayEventTypeQuery, "archived">,
    isOffered: (name: string) => boolean,
  ): PortalEventTypePage {
    const { rows, ...next } = this.page(projectRef, query, isOffered);
    return {
      event_types: rows.map(({ name, description, schema, example }) => ({
        name,
        description,
        schema: jsonValue(schema),
        example: jsonValue(example),
      })),
      ...next,
    };
  }

  /** @throws ApiError `not_found` */
  read(projectRef: number, name: string, now: number): RelayEventType {
    return this.view(projectRef, this.find(projectRef, name), now);
  }

  /** Archives a type: its messages are not checked any more. @throws ApiError `not_found` */
  archive(tx: Tx, { account, project }: Caller, name: string): void {
    const { types, tiers } = this.deps;
    const row = this.find(project.ref, name);
    if (row.archived === 1) {
      tx.audit(null);
      return;
    }
    types.archive(tx, tx.now, row.ref);
    types.removeArchived(tx, project.ref, tiers[account.tier].eventTypes);
    this.forget(tx, project.ref, name);
    const before = { archived: false };
    const target = { type: "event_type", id: name };
    tx.audit({ summary: `Event type ${name} archived`, target, before, after: { archived: true } });
  }

  /** The example of a type, as JSON; null without one. */
  exampleOf(projectRef: number, name: string): string | null {
    const row = this.deps.types.find(projectRef, name);
    return row?.archived === 0 ? row.example : null;
  }

  /**
   * What of a payload does not fit the schema of its type, in time slices: at most five errors, none for a type that is not checked.
   */
  async check(projectRef: number, type: string, value: () => unknown): Promise<SchemaCheck> {
    const checked = this.checkedBy(projectRef, type);
    if (checked === null) return FITS;
    const errors = await validate(this.schemaOf(projectRef, type), value());
    const problems = errors.map((error) => problemOf("payload", error));
    return { problems, isRejected: checked.isEnforced && problems.length > 0 };
  }

  /** Counts a message that was sent with errors. */
  countInvalid(tx: Tx, projectRef: number, type: string): void {
    this.deps.types.countInvalid(tx, projectRef, type, hourOf(tx.now));
  }

  /** Removes counts that are too old to be shown. Returns their number. */
  purge(tx: Tx, rowsMax: number): number {
    return this.deps.types.removeOldInvalid(tx, hourOf(tx.now) - INVALID_HOURS, rowsMax);
  }

  /** Removes rows of a deleted project. Returns their number. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    const { types } = this.deps;
    const removed = types.removeOfProject(tx, projectRef, rowsMax);
    return removed + types.removeInvalidOf(tx, projectRef, rowsMax - removed);
  }

  private page(
    projectRef: number,
    { archived = false, limit = LIST_LIMIT, cursor }: RelayEventTypeQuery,
    isShown: (name: string) => boolean,
  ): { readonly rows: readonly EventTypeRow[]; readonly cursor?: string } {
    const found = this.deps.types.page(projectRef, archived ? 1 : 0, pageStart(cursor), limit + 1);
    const { items, ...next } = pageWithin(
      found,
      { limit, lengthMax: PAGE_LENGTH_MAX },
      ({ schema, example }) => (schema?.length ?? 0) + (example?.length ?? 0),
      ({ ref }) => [ref],
    );
    return { rows: items.filter(({ name }) => isShown(name)), ...next };
  }

  private find(projectRef: number, name: string): EventTypeRow {
    const row = this.deps.types.find(projectRef, name);
    if (row !== null) return row;
    throw new ApiError("not_found", "There is no event type with this name in this project.");
  }

  private checkedBy(projectRef: number, type: string): Checked | null {
    return this.known.getOrAdd(keyOf(projectRef, type), () => {
      const row = this.deps.types.checked(projectRef, type);
      return row === null ? null : { isEnforced: row.enforce === 1 };
    });
  }

  private schemaOf(projectRef: number, type: string): CompiledSchema {
    return this.compiled.getOrAdd(keyOf(projectRef, type), () => {
      const schema = this.deps.types.checked(projectRef, type)?.schema ?? "true";
      return compileSchema("schema", parseNearly(schema));
    });
  }

  private forget(tx: Tx, projectRef: number, name: string): void {
    const key = keyOf(projectRef, name);
    const forget = (): void => {
      this.known.delete(key);
      this.compiled.delete(key);
    };
    forget();
    tx.onRollback(forget);
  }

  private view(
    projectRef: number,
    {
      name,
      description,
      schema,
      example,
      enforce,
      archived,
      created_at,
      updated_at,
      managed_by,
    }: EventTypeRow,
    now: number,
  ): RelayEventType {
    return {
      name,
      description,
      schema: jsonValue(schema),
      example: jsonValue(example),
      enforce: enforce === 1,
      archived: archived === 1,
      invalid_24h: this.deps.types.invalidSince(projectRef, name, hourOf(now) - INVALID_HOURS),
      created_at,
      updated_at,
      ...managedView(managed_by),
    };
  }
}

function keyOf(projectRef: number, name: string): string {
  return `${projectRef} ${name}`;
}

function hourOf(now: number): number {
  return Math.floor(now / HOUR_MS);
}

function jsonValue(json: string | null): object | null {
  return json === null ? null : (parseNearly(json) as object);
}

function problemOf(root: string, { path, message }: SchemaError): SchemaProblem {
  return { field: [root, ...path].join("."), message };
}

/** The error of a payload that does not fit its schema. */
export function rejectedBy(problems: readonly SchemaProblem[]): ApiError {
  const [first] = problems;
  const fields: Record<string, string[]> = {};
  for (const { field, message } of problems) fields[field] = [...(fields[field] ?? []), message];
  return new ApiError("validation_error", `${first?.field} ${first?.message}`, { fields });
}
