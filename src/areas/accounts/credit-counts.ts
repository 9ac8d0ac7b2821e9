import { Counter } from "../../kernel/metrics/instruments.ts";
import type { Metrics } from "../../kernel/metrics/metrics.ts";
import type { OperationCredits } from "./actor.ts";

/** Counts the credits that operations have cost, all accounts together. */
export class CreditCounts {
  private readonly byOperation = new Map<string, OperationCredits>();

  constructor(metrics: Metrics) {
    this.declare(metrics, "charged", "Credits charged for operations.");
    this.declare(metrics, "refunded", "Credits given back, since the work came to nothing.");
  }

  /** The counts of an operation. */
  of(operation: string): OperationCredits {
    const known = this.byOperation.get(operation);
    if (known !== undefined) return known;
    const credits = { charged: new Counter(), refunded: new Counter() };
    this.byOperation.set(operation, credits);
    return credits;
  }

  private declare(metrics: Metrics, which: keyof OperationCredits, help: string): void {
    metrics.declare({
      name: `ninefold_credits_${which}_total`,
      type: "counter",
      help,
      labels: ["operation"],
      samples: () =>
        [...this.byOperation].map(([operation, credits]) => ({
          labels: { operation },
          value: credits[which].value,
        })),
    });
  }
}
