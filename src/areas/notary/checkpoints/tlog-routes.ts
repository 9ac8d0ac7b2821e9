import { Elysia } from "elysia";
import { ApiError } from "../../../kernel/errors.ts";
import type { Api } from "../../../kernel/http/api.ts";
import { pathOf } from "../../../kernel/http/requests/request-target.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import { leafOf } from "../../../verify/tree.ts";
import type { AdmitAddress } from "../open-requests.ts";
import { ChainParams, TileParams, Tlog, TlogBody } from "../schema.ts";
import { type NotaryService, noSuchChain } from "../service.ts";
import type { PublicChainRow } from "../store.ts";
import { TILE_WIDTH } from "../tree/hash-tree.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { EntryBundles } from "./entry-bundles.ts";
import { TEXT } from "./routes.ts";
import { parseTilePath, type TilePath, widthAt } from "./tile-path.ts";

const TLOG = "/v1/witness/tlog";
const BYTES = "application/octet-stream";
/** A tile never changes: caches may keep it for a year, the longest time that they accept. */
const IMMUTABLE = { "content-type": BYTES, "cache-control": "public, max-age=31536000, immutable" };

/** Routes of the log that anyone can read, in the layout of c2sp.org/tlog-tiles. */
export function tlogRoutes(
  api: Api,
  notary: NotaryService,
  checkpoints: Checkpoints,
  { admit, shownChain }: { readonly admit: AdmitAddress; readonly shownChain: ShownChain },
) {
  const bundles = new EntryBundles();
  /** A published chain. @throws ApiError `not_found` for every other. */
  const published = (chainId: string): number => {
    const row = shownChain(chainId);
    if (row.is_public === 0) throw noSuchChain();
    return row.project_ref;
  };
  return [
    new Elysia({ tags: ["Notary"] }).put(
      TLOG,
      api.endpoint(
        {
          name: "witness.tlog.set",
          audit: "yes",
          access: "witness:write",
          summary: "Publish the chain as a transparency log, or stop that",
          description:
            "Anyone can then read the newest checkpoint, and the hashes and timestamps of all receipts, but no logs. A log with few possible values can be guessed from its hash.",
          errors: ["conflict"],
          example: { public: true },
          body: TlogBody,
          response: Tlog,
        },
        ({ call, body }): Promise<Tlog> =>
          call.perform((tx) => {
            const { ref } = call.caller.project;
            notary.setPublic(tx, ref, body.public);
            return { public: body.public, path: `${TLOG}/${notary.chainToUse(ref, tx).chainId}` };
          }),
      ),
    ),
    new Elysia({ tags: ["Notary"] })
      .get(
        `${TLOG}/:chainId/checkpoint`,
        api.open(
          {
            name: "witness.tlog.checkpoint",
            summary: "Get the newest checkpoint of a published chain",
            description:
              "For auditors and monitors without a key, in the format of c2sp.org/tlog-tiles. 404 unless the project has published its log. It may contain cosignatures of witnesses.",
            responseTypes: ["text/plain"],
            errors: ["not_found", "rate_limit_exceeded"],
            admit,
            params: ChainParams,
          },
          ({ params: { chainId } }) => {
            const newest = checkpoints.newestOf(published(chainId));
            if (newest === null) throw new ApiError("not_found", "This chain has no checkpoint yet.");
            return reply(200, newest.note, { ...TEXT, "cache-control": "public, max-age=1" });
          },
        ),
      )
      .get(
        `${TLOG}/:chainId/tile/:tile`,
        api.open(
          {
            name: "witness.tlog.tile",
            belowPath: true,
            summary: "Get a tile or an entry bundle of a published chain",
            description:
              "`/tile/<L>/<N>` returns 256 hashes of the level L, `/tile/entries/<N>` 256 leaves, each after its length in two bytes. N is written in groups of three digits, all but the last after an `x`: 1234067 is `x001/x234/067`. `.p/<W>` after it selects the first W of them.",
            responseTypes: [BYTES],
            errors: ["not_found", "rate_limit_exceeded"],
            admit,
            params: TileParams,
          },
          async ({ call, params: { chainId } }) => {
            const ref = published(chainId);
            const path = pathOf(call.request.url);
            const base = `${TLOG}/${chainId}/tile/`;
            const tile = path.startsWith(base) ? parseTilePath(path.slice(base.length)) : null;
            const bytes = await tileBytes({ notary, checkpoints, bundles }, ref, tile);
            return reply(200, bytes, IMMUTABLE);
          },
        ),
      ),
  ];
}

/** Finds a chain that its account lets others read. @throws ApiError `not_found`, also while the account is suspended */
export type ShownChain = (chainId: string) => PublicChainRow;

interface TileSources {
  readonly notary: NotaryService;
  readonly checkpoints: Checkpoints;
  readonly bundles: EntryBundles;
}

async function tileBytes(
  { notary, checkpoints, bundles }: TileSources,
  projectRef: number,
  path: TilePath | null,
): Promise<Uint8Array> {
  const size = checkpoints.newestOf(projectRef)?.size ?? 0;
  if (path === null || path.width > widthAt(path, size)) {
    throw new ApiError("not_found", "The newest checkpoint does not cover a tile with this path.");
  }
  const { level, index, width } = path;
  if (level !== null) return Buffer.concat(checkpoints.hashes(projectRef, level, index).slice(0, width));
  const chain = notary.chainToUse(projectRef);
  return bundles.read(`${chain.chainId}/${index}`, width, (at) => {
    const sequence = index * TILE_WIDTH + at + 1;
    const fields = notary.leafFields(chain, sequence);
    if (fields === null) throw new Error(`chain ${chain.chainId} has no receipt ${sequence}`);
    const leaf = leafOf(fields);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(leaf.length);
    return Buffer.concat([length, leaf]);
  });
}
