import type { SessionAuthenticator } from "../../kernel/http/access/caller.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { keyDigest } from "../../kernel/secrets/key-format.ts";
import { LINK_MINUTES } from "./domain.ts";
import { sessionRoutes } from "./routes.ts";
import { type SessionDeps, SessionService } from "./service.ts";
import { Sessions } from "./sessions.ts";
import { sessionStore } from "./store.ts";

/** What sessions offer to the rest of the house. */
export interface SessionArea extends ApiArea {
  readonly authenticator: SessionAuthenticator;
  /** Makes a link that logs a browser in with a key, for a server at this address. */
  readonly createSetupLink: (key: string, url: string) => Promise<string>;
  /** Writes down what is only in memory. For the end of the process. */
  readonly finish: () => Promise<void>;
}

/** Sessions removed in one unit of work. */
const PURGE_SLICE_ROWS = 200;

/** Builds the area: browsers that work with a key that they do not have. */
export function createSessions(kernel: Kernel, ports: SessionDeps["ports"]): SessionArea {
  const store = sessionStore(kernel.db);
  const sessions = new Sessions(kernel, store, ports);
  const service = new SessionService({ ...kernel, store, sessions, ports });
  kernel.housekeeping.addPurge({
    name: "sessions.purge",
    rowsMax: PURGE_SLICE_ROWS,
    remove: (tx, rowsMax) => {
      store.removeOldLinks(tx, tx.now);
      return store.removeOld(tx, tx.now, rowsMax);
    },
  });
  return {
    authenticator: sessions,
    createSetupLink: async (key, url) =>
      (await kernel.writer.submit((tx) => service.createLink(tx, keyDigest(key), LINK_MINUTES, url))).url,
    finish: () => service.refusals.finish(),
    parts: [
      {
        name: "Sessions",
        description: "A browser's cookie that stands for a key. For the pages of this server alone.",
      },
    ],
    routes: (api) => sessionRoutes(api, service, sessions),
  };
}
