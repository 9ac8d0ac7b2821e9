import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Choice, DiskFile, KEPT } from "./file.ts";
import { NOTE, type Note } from "./trace.ts";

/** What a name stands for. */
type Node = DiskFile | "folder";

/** A change of names that may not be on the disk yet: from the first to the second, from nothing, or to nothing. */
interface Naming {
  readonly at: number;
  readonly from: string | null;
  readonly to: string | null;
  readonly node: Node;
}

/** Which of the changes of names that no sync of their folder has followed are on the disk. */
export type NameChoice = (naming: number) => boolean;

/** All of them. */
export const NAMES_KEPT: NameChoice = () => true;

/** Files by their paths below the root. Null: a folder. */
export type Files = ReadonlyMap<string, Buffer | null>;

/** A disk, and what a running system keeps above it, as a trace shows. */
export class Disk {
  private readonly nodes = new Map<number, Node>();
  private readonly folders = new Map<number, string>();
  /** What a process sees. */
  private readonly names = new Map<string, Node>();
  /** What is on the disk for certain. */
  private readonly durable = new Map<string, Node>();
  private pending: Naming[] = [];
  private readonly syncs = new Map<number, number>();
  private clock = 0;

  apply(notes: readonly Note[]): void {
    for (const note of notes) {
      this.clock += 1;
      this.applyOne(note);
    }
  }

  /** Names of files whose content, or whose name, is not certain to be on the disk. */
  get unsynced(): string[] {
    const files = [...this.names].filter(([, node]) => node !== "folder" && node.isPending);
    return [...files.map(([name]) => name), ...this.pending.map(({ from, to }) => to ?? from ?? "")];
  }

  /** What is there when the power has gone. */
  after(choice: Choice, isNamed: NameChoice): Files {
    const names = new Map(this.durable);
    const lost = new Set<string>();
    this.pending.forEach((naming, index) => {
      const touched = [naming.from, naming.to].filter((name) => name !== null);
      // Changes of one name keep their order, and no name is without its folder.
      const missing = naming.to !== null && lost.has(dirname(naming.to));
      if (isNamed(index) && !missing && !touched.some((name) => lost.has(name))) rename(names, naming);
      else for (const name of touched) lost.add(name);
    });
    const files = new Map<string, Buffer | null>();
    for (const [name, node] of names) files.set(name, node === "folder" ? null : node.contentAfter(choice));
    return files;
  }

  /** What a process sees. */
  seen(): Files {
    return this.after(KEPT, NAMES_KEPT);
  }

  /** Goes on with a copy of what is seen in another folder, whose files have numbers of their own. */
  moveTo(root: string): void {
    this.nodes.clear();
    this.folders.clear();
    for (const [name, node] of this.names) {
      const { ino } = statSync(join(root, name));
      if (node === "folder") this.folders.set(ino, name);
      else this.nodes.set(ino, node);
    }
    this.syncs.clear();
  }

  private applyOne({ type, inode, a, b, bytes }: Note): void {
    if (type === NOTE.create) this.create(inode, bytes.toString());
    else if (type === NOTE.folder) {
      this.folders.set(inode, bytes.toString());
      this.name({ from: null, to: bytes.toString(), node: "folder" });
    } else if (type === NOTE.write) this.fileOf(inode).write(this.clock, a, bytes);
    else if (type === NOTE.cut) this.fileOf(inode).cut(this.clock, a);
    else if (type === NOTE.content) this.fileOf(inode).write(this.clock, 0, bytes);
    else if (type === NOTE.syncBegin) this.beginSync(inode, a, bytes.toString());
    else if (type === NOTE.syncEnd) this.endSync(inode, a, b);
    else if (type === NOTE.rename || type === NOTE.unlink) {
      const [from = "", to = null] = bytes.toString().split("\0");
      const node = this.names.get(from);
      if (node === undefined) throw new Error(`the trace renames or removes ${from}, which it has not made`);
      this.name({ from, to, node });
    }
  }

  private create(inode: number, name: string): void {
    const node = this.nodes.get(inode);
    // What was opened past the C library is told of at each of its syncs.
    if (node !== undefined && this.names.get(name) === node) return;
    const file = new DiskFile();
    this.nodes.set(inode, file);
    this.name({ from: null, to: name, node: file });
  }

  private name(change: Omit<Naming, "at">): void {
    const naming = { at: this.clock, ...change };
    this.pending.push(naming);
    rename(this.names, naming);
  }

  private beginSync(inode: number, number: number, name: string): void {
    this.syncs.set(number, this.clock);
    // A file that is known, or a folder under its name; the root's is empty.
    if (!this.nodes.has(inode)) this.folders.set(inode, name);
  }

  private endSync(inode: number, number: number, error: number): void {
    const begun = this.syncs.get(number);
    if (begun === undefined) throw new Error(`the trace ends sync ${number}, which has not begun`);
    const file = this.nodes.get(inode);
    if (file instanceof DiskFile) {
      if (error === 0) file.synced(begun);
      else file.syncFailed(begun);
      return;
    }
    if (error !== 0) return;
    const folder = this.folders.get(inode);
    const isSynced = ({ at, from, to }: Naming): boolean =>
      at < begun && folderOf(to ?? from ?? "") === folder;
    for (const naming of this.pending.filter(isSynced)) rename(this.durable, naming);
    this.pending = this.pending.filter((naming) => !isSynced(naming));
  }

  private fileOf(inode: number): DiskFile {
    const node = this.nodes.get(inode);
    if (!(node instanceof DiskFile))
      throw new Error(`the trace changes file ${inode}, which it has not made`);
    return node;
  }
}

function folderOf(name: string): string {
  const folder = dirname(name);
  return folder === "." ? "" : folder;
}

function rename(names: Map<string, Node>, { from, to, node }: Naming): void {
  if (from !== null) names.delete(from);
  if (to !== null) names.set(to, node);
}

/** Writes files below a folder. Made for their owner alone, as the server makes them. */
export function writeFiles(root: string, files: Files): void {
  const folders = [...files].filter(([, content]) => content === null).map(([name]) => name);
  for (const name of folders.sort()) mkdirSync(join(root, name), { recursive: true, mode: 0o700 });
  for (const [name, content] of files) {
    if (content === null) continue;
    // A file whose folder's name is lost is lost as well.
    if (folderOf(name) !== "" && !folders.includes(folderOf(name))) continue;
    writeFileSync(join(root, name), content, { mode: 0o600 });
  }
}

/** Compares what a trace shows with the files that are really there: otherwise the trace would prove nothing. */
export function compareWithReal(root: string, files: Files): void {
  for (const [name, content] of files) {
    if (content !== null && !content.equals(readFileSync(join(root, name))))
      throw new Error(`the trace does not tell what ${name} holds`);
  }
  for (const entry of readdirSync(root, { recursive: true })) {
    const name = String(entry);
    if (!name.endsWith("-shm") && !files.has(name)) throw new Error(`the trace does not tell of ${name}`);
  }
}
