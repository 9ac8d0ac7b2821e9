import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import type { RequestHeaders } from "../../../kernel/outbound/headers.ts";
import type { Answered, Failed } from "../../../kernel/outbound/outcome.ts";
import type { IcmpResult } from "../icmp-result.ts";
import type { Assertions } from "../options.ts";
import type { MonitorSettings } from "../store.ts";

/** What a check found, for all types of targets. */
export type TargetOutcome = (
  | Failed
  | (Pick<Answered, "answered" | "latencyMs" | "stalledMs" | "certificate"> & {
      /** Address that the target responded from; null if another server responded for it. */
      readonly address: string | null;
      /** HTTP status; null for other protocols. */
      readonly status: number | null;
      /** Why the target is down in spite of its response; null: it is up. */
      readonly error: string | null;
      /** Whether the check could not be made, for the reason in `error`. */
      readonly isUnknown?: true;
    })
) & {
  /** What became of the packets of an `icmp` check. */
  readonly icmp?: IcmpResult;
  /** When the registration of a `domain` ends, epoch milliseconds. */
  readonly expiresAt?: number;
};

/** The settings that a check reads, whoever runs it: the server, or a probe. */
export type TargetSettings = Assertions &
  Pick<
    MonitorSettings,
    | ("type" | "url" | "method" | "body" | "timeout" | "host" | "port")
    | ("record_type" | "record_value" | "record_values" | "match" | "resolver")
    | ("tls" | "tls_verify" | "tls_client_certificate")
    | ("packets" | "max_loss_percent")
  >;

/** What a check needs to know of a monitor. */
export interface CheckedTarget {
  /** Reference of the account whose check it is; null on a probe. */
  readonly account: number | null;
  readonly settings: TargetSettings;
  /** Headers of the request; null without any. */
  readonly headers: RequestHeaders | null;
  /** Key of the client certificate, PEM; null without one. */
  readonly clientKey: string | null;
  /** Registries of names, which a probe does not query. */
  readonly registries?: { serverOf(name: string): Promise<string | null> };
}

/** How monitors of one type check their targets. */
export interface TargetKind {
  /** URL that identifies the target in responses and alerts. */
  urlOf(settings: Pick<MonitorSettings, "url" | "host" | "port" | "record_type">): string;
  /** `now`: epoch milliseconds. */
  check(outbound: OutboundClient, target: CheckedTarget, now: number): Promise<TargetOutcome>;
  /**
   * URL of a TCP port of the target, with the scheme of HTTP: whether it accepts connections shows whether the server is
   * online. Null if the target has none.
   */
  probeUrlOf(url: string): string | null;
}
