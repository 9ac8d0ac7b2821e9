import "./errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Authenticator } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import { TierBound } from "../../kernel/tier-bounds.ts";
import type { Tiers } from "../../kernel/tiers.ts";
import { registerKeyPurge } from "./jobs.ts";
import type { KeyAccounts, KeyProjects } from "./ports.ts";
import { KeyRegistry } from "./registry.ts";
import { KeyResources } from "./resources.ts";
import { keyRoutes } from "./routes.ts";
import { KeyService } from "./service.ts";
import { KeyStore } from "./store.ts";
import { KeyUses } from "./uses.ts";

/** What managed keys offer to the rest of the house. */
export interface KeysArea extends ApiArea {
  /** Says which areas a scope can name. */
  readonly knowScopes: (areas: readonly string[]) => void;
  /** Puts managed keys beside the platform keys as credentials. */
  readonly authenticatorBeside: (platformKeys: Authenticator) => Authenticator;
  readonly resources: ProjectResources;
  /** Writes down what is only in memory. For the end of the process. */
  readonly finish: () => Promise<void>;
}

/** Builds the area: keys that accounts make, for this API or for their own. */
export function createKeys(
  kernel: Kernel,
  ports: { accounts: KeyAccounts; projects: KeyProjects; tiers: Tiers },
): KeysArea {
  const { db, writer, clock, ids, log, scheduler } = kernel;
  const { accounts, projects } = ports;
  const store = new KeyStore(db);
  const uses = new KeyUses({ store, writer, log });
  const registry = new KeyRegistry({ store, accounts, projects, uses, clock });
  const bound = new TierBound(db, ports.tiers, "keys");
  const service = new KeyService({ store, registry, uses, projects, ids, bound });
  registerKeyPurge({ scheduler, writer, store, registry, uses });
  return {
    authenticatorBeside: (platformKeys) => ({
      // Memory first, so that a managed key in use does not cost a look for a platform key in the file.
      authenticate: (digest) =>
        registry.authenticateActive(digest) ??
        platformKeys.authenticate(digest) ??
        registry.authenticate(digest),
    }),
    resources: new KeyResources({ store, registry, uses }),
    knowScopes: (areas) => {
      service.scopeAreas = areas;
    },
    parts: [
      {
        name: "Keys",
        description:
          "Rotation of the platform key, and managed keys with scopes, for this API or for your own: created, rotated, revoked at once, verified.",
      },
    ],
    routes: (api) => keyRoutes(api, service),
    finish: () => uses.finish(),
  };
}
