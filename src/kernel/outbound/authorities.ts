import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import tls from "node:tls";
import { errorText, StartupError } from "../errors.ts";

const BLOCK = "-----BEGIN CERTIFICATE-----";

/**
 * The public certificate authorities and those of a file (PEM); without a file nothing, which is the public ones alone.
 * @throws StartupError when the file cannot be read, or holds no certificate, or one that is broken.
 */
export function extraAuthorities(path: string | null): { certificateAuthorities?: string[] } {
  if (path === null) return {};
  try {
    const [, ...blocks] = readFileSync(path, "utf8").split(BLOCK);
    if (blocks.length === 0) throw new Error("there is no certificate in it");
    const more = blocks.map((block) => `${BLOCK}${block}`);
    // It throws for what is none.
    for (const certificate of more) new X509Certificate(certificate);
    return { certificateAuthorities: [...tls.rootCertificates, ...more] };
  } catch (error) {
    throw new StartupError(`extra_ca: "${path}" cannot be used (${errorText(error)}).`);
  }
}
