import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A certificate and its key, PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority for one test run: its own certificate, and one per name or address. */
export class CertificateAuthority {
  readonly pem: string;
  private readonly folder = mkdtempSync(join(tmpdir(), "ninefold-ca-"));

  constructor() {
    this.openssl([
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Test Authority"],
    ]);
    this.pem = this.read("ca.pem");
  }

  /**
   * Issues a certificate; `subjectAltName` such as `DNS:a.example` or `IP:127.0.0.1`; null: it has none. `by`: the name of the
   * intermediate certificate that issues it.
   */
  issue(
    name: string,
    subjectAltName: string | null,
    days = 2,
    by = "ca",
    algorithm: "ec" | "rsa" = "ec",
  ): Certificate {
    const extension =
      subjectAltName === null ? "basicConstraints=CA:FALSE" : `subjectAltName=${subjectAltName}`;
    return this.make(name, extension, days, by, algorithm);
  }

  /** Issues an intermediate certificate. */
  intermediate(name: string, days: number): Certificate {
    return this.make(name, "basicConstraints=critical,CA:TRUE", days, "ca");
  }

  /** The certificate of this authority, as another one has signed it that nobody trusts. */
  crossSigned(days: number): Certificate {
    this.openssl([
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", "old.key", "-out", "old.pem", "-days", "2", "-subj", "/CN=Old Authority"],
    ]);
    writeFileSync(join(this.folder, "cross.ext"), "basicConstraints=critical,CA:TRUE");
    this.openssl(["req", "-new", "-key", "ca.key", "-out", "cross.csr", "-subj", "/CN=Test Authority"]);
    this.openssl([
      ...["x509", "-req", "-in", "cross.csr", "-CA", "old.pem", "-CAkey", "old.key", "-CAcreateserial"],
      ...["-out", "cross.pem", "-days", String(days), "-extfile", "cross.ext"],
    ]);
    return { cert: this.read("cross.pem"), key: "" };
  }

  private make(
    name: string,
    extension: string,
    days: number,
    by: string,
    algorithm: "ec" | "rsa" = "ec",
  ): Certificate {
    const curve = algorithm === "ec" ? ["-pkeyopt", "ec_paramgen_curve:prime256v1"] : [];
    writeFileSync(join(this.folder, `${name}.ext`), extension);
    this.openssl([
      ...["req", "-newkey", algorithm, ...curve, "-nodes"],
      ...["-keyout", `${name}.key`, "-out", `${name}.csr`, "-subj", `/CN=${name}`],
    ]);
    this.openssl([
      ...["x509", "-req", "-in", `${name}.csr`, "-CA", `${by}.pem`, "-CAkey", `${by}.key`, "-CAcreateserial"],
      ...["-out", `${name}.pem`, "-days", String(days), "-extfile", `${name}.ext`],
    ]);
    return { cert: this.read(`${name}.pem`), key: this.read(`${name}.key`) };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private read(name: string): string {
    return readFileSync(join(this.folder, name), "utf8");
  }

  private openssl(args: readonly string[]): void {
    const run = Bun.spawnSync(["openssl", ...args], { cwd: this.folder, stderr: "pipe" });
    if (!run.success) throw new Error(`openssl: ${run.stderr.toString()}`);
  }
}
