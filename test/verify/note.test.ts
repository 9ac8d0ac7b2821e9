import { describe, expect, test } from "bun:test";
import { sign } from "node:crypto";
import { privateKeyOf } from "../../src/areas/notary/chain.ts";
import { createNativeCrypto } from "../../src/verify/native.ts";
import { createPortableCrypto } from "../../src/verify/noble.ts";
import {
  COSIGNATURE,
  checkpointText,
  cosignatureBytes,
  cosignedText,
  ED25519,
  isKeyName,
  KEY_NAME_LENGTH_MAX,
  NOTE_LENGTH_MAX,
  noteKey,
  parseCheckpoint,
  parseNote,
  parseVkey,
  SIGNATURES_MAX,
  signatureBy,
  signatureLine,
  verifySignature,
  vkeyOf,
} from "../../src/verify/note.ts";
import { openNote, readNote } from "../support/notes.ts";

const crypto = createNativeCrypto();

const ORIGIN = "ninefold/wc_guAzGTNSfV3ibRopzIp5tgMNJfCyUnjN";
const VKEY = `${ORIGIN}+7888d71d+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs`;
const SIGNATURE = `— ${ORIGIN} eIjXHXMr9d3Xn0Ec65YLnHQ0X7rXD99eduz/v95CCNgiazrE4BcwJn+k/pwSG4j8rfO99unMsp4wt3eSLq5NaQXn3gE=`;
const WITNESS_VKEY = "ninefold/witness-1+84c42f62+BBOY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK";
const WITNESS_LINE =
  "— ninefold/witness-1 hMQvYgAAAABo53hkiVdfIjL/w2FtZx91Ce7OoWBddRUXQ/ejxU45cjNU9pgomYA+2CQKC6toQ0bKmsutrb8Y+Xi0UddX46iAF2KxDQ==";
const ROOT = Buffer.from("cf634ccff0922c964a759262b0d22829e16b64be3e1f2661b42a030694d8a49b", "hex");
const TEXT = checkpointText({ origin: ORIGIN, size: 3, root: ROOT });
const NOTE = `${TEXT}\n${SIGNATURE}\n`;

/** The example of c2sp.org/signed-note. */
const POEM = `Ognuno sta solo sul cuor della terra
trafitto da un raggio di sole:

ed è subito sera.

— quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=
`;

/** The chain's public key. */
const KEY = Buffer.from(VKEY.slice(ORIGIN.length + 10), "base64").subarray(1);

describe("the vectors of a chain and a witness", () => {
  test.each([
    ["native", crypto],
    ["portable", createPortableCrypto()],
  ])("are made and verified byte for byte: %s", (_, own) => {
    const key = noteKey(own, ORIGIN, KEY);
    expect(vkeyOf(key)).toBe(VKEY);
    expect(parseVkey(own, VKEY)).toEqual(key);
    const signature = sign(null, Buffer.from(TEXT), privateKeyOf(new Uint8Array(32).fill(7)));
    expect(signatureLine(key, signature)).toBe(SIGNATURE);
    const note = parseNote(NOTE);
    expect(note?.text).toBe(TEXT);
    expect(note && signatureBy(own, note, key)?.line).toBe(SIGNATURE);
    expect(parseCheckpoint(TEXT)).toMatchObject({ origin: ORIGIN, size: 3 });
  });

  test("a cosignature", () => {
    const witness = parseVkey(crypto, WITNESS_VKEY);
    if (witness === null) throw new Error("no key");
    expect(witness.type).toBe(COSIGNATURE);
    const time = 1_760_000_100;
    const bytes = sign(null, Buffer.from(cosignedText(TEXT, time)), privateKeyOf(new Uint8Array(32).fill(8)));
    expect(signatureLine(witness, cosignatureBytes(time, bytes))).toBe(WITNESS_LINE);
    const note = parseNote(`${NOTE}${WITNESS_LINE}\n`);
    const [, cosignature] = note?.signatures ?? [];
    expect(cosignature && verifySignature(crypto, TEXT, cosignature, witness)).toBe(time);
    expect(cosignature && verifySignature(crypto, `${TEXT}x\n`, cosignature, witness)).toBeNull();
  });

  test("are read in the same way by a parser that was written from the specification alone", () => {
    expect(openNote(NOTE, VKEY)).toBe(0);
    expect(openNote(`${NOTE}${WITNESS_LINE}\n`, WITNESS_VKEY)).toBe(1_760_000_100);
    expect(readNote(POEM).text).toBe(parseNote(POEM)?.text ?? "");
  });
});

test("the example of c2sp.org/signed-note: text with an empty line, one signature", () => {
  const note = parseNote(POEM);
  expect(note?.text).toEndWith("\n\ned è subito sera.\n");
  expect(note?.signatures.map(({ name, keyId }) => [name, Buffer.from(keyId).toString("hex")])).toEqual([
    ["quasimodo.example/salvatore", "367ba04b"],
  ]);
});

describe("a malformed note is not parsed", () => {
  test.each([
    ["no signature", `${TEXT}\n`],
    ["no blank line", `${TEXT}${SIGNATURE}\n`],
    ["no newline at the end", `${TEXT}\n${SIGNATURE}`],
    ["a control character", `a\tb\n\n${SIGNATURE}\n`],
    ["a carriage return", `${TEXT.replaceAll("\n", "\r\n")}\n${SIGNATURE}\n`],
    ["a hyphen instead of the dash", `${TEXT}\n${SIGNATURE.replace("—", "-")}\n`],
    ["a signature that is not base64", `${TEXT}\n${SIGNATURE.slice(0, -1)}\n`],
    ["a signature without a key id", `${TEXT}\n— name AAAA\n`],
    ["a name with a plus sign", `${TEXT}\n${SIGNATURE.replace("ninefold/", "nine+fold/")}\n`],
    ["a lone surrogate", `\ud800\n\n${SIGNATURE}\n`],
  ])("%s", (_, note) => {
    expect(parseNote(note)).toBeNull();
  });

  test("more signatures than the limit", () => {
    const lines = (count: number) => `${SIGNATURE}\n`.repeat(count);
    expect(parseNote(`${TEXT}\n${lines(SIGNATURES_MAX)}`)?.signatures).toHaveLength(SIGNATURES_MAX);
    expect(parseNote(`${TEXT}\n${lines(SIGNATURES_MAX + 1)}`)).toBeNull();
  });

  test("longer than the limit", () => {
    const note = (length: number) => `${"x".repeat(length - NOTE.length - 1)}\n${NOTE}`;
    expect(parseNote(note(NOTE_LENGTH_MAX))).not.toBeNull();
    expect(parseNote(note(NOTE_LENGTH_MAX + 1))).toBeNull();
  });
});

test("names of keys have a limit, and neither spaces nor plus signs", () => {
  expect(isKeyName("x".repeat(KEY_NAME_LENGTH_MAX))).toBe(true);
  expect(isKeyName("x".repeat(KEY_NAME_LENGTH_MAX + 1))).toBe(false);
  for (const name of ["", "a b", "a\u00a0b", "a\u3000b", "a+b", "a\u0001b"])
    expect(isKeyName(name)).toBe(false);
});

test("a note with an invalid signature of a known key is rejected, even if another one is valid", () => {
  const key = noteKey(crypto, ORIGIN, KEY);
  const invalid = signatureLine(key, new Uint8Array(64));
  const note = parseNote(`${TEXT}\n${SIGNATURE}\n${invalid}\n`);
  expect(note && signatureBy(crypto, note, key)).toBeNull();
  // A signature of an unknown key with the same name is ignored.
  const other = signatureLine({ name: ORIGIN, keyId: new Uint8Array(4) }, new Uint8Array(64));
  const ignoring = parseNote(`${TEXT}\n${other}\n${SIGNATURE}\n`);
  expect(ignoring && signatureBy(crypto, ignoring, key)?.line).toBe(SIGNATURE);
});

describe("a malformed verifier key is not parsed", () => {
  test.each([
    ["another id", VKEY.replace("7888d71d", "7888d71e")],
    ["another name", `x${VKEY}`],
    ["no key", VKEY.slice(0, VKEY.lastIndexOf("+"))],
    ["an unknown type", WITNESS_VKEY.replace("+BB", "+BR")],
    ["a short key", `${ORIGIN}+7888d71d+AQ==`],
    ["an empty name", VKEY.slice(ORIGIN.length)],
  ])("%s", (_, vkey) => {
    expect(parseVkey(crypto, vkey)).toBeNull();
  });

  test("the types have different ids", () => {
    expect(noteKey(crypto, ORIGIN, KEY, ED25519).keyId).not.toEqual(
      noteKey(crypto, ORIGIN, KEY, COSIGNATURE).keyId,
    );
  });
});

describe("a malformed checkpoint is not parsed", () => {
  const root = ROOT.toString("base64");
  test.each([
    ["no origin", `\n3\n${root}\n`],
    ["a size with a leading zero", `a\n03\n${root}\n`],
    ["a negative size", `a\n-3\n${root}\n`],
    ["a size that a number cannot hold", `a\n9007199254740993\n${root}\n`],
    ["a short root", `a\n3\nAAAA\n`],
    ["no newline at the end", `a\n3\n${root}`],
  ])("%s", (_, text) => {
    expect(parseCheckpoint(text)).toBeNull();
  });

  test("extension lines are ignored", () => {
    expect(parseCheckpoint(`a\n3\n${root}\nmore\n`)).toMatchObject({ origin: "a", size: 3 });
  });
});
