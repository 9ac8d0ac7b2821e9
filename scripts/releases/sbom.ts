import { type EmbeddedPart, embeddedParts } from "../embedded/parts.ts";

/** The release that a document describes. */
export interface Release {
  readonly version: string;
  /** When its sources were committed, ISO 8601 in UTC. */
  readonly date: string;
}

/** Expressions of SPDX that are no single identifier. */
const EXPRESSION = /\s|\(/;

/**
 * The bill of materials of a release's executables: CycloneDX 1.6 in JSON, with packages, licences, hashes and
 * dependencies. The same sources give the same text.
 */
export function billOfMaterials(root: string, { version, date }: Release): string {
  const parts = embeddedParts(root);
  const [own, ...others] = parts.map((part) => componentOf(part, version));
  const needed = new Set(parts.flatMap((part) => part.package?.needs ?? []));
  const direct = others.map((one) => one["bom-ref"]).filter((ref) => !needed.has(ref));
  const content = {
    metadata: { timestamp: date, component: own },
    components: others,
    dependencies: [
      { ref: own?.["bom-ref"], dependsOn: direct },
      ...parts.flatMap((part) =>
        part.package === undefined ? [] : [{ ref: refOf(part), dependsOn: part.package.needs }],
      ),
    ],
  };
  const bom = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify(content))}`,
    version: 1,
    ...content,
  };
  return `${JSON.stringify(bom, null, 2)}\n`;
}

function componentOf(part: EmbeddedPart, ownVersion: string) {
  const { name, license, package: packed } = part;
  const isOwn = name === "ninefold";
  const version = isOwn ? ownVersion : part.version;
  return {
    type: isOwn ? "application" : packed === undefined ? "framework" : "library",
    "bom-ref": `${name}@${version}`,
    name,
    version,
    ...(packed === undefined ? {} : { hashes: [hashOf(packed.integrity)] }),
    licenses: EXPRESSION.test(license) ? [{ expression: license }] : [{ license: { id: license } }],
    purl:
      packed === undefined
        ? `pkg:generic/${name.toLowerCase()}@${version}`
        : `pkg:npm/${name.replace("@", "%40")}@${version}`,
  };
}

function refOf({ name, version }: EmbeddedPart): string {
  return `${name}@${version}`;
}

/** The hash of a lockfile (`sha512-` and base64) in the format of CycloneDX. */
function hashOf(integrity: string): { alg: string; content: string } {
  const [algorithm = "", digest = ""] = integrity.split("-", 2);
  return { alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(digest, "base64").toString("hex") };
}

/** A UUID (version 8, RFC 9562) derived from a text. */
function uuidOf(text: string): string {
  const bytes = Buffer.from(new Bun.CryptoHasher("sha256").update(text).digest()).subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
