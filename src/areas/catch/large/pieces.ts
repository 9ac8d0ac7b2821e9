import { removeInSlices } from "../../../kernel/background/removal.ts";
import { slices } from "../../../kernel/background/time-slices.ts";
import { PIECE_BYTES } from "../../../kernel/http/requests/large-body.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { PieceBody } from "../../../kernel/outbound/piece-body.ts";
import { NOBODY } from "../../../kernel/storage/tx.ts";
import type { Cancel } from "../../../kernel/time/clock.ts";
import { MINUTE_MS } from "../../../kernel/time/units.ts";
import { PIECES_PER_UNIT, type PieceStore } from "./store.ts";

/**
 * Time from a body to the search for pieces without an event, which are also removed as soon as their event is. A timer and not a
 * recurring job: a server that receives no large bodies has nothing to search, and writes nothing.
 */
const SEARCH_AFTER_MS = 10 * MINUTE_MS;

interface WaitingPiece {
  readonly upload: number;
  readonly number: number;
  readonly bytes: Uint8Array;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A body that is being received. */
export interface Upload {
  readonly ref: number;
  /** Stores the next piece, which must not change before the promise settles. */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends it. Its pieces are removed, unless an event has them. */
  end(): void;
}

/** The bodies above 1 MiB of all buckets, in pieces of {@link PIECE_BYTES}. */
export class Pieces {
  /** Never used again while the process runs, so that no reader gets the pieces of another body. */
  private nextRef: number;
  /** Uploads that have no event yet. */
  private readonly receiving = new Set<number>();
  private waiting: WaitingPiece[] = [];
  private isWriting = false;
  private stopping = false;
  private cancelSearch: Cancel | null = null;
  private removing: Promise<void> = Promise.resolve();

  constructor(private readonly deps: Pick<Kernel, "writer" | "clock"> & { readonly pieces: PieceStore }) {
    this.nextRef = deps.pieces.highestUpload() + 1;
  }

  /** Begins a body. */
  begin(): Upload {
    const ref = this.nextRef++;
    this.receiving.add(ref);
    this.searchLater();
    let number = 0;
    return {
      ref,
      write: (bytes) => this.write(ref, number++, bytes),
      end: () => {
        this.receiving.delete(ref);
        if (number > 0 && this.deps.pieces.eventsOf(ref) === 0) this.removeSoon(ref);
      },
    };
  }

  /** The stored body of an event, which is read piece by piece. */
  bodyOf(upload: number, length: number): PieceBody {
    const { pieces } = this.deps;
    const count = Math.ceil(length / PIECE_BYTES);
    return {
      length,
      pieceBytes: PIECE_BYTES,
      *pieces() {
        for (let number = 0; number < count; number += 1) {
          const bytes = pieces.read(upload, number);
          if (bytes === null) throw new Error("the event was deleted");
          yield bytes;
        }
      },
    };
  }

  /** The start of a stored body, at most `bytesMax`, rounded down to pieces. */
  startOf(upload: number, bytesMax: number): Uint8Array {
    const found: Uint8Array[] = [];
    for (let number = 0; number < Math.floor(bytesMax / PIECE_BYTES); number += 1) {
      const bytes = this.deps.pieces.read(upload, number);
      if (bytes === null) break;
      found.push(bytes);
    }
    return Buffer.concat(found);
  }

  /** Removes the pieces of an upload whose event was removed in a unit of work that is committed. */
  removeSoon(upload: number): void {
    this.removing = this.removing.then(() => this.remove(upload)).catch(() => undefined);
    this.deps.clock.track(this.removing);
  }

  private searchLater(): void {
    this.cancelSearch ??= this.deps.clock.after(SEARCH_AFTER_MS, () => {
      this.cancelSearch = null;
      // What fails is left to the next search.
      this.deps.clock.track(this.removeOrphans().catch(() => undefined));
      // A body that is still being received may leave pieces behind.
      if (this.receiving.size > 0) this.searchLater();
    });
  }

  /** Removes all pieces without an event: those of uploads that a crash has ended. */
  async removeOrphans(): Promise<void> {
    const { pieces } = this.deps;
    for (let after = 0; !this.stopping; ) {
      if (slices.isOver) await slices.next();
      const upload = pieces.nextUpload(after);
      if (upload === 0) return;
      if (!this.receiving.has(upload) && pieces.eventsOf(upload) === 0) await this.remove(upload);
      after = upload;
    }
  }

  /** Stops after the current slice; the next start continues. */
  stop(): void {
    this.stopping = true;
    this.cancelSearch?.();
  }

  private async remove(upload: number): Promise<void> {
    const { writer, pieces } = this.deps;
    await removeInSlices(
      () =>
        writer.submitInBackground((tx) => {
          tx.affects = NOBODY;
          return pieces.remove(tx, upload) === PIECES_PER_UNIT;
        }),
      () => this.stopping,
    );
  }

  private write(upload: number, number: number, bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ upload, number, bytes, resolve, reject });
      if (!this.isWriting) void this.writeAll();
    });
  }

  /** A commit has the pieces of one unit of work, so that it writes 1 MiB of them at most. */
  private async writeAll(): Promise<void> {
    this.isWriting = true;
    while (this.waiting.length > 0) {
      const unit = this.waiting.splice(0, PIECES_PER_UNIT);
      try {
        await this.deps.writer.submitInBackground((tx) => {
          // Nothing shows them before their event is stored.
          tx.affects = NOBODY;
          for (const { upload, number, bytes } of unit) this.deps.pieces.insert(tx, upload, number, bytes);
        });
        for (const { resolve } of unit) resolve();
      } catch (error) {
        for (const { reject } of unit) reject(error);
      }
    }
    this.isWriting = false;
  }
}
