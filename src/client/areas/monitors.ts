import type { Answers } from "../api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";
import { MonitorsMethods } from "./methods.ts";

/**
 * Scheduled checks of URLs, and heartbeats that expect pings. Each request costs 1 credit; checks and pings are
 * free.
 */
export class Monitors extends MonitorsMethods {
  /**
   * Checks a monitor immediately, on the server or on the probe with the name `probe`. The check counts like a scheduled one,
   * but causes no alerts.
   */
  check(monitorId: string, { probe, ...options }: CheckOptions = {}): Answers<"monitors.check"> {
    const query = probe === undefined ? {} : { probe };
    return this.api.call("monitors.check", { params: { monitorId }, query }, options);
  }

  /**
   * Pings the heartbeat of a `ping_url` or `ping_slug_url`: `nf.monitors.ping(url, { says: "fail", body: log })`.
   * The ping is stored durably when the promise resolves. @throws TypeError for a URL without `/ping/`.
   */
  async ping(pingUrl: string, { says, rid, body, ...options }: PingOptions = {}): Promise<void> {
    const below = says === undefined ? "" : `/${says}`;
    const query = rid === undefined ? "" : `?rid=${encodeURIComponent(rid)}`;
    const start = pingUrl.indexOf("/ping/");
    if (start < 0)
      throw new TypeError("pingUrl must be the ping_url or ping_slug_url of a heartbeat, with /ping/");
    const path = pingUrl.slice(start) + below + query;
    const request = {
      method: "POST",
      path,
      body,
      withKey: false,
      wantsBytes: true,
      repeatable: true,
    } as const;
    await this.api.transport.send(request, options);
  }
}

/** Options of a manual check. */
export interface CheckOptions extends ChangeOptions {
  /** Name of the probe that makes it, or `local`. */
  readonly probe?: string;
}

/** Options of a ping; by default it reports success. */
export interface PingOptions extends RequestOptions {
  /** `start`, `fail`, `log`, or an exit status. */
  readonly says?: "start" | "fail" | "log" | number;
  /** Pairs the start and the end of a run: a UUID. */
  readonly rid?: string;
  /** Output of the run: its first 10,000 bytes are stored. */
  readonly body?: string | Uint8Array;
}
