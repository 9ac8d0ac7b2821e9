import { version } from "../../../package.json" with { type: "json" };
import { slices } from "../../kernel/background/time-slices.ts";
import type { TextSource } from "../../kernel/http/responses/text-stream.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import {
  AccountExporter,
  type ExportedTable,
  type ExportRecord,
} from "../../kernel/projects/account-export.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { accountExport } from "./export.ts";
import type { AccountActor } from "./ledger.ts";
import type { AccountContents } from "./removal.ts";
import type { AccountStore } from "./store.ts";

/** Version of the format: rises when a reader of earlier exports would misread a record. */
const EXPORT_FORMAT = 1;
/** Characters of a piece of text: a millisecond of work for small records. */
const PIECE_LENGTH = 64 * 1024;

interface ExportDeps extends Pick<Kernel, "db" | "clock"> {
  readonly store: AccountStore;
  readonly contents: () => Pick<AccountContents, "exports" | "projectExport">;
}

/** Exports accounts as JSON lines, read and rendered while they are sent. */
export class AccountExports {
  private readonly exporter: AccountExporter;
  private known: readonly ExportedTable[] | null = null;

  constructor(private readonly deps: ExportDeps) {
    this.exporter = new AccountExporter(deps.db);
  }

  /** The export of an account. It ends with an error if the account is deleted meanwhile. */
  source(account: AccountActor): TextSource {
    const records = this.records(account);
    return {
      next() {
        let text = "";
        do {
          const { value, done } = records.next();
          if (done === true) break;
          text += `${JSON.stringify(value)}\n`;
        } while (text.length < PIECE_LENGTH && !slices.isOver);
        return text === "" ? null : text;
      },
      end: () => void records.return(),
    };
  }

  /** Every table that is exported. */
  get tables(): readonly ExportedTable[] {
    const { exports, projectExport } = this.deps.contents();
    const all = [accountExport, ...exports];
    this.known ??= [
      ...all.flatMap(({ ofAccount = [] }) => ofAccount),
      projectExport(all.flatMap(({ ofProject = [] }) => ofProject)),
    ];
    return this.known;
  }

  private *records(account: AccountActor): Generator<ExportRecord, void, undefined> {
    const { ref, userId: user_id, email, tier, balance, suspended, createdAt } = account;
    const exported_at = isoTime(this.deps.clock.now());
    const counts = Object.fromEntries(this.deps.store.counts(ref).map(({ kind, count }) => [kind, count]));
    yield { type: "export", format: EXPORT_FORMAT, version, user_id, exported_at, counts };
    yield { type: "account", user_id, email, tier, balance, suspended, created_at: isoTime(createdAt) };
    let records = 1;
    for (const table of this.tables)
      for (const record of this.exporter.records(table, { ref })) {
        yield record;
        records += 1;
      }
    if (this.deps.store.refOfUser(user_id) !== ref)
      throw new Error("the account was deleted during its export");
    yield { type: "end", user_id, records };
  }
}
