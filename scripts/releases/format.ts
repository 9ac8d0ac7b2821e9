/** What the head of an executable file says about the machines that can run it. */
export interface ExecutableFormat {
  readonly container: "ELF" | "Mach-O" | "PE";
  readonly cpu: "x64" | "arm64";
  /** The loader that an ELF file requests, which identifies its C library; null in other files. */
  readonly interpreter: string | null;
}

const ELF_MAGIC = 0x7f454c46;
const ELF_CPUS: Readonly<Record<number, "x64" | "arm64">> = { 62: "x64", 183: "arm64" };
/** The program header that names the interpreter. */
const ELF_INTERPRETER = 3;
const MACH_O_64_MAGIC = 0xfeedfacf;
const MACH_O_CPUS: Readonly<Record<number, "x64" | "arm64">> = { 16777223: "x64", 16777228: "arm64" };
const PE_CPUS: Readonly<Record<number, "x64" | "arm64">> = { 34404: "x64", 43620: "arm64" };

/** Reads the head of an executable. @throws Error if it is not a 64-bit executable of a known format. */
export function readFormat(bytes: Uint8Array): ExecutableFormat {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const found = readElf(view) ?? readMachO(view) ?? readPe(view);
    if (found !== undefined) return found;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  throw new Error("no 64-bit executable of Linux, macOS or Windows");
}

/** One line for a format, such as `ELF arm64 /lib/ld-musl-aarch64.so.1`. */
export function describeFormat({ container, cpu, interpreter }: ExecutableFormat): string {
  return [container, cpu, interpreter].filter((part) => part !== null).join(" ");
}

function readElf(view: DataView): ExecutableFormat | undefined {
  if (view.getUint32(0) !== ELF_MAGIC) return undefined;
  const cpu = ELF_CPUS[view.getUint16(18, true)];
  if (cpu === undefined) return undefined;
  const headersAt = Number(view.getBigUint64(32, true));
  const headerSize = view.getUint16(54, true);
  const headers = view.getUint16(56, true);
  for (let header = 0; header < headers; header += 1) {
    const at = headersAt + header * headerSize;
    if (view.getUint32(at, true) !== ELF_INTERPRETER) continue;
    const textAt = Number(view.getBigUint64(at + 8, true));
    // The text ends with a zero byte, which is not part of it.
    const length = Number(view.getBigUint64(at + 32, true)) - 1;
    const text = new Uint8Array(view.buffer, view.byteOffset + textAt, length);
    return { container: "ELF", cpu, interpreter: new TextDecoder().decode(text) };
  }
  return { container: "ELF", cpu, interpreter: null };
}

function readMachO(view: DataView): ExecutableFormat | undefined {
  if (view.getUint32(0, true) !== MACH_O_64_MAGIC) return undefined;
  const cpu = MACH_O_CPUS[view.getUint32(4, true)];
  return cpu === undefined ? undefined : { container: "Mach-O", cpu, interpreter: null };
}

function readPe(view: DataView): ExecutableFormat | undefined {
  if (view.getUint16(0) !== 0x4d5a) return undefined;
  const peAt = view.getUint32(60, true);
  if (view.getUint32(peAt) !== 0x50450000) return undefined;
  const cpu = PE_CPUS[view.getUint16(peAt + 4, true)];
  return cpu === undefined ? undefined : { container: "PE", cpu, interpreter: null };
}
