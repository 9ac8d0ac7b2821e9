import { PROXY_KEY_HEADER } from "../access/guard.ts";
import type { Operation } from "../operation.ts";

/** What pages of this server send with every request, and no page of another site can. */
export const OWN_PAGE_HEADER = "X-Ninefold-Session";
/** A key as the document's examples show it. In an example request, the caller's own key stands in its place. */
export const EXAMPLE_KEY = "sm_4fJ9…_1c2d3e4f";

/** Where keys stand in requests, by their names in the API's description. */
export const SECURITY_SCHEMES = {
  key: {
    type: "http",
    scheme: "bearer",
    description: "A platform key, or a managed key with the prefix `sm`.",
  },
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "X-API-Key",
    description: "The same key, where a protocol that others have made has it so.",
  },
  proxyKey: {
    type: "apiKey",
    in: "header",
    name: PROXY_KEY_HEADER,
    description: "The same, of a reverse proxy: `Authorization` is its client's.",
  },
  portalToken: {
    type: "http",
    scheme: "bearer",
    description: "The token of a portal link, which follows `#token=` in its URL.",
  },
};

/** Where its key may stand. */
export function securityOf({ forProxies, byPortal, takesApiKeyHeader }: Operation) {
  if (byPortal) return [{ portalToken: [] }];
  if (forProxies) return [{ proxyKey: [] }];
  return [{ key: [] }, ...(takesApiKeyHeader ? [{ apiKey: [] }] : [])];
}
