import type { FlagBody, FlagProposalBody } from "../../../../client/generated/api.ts";
import { call, Failure } from "../../core/api.ts";

/** Shown when a change waits for the approval of somebody else. */
export const PROPOSED = "Proposed: somebody else must approve it";

/** Whether a change was made, or proposed because the project reviews it. */
export type Saved = "saved" | "proposed";

/** Makes a change of a flag, or proposes it where the project reviews changes. */
export async function proposing(
  flagKey: string,
  change: () => Promise<unknown>,
  proposal: () => FlagProposalBody,
): Promise<Saved> {
  try {
    await change();
    return "saved";
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "review_required") throw error;
    await call("gate.proposals.create", { params: { flagKey }, body: proposal() });
    return "proposed";
  }
}

/** Saves a flag, or proposes the change. */
export function saveFlag(body: FlagBody): Promise<Saved> {
  const { flag_key, if_version: _, ...proposal } = body;
  return proposing(
    flag_key,
    () => call("gate.save", { body }),
    () => proposal,
  );
}
