import { invalidField } from "../../kernel/errors.ts";
import type { Escalation } from "./schema.ts";
import type { ChannelRow, ChannelStore, EscalationStep } from "./store.ts";

/** @throws ApiError `validation_error` for a step that is not after the one before it */
export function assertAscending(steps: Escalation): void {
  const at = steps.findIndex(({ after_ms }, index) => after_ms <= (steps[index - 1]?.after_ms ?? 0));
  if (at > 0) throw invalidField(`escalate.${at}.after_ms`, "must be more than in the step before");
}

/**
 * The steps of a channel as they are stored.
 * @throws ApiError `validation_error` for steps that are not in order, for channels of other projects, and for those that lead
 *   back to the channel
 */
export function stepsOf(
  channels: ChannelStore,
  { ref, projectRef }: Pick<ChannelRow, "ref" | "projectRef">,
  steps: Escalation,
): EscalationStep[] {
  assertAscending(steps);
  return steps.map(({ after_ms: afterMs, channel_ids }, index) => ({
    afterMs,
    channelRefs: channel_ids.map((id) => {
      const row = channels.find(id);
      const field = `escalate.${index}.channel_ids`;
      if (row === null || row.projectRef !== projectRef)
        throw invalidField(field, "must be ids of channels of this project");
      if (leadsTo(channels, row, ref))
        throw invalidField(field, "must be channels that do not escalate to this one");
      return row.ref;
    }),
  }));
}

/** The steps of a channel in responses, without channels that were deleted. */
export function escalationOf(channels: ChannelStore, { escalate }: ChannelRow): Escalation {
  return escalate
    .map(({ afterMs, channelRefs }) => ({
      after_ms: afterMs,
      channel_ids: channelRefs.flatMap((ref) => channels.withRef(ref)?.id ?? []),
    }))
    .filter(({ channel_ids }) => channel_ids.length > 0);
}

/** Whether a channel is another one, or escalates to it, also through others. A project has at most 50. */
function leadsTo(channels: ChannelStore, from: ChannelRow, target: number): boolean {
  const seen = new Set<number>();
  const open = [from.ref];
  for (let ref = open.pop(); ref !== undefined; ref = open.pop()) {
    if (ref === target) return true;
    if (seen.has(ref)) continue;
    seen.add(ref);
    for (const { channelRefs } of channels.withRef(ref)?.escalate ?? []) open.push(...channelRefs);
  }
  return false;
}
