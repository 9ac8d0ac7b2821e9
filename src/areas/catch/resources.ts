import type { ProjectResources } from "../../kernel/project-resources.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Buckets } from "./buckets.ts";
import type { Removal } from "./removal.ts";
import type { BucketStore } from "./store.ts";

/** The buckets of a project, for whoever keeps projects. */
export function bucketResources(deps: {
  store: BucketStore;
  buckets: Buckets;
  removal: Removal;
}): ProjectResources {
  const { store, buckets, removal } = deps;
  return {
    name: "buckets",
    count: (projectRef) => store.idsOfProject(projectRef).length,
    projectDeleted(tx: Tx, projectRef: number) {
      for (const bucket of buckets.listOfProject(projectRef)) buckets.markDeleted(tx, bucket);
    },
    removeRows(tx: Tx, projectRef: number, rowsMax: number) {
      const bucketRef = store.anyRefOfProject(projectRef);
      if (bucketRef === null) return 0;
      removal.removeRowsOf(tx, bucketRef, rowsMax);
      // A slice has bounds of its own: it may be short although there is more.
      return store.anyRefOfProject(projectRef) === null ? rowsMax - 1 : rowsMax;
    },
  };
}
