import { hash } from "node:crypto";
import type { AuditedRequest } from "../../kernel/audit/trail.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Incidents } from "./lifecycle.ts";
import type { IncidentDeps, IncidentMonitor } from "./ports.ts";
import { SNOOZE_MS } from "./schema.ts";
import type { IncidentRow, IncidentStore } from "./store.ts";

/** The context of sealed tokens, so that no other sealed text is one. */
const TOKEN_CONTEXT = "alert-link";
const DIGEST_BYTES = 16;
/** Links of one incident that can be used: more than are sent in a month of reminders to some channels. */
const LINK_USES_MAX = 1_000;

/** What a link does. */
export type LinkAction = "acknowledge" | "snooze";

/** An open incident that a link leads to. */
export interface LinkedIncident {
  readonly incident: IncidentRow;
  readonly monitor: IncidentMonitor;
  /** The channel that was sent the link; 0 for the e-mail of an account. */
  readonly channelRef: number;
}

/**
 * A token of a link in an alert to a channel, whose reference is 0 for the e-mail of the account. It cannot be made up or altered.
 * It has the id of the incident: a server whose backup was restored gives references to other incidents.
 */
export function linkToken(vault: Pick<Vault, "seal">, incidentId: string, channelRef: number): string {
  return Buffer.from(vault.seal(`${incidentId}/${channelRef}`, TOKEN_CONTEXT)).toString("base64url");
}

/** Links in alerts, with which whoever gets them acknowledges or snoozes an outage without a login. Each works once. */
export class AlertLinks {
  constructor(
    private readonly deps: Pick<Kernel, "vault" | "writer" | "scheduler"> &
      Pick<IncidentDeps, "alerts" | "monitors" | "owners" | "timeZoneOf" | "isStopped" | "trail"> & {
        readonly incidents: IncidentStore;
      },
    private readonly incidents: Incidents,
  ) {}

  /**
   * The incident that a token leads to; null if the link was used, or the outage is over.
   * @throws ApiError `not_found` for a token that the server has not made, and while the account is suspended
   */
  find(token: string): LinkedIncident | null {
    const [incidentId = "", channelRef] = this.opened(token);
    const { incidents, monitors, scheduler, isStopped } = this.deps;
    const incident = incidents.find(incidentId);
    if (incident === null || incident.resolvedAt !== null || incident.monitorRef === null) return null;
    if (isStopped(incident.projectRef)) return null;
    const isUsed =
      incidents.isUsedLink(incident.ref, digestOf(token)) !== 0 ||
      incidents.usedLinks(incident.ref) >= LINK_USES_MAX;
    const monitor = monitors.monitor(incident.monitorRef);
    if (isUsed || monitor === null) return null;
    if (scheduler.suspended.has(monitor.accountRef)) throw unknownLink();
    return { incident, monitor, channelRef: Number(channelRef) };
  }

  /** The time zone of the texts about an incident. */
  timeZoneOf({ projectRef }: IncidentRow): string {
    return this.deps.timeZoneOf(projectRef);
  }

  /**
   * Acknowledges or snoozes the outage of a link, and uses it up. Null if it was used, or the outage is over.
   * @throws ApiError `not_found`
   */
  act(
    token: string,
    action: LinkAction,
    request: Pick<AuditedRequest, "requestId" | "requestOrigin">,
  ): Promise<IncidentRow | null> {
    return this.deps.writer.submit((tx) => {
      const linked = this.find(token);
      if (linked === null) return null;
      const { incident, monitor } = linked;
      this.deps.incidents.addUsedLink(tx, incident.ref, digestOf(token));
      const changed = this.change(tx, linked, action);
      if (changed === null) return incident;
      const { userId } = this.deps.owners.account(monitor.accountRef);
      const account = { ref: monitor.accountRef, userId };
      this.deps.trail.recordPublic(tx, `monitors.incidents.${action}`, request, account, changed.change);
      return changed.row;
    });
  }

  /** Null for an outage that is acknowledged already: nobody is notified again anyway. */
  private change(tx: Tx, { incident, channelRef }: LinkedIncident, action: LinkAction) {
    if (incident.acknowledgedAt !== null) return null;
    if (action === "snooze") return this.incidents.snooze(tx, incident, tx.now + SNOOZE_MS);
    const name = this.deps.alerts.channelName(channelRef);
    return this.incidents.acknowledgeBy(tx, incident, name === null ? "a link" : `${name} (link)`);
  }

  private opened(token: string): readonly string[] {
    try {
      return this.deps.vault.open(Buffer.from(token, "base64url"), TOKEN_CONTEXT).split("/");
    } catch {
      throw unknownLink();
    }
  }
}

function unknownLink(): ApiError {
  return new ApiError("not_found", "This link is not one of this server. Open the link of an alert.");
}

function digestOf(token: string): Uint8Array {
  return hash("sha256", token, "buffer").subarray(0, DIGEST_BYTES);
}
