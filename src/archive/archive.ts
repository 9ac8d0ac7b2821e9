import { hash } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { removeLeftovers } from "../backup/files.ts";
import { type BackupProcess, startBackupProcess } from "../backup/process.ts";
import { errorText, StartupError } from "../kernel/errors.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { ENTRY_KEY_PURPOSE, type Entry } from "../kernel/storage/replication/entry.ts";
import type { EntrySource } from "../kernel/storage/replication/entry-source.ts";
import type { StoredPosition } from "../kernel/storage/replication/position.ts";
import { type Segment, Tail } from "../kernel/storage/replication/tail.ts";
import { type Cancel, monotonicMs, realDelay, realTimeout } from "../kernel/time/clock.ts";
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
/** Pause before a failed request is repeated; it doubles. */
const RETRY_MS = 1_000;
/** Longest pause before a failed upload is repeated. */
const RETRY_MS_MAX = 30_000;
/** Pause before a failed base is repeated. */
const BASE_RETRY_MS = 60_000;
/** Pause before a failed deletion of expired objects is repeated, at the next change: nothing depends on it. */
const EXPIRY_RETRY_MS = 60 * 60 * 1000;
/** Interval of bases: it limits the objects that a restore has to read. */
const BASE_INTERVAL_MS = 24 * 60 * 60 * 1000;

/** The first line of the tail has space for an archive's name of this length, in characters; for a longer one its hash stands. */
const IDENTITY_LENGTH_MAX = 160;

/** The copy that becomes a base. */
const BASE_FILE = "ninefold.base-";
const BASE_COPY = /^ninefold\.base-\d{1,10}$/;

/** The state of the archive, for the operator. */
export interface ArchiveStatus {
  readonly url: string;
  readonly epoch: number;
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
export interface ArchiveParts {
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
  private found = false;
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

  /** Before the first batch. @throws StartupError for an invalid URL. */
  constructor(
    private readonly kernel: Kernel,
    private readonly settings: ArchiveSettings,
    extraCaPath: string | null,
    private readonly parts: ArchiveParts = {},
  ) {
    if (kernel.entries === null) throw new Error("an archive needs entries");
    this.entries = kernel.entries;
    const place = archivePlace(settings);
    this.folder = dirname(kernel.db.path);
    const identity = `${place.bucket.endpoint} ${settings.url}`;
    this.identity = identity.length > IDENTITY_LENGTH_MAX ? hash("sha256", identity, "hex") : identity;
    this.tail = new Tail(join(this.folder, "ninefold.tail"));
    const key = kernel.vault.derive(ENTRY_KEY_PURPOSE);
    const { uploadPartBytes } = parts;
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
   * response or failure. Every later start is independent of it, and {@link status} reports what is wrong with the store.
   *
   * @throws StartupError if the store cannot be used, and never could.
   */
  async start(): Promise<void> {
    this.finding = this.find();
    const silence = realDelay(START_WAIT_MS).then(() => this.noteSilence());
    if (this.tail.isUsable) return;
    await Promise.race([this.finding, silence]);
    if (this.rejection !== null) throw this.rejection;
  }

  get status(): ArchiveStatus {
    const waited = this.waitingSince === null ? 0 : (monotonicMs() - this.waitingSince) / 1000;
    return {
      url: this.settings.url,
      epoch: this.tail.next.epoch,
      lagSeconds: Math.max(0, waited),
      bytesWaiting: this.tail.bytes,
      archivedAt: this.archivedAt,
      baseAt: this.base?.at ?? null,
      lastError: this.lastError,
    };
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
      while (this.found && this.failures === 0 && !this.tail.isEmpty) await this.uploadAll();
    };
    await Promise.race([rest(), realDelay(STOP_WAIT_MS)]);
    this.uploader.end();
    this.tail.close();
    rmSync(this.basePath, { force: true });
  }

  private get basePath(): string {
    // With the process id: the backup of a server that was killed may still write its own.
    return join(this.folder, `${BASE_FILE}${process.pid}`);
  }

  /** Continues where the last start ended, if the tail and the file say the same; otherwise begins anew. */
  private takeUp(): void {
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

  /** Begins a new epoch, for which a base will be made. */
  private beginAnew(epoch?: number): void {
    const begun = this.entries.beginEpoch(epoch === undefined ? {} : { epoch });
    this.base = null;
    this.isStored = false;
    try {
      this.tail.begin(this.identity, { epoch: begun, seq: this.entries.position.seq + 1 });
      this.waitingSince = null;
      this.currentSince = null;
    } catch (error) {
      // The entries are not those that the tail expects, so that the next one begins anew again.
      this.note(`the tail of the archive cannot be written: ${errorText(error)}`);
    }
  }

  /** Receives each entry directly after its COMMIT. */
  private take(entry: Entry): void {
    // A start's entry from before a new epoch is in its base.
    if (entry.epoch !== this.tail.next.epoch && this.tail.next.seq > entry.seq) return;
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
    if (this.tail.bytes > (this.parts.tailBytesMax ?? TAIL_BYTES_MAX)) {
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
    try {
      this.accept(await this.uploader.call<FoundArchive>("find"));
    } catch (error) {
      if (this.stopped) return;
      this.note(errorText(error));
      this.cancelTimer = realTimeout(Math.min(RETRY_MS_MAX, this.retryMs * 2 ** attempt), () => {
        this.cancelTimer = null;
        void this.find(attempt + 1);
      });
    }
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
    this.found = true;
    this.recovered();
    if (!this.tail.isEmpty) this.arm();
  }

  private arm(): void {
    if (this.cancelTimer !== null || this.uploading !== null || this.stopped) return;
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
    return this.parts.retryMs ?? RETRY_MS;
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
    const first = { epoch: this.tail.next.epoch, seq: segment.first };
    // An unconfirmed change may stand in the tail, which is on this disk, too, but in no object.
    await this.kernel.writer.confirmed();
    const outcome = await this.uploader.call<SegmentOutcome>("uploadSegment", segment.path, first);
    // Meanwhile a new epoch may have begun.
    if (this.tail.segments[0] !== segment) return false;
    if (outcome.kind === "stored") {
      this.tail.drop(segment);
      this.archivedAt = outcome.last.at;
      this.waitingSince = this.tail.segments.length > 0 ? this.waitingSince : this.currentSince;
      this.recovered();
      return true;
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
    return age >= (this.parts.baseIntervalMs ?? BASE_INTERVAL_MS);
  }

  /** A clock that has jumped must not delete what is retained. */
  private get mayExpire(): boolean {
    if (!this.isExpiryDue || monotonicMs() < this.expiryNotBefore) return false;
    return this.kernel.scheduler.clockTrust.isTrusted;
  }

  /** Makes a base if this epoch has none, or an old one; deletes what has expired. */
  private considerBase(): void {
    if (this.stopped || this.basing !== null || this.cancelBaseTimer !== null) return;
    // A copy of the database is not made for a store that does not take it.
    if (!this.isStored || this.failures > 0) return;
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

  /** Waits until the archive has this position: until then the base does not count. False: it never will. */
  private async reaches({ epoch, seq }: StoredPosition): Promise<boolean> {
    while (!this.stopped && this.tail.next.epoch === epoch) {
      if (this.tail.first > seq) return true;
      await realDelay(Math.min(this.settings.intervalMs, RETRY_MS));
    }
    return false;
  }

  /** Resolves to whether there is a new base that counts. */
  private async makeBase(): Promise<boolean> {
    const begun = monotonicMs();
    try {
      await removeLeftovers(this.folder, (name) => BASE_COPY.test(name));
      this.rotate();
      const from: NamedPosition = { epoch: this.tail.next.epoch, seq: this.tail.next.seq - 1 };
      this.making = startBackupProcess(this.basePath, this.folder);
      const failure = await this.making.done;
      this.making = null;
      if (this.stopped) return false;
      if (failure !== null) throw new Error(failure);
      await this.kernel.writer.confirmed();
      const position = await this.uploader.call<StoredPosition>("uploadBase", this.basePath, from);
      if (this.tail.next.epoch !== from.epoch) return false;
      this.base = position;
      this.isExpiryDue = true;
      const duration_ms = Math.round(monotonicMs() - begun);
      this.kernel.log.info("a base was archived", { seq: position.seq, duration_ms });
      rmSync(this.basePath, { force: true });
      return await this.reaches(position);
    } catch (error) {
      // The end of the server has interrupted it.
      if (this.stopped) return false;
      this.kernel.log.error("the base of the archive could not be made; it is repeated", {
        error: errorText(error),
      });
      this.cancelBaseTimer = realTimeout(this.parts.baseRetryMs ?? BASE_RETRY_MS, () => {
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
    const since = this.kernel.clock.now() - (this.parts.keepMs ?? this.settings.keepMs);
    try {
      const objects = await this.uploader.call<number>("expire", since);
      this.isExpiryDue = false;
      if (objects > 0) this.kernel.log.info("expired objects of the archive were deleted", { objects });
    } catch (error) {
      if (this.stopped) return;
      this.kernel.log.error("expired objects of the archive could not be deleted; it is repeated", {
        error: errorText(error),
      });
      this.expiryNotBefore = monotonicMs() + (this.parts.expiryRetryMs ?? EXPIRY_RETRY_MS);
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
