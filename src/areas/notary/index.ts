import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import { countsSchema, type OverviewCard, waitingSince } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { notaryRoutes } from "./routes.ts";
import { NotaryService } from "./service.ts";
import { copyStore, notaryStore } from "./store.ts";
import { registerUploadJob } from "./upload-job.ts";
import { type ProjectOwners, Uploads } from "./uploads.ts";

/** Interface of the notary to the rest of the server. */
export interface NotaryArea extends ApiArea {
  readonly card: OverviewCard;
  readonly resources: ProjectResources;
}

/** Creates the area: chains of signed receipts, one per project, and their copies in the projects' storages. */
export function createNotary(kernel: Kernel, outbound: OutboundClient, owners: ProjectOwners): NotaryArea {
  const store = notaryStore(kernel.db);
  const notary = new NotaryService(store, kernel);
  const uploads = new Uploads({ ...kernel, notary, store: copyStore(kernel.db), outbound, owners });
  registerUploadJob(kernel, notary, uploads);
  return {
    parts: [
      {
        name: "Notary",
        description:
          "A chain of Ed25519-signed receipts for JSON log entries. Anyone can verify it with the public key.",
      },
    ],
    alsoCalled: { witness: ["notary", "audit"], log: ["logs"], pubkey: ["public-key"] },
    routes: (api) => notaryRoutes(api, notary, uploads),
    card: {
      area: "witness",
      schema: countsSchema(["receipts", "buffered"], {
        buffered_since: waitingSince(
          "Creation time of the oldest receipt that has not been copied to the storage.",
        ),
      }),
      read: ({ project: { ref } }) => ({
        receipts: notary.chain(ref)?.sequence ?? 0,
        buffered: uploads.buffered(ref),
        buffered_since: isoTimeOrNull(uploads.bufferedSince(ref)),
      }),
    },
    resources: {
      name: "chains",
      count: (projectRef) => (store.chainOf(projectRef) === null ? 0 : 1),
      projectDeleted: (tx, projectRef) => uploads.stop(tx, projectRef),
      removeRows: (tx, projectRef, rowsMax) => uploads.remove(tx, projectRef, rowsMax),
    },
  };
}
