import { patternOf, type Step } from "./page.ts";
import type { Outcome } from "./reader.ts";

/** The documented result of a step: a status, and a response body or printed lines. */
function claimOf({ says }: Step): { status: number | null; text: string } {
  const [, status, text] = /^(?:(\d{3})(?: |$))?(.*)$/s.exec(says.join("\n")) ?? [];
  return { status: status === undefined ? null : Number(status), text: text ?? "" };
}

/** The difference between a step's result and the documented one; null without a difference. */
export function surprise(step: Step, { code, out, error, statuses, body }: Outcome): string | null {
  const { status, text } = claimOf(step);
  const asked = statuses.length > 0;
  const good = statuses.every((one) => (status === null ? one < 300 : one === status));
  const printed = (asked ? body : out).trimEnd();
  if (code === 0 && error === "" && good && (text === "" || patternOf(text).test(printed))) return null;
  return [step.command, ...step.says, `→ ${code} ${statuses.join(" ")} ${printed}${error}`].join("\n");
}
