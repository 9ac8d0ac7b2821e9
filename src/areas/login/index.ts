import type { OpenCall } from "../../kernel/http/requests/call.ts";
import type { RenderedResponse } from "../../kernel/http/responses/response.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { type OidcDeps, OidcLogins } from "./oidc/service.ts";

/** A page of a login, to which browsers navigate. */
export interface LoginPage {
  readonly path: string;
  readonly serve: (call: OpenCall) => Promise<RenderedResponse>;
}

/** Builds the pages of logins at providers by OpenID Connect: to each provider, and back from it. */
export function createLoginPages<Verified>(kernel: Kernel, deps: OidcDeps<Verified>): readonly LoginPage[] {
  const logins = new OidcLogins(kernel, deps);
  return logins.providers.flatMap((provider) => {
    const path = `/login/oidc/${provider.settings.name}`;
    return [
      { path, serve: (call: OpenCall) => logins.begin(provider, call) },
      { path: `${path}/callback`, serve: (call: OpenCall) => logins.end(provider, call) },
    ];
  });
}
