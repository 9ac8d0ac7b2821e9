import { hash } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { removeLeftovers } from "../backup/files.ts";
import { type BackupProcess, startBackupProcess } from "../backup/process.ts";
import { errorText, StartupError } from "../kernel/errors.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { ENTRY_KEY_PURPOSE, type Entry } from "../kernel/storage/replication/entry.ts";
import type { EntrySource } from "../kernel/storage/replication/entry-source.ts";
import { epochAbove, type StoredPosition } from "../kernel/storage/replication/position.ts";
import { type Segment, Tail } from "../kernel/storage/replication/tail.ts";
import { type Cancel, monotonicMs, realDelay, realTimeout } from "../kernel/time/clock.ts";
import { DAY_MS, HOUR_MS } from "../kernel/time/units.ts";
import { type ConfirmedLog, readMissing } from "./continuation.ts";
import type { ArchiveEnd } from "./history.ts";
import type { NamedPosition } from "./names.ts";
import { type ArchiveSettings, archivePlace } from "./place.ts";
import type { FoundArchive, SegmentOutcome } from "./uploader.ts";
import { UploaderThread } from "./uploader-thread.ts";

/** Above this size the tail is dropped, and a new base replaces it: the disk of the server must not fill up. */
const TAIL_BYTES_MAX = 256 * 1024 * 1024;
/**
 * How long a start waits for an object store that it does not know, to reject one that cannot be used. Then the server starts
 * without it, and reports it.
 */
const START_WAIT_MS = 5_000;
/** How long a stop waits for the last objects. What is left then stays in the tail. */
const STOP_WAIT_MS = 5_000;
/** The same of a leader, which must have stopped after ten seconds: the next leader takes what is left from the commit log. */
const LEADER_STOP_WAIT_MS = 1_000;
/** Pause before a failed request is repeated; it doubles. */
const RETRY_MS = 1_000;
/** Longest pause before a failed upload is repeated. */
const RETRY_MS_MAX = 30_000;
/** Pause before a failed base is repeated. */
const BASE_RETRY_MS = 60_000;
/** Pause before a failed deletion of expired objects is repeated, at the next change: nothing depends on it. */
const EXPIRY_RETRY_MS = HOUR_MS;
/** Interval of bases: it limits the objects that a restore has to read. */
const BASE_INTERVAL_MS = DAY_MS;

/** The first line of the tail has space for an archive's name of this length, in characters; for a longer one its hash stands. */
const IDENTITY_LENGTH_MAX = 160;

/** The copy that becomes a base. */
const BASE_FILE = "ninefold.base-";
const BASE_COPY = /^ninefold\.base-\d{1,10}$/;

/** The state of the archive, for the operator. */
export interface ArchiveStatus {
  readonly url: string;
  /** Number of the history that is written; null: a leader does not know it yet. */
  readonly history: number | null;
  /** Age of the oldest change that is not archived; 0 if all are. */
  readonly lagSeconds: number;
  /** Bytes of the changes that are not archived, before they are merged. */
  readonly bytesWaiting: number;
  /** Time of the last archived change, in epoch milliseconds; null since the start of the server. */
  readonly archivedAt: number | null;
  /** Time of the newest base of this history; null if there is none yet: then nothing can be restored. */
  readonly baseAt: number | null;
  /** Error of the last attempt; null if it succeeded. */
  readonly lastError: string | null;
}

/** Replacements for tests. */
export interface ArchiveDeps {
  readonly tailBytesMax?: number;
  readonly uploadPartBytes?: number;
  readonly retryMs?: number;
  readonly baseRetryMs?: number;
  readonly keepMs?: number;
  readonly baseIntervalMs?: number;
  readonly expiryRetryMs?: number;
}

/**
 * Stores every change in an object store, at intervals, and a base from time to time. Requests never wait for it: what is
 * not archived yet stands in the tail.
 */
export class Archive {
  private readonly entries: EntrySource;
  private readonly folder: string;
  private readonly tail: Tail;
  private readonly uploader: UploaderThread;
  private readonly identity: string;
  private cancelTimer: Cancel | null = null;
  private cancelBaseTimer: Cancel | null = null;
  private making: BackupProcess | null = null;
  /** The work in progress; each runs alone. */
  private uploading: Promise<void> | null = null;
  private basing: Promise<void> | null = null;
  private finding: Promise<void> | null = null;
  private isFinding = false;
  private found = false;
  /** Number of the history in the names of a leader's objects; null: not known yet. */
  private continued: number | null = null;
  /** Whether the tail of a leader lacks entries that the archive lacks, too. */
  private needsNewHistory = false;
  /** Settles when the last entry of a leader is confirmed. */
  private confirmed: Promise<void> = Promise.resolve();
  /** Whether another node archives now, or a change of this one was rejected: this process archives nothing any more. */
  private isFenced = false;
  /** After each base, and after a start, since the deletion of an earlier process may have been interrupted. */
  private isExpiryDue = true;
  /** After a failed deletion: when it is repeated at the earliest (monotonic). */
  private expiryNotBefore = 0;
  /** Whether the file has the epoch of the tail: its first entry stores it. */
  private isStored = false;
  private stopped = false;
  private failures = 0;
  private lastError: string | null = null;
  private lastUploadAt = 0;
  /** When the oldest change was captured that is not archived (monotonic); null if all are. */
  private waitingSince: number | null = null;
  /** When the first entry of the current segment was captured. */
  private currentSince: number | null = null;
  private archivedAt: number | null = null;
  private base: StoredPosition | null = null;
  private rejection: StartupError | null = null;

  /** Before the first batch. `log`: that of the cluster whose leader this server is. @throws StartupError for an invalid URL. */
  constructor(
    private readonly kernel: Kernel,
    private readonly settings: ArchiveSettings,
    extraCaPath: string | null,
    private readonly deps: ArchiveDeps = {},
    private readonly log: ConfirmedLog | null = null,
  ) {
    if (kernel.entries === null) throw new Error("an archive needs entries");
    this.entries = kernel.entries;
    const place = archivePlace(settings);
    this.folder = dirname(kernel.db.path);
    const identity = `${place.bucket.endpoint} ${settings.url}${log === null ? "" : ` of ${log.id}`}`;
    this.identity = identity.length > IDENTITY_LENGTH_MAX ? hash("sha256", identity, "hex") : identity;
    this.tail = new Tail(join(this.folder, "ninefold.tail"));
    const key = kernel.vault.derive(ENTRY_KEY_PURPOSE);
    const { uploadPartBytes } = deps;
    this.uploader = new UploaderThread({
      place,
      key,
      extraCaPath,
      ...(uploadPartBytes && { uploadPartBytes }),
    });
    for (const name of readdirSync(this.folder))
      if (BASE_COPY.test(name)) rmSync(join(this.folder, name), { force: true });
    this.takeUp();
    this.entries.onEntry((entry) => this.take(entry));
  }

  /**
   * Begins to use the object store. Until it is known that the store can be used, a start waits for it, until its first
   * response or failure. Every later start is independent of it, and {@link status} reports what is wrong with the store. So is
   * that of a leader, for which others wait.
   *
   * @throws StartupError if the store cannot be used, and never could.
   */
  async start(): Promise<void> {
    this.finding = this.find();
    const silence = realDelay(START_WAIT_MS).then(() => this.noteSilence());
    if (this.tail.isUsable || this.log !== null) return;
    await Promise.race([this.finding, silence]);
    if (this.rejection !== null) throw this.rejection;
  }

  get status(): ArchiveStatus {
    const waited = this.waitingSince === null ? 0 : (monotonicMs() - this.waitingSince) / 1000;
    return {
      url: this.settings.url,
      history: this.history,
      lagSeconds: Math.max(0, waited),
      bytesWaiting: this.tail.bytes,
      archivedAt: this.archivedAt,
      baseAt: this.base?.at ?? null,
      lastError: this.lastError,
    };
  }

  /** All entries through this one are in the archive, as far as is known. */
  get archivedThrough(): number {
    // Nothing is archived any more, so nothing has to be kept for it.
    if (this.isFenced || this.rejection !== null) return Number.POSITIVE_INFINITY;
    return this.found ? this.tail.first - 1 : 0;
  }

  /** After the last batch: archives what is left, if the object store takes it now, and ends. */
  async finish(): Promise<void> {
    this.stopped = true;
    this.cancelTimer?.();
    this.cancelBaseTimer?.();
    await this.making?.end();
    const rest = async (): Promise<void> => {
      // A server that stops soon after its start archives nothing before the store has responded.
      if (!this.tail.isEmpty) await this.finding;
      await this.uploading;
      while (this.found && !this.isFenced && this.failures === 0 && !this.tail.isEmpty)
        await this.uploadAll();
    };
    await Promise.race([rest(), realDelay(this.log === null ? STOP_WAIT_MS : LEADER_STOP_WAIT_MS)]);
    this.uploader.end();
    this.tail.close();
    rmSync(this.basePath, { force: true });
  }

  private get basePath(): string {
    // With the process id: the backup of a server that was killed may still write its own.
    return join(this.folder, `${BASE_FILE}${process.pid}`);
  }

  /** Number of the history in the names of objects. */
  private get history(): number | null {
    return this.log === null ? this.tail.next.epoch : this.continued;
  }

  private get isOver(): boolean {
    return this.stopped || this.isFenced;
  }

  /**
   * Continues where the last start ended, if the tail and the file say the same; otherwise begins anew. A leader begins with the
   * first entry of its own: what the archive lacks before it, the commit log has.
   */
  private takeUp(): void {
    if (this.log !== null) {
      this.beginTail(this.log.seal.epoch, this.log.seal.seq + 1);
      return;
    }
    const { origin } = this.entries;
    const isOpen = this.tail.open(this.identity);
    const { originEntry } = this.entries;
    // Killed between a commit and its append: the log still has that one.
    if (isOpen && originEntry?.seq === this.tail.next.seq && originEntry.epoch === this.tail.next.epoch)
      this.tail.append(originEntry);
    const { epoch, seq } = this.tail.next;
    if (isOpen && origin !== null && origin.epoch === epoch && origin.seq + 1 === seq) {
      if (!this.tail.isEmpty) this.waitingSince = monotonicMs();
      this.isStored = true;
      return;
    }
    if (origin !== null)
      this.kernel.log.warn("the archive lacks changes of an earlier run: a new base is made", {
        seq: origin.seq,
      });
    this.beginAnew();
  }

  /** Begins a new history, for which a base will be made. The epoch of a leader's entries is that of its lease. */
  private beginAnew(epoch?: number): void {
    this.base = null;
    const { position } = this.entries;
    if (this.log === null) {
      this.isStored = false;
      this.beginTail(this.entries.beginEpoch(epoch), position.seq + 1);
      return;
    }
    this.needsNewHistory = true;
    this.continued = null;
    this.found = false;
    if (this.beginTail(position.epoch, position.seq + 1)) this.findAgain();
  }

  /** Whether the disk takes it. */
  private beginTail(epoch: number, seq: number): boolean {
    try {
      this.tail.begin(this.identity, { epoch, seq });
      this.waitingSince = null;
      this.currentSince = null;
      return true;
    } catch (error) {
      // The entries are not those that the tail expects, so that the next one begins anew again.
      this.note(`the tail of the archive cannot be written: ${errorText(error)}`);
      return false;
    }
  }

  /** Receives each entry directly after its COMMIT. */
  private take(entry: Entry): void {
    // A start's entry from before a new epoch is in its base.
    if (entry.epoch !== this.tail.next.epoch && this.tail.next.seq > entry.seq) return;
    if (this.isFenced) return;
    if (this.log !== null && this.entries.confirmation !== null) {
      const rejected = (): void => this.fence("a change of this node was not confirmed to any client");
      this.confirmed = this.entries.confirmation.then(() => undefined, rejected);
    }
    try {
      this.tail.append(entry);
    } catch (error) {
      this.note(`the tail of the archive cannot be written: ${errorText(error)}`);
      this.beginAnew();
      return;
    }
    this.isStored = true;
    this.currentSince ??= monotonicMs();
    this.waitingSince ??= this.currentSince;
    if (this.tail.bytes > (this.deps.tailBytesMax ?? TAIL_BYTES_MAX)) {
      this.note("the archive is too far behind: the changes that wait for it are replaced by a new base");
      this.beginAnew();
    }
    if (this.found) {
      this.arm();
      this.considerBase();
    }
  }

  /** Shows a problem, and logs it unless the last one was the same: a permanent reason may follow a temporary one. */
  private note(problem: string): void {
    if (this.lastError !== problem) this.kernel.log.error("the archive is behind", { error: problem });
    this.lastError = problem;
  }

  /** A store that accepts connections and sends nothing is reported before the timeout of its request. */
  private noteSilence(): void {
    const isSilent = !this.found && this.lastError === null;
    if (isSilent && !this.stopped) this.note("the object store has not responded yet");
  }

  /** Examines the archive. Resolves also after a failure; then it is repeated until the store responds. */
  private async find(attempt = 0): Promise<void> {
    this.isFinding = true;
    try {
      const found = await this.uploader.call<FoundArchive>("find", this.log?.id ?? null);
      if (this.log === null || !found.isConditional) this.accept(found);
      else await this.join(found, this.log);
      this.isFinding = false;
    } catch (error) {
      if (this.isOver) return;
      this.note(errorText(error));
      this.cancelTimer = realTimeout(Math.min(RETRY_MS_MAX, this.retryMs * 2 ** attempt), () => {
        this.cancelTimer = null;
        void this.find(attempt + 1);
      });
    }
  }

  /** What a leader has found is not what the archive has any more. */
  private findAgain(): void {
    this.found = false;
    if (this.isFinding || this.isOver) return;
    this.cancelTimer?.();
    this.cancelTimer = null;
    this.finding = this.find();
  }

  /**
   * A leader continues the history of its commit log, if it is provably the same one and what is missing can be read from the log.
   * Otherwise it begins a new one.
   *
   * @throws EngineUnavailable
   */
  private async join({ end, newest }: FoundArchive, log: ConfirmedLog): Promise<void> {
    if (end !== null && end.position.epoch > log.seal.epoch) {
      this.fence("another node leads, and archives");
      return;
    }
    const continues = end !== null && !this.needsNewHistory && (await this.continueFrom(end, log));
    if (this.isOver) return;
    if (!continues) {
      const owner = `${log.id} ${log.seal.epoch} ${crypto.randomUUID()}`;
      const from = epochAbove(newest, this.kernel.clock.now());
      this.continued = await this.uploader.call<number>("claim", from, owner);
      this.base = null;
      this.needsNewHistory = false;
    }
    this.kernel.log.info(
      continues ? "this leader continues the archive" : "this leader begins a new history of the archive",
      { history: this.continued, from: this.tail.first },
    );
    this.beginUploads();
  }

  /** Completes the tail with what the archive lacks. False: that is not possible. */
  private async continueFrom(end: ArchiveEnd, log: ConfirmedLog): Promise<boolean> {
    const { position, history, base } = end;
    this.tail.dropThrough(position.seq);
    // What was read for another end.
    if (this.tail.first <= position.seq) this.tail.dropThrough(log.seal.seq);
    const { first } = this.tail;
    const isOwn = position.epoch === log.seal.epoch;
    if (first > position.seq + 1) {
      const segments = await readMissing(log, position, first - 1, this.tail);
      if (segments === null) return false;
      if (this.needsNewHistory || this.isOver) {
        this.tail.discard(segments);
        return false;
      }
      this.tail.prepend(segments);
    } else if (first <= position.seq && isOwn) {
      this.fence("another node leads, and has archived changes of this one");
      return false;
    } else if (!isOwn) return false;
    this.continued = history;
    this.base = base?.position ?? null;
    this.waitingSince ??= monotonicMs();
    return true;
  }

  /** Another node has taken this one's place: nothing of this process gets into the archive any more. */
  private fence(reason: string): void {
    if (this.isOver) return;
    this.isFenced = true;
    this.cancelTimer?.();
    this.cancelBaseTimer?.();
    this.lastError = reason;
    this.kernel.log.warn("this node archives nothing any more", { reason });
  }

  private accept({ isConditional, bases }: FoundArchive): void {
    if (!isConditional) {
      this.rejection = new StartupError(
        `This object store does not support conditional writes (If-None-Match), which keep two servers from overwriting each other's changes: ${this.settings.url}.`,
      );
      this.note(this.rejection.message);
      return;
    }
    const { epoch } = this.tail.next;
    const newest = bases.at(-1);
    const continues = this.entries.origin?.epoch === epoch;
    if (newest !== undefined && (newest.from.epoch > epoch || (newest.from.epoch === epoch && !continues))) {
      if (continues)
        this.kernel.log.error("another server has written to this archive: use a prefix for each server");
      this.beginAnew(newest.from.epoch + 1);
    } else if (newest?.from.epoch === epoch) this.base = newest.position;
    this.tail.noteUsable();
    this.beginUploads();
  }

  private beginUploads(): void {
    this.found = true;
    this.recovered();
    if (!this.tail.isEmpty) this.arm();
  }

  private arm(): void {
    if (!this.found || this.cancelTimer !== null || this.uploading !== null || this.isOver) return;
    const pause =
      this.failures === 0
        ? this.settings.intervalMs
        : Math.min(RETRY_MS_MAX, Math.max(this.settings.intervalMs, this.retryMs) * 2 ** (this.failures - 1));
    const delay = Math.max(0, this.lastUploadAt + pause - monotonicMs());
    this.cancelTimer = realTimeout(delay, () => {
      this.cancelTimer = null;
      this.uploading = this.uploadAll().finally(() => {
        this.uploading = null;
        if (!this.tail.isEmpty) this.arm();
      });
    });
  }

  private get retryMs(): number {
    return this.deps.retryMs ?? RETRY_MS;
  }

  /** Closes the current segment, and archives all in order. */
  private async uploadAll(): Promise<void> {
    this.lastUploadAt = monotonicMs();
    try {
      if (this.tail.segments.length === 0) this.rotate();
      for (let segment = this.tail.segments[0]; segment !== undefined; segment = this.tail.segments[0]) {
        if (!(await this.upload(segment))) return;
      }
    } catch (error) {
      this.failed(errorText(error));
    }
  }

  private rotate(): void {
    this.tail.rotate();
    this.currentSince = null;
  }

  private async upload(segment: Segment): Promise<boolean> {
    const { history } = this;
    // An unconfirmed change may stand in the tail, which is on this disk, too, but in no object.
    if (history === null || !(await this.isConfirmed())) return false;
    const first = { epoch: history, seq: segment.first };
    const outcome = await this.uploader.call<SegmentOutcome>("uploadSegment", segment.path, first);
    // Meanwhile a new epoch may have begun.
    if (this.tail.segments[0] !== segment) return false;
    if (outcome.kind === "stored") {
      this.tail.drop(segment);
      if (outcome.last.at > 0) this.archivedAt = outcome.last.at;
      this.waitingSince = this.tail.segments.length > 0 ? this.waitingSince : this.currentSince;
      this.recovered();
      return true;
    }
    if (outcome.kind === "conflict" && this.log !== null) {
      // A leader before this one, or after it, has written the next object.
      this.kernel.log.info("another node has archived meanwhile", { error: outcome.problem });
      this.findAgain();
      return false;
    }
    if (outcome.kind === "conflict") {
      this.kernel.log.error("another server writes to this archive: use a prefix for each server", {
        error: outcome.problem,
      });
      this.beginAnew();
    }
    this.failed(outcome.problem);
    return false;
  }

  /** Resolves when everything so far is confirmed; false: something never is. */
  private async isConfirmed(): Promise<boolean> {
    await (this.log === null ? this.kernel.writer.confirmed() : this.confirmed);
    return !this.isFenced;
  }

  private failed(problem: string): void {
    this.failures += 1;
    this.note(problem);
  }

  private recovered(): void {
    if (this.lastError !== null) this.kernel.log.info("the archive can be written again");
    this.failures = 0;
    this.lastError = null;
    this.considerBase();
  }

  private get isBaseDue(): boolean {
    if (this.base === null) return true;
    // A base from the future was made while the clock was wrong.
    const age = Math.abs(this.kernel.clock.now() - this.base.at);
    return age >= (this.deps.baseIntervalMs ?? BASE_INTERVAL_MS);
  }

  /** A clock that has jumped must not delete what is retained. */
  private get mayExpire(): boolean {
    if (!this.isExpiryDue || monotonicMs() < this.expiryNotBefore) return false;
    return this.kernel.scheduler.clockTrust.isTrusted;
  }

  /** Makes a base if this epoch has none, or an old one; deletes what has expired. */
  private considerBase(): void {
    if (this.isOver || this.basing !== null || this.cancelBaseTimer !== null) return;
    // A copy of the database is not made for a store that does not take it.
    if (!this.isStored || !this.found || this.failures > 0) return;
    if (!this.isBaseDue && !this.mayExpire) return;
    this.basing = this.renewBase().finally(() => {
      this.basing = null;
      // An epoch that began meanwhile needs a base of its own.
      this.considerBase();
    });
  }

  private async renewBase(): Promise<void> {
    if (this.isBaseDue && !(await this.makeBase())) return;
    if (this.mayExpire) await this.expire();
  }

  /** Waits until a history has this entry: until then a base that has it does not count. False: it never will. */
  private async reaches(history: number, seq: number): Promise<boolean> {
    while (!this.isOver && this.history === history) {
      if (this.tail.first > seq) return true;
      await realDelay(Math.min(this.settings.intervalMs, RETRY_MS));
    }
    return false;
  }

  /** Resolves to whether there is a new base that counts. */
  private async makeBase(): Promise<boolean> {
    const begun = monotonicMs();
    const { history } = this;
    if (history === null) return false;
    try {
      await removeLeftovers(this.folder, (name) => BASE_COPY.test(name));
      this.rotate();
      const { epoch, seq } = this.tail.next;
      const from: NamedPosition = { epoch: history, seq: seq - 1 };
      this.making = startBackupProcess(this.basePath, this.folder);
      const failure = await this.making.done;
      this.making = null;
      if (this.isOver) return false;
      if (failure !== null) throw new Error(failure);
      if (!(await this.isConfirmed()) || this.history !== history) return false;
      const position = await this.uploader.call<StoredPosition>("uploadBase", this.basePath, from, epoch);
      if (this.history !== history) return false;
      this.base = position;
      this.isExpiryDue = true;
      const duration_ms = Math.round(monotonicMs() - begun);
      this.kernel.log.info("a base was archived", { seq: position.seq, duration_ms });
      rmSync(this.basePath, { force: true });
      return await this.reaches(history, position.seq);
    } catch (error) {
      // The end of the server has interrupted it.
      if (this.isOver) return false;
      this.kernel.log.error("the base of the archive could not be made; it is repeated", {
        error: errorText(error),
      });
      this.cancelBaseTimer = realTimeout(this.deps.baseRetryMs ?? BASE_RETRY_MS, () => {
        this.cancelBaseTimer = null;
        this.considerBase();
      });
      return false;
    } finally {
      this.making = null;
      rmSync(this.basePath, { force: true });
    }
  }

  /** Deletes what no retained time needs. What is left after a failure or a kill, the next deletion finds again. */
  private async expire(): Promise<void> {
    const since = this.kernel.clock.now() - (this.deps.keepMs ?? this.settings.keepMs);
    try {
      const objects = await this.uploader.call<number>("expire", since, this.history ?? 0);
      this.isExpiryDue = false;
      if (objects > 0) this.kernel.log.info("expired objects of the archive were deleted", { objects });
    } catch (error) {
      if (this.stopped) return;
      this.kernel.log.error("expired objects of the archive could not be deleted; it is repeated", {
        error: errorText(error),
      });
      this.expiryNotBefore = monotonicMs() + (this.deps.expiryRetryMs ?? EXPIRY_RETRY_MS);
    }
  }
}

/** Declares the metrics of an archive. */
export function declareArchiveMetrics({ metrics }: Pick<Kernel, "metrics">, archive: Archive): void {
  metrics.number(
    "ninefold_archive_lag_seconds",
    "Age of the oldest change that is not archived; 0 if all are.",
    () => archive.status.lagSeconds,
  );
  metrics.number(
    "ninefold_archive_bytes_waiting",
    "Bytes of changes that are not archived, before they are merged.",
    () => archive.status.bytesWaiting,
  );
}
