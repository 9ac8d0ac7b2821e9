import { extraAuthorities } from "../../kernel/outbound/authorities.ts";
import { OutboundClient } from "../../kernel/outbound/client.ts";
import { createSystemClock } from "../../kernel/time/clock.ts";
import { type Check, ok, skipped, warning } from "./finding.ts";

/** Whether the providers of logins respond as a login needs it, and the addresses that they must know. */
export const loginCheck: Check = {
  name: "OpenID",
  cure: "Look at [[login.oidc]] in the configuration file.",
  async run({ config: { oidc, publicUrl, allowPrivateTargets, extraCaPath } }) {
    if (oidc.length === 0) return skipped("no provider of logins is configured");
    const { Provider } = await import("../../areas/login/oidc/provider.ts");
    const outbound = new OutboundClient(allowPrivateTargets, extraAuthorities(extraCaPath));
    const deps = { clock: createSystemClock(), outbound };
    try {
      for (const settings of oidc) {
        const problem = await new Provider(settings, deps).examine().then(
          () => null,
          (error) => (error instanceof Error ? error.message : String(error)),
        );
        if (problem !== null)
          return warning(
            `${settings.name}: ${problem}`,
            "Compare issuer with the metadata of the provider, and check the connection to it.",
          );
      }
    } finally {
      outbound.close();
    }
    if (publicUrl === null)
      return warning(
        "public_url is not set: the redirect URI depends on how each browser reaches the server",
        "Set public_url to the URL that browsers use.",
      );
    const addresses = oidc.map(({ name }) => `${publicUrl}/login/oidc/${name}/callback`);
    return ok(`all providers respond; their redirect URIs are ${addresses.join(", ")}`);
  },
};
