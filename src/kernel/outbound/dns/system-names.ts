import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { monotonicMs } from "../../time/clock.ts";
import { DEFAULT_PATIENCE, type Patience } from "./name-servers.ts";

/** Bytes of either file that are read: lists that block advertisements have a few mebibytes. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Shortest time between two looks at a file. */
const LOOK_MS = 1_000;
/** Search domains that are tried, and limits of the numbers, as systems have them (resolv.conf(5)). */
const SEARCHED_MAX = 6;
const NDOTS_MAX = 15;
const TIMEOUT_SECONDS_MAX = 30;
const ATTEMPTS_MAX = 5;

/** Names of this machine's hosts file, and the rules for incomplete names. */
export class SystemNames {
  private readonly hosts: WatchedFile<ReadonlyMap<string, readonly string[]>>;
  private readonly rules: WatchedFile<SearchRules>;

  constructor(hostsPath = HOSTS_PATH, rulesPath = "/etc/resolv.conf") {
    this.hosts = new WatchedFile(hostsPath, readHosts);
    this.rules = new WatchedFile(rulesPath, readRules);
  }

  /** The addresses of a name in the hosts file; empty if it is not there. */
  addressesOf(name: string): readonly string[] {
    return this.hosts.value.get(name.toLowerCase()) ?? [];
  }

  /** The complete names to look up, in this order. */
  candidates(name: string): string[] {
    const { search, ndots } = this.rules.value;
    const completed = search.map((domain) => `${name}.${domain}`);
    const dots = name.split(".").length - 1;
    return dots >= ndots ? [name, ...completed] : [...completed, name];
  }

  get patience(): Patience {
    return this.rules.value.patience;
  }
}

const HOSTS_PATH = process.platform === "win32" ? "C:\\Windows\\System32\\drivers\\etc\\hosts" : "/etc/hosts";

/** A small file that is read again when it has changed. */
class WatchedFile<T> {
  private read: { readonly version: string; readonly value: T } | null = null;
  private lookedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly path: string,
    private readonly parse: (text: string) => T,
  ) {}

  get value(): T {
    const now = monotonicMs();
    if (this.read !== null && now - this.lookedAt < LOOK_MS) return this.read.value;
    this.lookedAt = now;
    const version = versionOf(this.path);
    if (this.read?.version === version) return this.read.value;
    const value = this.parse(version === "" ? "" : textOf(this.path));
    this.read = { version, value };
    return value;
  }
}

/** Empty: there is no such file, or it is too large. */
function versionOf(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return size > FILE_BYTES_MAX ? "" : `${mtimeMs} ${size} ${ino}`;
  } catch {
    return "";
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function linesOf(text: string): string[][] {
  return text.split("\n").map((line) =>
    line
      .replace(/[#;].*/, "")
      .split(/\s+/)
      .filter((word) => word !== ""),
  );
}

function readHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const hosts = new Map<string, string[]>();
  for (const [address = "", ...names] of linesOf(text)) {
    if (isIP(address) === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      hosts.set(key, [...(hosts.get(key) ?? []), address]);
    }
  }
  return hosts;
}

interface SearchRules {
  readonly search: readonly string[];
  /** A name with fewer dots is completed first. */
  readonly ndots: number;
  readonly patience: Patience;
}

/** The last line of a kind counts. */
function readRules(text: string): SearchRules {
  let search: readonly string[] = [];
  let ndots = 1;
  let { timeoutMs, rounds } = DEFAULT_PATIENCE;
  for (const [keyword, ...values] of linesOf(text)) {
    if (keyword === "search" || keyword === "domain") search = values.slice(0, SEARCHED_MAX);
    if (keyword !== "options") continue;
    for (const option of values) {
      const [, name, digits] = /^(ndots|timeout|attempts):(\d{1,3})$/.exec(option) ?? [];
      const number = Number(digits);
      if (name === "ndots") ndots = Math.min(number, NDOTS_MAX);
      if (name === "timeout") timeoutMs = Math.min(Math.max(number, 1), TIMEOUT_SECONDS_MAX) * 1_000;
      if (name === "attempts") rounds = Math.min(Math.max(number, 1), ATTEMPTS_MAX);
    }
  }
  return {
    search: search.map((domain) => domain.replace(/\.$/, "")).filter((domain) => domain !== ""),
    ndots,
    patience: { timeoutMs, rounds },
  };
}
