import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import { type AreaExport, idLookup } from "../../kernel/projects/account-export.ts";
import { countsSchema, type OverviewCard, waitingSince } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { registerCheckpointJob } from "./checkpoints/checkpoint-job.ts";
import { Checkpoints } from "./checkpoints/checkpoints.ts";
import type { ShownChain } from "./checkpoints/tlog-routes.ts";
import { notaryExport } from "./export.ts";
import { limitOpenRequests } from "./open-requests.ts";
import { type PeerSettings, PeerWitness } from "./peer/peer.ts";
import { peerStore } from "./peer/store.ts";
import { Redactions } from "./redaction/redactions.ts";
import { RESTORED_JOB, Restores } from "./restores.ts";
import { notaryRoutes } from "./routes.ts";
import { CHECKPOINT_JOB, NotaryService, noSuchChain } from "./service.ts";
import { copyStore, notaryStore } from "./store.ts";
import { Submissions, WITNESS_JOB } from "./submissions.ts";
import { registerTreeJob, TREE_JOB } from "./tree-job.ts";
import { registerUploadJob } from "./upload-job.ts";
import { type ProjectOwners, Uploads } from "./uploads.ts";
import { registerSubmissionJob } from "./witnesses/submission-job.ts";
import { Witnesses } from "./witnesses/witnesses.ts";

/** Interface of the notary to the rest of the server. */
export interface NotaryArea extends ApiArea {
  readonly card: OverviewCard;
  readonly resources: ProjectResources;
  readonly exported: AreaExport;
  /** Starts the work that a new version has to do for the chains of earlier ones. */
  readonly resume: () => Promise<void>;
}

/** Settings from the configuration. */
export interface NotarySettings {
  readonly checkpointDelayMs?: number;
  /** This server as a witness for others; null if it is none. */
  readonly peer?: PeerSettings | null;
}

/** Creates the area: chains of signed receipts, one per project, and their copies in the projects' storages. */
export function createNotary(
  kernel: Kernel,
  outbound: OutboundClient,
  owners: ProjectOwners,
  settings: NotarySettings = {},
): NotaryArea {
  const store = notaryStore(kernel.db);
  const notary = new NotaryService(store, { ...kernel, ...settings });
  const submissions = new Submissions(kernel.scheduler, store.witnesses, owners);
  const checkpoints = new Checkpoints(notary, store.checkpoints, store.witnesses, submissions);
  const witnesses = new Witnesses({
    kernel,
    store: store.witnesses,
    notary,
    checkpoints,
    submissions,
    outbound,
    owners,
  });
  const startBacklog = registerTreeJob(kernel, notary, store.tree);
  registerCheckpointJob(kernel, notary, checkpoints);
  const uploads = new Uploads({ ...kernel, notary, store: copyStore(kernel.db), outbound, owners });
  registerUploadJob(kernel, notary, uploads);
  const restores = new Restores({ kernel, store, notary, checkpoints, uploads, witnesses });
  registerSubmissionJob(kernel, {
    notary,
    checkpoints,
    witnesses,
    detectFork: (tx, chain, epoch, fork) => restores.detectFork(tx, chain, epoch, fork),
  });
  const peer = new PeerWitness(kernel, peerStore(kernel.db), settings.peer ?? null);
  const admit = limitOpenRequests(kernel.clock);
  const redactions = new Redactions({ store, notary, uploads }, kernel);
  const shownChain: ShownChain = (chainId) => {
    const row = notary.chainById(chainId);
    const account = owners.accountOf(row.project_ref);
    if (account === null || kernel.scheduler.suspended.has(account)) throw noSuchChain();
    return row;
  };
  const projectOf = idLookup(kernel.db, "chains", "project_ref");
  return {
    parts: [
      {
        name: "Notary",
        description:
          "A chain of Ed25519-signed receipts for JSON log entries. Anyone can verify it with the public key.",
      },
    ],
    alsoCalled: { witness: ["notary", "audit"], log: ["logs"], pubkey: ["public-key"] },
    resume: async () => {
      await startBacklog();
      await peer.start();
      await restores.resume();
    },
    routes: (api) =>
      notaryRoutes(api, {
        notary,
        uploads,
        checkpoints,
        restores,
        redactions,
        witnesses,
        peer,
        admit,
        projects: owners,
        shownChain,
      }),
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
    exported: notaryExport(({ chain_ref, sequence }) =>
      notary.receipt(Number(projectOf(chain_ref)), Number(sequence)),
    ),
    resources: {
      name: "chains",
      count: (projectRef) => (store.chainOf(projectRef) === null ? 0 : 1),
      projectDeleted: (tx, projectRef) => {
        uploads.stop(tx, projectRef);
        for (const job of [CHECKPOINT_JOB, TREE_JOB, RESTORED_JOB, WITNESS_JOB])
          kernel.scheduler.cancel(tx, job, String(projectRef));
      },
      removeRows: (tx, projectRef, rowsMax) => uploads.remove(tx, projectRef, rowsMax),
    },
  };
}
