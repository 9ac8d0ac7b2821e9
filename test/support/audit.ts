import { AuditTrail } from "../../src/kernel/audit/trail.ts";
import { Changes } from "../../src/kernel/projects/changes.ts";

/** A trail that nobody reads, for parts that are built without a server. */
export const UNHEARD = new AuditTrail({
  write: () => {},
  keyOf: () => null,
  budget: { isSpent: () => false, spend: () => {} },
  keepsAddresses: true,
  changes: new Changes(),
});
