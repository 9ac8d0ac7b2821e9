import { ManualClock } from "../../../../src/kernel/time/clock.ts";
import type { Receiver } from "../../../kept/world.ts";
import { TestServer } from "../../../support/server.ts";

/** The contents of the kept folder with pending alerts. */
export interface KeptAlerts {
  /** Time of the clock at the kill, in epoch milliseconds. */
  readonly at: number;
  readonly operatorKey: string;
  /** Key of the account with the monitor and the meter. */
  readonly key: string;
  /** Address of the account, to which an e-mail is pending. */
  readonly email: string;
  /** The requests so far, by path. */
  readonly sent: Readonly<Record<string, { readonly id: string; readonly body: string }>>;
  /** The pending deliveries, as the earlier version listed them. */
  readonly deliveries: readonly { readonly relay_id: string; readonly event: string }[];
}

/** The paths of the receiver that alerts go to: it rejects every request. */
export const PATHS = { monitor: "/broken/alert", channel: "/broken/chat", meter: "/broken/low" } as const;

/** A server whose targets are the receiver, with a mail server. */
export function serverWithMail(
  at: number,
  receiver: Receiver,
  smtpUrl: string,
): TestServer & { readonly time: ManualClock } {
  const time = new ManualClock(at);
  const server = new TestServer({
    args: ["--allow-private-targets", "all", "--mail-from", "alerts@ninefold.example"],
    environment: { NINEFOLD_SMTP_URL: smtpUrl },
    deps: { clock: time, outbound: { resolver: { resolve: async () => [receiver.address] } } },
  });
  return Object.assign(server, { time });
}
