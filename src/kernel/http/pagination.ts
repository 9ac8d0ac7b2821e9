import { type TObject, Type } from "@sinclair/typebox";
import { invalidField } from "../errors.ts";
import type { Vault } from "../secrets/vault.ts";
import type { Caller, Operation } from "./caller.ts";

/** Largest page of every list. */
export const PAGE_LIMIT_MAX = 100;
/** Longest cursor that is looked at: ours are far shorter. */
const CURSOR_LENGTH_MAX = 256;

/** What stands beside the items of a page when there are more. */
export const NextCursor = Type.Optional(
  Type.String({
    description: "Hand it in to get the next page. Absent on the last one.",
    examples: ["eyJhIjo0Mn0"],
  }),
);

/** The query of a list. `limitDefault` differs between lists. */
export function pageQuery(limitDefault: number) {
  return Type.Object({
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: PAGE_LIMIT_MAX,
        default: limitDefault,
        errorMessage: `must be an integer from 1 to ${PAGE_LIMIT_MAX}`,
        description: "How many items to return at most.",
      }),
    ),
    cursor: Type.Optional(
      Type.String({ maxLength: CURSOR_LENGTH_MAX, description: "The `cursor` of the page before." }),
    ),
  });
}

/**
 * Seals the cursors of a list on their way out, and opens them on their way in: positions are numbers of rows, which all
 * accounts share. A cursor holds in the project and the list that it was given for, and nowhere else.
 */
export class SealedCursors {
  constructor(
    private readonly vault: Vault,
    private readonly list: string,
  ) {}

  /** The query with its cursor opened, if it has one. @throws ApiError `validation_error` when it is not of this list. */
  open<Q extends object>(query: Q, caller: Caller): Q {
    if (!("cursor" in query) || typeof query.cursor !== "string") return query;
    const sealed = Buffer.from(query.cursor, "base64url");
    // Decoding passes over characters that have no place there: one spelling per cursor is ours.
    if (sealed.toString("base64url") !== query.cursor) throw badCursor();
    try {
      return { ...query, cursor: this.vault.open(sealed, this.contextFor(caller)) };
    } catch {
      throw badCursor();
    }
  }

  /** The answer with its cursor sealed, if it has one. */
  seal(answer: object, caller: Caller): object {
    if (!("cursor" in answer) || typeof answer.cursor !== "string") return answer;
    const sealed = this.vault.seal(answer.cursor, this.contextFor(caller));
    return { ...answer, cursor: Buffer.from(sealed).toString("base64url") };
  }

  private contextFor({ account, project }: Caller): string {
    return `cursor:${this.list}:${account.ref}:${project.ref}`;
  }
}

/** What seals the cursors of an operation with this query; null when it is no list, or says that its cursors are open. */
export function cursorsOf(
  { name, openCursor }: Operation,
  query: TObject | undefined,
  vault: Vault,
): SealedCursors | null {
  if (query?.properties["cursor"] === undefined || openCursor) return null;
  return new SealedCursors(vault, name);
}

/** The cursor for a position, as it is before it is sealed: its numbers and texts, base64url. */
export function encodeCursor(position: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(position)).toString("base64url");
}

/**
 * The number behind a cursor of one number.
 * @throws ApiError `validation_error` when the cursor is not one of ours.
 */
export function decodeNumberCursor(cursor: string): number {
  const [value, ...rest] = decodeCursor(cursor);
  if (typeof value !== "number" || rest.length > 0 || !Number.isSafeInteger(value)) throw badCursor();
  return value;
}

/**
 * The position behind a cursor.
 * @throws ApiError `validation_error` when the cursor is not one of ours.
 */
export function decodeCursor(cursor: string): (string | number)[] {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch {
    throw badCursor();
  }
  if (!Array.isArray(value) || !value.every(isCursorPart)) throw badCursor();
  // Decoding passes over characters that have no place there: one spelling per position is ours.
  if (encodeCursor(value) !== cursor) throw badCursor();
  return value;
}

function isCursorPart(part: unknown): part is string | number {
  return typeof part === "string" || typeof part === "number";
}

/** A page out of `limit + 1` rows: the items, and the cursor when there are more. */
export function pageOf<Row>(
  rows: readonly Row[],
  limit: number,
  position: (row: Row) => readonly (string | number)[],
): { items: readonly Row[]; cursor?: string } {
  const last = rows[limit - 1];
  if (rows.length <= limit || last === undefined) return { items: rows };
  return { items: rows.slice(0, limit), cursor: encodeCursor(position(last)) };
}

function badCursor() {
  return invalidField("cursor", "is not a cursor of this list: use the one that the page before gave");
}
