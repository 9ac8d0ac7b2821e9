import { StartupError } from "../../../kernel/errors.ts";
import { isoTime, parseDateTime } from "../../../kernel/time/date-time.ts";
import { columnName, parseCsv, recordsOf } from "../csv.ts";
import { isObject, looksLikeJson, parseJson } from "../source.ts";

/** A confirmed address, as a request has it. */
export interface ImportedAddress {
  readonly email: string;
  readonly confirmed_at?: string;
}

/** The addresses of a file, and how many others it has, by the reason. */
export interface ReadSubscribers {
  readonly addresses: readonly ImportedAddress[];
  readonly skipped: Readonly<Record<string, number>>;
}

const EMAIL_COLUMNS = ["email", "email_address", "e_mail", "address"];
const TIME_COLUMNS = ["confirmed_at", "created_at", "subscribed_at", "joined_at", "created"];
/** Values with which a column says that an address must get no e-mail. */
const UNCONFIRMED = new Set(["unconfirmed", "pending", "invited"]);
const FAILED = new Set(["quarantined", "bounced", "unsubscribed", "purged"]);
/** Longest address that is sent to a server, with what stands around it. */
const LENGTH_MAX = 300;

/**
 * Reads subscribers: the response of Statuspage's API, its table, the template with which it imports them, or one address a line.
 * A confirmation after `now`, epoch milliseconds, has no time.
 * @throws StartupError if there is no address
 */
export function readSubscribers(text: string, path: string, now: number): ReadSubscribers {
  const records = looksLikeJson(text)
    ? jsonRecords(parseJson(text, path))
    : tableRecords(parseCsv(text, path));
  const addresses = new Map<string, ImportedAddress>();
  const skipped: Record<string, number> = {};
  const skip = (reason: string) => {
    skipped[reason] = (skipped[reason] ?? 0) + 1;
  };
  for (const record of records) {
    const reason = reasonToSkip(record);
    const email = emailOf(record);
    if (reason !== null) skip(reason);
    else if (email === null) skip("without an e-mail address");
    else if (addresses.has(email.toLowerCase())) skip("the same address again");
    else addresses.set(email.toLowerCase(), addressOf(record, email, now));
  }
  if (addresses.size === 0 && records.length === 0) throw new StartupError(`${path} has no subscribers.`);
  return { addresses: [...addresses.values()], skipped };
}

type Row = Readonly<Record<string, unknown>>;

function jsonRecords(value: unknown): readonly Row[] {
  const list = isObject(value) ? value["subscribers"] : value;
  if (!Array.isArray(list)) throw new StartupError('Subscribers must be a list, or {"subscribers": […]}.');
  return list.map((item) => (isObject(item) ? item : { email: item }));
}

function tableRecords(rows: string[][]): readonly Row[] {
  const names = (rows[0] ?? []).map(columnName);
  const isHead = names.some((name) => EMAIL_COLUMNS.includes(name)) && !(rows[0] ?? []).some(isAddress);
  if (isHead) return recordsOf(rows);
  // Without a head: a way and an address, as in the template, or the address alone.
  return rows.map((row) => {
    const [way = ""] = row;
    const mode = /^(email|sms|webhook|slack|teams)$/i.test(way.trim()) ? way.trim() : null;
    return { mode, email: row.find(isAddress) ?? (mode === null ? way : "") };
  });
}

function isAddress(cell: string): boolean {
  return cell.includes("@");
}

function emailOf(record: Row): string | null {
  for (const name of EMAIL_COLUMNS) {
    const value = record[name];
    if (typeof value === "string" && value.trim() !== "") return value.trim().slice(0, LENGTH_MAX);
  }
  return null;
}

function reasonToSkip(record: Row): string | null {
  const of = (...names: string[]) =>
    names
      .map((name) =>
        String(record[name] ?? "")
          .trim()
          .toLowerCase(),
      )
      .find((value) => value !== "") ?? "";
  const mode = of("mode", "type", "subscriber_type");
  if (mode !== "" && mode !== "email") return `${mode.slice(0, 20)} in place of e-mail`;
  const state = of("state", "status", "confirmation_status");
  const confirmed = of("confirmed", "is_confirmed");
  if (UNCONFIRMED.has(state) || confirmed === "false" || confirmed === "no") return "not confirmed";
  if (FAILED.has(state)) return state;
  return of("quarantined_at") === "" ? null : "quarantined";
}

function addressOf(record: Row, email: string, now: number): ImportedAddress {
  for (const name of TIME_COLUMNS) {
    const value = record[name];
    const text = typeof value === "string" ? value.trim() : "";
    const time = parseDateTime(text) ?? parseDateTime(`${text.replace(" ", "T").replace(/ ?UTC$/, "")}Z`);
    if (time !== null && time <= now) return { email, confirmed_at: isoTime(time) };
  }
  return { email };
}
