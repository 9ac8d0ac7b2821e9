import { createHash, createPublicKey, verify } from "node:crypto";

/** A note, as c2sp.org/signed-note describes it. Written from that text alone, to check the project's own code. */
export interface PlainNote {
  readonly text: string;
  readonly signatures: readonly { name: string; id: string; signature: Buffer }[];
}

/** Splits a note. @throws Error for anything that the text does not allow. */
export function readNote(note: string): PlainNote {
  const split = note.lastIndexOf("\n\n");
  if (split === -1 || note.at(-1) !== "\n") throw new Error("no blank line, or no newline at the end");
  for (const character of note) {
    if (character < " " && character !== "\n") throw new Error("a control character");
  }
  const lines = note.slice(split + 2).split("\n");
  if (lines.pop() !== "" || lines.length === 0) throw new Error("no signature");
  const signatures = lines.map((line) => {
    const parts = line.split(" ");
    const [dash, name, encoded] = parts;
    if (parts.length !== 3 || dash !== "—" || !name || name.includes("+") || !encoded)
      throw new Error(`not a signature line: ${line}`);
    const bytes = Buffer.from(encoded, "base64");
    if (bytes.length < 5 || bytes.toString("base64") !== encoded) throw new Error("not base64");
    return { name, id: bytes.subarray(0, 4).toString("hex"), signature: bytes.subarray(4) };
  });
  return { text: note.slice(0, split + 1), signatures };
}

/** Verifies a note with a verifier key `<name>+<id>+<base64>`. Returns the time of a cosignature, 0 for a plain signature. */
export function openNote(note: string, vkey: string): number {
  const [, name = "", id = "", key = ""] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey) ?? [];
  const material = Buffer.from(key, "base64");
  const digest = createHash("sha256").update(`${name}\n`).update(material).digest("hex");
  if (digest.slice(0, 8) !== id) throw new Error("the id is not that of the key");
  const { text, signatures } = readNote(note);
  const own = signatures.find((signature) => signature.name === name && signature.id === id);
  if (own === undefined) throw new Error(`no signature of ${name}`);
  const x = material.subarray(1).toString("base64url");
  const publicKey = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  if (material[0] === 1) {
    if (!verify(null, Buffer.from(text), publicKey, own.signature)) throw new Error("an invalid signature");
    return 0;
  }
  const time = Number(own.signature.readBigUInt64BE(0));
  const signed = Buffer.from(`cosignature/v1\ntime ${time}\n${text}`);
  if (!verify(null, signed, publicKey, own.signature.subarray(8))) throw new Error("an invalid cosignature");
  return time;
}
