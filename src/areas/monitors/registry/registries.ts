import { readFileSync, statSync } from "node:fs";
import { errorText, StartupError } from "../../../kernel/errors.ts";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { DAY_MS } from "../../../kernel/time/units.ts";
import type { AreaDeps } from "../ports.ts";
import { BOOTSTRAP_BYTES_MAX, type RdapServers, readBootstrap, serverFor, serversIn } from "./bootstrap.ts";
import type { RegistryStore } from "./store.ts";

/** Where IANA publishes which registry serves which names (RFC 9224). */
const IANA_URL = "https://data.iana.org/rdap/dns.json";
/** Time between two reads of the list: registries move seldom. */
const REFRESH_MS = 30 * DAY_MS;
/** Time until a read that failed is repeated. */
const RETRY_MS = DAY_MS;
const TIMEOUT_MS = 30_000;
const REDIRECTS_MAX = 3;
/** The job that reads the list again while there is a domain monitor. */
const REFRESH_JOB = "monitors.rdap-bootstrap";

type Deps = Pick<AreaDeps, "clock" | "log" | "outbound" | "scheduler" | "writer"> & {
  readonly registries: RegistryStore;
  /** `--rdap-bootstrap`: file or URL of the list; null: that of IANA, of which one is built in. */
  readonly rdapBootstrap: string | null;
};

/** A list that was read, and what shows that it is still the same. */
interface Known {
  readonly version: number;
  readonly servers: RdapServers;
}

/** Knows the RDAP servers of registries: from a file, from a URL, or from the built-in list of IANA, which is refreshed monthly. */
export class Registries {
  private readonly url: string | null;
  private known: Known | null = null;
  private builtIn: RdapServers | null = null;
  private reading: Promise<RdapServers> | null = null;
  /** Whether the list could be used the last time. */
  private isUsable = true;

  /** @throws StartupError for a file that cannot be read */
  constructor(private readonly deps: Deps) {
    const { rdapBootstrap: source, scheduler, clock } = deps;
    this.url = source === null ? IANA_URL : /^https?:\/\//i.test(source) ? source : null;
    if (source !== null && this.url === null) this.ofFile(source);
    scheduler.register(REFRESH_JOB, {
      concurrency: 1,
      run: async () => {
        if (this.deps.registries.hasDomains() === 0) return {};
        // A file is read when it changes. The job stays for a later start without it.
        const isRead = this.url === null || (await this.refresh());
        return { retryAt: clock.now() + (isRead ? REFRESH_MS : RETRY_MS), attempt: 0 };
      },
    });
  }

  /** A domain monitor begins: from now on the list is refreshed. */
  begin(tx: Tx): void {
    const { registries, scheduler } = this.deps;
    const stored = registries.bootstrap();
    // The built-in list is taken as new.
    if (this.url !== null && stored?.source !== this.url) registries.setBootstrap(tx, this.url, tx.now, null);
    const refreshedAt = stored !== null && stored.source === this.url ? stored.refreshedAt : tx.now;
    scheduler.enqueue(tx, REFRESH_JOB, "", Math.max(tx.now, refreshedAt + REFRESH_MS), null);
  }

  /** URL of the RDAP server of a name; null: none is known. @throws Error if the list cannot be read */
  async serverOf(name: string): Promise<string | null> {
    const { rdapBootstrap: source, log } = this.deps;
    try {
      const servers = source !== null && this.url === null ? this.ofFile(source) : await this.ofUrl();
      this.isUsable = true;
      return serverFor(servers, name);
    } catch (error) {
      // Once, and not for each monitor.
      if (this.isUsable) log.warn("the list of RDAP servers cannot be read", { error: errorText(error) });
      this.isUsable = false;
      throw error;
    }
  }

  /** The list of a file, which is read again when it changes. @throws StartupError */
  private ofFile(path: string): RdapServers {
    try {
      const { mtimeMs: version, size } = statSync(path);
      if (this.known?.version === version) return this.known.servers;
      if (size > BOOTSTRAP_BYTES_MAX) throw new Error(`it has more than ${BOOTSTRAP_BYTES_MAX / 1_024} KiB`);
      const servers = readBootstrap(readFileSync(path, "utf8"));
      this.known = { version, servers };
      return servers;
    } catch (error) {
      throw new StartupError(`rdap_bootstrap: "${path}" cannot be used (${errorText(error)}).`);
    }
  }

  private async ofUrl(): Promise<RdapServers> {
    const stored = this.deps.registries.bootstrap();
    const file = stored?.source === this.url ? stored.file : null;
    if (stored !== null && file !== null) {
      if (this.known?.version !== stored.refreshedAt)
        this.known = { version: stored.refreshedAt, servers: readBootstrap(file) };
      return this.known.servers;
    }
    if (this.url === IANA_URL) return this.ofIana();
    this.reading ??= this.read().finally(() => {
      this.reading = null;
    });
    return this.reading;
  }

  /** The built-in list, loaded on use. */
  private async ofIana(): Promise<RdapServers> {
    this.builtIn ??= serversIn((await import("./iana-dns.json", { with: { type: "json" } })).default);
    return this.builtIn;
  }

  /** Reads the list again. Returns whether that succeeded. */
  private async refresh(): Promise<boolean> {
    try {
      await this.read();
      return true;
    } catch (error) {
      this.deps.log.warn("the list of RDAP servers could not be read: the last one is used", {
        error: errorText(error),
      });
      return false;
    }
  }

  /** Reads and stores the list of the URL. @throws Error */
  private async read(): Promise<RdapServers> {
    const { outbound, registries, writer, clock } = this.deps;
    const url = this.url ?? IANA_URL;
    const text = await textAt(outbound, url, url !== IANA_URL);
    const servers = readBootstrap(text);
    await writer.submit((tx) => registries.setBootstrap(tx, url, clock.now(), text));
    return servers;
  }
}

/** @throws Error */
async function textAt(outbound: OutboundClient, url: string, ofOperator: boolean): Promise<string> {
  const outcome = await outbound.send({
    account: null,
    method: "GET",
    url,
    headers: { Accept: "application/json" },
    body: null,
    timeoutMs: TIMEOUT_MS,
    bodyBytesMax: BOOTSTRAP_BYTES_MAX,
    keepsBody: true,
    longerBody: "fail",
    redirectsMax: REDIRECTS_MAX,
    reuseConnection: false,
    ofOperator,
  });
  if (!outcome.answered) throw new Error(`${outcome.failure.kind}: ${outcome.failure.message}`);
  if (outcome.status !== 200) throw new Error(`${url} responded with ${outcome.status}`);
  return Buffer.from(outcome.body).toString("utf8");
}
