import { type ListSpec, listing } from "./api.ts";

const BUCKETS: ListSpec = { path: "/v1/catch/buckets", items: "buckets", cursor: "cursor" };

/** `ninefold bucket list`. */
export const bucketList = listing(BUCKETS, ["name", "state", "ingest_url", "id"]);
