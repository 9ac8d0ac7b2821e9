import { ApiError } from "../../kernel/errors.ts";
import type { AuditChange, Tx } from "../../kernel/storage/tx.ts";
import type { FlagBody } from "./schema.ts";

/** Writes the entry of a save. */
export type AuditSave = (change: AuditChange | null) => void;

/** Decides which changes of flags need the approval of somebody else. */
export class Review {
  constructor(
    private readonly isReviewed: (projectRef: number) => boolean,
    private readonly exists: (projectRef: number, flagKey: string) => boolean,
  ) {}

  /** @throws ApiError `review_required` */
  assertUnneeded(projectRef: number): void {
    if (!this.isReviewed(projectRef)) return;
    throw new ApiError(
      "review_required",
      "This project reviews changes of flags. Propose the change instead, with POST /v1/gate/{flagKey}/proposals.",
    );
  }

  /**
   * How a save is audited. In an emergency a flag can be switched off without a review, by `enabled: false` alone, and its
   * entry says so.
   * @throws ApiError `review_required`
   */
  auditOf(tx: Tx, projectRef: number, body: FlagBody): AuditSave {
    if (!this.isReviewed(projectRef)) return (change) => tx.audit(change);
    if (!isSwitchOff(body) || !this.exists(projectRef, body.flag_key)) this.assertUnneeded(projectRef);
    return (change) => {
      if (change === null) return tx.audit(null);
      const { summary, after } = change;
      tx.audit({ ...change, summary: `${summary}, unreviewed`, after: { ...after, unreviewed: true } });
    };
  }
}

const SWITCH_OFF: ReadonlySet<string> = new Set(["flag_key", "enabled", "if_version"]);

function isSwitchOff(body: FlagBody): boolean {
  return body.enabled === false && Object.keys(body).every((name) => SWITCH_OFF.has(name));
}
