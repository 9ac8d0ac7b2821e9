import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Platform } from "./platforms.ts";
import type { Run } from "./runtime.ts";

/** Input of a Debian package. */
export interface DebianShop {
  /** The repository's root. */
  readonly root: string;
  /** Folder of the package. */
  readonly folder: string;
  readonly version: string;
  /** Time of all files in the package, ISO 8601. */
  readonly date: string;
  /** `none` if only the content matters. */
  readonly compression: "gzip" | "none";
  readonly run: Run;
}

const ARCHITECTURES = { x64: "amd64", arm64: "arm64" } as const;
const CONFFILES = "/etc/ninefold/ninefold.toml\n";

/** Whether there is a Debian package for a platform: it has Debian's C library. */
export function hasDebianPackage({ libc }: Platform): boolean {
  return libc === "glibc";
}

/**
 * Creates the Debian package of an executable: the files that `scripts/install --package` installs, and the scripts of
 * `packaging/debian`. The same input gives the same bytes. Returns the name of the file.
 *
 * @throws Error with what failed.
 */
export async function packDebian(shop: DebianShop, platform: Platform, executable: string): Promise<string> {
  const { root, folder, version, run } = shop;
  const architecture = ARCHITECTURES[platform.cpu];
  const file = `ninefold_${version}_${architecture}.deb`;
  const stage = mkdtempSync(join(tmpdir(), "ninefold-deb-"));
  const must = async (command: readonly string[]): Promise<void> => {
    const { code, output } = await run(command, stage);
    if (code !== 0) throw new Error(`${file} could not be made:\n${output.trimEnd()}`);
  };
  try {
    chmodSync(stage, 0o755);
    const install = `umask 022 && exec sh "$0" --package --root "$1" --executable "$2"`;
    await must(["sh", "-c", install, join(root, "scripts/install"), stage, executable]);
    const documents = join(stage, "usr/share/doc/ninefold");
    mkdirSync(documents, { recursive: true, mode: 0o755 });
    cpSync(join(root, "LICENSE"), join(documents, "copyright"));
    writeControl(shop, stage, architecture);
    const epoch = Math.floor(Date.parse(shop.date) / 1000);
    const build = ["dpkg-deb", "--root-owner-group", `-Z${shop.compression}`, "--build", stage];
    await must(["env", `SOURCE_DATE_EPOCH=${epoch}`, ...build, join(folder, file)]);
    return file;
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

function writeControl({ root, version }: DebianShop, stage: string, architecture: string): void {
  const paths = readdirSync(stage, { recursive: true, encoding: "utf8" }).sort();
  const files = paths.filter((path) => statSync(join(stage, path)).isFile());
  for (const path of files)
    chmodSync(join(stage, path), path.startsWith("usr/bin") || path.endsWith("/install") ? 0o755 : 0o644);
  for (const path of paths) if (!files.includes(path)) chmodSync(join(stage, path), 0o755);
  const bytes = files.reduce((sum, path) => sum + statSync(join(stage, path)).size, 0);
  const control = join(stage, "DEBIAN");
  mkdirSync(control, { mode: 0o755 });
  const write = (name: string, text: string): void =>
    writeFileSync(join(control, name), text, { mode: 0o644 });
  write(
    "control",
    `Package: ninefold
Version: ${version.replace("-", "~")}
Architecture: ${architecture}
Maintainer: Ninefold contributors <noreply@ninefold.invalid>
Installed-Size: ${Math.ceil(bytes / 1024)}
Depends: libc6, passwd
Recommends: systemd
Section: net
Priority: optional
Description: nine backend services in one executable, on one SQLite file
 Usage meters, projects, API keys, feature flags, distributed locks, uptime
 monitors, delayed webhooks, an inbox for webhooks and a notary for audit logs.
`,
  );
  write("conffiles", CONFFILES);
  const sum = (path: string): string =>
    new Bun.CryptoHasher("md5").update(readFileSync(join(stage, path))).digest("hex");
  const hashed = files.filter((path) => !CONFFILES.includes(path));
  write("md5sums", hashed.map((path) => `${sum(path)}  ${path}\n`).join(""));
  for (const name of ["postinst", "prerm", "postrm"]) {
    cpSync(join(root, "packaging/debian", name), join(control, name));
    chmodSync(join(control, name), 0o755);
  }
}
