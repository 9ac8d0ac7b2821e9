import ipaddr from "ipaddr.js";
import { StartupError } from "../errors.ts";
import { isAddress, parseRange } from "./addresses.ts";

/** Bytes of a packed range: its kind, its bits, and the sixteen of its address, of which IPv4 fills four. */
const PACKED = 18;
const BITS_AT = 1;
const ADDRESS_AT = 2;
const WIDTHS: Readonly<Record<number, number>> = { 4: 32, 6: 128 };

/** Addresses and ranges, parsed once and packed, so that thousands of lists lie in memory and are matched byte by byte. */
export class AddressRanges {
  private constructor(
    /** As they are stored. */
    readonly packed: Uint8Array,
  ) {}

  /** @throws StartupError naming the text that is neither an address nor a range. */
  static parse(texts: readonly string[]): AddressRanges {
    const packed = new Uint8Array(texts.length * PACKED);
    texts.forEach((text, index) => {
      const [base, bits] = parseRange(text);
      pack(packed.subarray(index * PACKED), base, bits);
    });
    return new AddressRanges(packed);
  }

  /** Those that were stored. */
  static of(packed: Uint8Array): AddressRanges {
    return new AddressRanges(packed);
  }

  /** One text for each: a range in CIDR form, a single address by itself. */
  get texts(): string[] {
    return this.entries().map((entry) => {
      const kind = entry[0] ?? 0;
      const width = WIDTHS[kind] ?? 0;
      const bytes = [...entry.subarray(ADDRESS_AT, ADDRESS_AT + width / 8)];
      const address = ipaddr.fromByteArray(bytes).toString();
      const bits = entry[BITS_AT] ?? 0;
      return bits === width ? address : `${address}/${bits}`;
    });
  }

  /** Whether an address lies in one of them; false for a text that is no address. IPv4-mapped IPv6 counts as IPv4. */
  includes(address: string): boolean {
    if (!isAddress(address)) return false;
    const parsed = ipaddr.process(address);
    const wanted = new Uint8Array(PACKED);
    pack(wanted, parsed, WIDTHS[parsed.kind() === "ipv4" ? 4 : 6] ?? 0);
    return this.entries().some((entry) => covers(entry, wanted));
  }

  /** Whether every address of `others` lies in one of these ranges. */
  covers(others: AddressRanges): boolean {
    const entries = this.entries();
    return others.entries().every((wanted) => entries.some((entry) => covers(entry, wanted)));
  }

  private entries(): Uint8Array[] {
    const { packed } = this;
    return Array.from({ length: packed.length / PACKED }, (_, index) =>
      packed.subarray(index * PACKED, (index + 1) * PACKED),
    );
  }
}

/** Whether a text is an address or a range that such a list can hold: no interface of this machine, as in `fe80::1%eth0`. */
export function isRange(text: string): boolean {
  try {
    parseRange(text);
    return !text.includes("%");
  } catch (error) {
    if (error instanceof StartupError) return false;
    throw error;
  }
}

function pack(into: Uint8Array, address: ipaddr.IPv4 | ipaddr.IPv6, bits: number): void {
  into[0] = address.kind() === "ipv4" ? 4 : 6;
  into[BITS_AT] = bits;
  into.set(address.toByteArray(), ADDRESS_AT);
}

/** Whether a range is of the same kind as another, no narrower, and begins with the same bits. */
function covers(range: Uint8Array, other: Uint8Array): boolean {
  const bits = range[BITS_AT] ?? 0;
  if (range[0] !== other[0] || bits > (other[BITS_AT] ?? 0)) return false;
  const whole = ADDRESS_AT + (bits >> 3);
  for (let at = ADDRESS_AT; at < whole; at += 1) if (range[at] !== other[at]) return false;
  const rest = bits & 7;
  return rest === 0 || ((range[whole] ?? 0) ^ (other[whole] ?? 0)) >> (8 - rest) === 0;
}
