import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import { ReceiptCopies } from "./copies.ts";
import { registerDeliveries } from "./jobs.ts";
import type { ProjectOwners } from "./ports.ts";
import { notaryRoutes } from "./routes.ts";
import { S3Client } from "./s3.ts";
import { NotaryService } from "./service.ts";
import { NotaryStore } from "./store.ts";
import { CopyStore } from "./store-copies.ts";

/** What the notary offers to the rest of the house. */
export interface NotaryArea extends ApiArea {
  readonly resources: ProjectResources;
}

/** Builds the area: chains of signed receipts, one per project, and their copies in the projects' own storages. */
export function createNotary(kernel: Kernel, outbound: OutboundClient, owners: ProjectOwners): NotaryArea {
  const { db, writer, clock, vault, ids, scheduler } = kernel;
  const store = new NotaryStore(db);
  const notary = new NotaryService({ store, vault, ids });
  const copies = new ReceiptCopies({
    notary,
    store: new CopyStore(db),
    vault,
    scheduler,
    ids,
    client: new S3Client(outbound),
    policy: outbound.policy,
    owners,
  });
  registerDeliveries({ scheduler, writer, clock, ids, notary, copies });
  return {
    parts: [
      {
        name: "Notary",
        description:
          "A chain of Ed25519-signed receipts for JSON log entries, which anyone can verify with the public key.",
      },
    ],
    routes: (api) => notaryRoutes(api, notary, copies),
    resources: {
      name: "chains",
      count: (projectRef) => (store.chainOf(projectRef) === null ? 0 : 1),
      projectDeleted: (tx, projectRef) => copies.stop(tx, projectRef),
      removeRows: (tx, projectRef, rowsMax) => copies.remove(tx, projectRef, rowsMax),
    },
  };
}
