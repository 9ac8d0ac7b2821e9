import { type TObject, Type } from "@sinclair/typebox";
import type { Caller } from "../../callers/caller.ts";
import { integer } from "../../data/schema.ts";
import { invalidField } from "../../errors.ts";
import type { Vault } from "../../secrets/vault.ts";
import type { Operation } from "../operation.ts";

/** Largest page of every list. */
export const PAGE_LIMIT_MAX = 100;
/** Longest cursor that is looked at: ours are far shorter. */
const CURSOR_LENGTH_MAX = 256;

/** The query of a list. `limitDefault` differs between lists. */
export function pageQuery(limitDefault: number) {
  return Type.Object({
    limit: Type.Optional(
      integer({
        min: 1,
        max: PAGE_LIMIT_MAX,
        default: limitDefault,
        description: "How many items to return at most.",
      }),
    ),
    cursor: Type.Optional(
      Type.String({ maxLength: CURSOR_LENGTH_MAX, description: "`cursor` from the previous response." }),
    ),
  });
}

/**
 * Seals the cursors of a list on their way out, and opens them on their way in: positions are numbers of rows, which all
 * accounts share. A cursor holds in the project and the list that it was given for, and nowhere else.
 */
export interface SealedCursors {
  /** The query with its cursor opened, if it has one. @throws ApiError `validation_error` when it is not of this list. */
  open(query: Record<string, unknown>, caller: Caller): Record<string, unknown>;
  /** The response with its cursor sealed, if it has one. */
  seal(response: object, caller: Caller): object;
}

/** What seals the cursors of an operation with this query; null when it is no list, or says that its cursors are open. */
export function cursorsOf(
  { name, openCursor }: Operation,
  query: TObject | undefined,
  vault: Vault,
): SealedCursors | null {
  if (query?.properties["cursor"] === undefined || openCursor) return null;
  const contextFor = ({ account, project }: Caller) => `cursor:${name}:${account.ref}:${project.ref}`;
  return {
    open(query, caller) {
      const { cursor } = query;
      if (typeof cursor !== "string") return query;
      const sealed = Buffer.from(cursor, "base64url");
      // Decoding passes over characters that have no place there: one spelling per cursor is ours.
      if (sealed.toString("base64url") !== cursor) throw badCursor();
      try {
        return { ...query, cursor: vault.open(sealed, contextFor(caller)) };
      } catch {
        throw badCursor();
      }
    },
    seal(response, caller) {
      if (!("cursor" in response) || typeof response.cursor !== "string") return response;
      const sealed = vault.seal(response.cursor, contextFor(caller));
      return { ...response, cursor: Buffer.from(sealed).toString("base64url") };
    },
  };
}

/** Where a page ends: the number of its last row, or the numbers of the last rows of the lists that it merges. */
export type Position = readonly number[];

/** The cursor for a position, as it is before it is sealed: base64url of its JSON. */
export function encodeCursor(position: Position): string {
  return Buffer.from(JSON.stringify(position)).toString("base64url");
}

/**
 * The position behind a cursor.
 * @throws ApiError `validation_error` when the cursor is not one of ours.
 */
export function decodeCursor(cursor: string): Position {
  const numbers = Buffer.from(cursor, "base64url").toString("utf8").slice(1, -1).split(",").map(Number);
  // One spelling per position is ours: whatever else reads as numbers does not come back as it was.
  if (!numbers.every(Number.isSafeInteger) || encodeCursor(numbers) !== cursor) throw badCursor();
  return numbers;
}

/**
 * The number behind a cursor.
 * @throws ApiError `validation_error` when the cursor is not one of ours.
 */
export function decodeNumberCursor(cursor: string): number {
  const [value, ...others] = decodeCursor(cursor);
  if (value === undefined || others.length > 0) throw badCursor();
  return value;
}

/**
 * The number below which a page of a list of falling numbers begins: the cursor's, or above all for the first page.
 * @throws ApiError `validation_error` when the cursor is not one of ours.
 */
export function pageStart(cursor: string | undefined): number {
  return cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeNumberCursor(cursor);
}

/** A page out of `limit + 1` rows: the items, and the cursor when there are more. */
export function pageOf<Row>(
  rows: readonly Row[],
  limit: number,
  position: (row: Row) => Position,
): { items: readonly Row[]; cursor?: string } {
  const last = rows[limit - 1];
  if (rows.length <= limit || last === undefined) return { items: rows };
  return { items: rows.slice(0, limit), cursor: encodeCursor(position(last)) };
}

/**
 * The same for rows with large texts: a page has at least one item, and ends before its texts together are longer than
 * `lengthMax` characters.
 */
export function pageWithin<Row>(
  rows: readonly Row[],
  { limit, lengthMax }: { readonly limit: number; readonly lengthMax: number },
  lengthOf: (row: Row) => number,
  position: (row: Row) => Position,
): { items: readonly Row[]; cursor?: string } {
  let length = 0;
  const end = rows.findIndex((row, index) => {
    length += lengthOf(row);
    return index > 0 && length > lengthMax;
  });
  return pageOf(rows, end === -1 ? limit : Math.min(end, limit), position);
}

function badCursor() {
  return invalidField("cursor", "is not a cursor of this list: use the one that the page before gave");
}
