import type { LoggedEntry } from "../../../src/cluster/commit-log.ts";
import { decodeEntry, forEachPage, PAGE_BYTES } from "../../../src/kernel/storage/replication/entry.ts";
import { PAGES } from "./paged-file.ts";
import type { AccountState, Operation } from "./server.ts";
import { Violation } from "./world.ts";

/** A request of a client, and what came of it. */
export interface Call {
  readonly operation: Operation;
  readonly sentAt: number;
  /** Null: no response, so that its outcome is unknown. */
  response: { readonly at: number; readonly state: AccountState } | null;
}

/**
 * Whether the responses are those of one machine that does one thing after another. Each change of an account counts up, and has a
 * digest of all changes so far: so their order is known.
 */
export function assertLinearizable(calls: readonly Call[]): void {
  for (let account = 1; account < PAGES; account += 1) {
    const ofAccount = calls.filter(({ operation }) => operation.account === account);
    const sent = new Map(ofAccount.map((call) => [call.operation.id, call]));
    const digests = new Map<number, number>();
    const makers = new Map<number, string>();
    const responded = ofAccount.flatMap(({ operation, sentAt, response }) =>
      response === null ? [] : [{ operation, sentAt, ...response }],
    );
    for (const { operation, at, state } of responded) {
      const { value, by, digest } = state;
      const where = `account ${account}, value ${value} at ${at} (${operation.id})`;
      if (value > 0 && (digests.get(value) ?? digest) !== digest)
        throw new Violation("linearizable", `two histories lead to ${where}`);
      digests.set(value, digest);
      if (value > 0 && (sent.get(by)?.sentAt ?? Number.POSITIVE_INFINITY) > at)
        throw new Violation("linearizable", `nobody had sent ${by}: ${where}`);
      if (operation.kind === "read") continue;
      if (makers.has(value))
        throw new Violation("linearizable", `${makers.get(value)} has it, too: ${where}`);
      makers.set(value, operation.id);
    }
    assertOrder(responded, account);
  }
}

/** Each response shows everything that had been told to anybody before its request was sent. */
function assertOrder(
  responded: readonly { operation: Operation; sentAt: number; at: number; state: AccountState }[],
  account: number,
): void {
  const byEnd = responded.toSorted((a, b) => a.at - b.at);
  let next = 0;
  let known = 0;
  for (const { operation, sentAt, state } of responded.toSorted((a, b) => a.sentAt - b.sentAt)) {
    for (let end = byEnd[next]; end !== undefined && end.at < sentAt; end = byEnd[next]) {
      known = Math.max(known, end.state.value);
      next += 1;
    }
    const least = operation.kind === "read" ? known : known + 1;
    if (state.value < least)
      throw new Violation(
        "linearizable",
        `${operation.kind} ${operation.id} of account ${account}, sent at ${sentAt}, shows ${state.value} after ${known} was told`,
      );
  }
}

/** Locks are not given to two holders within their time. `tolerance`: part of it that clocks may take. */
export function assertLocks(calls: readonly Call[], tolerance: number): void {
  for (let account = 1; account < PAGES; account += 1) {
    const grants = calls
      .filter(
        ({ operation, response }) => operation.account === account && operation.kind === "lock" && response,
      )
      .toSorted((a, b) => (a.response?.at ?? 0) - (b.response?.at ?? 0));
    for (const [index, { response, operation }] of grants.entries()) {
      const before = grants[index - 1];
      if (before === undefined || response === null) continue;
      const afterMs = response.at - before.sentAt;
      if (afterMs < before.operation.lockMs * (1 - tolerance))
        throw new Violation(
          "locks",
          `${operation.id} got the lock ${afterMs} ms after ${before.operation.id}, which holds it for ${before.operation.lockMs} ms`,
        );
    }
  }
}

/** What a log says that a database must be. */
export class Truth {
  readonly entries = new Map<number, LoggedEntry>();
  private image = emptyImage();
  private imageSeq = 0;

  constructor(
    private readonly key: Uint8Array,
    private readonly schema: number,
  ) {}

  note(entry: LoggedEntry): void {
    this.entries.set(entry.seq, entry);
  }

  /** The engine has lost everything from this place on. */
  forgetFrom(seq: number): void {
    for (const there of this.entries.keys()) if (there >= seq) this.entries.delete(there);
    if (this.imageSeq >= seq) this.restart();
  }

  /** The pages after an entry; null where that is not known. */
  imageAt(seq: number): readonly Uint8Array[] | null {
    if (seq < this.imageSeq || this.imageSeq === 0) this.restart();
    for (let next = this.imageSeq + 1; next <= seq; next += 1) {
      const entry = this.entries.get(next);
      if (entry === undefined) return null;
      forEachPage(this.payloadOf(entry), (page, content) => {
        this.image[page - 1] = content;
      });
      this.imageSeq = next;
    }
    return this.image;
  }

  private payloadOf({ parts, seq }: LoggedEntry): Uint8Array {
    try {
      return decodeEntry(parts, this.key).payload;
    } catch (error) {
      throw new Violation("pages", `entry ${seq} of the log cannot be read: ${error}`);
    }
  }

  private restart(): void {
    this.image = emptyImage();
    const [first] = this.image;
    Buffer.from(first?.buffer ?? new ArrayBuffer(64)).writeUInt32BE(this.schema, 60);
    this.imageSeq = 0;
  }
}

function emptyImage(): Uint8Array[] {
  return Array.from({ length: PAGES }, () => new Uint8Array(PAGE_BYTES));
}

/** Whether a database is what its log says. */
export function assertPages(pages: readonly Uint8Array[], truth: readonly Uint8Array[], where: string): void {
  const differing = truth.findIndex(
    (page, index) => !Buffer.from(page).equals(pages[index] ?? new Uint8Array()),
  );
  if (differing >= 0 || pages.length !== truth.length)
    throw new Violation("pages", `page ${differing + 1} of ${where} was not written by its log`);
}
