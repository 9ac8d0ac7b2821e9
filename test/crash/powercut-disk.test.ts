import { describe, expect, test } from "bun:test";
import { Disk, NAMES_KEPT } from "../harness/powercut/disk.ts";
import { type Choice, DiskFile, DROPPED, KEPT, PAGE_BYTES } from "../harness/powercut/file.ts";
import { NOTE, type Note } from "../harness/powercut/trace.ts";

const page = (letter: string): Buffer => Buffer.alloc(PAGE_BYTES, letter);
/** The first byte of each page. */
const letters = (content: Buffer): string =>
  Array.from({ length: content.length / PAGE_BYTES }, (_, index) =>
    String.fromCharCode(content[index * PAGE_BYTES] || 0x2e),
  ).join("");

describe("a file on a disk", () => {
  test("has what was synced, and may have what was not", () => {
    const file = new DiskFile();
    file.write(1, 0, Buffer.concat([page("a"), page("b")]));
    expect(file.contentAfter(DROPPED).length).toBe(0);
    file.synced(2);
    file.write(3, PAGE_BYTES, page("c"));
    file.write(4, 3 * PAGE_BYTES, page("d"));
    expect(letters(file.contentAfter(DROPPED))).toBe("ab");
    expect(letters(file.contentAfter(KEPT))).toBe("ac.d");
    expect(file.isPending).toBe(true);
    file.synced(5);
    expect(letters(file.contentAfter(DROPPED))).toBe("ac.d");
    expect(file.isPending).toBe(false);
  });

  test("does not have what was written while a sync was in progress", () => {
    const file = new DiskFile();
    file.write(1, 0, page("a"));
    file.write(3, 0, page("b"));
    file.synced(2);
    expect(letters(file.contentAfter(DROPPED))).toBe("a");
    expect(letters(file.contentAfter(KEPT))).toBe("b");
  });

  test("is torn at sectors: each is of some time since the last sync", () => {
    const file = new DiskFile();
    file.write(1, 0, page("a"));
    file.synced(2);
    file.write(3, 100, Buffer.alloc(2_000, "b"));
    const turns = [1, 0, 1, 0];
    const everyOther: Choice = { pieceBytes: 512, pick: (states) => (states < 2 ? 0 : (turns.shift() ?? 0)) };
    // The first pick is for cuts, of which there is none.
    const content = file.contentAfter(everyOther).toString();
    expect(content.slice(0, 512)).toBe("a".repeat(100) + "b".repeat(412));
    expect(content.slice(512, 1_024)).toBe("a".repeat(512));
    expect(content.slice(1_024, 1_536)).toBe("b".repeat(512));
  });

  test("may be as long as before a cut, and then has nothing that was written after it", () => {
    const file = new DiskFile();
    file.write(1, 0, Buffer.concat([page("a"), page("b")]));
    file.synced(2);
    file.cut(3, 0);
    file.write(4, 0, page("c"));
    expect(letters(file.contentAfter(DROPPED))).toBe("ab");
    expect(letters(file.contentAfter(KEPT))).toBe("c");
    // The cut is there, what was written after it is not.
    let turn = 0;
    const cutOnly: Choice = { pieceBytes: PAGE_BYTES, pick: () => (turn++ === 0 ? 1 : 0) };
    expect(file.contentAfter(cutOnly).length).toBe(0);
    file.synced(5);
    expect(letters(file.contentAfter(DROPPED))).toBe("c");
  });

  test("loses the pages of a failed sync, though a later sync succeeds, unless they are written again", () => {
    const file = new DiskFile();
    file.write(1, 0, Buffer.concat([page("a"), page("b")]));
    file.synced(2);
    file.write(3, 0, Buffer.concat([page("c"), page("d")]));
    file.syncFailed(4);
    file.synced(5);
    expect(letters(file.contentAfter(KEPT))).toBe("cd");
    expect(letters(file.contentAfter(DROPPED))).toBe("ab");
    file.write(6, PAGE_BYTES, Buffer.from("e"));
    file.synced(7);
    const content = file.contentAfter(DROPPED);
    expect(letters(content)).toBe("ae");
    // The whole page is written, with what the failed sync had left in it.
    expect(content.toString().slice(PAGE_BYTES + 1)).toBe("d".repeat(PAGE_BYTES - 1));
  });
});

describe("names on a disk", () => {
  const note = (type: number, inode: number, text = "", a = 0): Note => ({
    type,
    inode,
    a,
    b: 0,
    bytes: Buffer.from(text),
  });
  const made = [
    note(NOTE.folder, 1, "data"),
    note(NOTE.create, 2, "data/new"),
    note(NOTE.write, 2, "text"),
    note(NOTE.syncBegin, 2, "", 1),
    note(NOTE.syncEnd, 2, "", 1),
    note(NOTE.rename, 0, "data/new\0data/key"),
  ];
  const syncOf = (inode: number, name: string, number: number): Note[] => [
    note(NOTE.syncBegin, inode, name, number),
    note(NOTE.syncEnd, inode, "", number),
  ];

  test("are there for certain once their folder was synced", () => {
    const disk = new Disk();
    disk.apply(made);
    expect([...disk.after(KEPT, () => false).keys()]).toEqual([]);
    expect([...disk.after(DROPPED, NAMES_KEPT)].map(([name, content]) => `${name} ${content}`)).toEqual([
      "data null",
      "data/key text",
    ]);
    disk.apply(syncOf(9, "", 2));
    expect([...disk.after(KEPT, () => false).keys()]).toEqual(["data"]);
    disk.apply(syncOf(1, "data", 3));
    expect([...disk.after(KEPT, () => false).keys()]).toEqual(["data", "data/key"]);
    expect(disk.unsynced).toEqual([]);
  });

  test("a removed file may be there again; a name that depends on a lost one is lost", () => {
    const disk = new Disk();
    disk.apply([...made, ...syncOf(9, "", 2), ...syncOf(1, "data", 3), note(NOTE.unlink, 0, "data/key")]);
    expect([...disk.after(KEPT, NAMES_KEPT).keys()]).toEqual(["data"]);
    expect([...disk.after(KEPT, () => false).keys()]).toEqual(["data", "data/key"]);
    const young = new Disk();
    young.apply(made);
    // The file's creation is lost, and its rename with it.
    expect([...young.after(KEPT, (naming) => naming !== 1).keys()]).toEqual(["data"]);
    expect([...young.after(KEPT, (naming) => naming !== 0).keys()]).toEqual([]);
  });
});
