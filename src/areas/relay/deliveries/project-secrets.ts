import type { CallerProject } from "../../../kernel/callers/caller.ts";
import type { WebhookSecrets } from "../../../kernel/outbound/webhook-secrets.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import {
  GRACE_HOURS,
  type RelaySecret,
  type RelaySecretRotateBody,
  type RelaySecretRotated,
} from "./schema.ts";

/** Reveals and rotates a project's signing secret. */
export class ProjectSecrets {
  constructor(private readonly secrets: WebhookSecrets) {}

  /** Returns the project's secret, and creates it on first use. */
  reveal(tx: Tx, project: CallerProject): RelaySecret {
    const [{ text, createdAt }, ...previous] = this.secrets.current(tx, project.ref);
    tx.audit({ ...about(project, "revealed"), before: null, after: { created_at: createdAt } });
    return {
      secret: text,
      created_at: createdAt,
      previous: previous.map(({ expiresAt }) => ({ expires_at: expiresAt ?? tx.now })),
    };
  }

  /** Replaces the project's secret. @throws ApiError `validation_error` for an invalid secret */
  rotate(tx: Tx, project: CallerProject, { grace_hours, secret }: RelaySecretRotateBody): RelaySecretRotated {
    const graceMs = (grace_hours ?? GRACE_HOURS) * HOUR_MS;
    const [before] = this.secrets.current(tx, project.ref);
    const [{ text, createdAt }] = this.secrets.rotate(tx, project.ref, graceMs, secret);
    const previous_expires_at = tx.now + graceMs;
    tx.audit({
      ...about(project, "rotated"),
      before: { created_at: before.createdAt },
      after: { created_at: createdAt, previous_expires_at },
    });
    return { secret: text, previous_expires_at };
  }
}

function about({ id }: CallerProject, what: string) {
  return { summary: `Signing secret of deliveries ${what}`, target: { type: "webhook_secret", id } };
}
