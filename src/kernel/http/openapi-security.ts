import type { Operation } from "./caller.ts";
import { PROXY_KEY_HEADER } from "./guard.ts";

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
};

/** Where its key may stand. */
export function securityOf({ forProxies, takesApiKeyHeader }: Operation) {
  if (forProxies) return [{ proxyKey: [] }];
  return [{ key: [] }, ...(takesApiKeyHeader ? [{ apiKey: [] }] : [])];
}
