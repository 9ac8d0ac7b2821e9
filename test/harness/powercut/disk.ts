import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Choice, DiskFile, KEPT } from "./file.ts";
import { NOTE, type Note } from "./trace.ts";

/** What a name refers to. */
type Node = DiskFile | "folder";

/** A change of names that may not be on the disk yet. `from` or `to` is null when a name is created or removed. */
interface Naming {
  readonly at: number;
  readonly from: string | null;
  readonly to: string | null;
  readonly node: Node;
}

/** Chooses which changes of names are on the disk although their folder was not synced. */
export type NameChoice = (naming: number) => boolean;

export const NAMES_KEPT: NameChoice = () => true;

/** Files by their paths below the root. Null: a folder. */
export type Files = ReadonlyMap<string, Buffer | null>;

/** A disk, and the page cache of a running system above it, according to a trace. */
export class Disk {
  private readonly nodes = new Map<number, Node>();
  private readonly folders = new Map<number, string>();
  /** The files that a process sees. */
  private readonly names = new Map<string, Node>();
  /** The files that are certainly on the disk. */
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

  /** Names of files whose content or name is not certainly on the disk. */
  get unsynced(): string[] {
    const files = [...this.names].filter(([, node]) => node !== "folder" && node.isPending);
    return [...files.map(([name]) => name), ...this.pending.map(({ from, to }) => to ?? from ?? "")];
  }

  /** The files after a power cut. */
  after(choice: Choice, isNamed: NameChoice): Files {
    const names = new Map(this.durable);
    const lost = new Set<string>();
    this.pending.forEach((naming, index) => {
      const touched = [naming.from, naming.to].filter((name) => name !== null);
      // Changes of one name stay in order, and no name exists without its folder.
      const missing = naming.to !== null && lost.has(dirname(naming.to));
      if (isNamed(index) && !missing && !touched.some((name) => lost.has(name))) rename(names, naming);
      else for (const name of touched) lost.add(name);
    });
    const files = new Map<string, Buffer | null>();
    for (const [name, node] of names) files.set(name, node === "folder" ? null : node.contentAfter(choice));
    return files;
  }

  seen(): Files {
    return this.after(KEPT, NAMES_KEPT);
  }

  /** Continues with a copy of the visible files in another folder, where files have other inode numbers. */
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
    // Files opened without the C library are reported at each of their syncs.
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
    // A known file, or a folder under its name; the root has the empty name.
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

/** Writes files below a folder. Only their owner can access them, like the server's files. */
export function writeFiles(root: string, files: Files): void {
  const folders = [...files].filter(([, content]) => content === null).map(([name]) => name);
  for (const name of folders.sort()) mkdirSync(join(root, name), { recursive: true, mode: 0o700 });
  for (const [name, content] of files) {
    if (content === null) continue;
    // A file is lost if its folder's name is lost.
    if (folderOf(name) !== "" && !folders.includes(folderOf(name))) continue;
    writeFileSync(join(root, name), content, { mode: 0o600 });
  }
}

/** Compares the files of a trace with the real ones: a difference would invalidate the trace. */
export function compareWithReal(root: string, files: Files): void {
  for (const [name, content] of files) {
    if (content !== null && !content.equals(readFileSync(join(root, name))))
      throw new Error(`the trace does not show what ${name} holds`);
  }
  for (const entry of readdirSync(root, { recursive: true })) {
    const name = String(entry);
    if (!name.endsWith("-shm") && !files.has(name)) throw new Error(`the trace does not show ${name}`);
  }
}
