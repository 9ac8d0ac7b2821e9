import { printingResponse } from "./api.ts";

/** `ninefold dashboard`: a link that logs a browser in. */
export const dashboard = printingResponse(
  ["url", "expires_at"],
  () => (api) => api.send("POST", "/v1/admin/login-links", {}),
);
